#include "emit/spelling.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "emit/code_writer.h"

namespace bakeoff::emit {
namespace {

// Where the bracket opened at `open` is closed.
size_t closing(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '[' || text[at] == '{') ++depth;
    if ((text[at] == ')' || text[at] == ']' || text[at] == '}') && --depth == 0) return at;
  }
  return std::string::npos;
}

// True for "torch.exp(x)": a name and one pair of brackets up to the end.
bool is_call(const std::string& text) {
  const size_t open = text.find('(');
  if (open == std::string::npos || open == 0) return false;
  const bool named = std::all_of(text.begin(), text.begin() + static_cast<long>(open), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == ':';
  });
  return named && closing(text, open) == text.size() - 1;
}

// An operand of an operator.
std::string operand(const std::string& text) {
  int depth = 0;
  bool open = text.starts_with("-");
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    open = open || (c == ' ' && depth == 0);
  }
  return open ? "(" + text + ")" : text;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::vector<std::string> split_arguments(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
      while (at + 1 < text.size() && text[at + 1] == ' ') ++at;
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

bool any_order(ir::Op op) { return op == ir::Op::kMaximum || op == ir::Op::kMinimum; }

}  // namespace

bool is_literal(const std::string& text) {
  const size_t first = text.starts_with("-") ? 1 : 0;
  return first < text.size() && std::isdigit(static_cast<unsigned char>(text[first])) != 0;
}

std::string real_literal(double value, Language language) {
  if (std::isfinite(value)) return python_real(value);
  const bool negative = value < 0;
  if (language == Language::kCpp) return negative ? "-INFINITY" : "INFINITY";
  return negative ? "float(\"-inf\")" : "float(\"inf\")";
}

Spelled spell(const ir::Spelling& spelling, const ir::Node& node, std::vector<std::string> inputs,
              Language language) {
  if (any_order(node.op) && is_literal(inputs[0])) std::swap(inputs[0], inputs[1]);
  const bool scalar = inputs.size() == 2 && is_literal(inputs[1]) && !spelling.scalar.empty();
  std::string text = scalar ? spelling.scalar : spelling.call;
  for (const ir::Attribute& a : node.attributes)
    text = replaced(text, "{" + a.name + "}", real_literal(std::get<double>(a.value), language));
  const auto filled = [&](std::string part, bool inside) {
    // Alone between commas an input needs no brackets.
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string place = "{" + std::to_string(i) + "}";
      part = replaced(part, place, inside && part == place ? inputs[i] : operand(inputs[i]));
    }
    return part;
  };
  if (!is_call(text)) return {.flat = filled(text, false)};
  const size_t open = text.find('(');
  Spelled made{.flat = {}, .head = text.substr(0, open)};
  for (const std::string& part : split_arguments(text.substr(open + 1, text.size() - open - 2)))
    made.arguments.push_back(filled(part, true));
  made.flat = made.head + "(";
  for (size_t i = 0; i < made.arguments.size(); ++i) made.flat += (i > 0 ? ", " : "") + made.arguments[i];
  made.flat += ")";
  return made;
}

std::vector<const ir::Node*> pointers(const ir::Workload& workload) {
  std::vector<const ir::Node*> all;
  for (const ir::Node& node : workload.nodes) all.push_back(&node);
  return all;
}

std::set<std::string> spelled_names() {
  std::set<std::string> names;
  for (const ir::Elementwise& row : ir::elementwise_ops()) {
    for (const auto of :
         {&ir::Spellings::torch, &ir::Spellings::jax, &ir::Spellings::tensorflow, &ir::Spellings::keras}) {
      const std::string& helper = (row.spellings.*of).helper;
      if (helper.starts_with("def ")) names.insert(helper.substr(4, helper.find('(') - 4));
    }
  }
  return names;
}

std::vector<std::string> spelled_helpers(const std::vector<const ir::Node*>& nodes,
                                         ir::Spelling ir::Spellings::*of) {
  std::vector<std::string> helpers;
  for (const ir::Elementwise& row : ir::elementwise_ops()) {
    const std::string& helper = (row.spellings.*of).helper;
    const bool used =
        std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node* n) { return n->op == row.op; });
    if (used && !helper.empty() && std::find(helpers.begin(), helpers.end(), helper) == helpers.end())
      helpers.push_back(helper);
  }
  return helpers;
}

}  // namespace bakeoff::emit
