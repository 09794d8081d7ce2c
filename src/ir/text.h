#pragma once

// The text form of a workload (see workload.h). Deterministic: all attributes are printed, in the op table's
// order, also at their defaults; parse(dump(w)) == w for every valid workload.

#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::ir {

std::string dump(const Workload& workload);
// One node as it stands in the dump, without indentation.
std::string dump_node(const Workload& workload, const Node& node);

// `file` names the source in errors ("model.ir:7"). Attributes may be left out (defaults), '#' starts a
// comment. The result is verified.
Result<Workload> parse(std::string_view text, std::string_view file = "workload");

// A loss as users name it, "softmax_cross_entropy,label_smoothing=0.1": its op, and its attributes as they stand in the
// text form, with the mean over all targets where no reduction is named.
struct LossText {
  std::string op;
  std::string attributes;
};
Result<LossText> parse_loss(std::string_view text);

}  // namespace bakeoff::ir
