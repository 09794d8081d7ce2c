#include "emit/onnxruntime/graph_printer.h"

#include <fmt/format.h>

#include "base/texts.h"

namespace bakeoff::emit::onnxruntime {
namespace {

constexpr size_t kColumns = 88;

std::string quote(const std::string& text) { return "\"" + text + "\""; }

// Where the first pair of brackets opens and closes.
std::pair<size_t, size_t> first_brackets(const std::string& expression) {
  const size_t open = expression.find_first_of("([");
  int depth = 0;
  for (size_t at = open; at < expression.size(); ++at) {
    if (expression[at] == '(' || expression[at] == '[') ++depth;
    if ((expression[at] == ')' || expression[at] == ']') && --depth == 0) return {open, at};
  }
  return {open, expression.size()};
}

}  // namespace

std::string list_of(const std::vector<int64_t>& numbers) { return fmt::format("[{}]", join(numbers, ", ")); }

std::string list_of(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(quote(name));
  return fmt::format("[{}]", join(quoted, ", "));
}

GraphPrinter::GraphPrinter(CodeWriter& out, const Graph& graph, bool caches_grow)
    : out_(out), graph_(graph), caches_grow_(caches_grow) {
  for (const ir::Parameter& parameter : graph.workload.parameters) taken_.insert(parameter.name);
  for (const ir::ValueId id : graph.forward_inputs()) names_[id] = unique(graph.workload.value_name(id));
}

std::string GraphPrinter::unique(const std::string& wish) {
  std::string name = wish;
  for (int n = 2; !taken_.insert(name).second; ++n) name = fmt::format("{}.{}", wish, n);
  return name;
}

std::vector<std::string> GraphPrinter::print() {
  std::set<std::string> taken;  // by inputs and outputs
  for (const auto& [id, name] : names_) taken.insert(name);
  for (const int n : graph_.live) {
    node_ = n;
    op_functions().at(node().op)(*this, node());
  }
  // An output that is an input as it stands, or another output, needs a node of its own.
  std::vector<std::string> outputs;
  for (const ir::ValueId id : graph_.outputs()) {
    outputs.push_back(names_.at(id));
    if (taken.insert(outputs.back()).second) continue;
    const std::string copy = unique(outputs.back() + ".copy");
    print_add("Identity", {outputs.back()}, copy, {});
    outputs.back() = copy;
  }
  return outputs;
}

std::string GraphPrinter::param(std::string_view slot) const {
  return graph_.workload.parameters[static_cast<size_t>(node().param(slot))].name;
}

void GraphPrinter::add(const std::string& op, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& attributes) {
  const std::string output = unique(node().output);
  names_[graph_.workload.output_of(node_)] = output;
  print_add(op, inputs, output, attributes);
}

std::string GraphPrinter::step(const std::string& op, const std::string& part,
                               const std::vector<std::string>& inputs,
                               const std::vector<std::string>& attributes) {
  const std::string output = unique(node().output + "." + part);
  print_add(op, inputs, output, attributes);
  return output;
}

std::string GraphPrinter::update(std::string_view slot, const std::string& op,
                                 std::vector<std::string> inputs) {
  inputs.insert(inputs.begin(), param(slot));
  const std::string next = unique(inputs[0] + ".next");
  caches_.push_back({node().param(slot), next});
  print_add(op, inputs, next, {"axis=2"});
  return next;
}

std::string GraphPrinter::constant(const std::string& part, const std::string& expression,
                                   const std::string& stem) {
  const std::string key = stem + " " + part + " " + expression;
  if (const auto found = constants_.find(key); found != constants_.end()) return found->second;
  const std::string name = unique((stem.empty() ? node().output : stem) + "." + part);
  const std::string head = fmt::format("constants[\"{}\"] = ", name);
  if (static_cast<size_t>(out_.column()) + head.size() + expression.size() <= kColumns) {
    out_.line(head + expression);
  } else {
    const auto [open, close] = first_brackets(expression);
    out_.line(head + expression.substr(0, open + 1));
    {
      const auto inside = out_.indent();
      out_.line(expression.substr(open + 1, close - open - 1));
    }
    out_.line(expression.substr(close));
  }
  return constants_[key] = name;
}

// As the formatter has it: on one line, on one line of its own, or an argument a line.
void GraphPrinter::print_add(const std::string& op, const std::vector<std::string>& inputs,
                             const std::string& output, const std::vector<std::string>& attributes) {
  std::vector<std::string> arguments = {quote(op), list_of(inputs), quote(output)};
  arguments.insert(arguments.end(), attributes.begin(), attributes.end());
  const auto inner = static_cast<size_t>(out_.column()) + 4;
  if (inner + arguments[1].size() + 1 <= kColumns) return out_.call("add", arguments);
  out_.line("add(");
  {
    const auto inside = out_.indent();
    for (const std::string& argument : arguments) {
      if (&argument != &arguments[1]) {
        out_.line(argument + ",");
        continue;
      }
      out_.line("[");
      {
        const auto items = out_.indent();
        for (const std::string& input : inputs) out_.line(quote(input) + ",");
      }
      out_.line("],");
    }
  }
  out_.line(")");
}

}  // namespace bakeoff::emit::onnxruntime
