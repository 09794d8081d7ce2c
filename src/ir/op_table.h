#pragma once

// The one op table. It drives the verifier, shape inference, the cost model, docs/ops.md, the text form, the
// random cases of the cross-framework test and the completeness checks of the referee and every emitter.
// To add an op, see docs/adding_an_op.md.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/attributes.h"
#include "ir/node_view.h"
#include "ir/workload.h"

namespace bakeoff::ir {

struct ParamSpec {
  std::string slot;
  Role role = Role::kWeight;
  bool optional = false;
};

// How an op sees the axes of an activation of three to five axes; emitters for channels-last frameworks plan layouts with it.
enum class AxisRule {
  kElementwise,  // no axis means anything: any common layout will do
  kSpatial,      // N, channels and places by meaning: runs natively with channels last too
  kAxis,         // names an axis in an attribute, which can be translated
  kCanonical,    // depends on the order of axes in memory
};

struct OpInfo {
  Op op = Op::kRelu;
  std::string name;
  std::string doc;  // one sentence: formula, conventions
  std::vector<AttrSpec> attributes = {};
  size_t min_inputs = 1;
  size_t max_inputs = 1;
  std::vector<ParamSpec> params = {};
  AxisRule axes = AxisRule::kElementwise;
  bool sums = false;  // adds up many elements, which half precision must not
  // Index of an input that holds integers in [0, bound(view)); -1 if no input does. The input may be
  // optional.
  int integer_input = -1;
  int64_t (*bound)(const NodeView&) = nullptr;
  // Checks inputs, parameters and attributes; gives the output type.
  Result<Type> (*shape)(const NodeView&) = nullptr;
  // Multiply-accumulates of the forward pass for one element of the batch; null for none.
  int64_t (*macs)(const NodeView&, const Type& output) = nullptr;
};

const std::vector<OpInfo>& op_table();  // in the order of enum Op
const OpInfo& info(Op op);
const OpInfo* find_op(std::string_view name);
std::vector<std::string> op_names();

// The text of docs/ops.md, made from the table.
std::string ops_markdown();

// The node `op` with every attribute at its fallback; attributes without one are absent.
Node node_with_defaults(Op op);
// Replaces or adds an attribute, keeping the table's order.
void set_attribute(Node& node, std::string_view name, AttrValue value);

}  // namespace bakeoff::ir
