#include "emit/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/texts.h"
#include "emit/code_writer.h"
#include "ir/op_table.h"

namespace bakeoff::emit {

bool made_up(const std::string& name) {
  return name.size() > 1 && name[0] == 'h' &&
         std::all_of(name.begin() + 1, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool says_little(const std::string& name) {
  constexpr size_t kReadable = 20;
  // What torch's tracer calls values after: functions, where the IR has an op of another name.
  static const std::set<std::string> kFunctions = {"cat",    "drop",  "getitem",   "pool",
                                                   "select", "slice", "squeeze",   "stack",
                                                   "to",     "view",  "unsqueeze", "zeros"};
  const std::vector<std::string> parts = split(name, "_");
  const auto number = [](const std::string& part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
  };
  // A number of its own is a place in a list, or tells values of one name apart: "steps_0_edge", "query_2".
  if (made_up(name) || name.size() > kReadable || std::any_of(parts.begin(), parts.end(), number))
    return true;
  return ir::find_op(name) != nullptr || ir::find_op(parts.back()) != nullptr ||
         kFunctions.contains(parts.back());
}

bool one_loss(const ir::Workload& workload) {
  return workload.model_end() + 1 == static_cast<int>(workload.nodes.size());
}

std::vector<std::string> output_names(const ir::Workload& workload, Namer& names) {
  std::vector<std::string> all;
  for (const ir::ValueId id : workload.outputs()) {
    const std::string& own = workload.value_name(id);
    std::string wish = all.empty() ? "prediction" : one_loss(workload) ? "target" : "output";
    if (!one_loss(workload) && !workload.is_input(id) && !says_little(own)) wish = own;
    all.push_back(names.name(all.empty() ? "out" : "output " + own, wish));
  }
  return all;
}

std::vector<NamedLoss> named_losses(const ir::Workload& workload, Namer& names) {
  std::vector<NamedLoss> all;
  for (int n = workload.model_end(); n < static_cast<int>(workload.nodes.size()); ++n) {
    const ir::Node& node = workload.nodes[static_cast<size_t>(n)];
    if (!ir::is_loss(node.op)) continue;
    const std::string wish = made_up(node.output) ? "part" : node.output;
    all.push_back({n, one_loss(workload) ? "loss" : names.name("loss " + node.output, wish)});
  }
  return all;
}

std::vector<std::string> weighted_sum(const ir::Workload& workload, const std::vector<NamedLoss>& losses) {
  constexpr size_t kLongest = 64;
  if (one_loss(workload)) return {};
  std::vector<std::string> sums;
  for (const ir::LossTerm& term : ir::loss_terms(workload)) {
    const auto named = std::find_if(losses.begin(), losses.end(),
                                    [&](const NamedLoss& loss) { return loss.node == term.node; });
    const bool minus = std::signbit(term.weight);
    const double weight = std::abs(term.weight);
    const std::string size =
        weight == 1 ? named->name : fmt::format("{} * {}", python_real(weight), named->name);
    if (sums.empty()) {
      sums.push_back(minus ? "-" + size : size);
      continue;
    }
    const std::string more = (minus ? " - " : " + ") + size;
    if (sums.back().size() + more.size() > kLongest)
      sums.push_back("loss" + more);
    else
      sums.back() += more;
  }
  return sums;
}

}  // namespace bakeoff::emit
