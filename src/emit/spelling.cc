// A spelling is a text such as "torch.clamp({0}, {least}, {most})". Filling it in must give what a person
// would write, and what means the same: operands get brackets only where they are expressions with an
// operator (operand), and an input that stands alone between commas gets none. A call is taken apart into its
// arguments, so that a line that is too long can be wrapped as the formatter does.
//
// Some attributes have no text of their own in a framework: axes are counted in the order in which it holds a
// value, slices become an index, and 0 or another number may have a shorter spelling (`zeros`, `scalar`). All
// of these are made here, and the tables stay texts.

#include "emit/spelling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/texts.h"
#include "emit/code_writer.h"
#include "emit/slices.h"
#include "ir/op_table.h"

namespace bakeoff::emit {

size_t closing(const std::string& text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '(' || text[at] == '[' || text[at] == '{') ++depth;
    if ((text[at] == ')' || text[at] == ']' || text[at] == '}') && --depth == 0) return at;
  }
  return std::string::npos;
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

namespace {

// True for "torch.exp(x)": a name and one pair of brackets up to the end.
bool is_call(const std::string& text) {
  const size_t open = text.find('(');
  if (open == std::string::npos || open == 0) return false;
  const bool named = std::all_of(text.begin(), text.begin() + static_cast<long>(open), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == ':' || c == '{' || c == '}';
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

namespace {

using Ints = std::vector<int64_t>;

std::string list(const Ints& numbers, Language language) {
  if (language == Language::kPython) return python_tuple(numbers);
  return language == Language::kCpp ? fmt::format("{{{}}}", join(numbers, ", "))
                                    : fmt::format("[{}]", join(numbers, ", "));
}

std::string attribute_text(const ir::Attribute& attribute, Language language, const Axes& axes,
                           bool reduces) {
  const bool python = language == Language::kPython;
  if (const auto* n = std::get_if<int64_t>(&attribute.value))
    return std::to_string(attribute.name == "axis" ? axes.at(*n) : *n);
  if (const auto* x = std::get_if<double>(&attribute.value)) return real_literal(*x, language);
  if (const auto* on = std::get_if<bool>(&attribute.value))
    return language == Language::kOnnx ? (*on ? "1" : "0")
           : python                    ? python_bool(*on)
           : *on                       ? "true"
                                       : "false";
  if (const auto* word = std::get_if<std::string>(&attribute.value)) return *word;
  Ints numbers = std::get<Ints>(attribute.value);
  if (attribute.name == "axes") {
    for (int64_t& axis : numbers) axis = axes.at(axis);
    std::sort(numbers.begin(), numbers.end());
    // One axis is a number to Python's reductions.
    if (python && numbers.size() == 1 && reduces) return std::to_string(numbers[0]);
  }
  return list(numbers, language);
}

// "[:, 2:5]", of the last of three axes or more "[..., 2:5]"
std::string index_text(const ir::Node& slice, const Axes& axes) {
  const int64_t begin = slice.integer("begin"), step = slice.integer("step");
  std::string range = begin == 0 ? ":" : fmt::format("{}:", begin);
  range += std::to_string(slice.integer("end"));
  if (step != 1) range += fmt::format(":{}", step);
  if (slice.integer("end") == ir::kSteps)
    range = fmt::format("{}:", begin - ir::kSteps);  // of the last words
  return index_of(axes.at(slice.integer("axis")), axes.rank, range);
}

// What ONNX's Slice needs to walk axes backwards: starts, ends, axes, steps.
std::string backwards_text(const ir::Node& flip) {
  const Ints& axes = flip.integers("axes");
  const Ints last(axes.size(), -1), before_first(axes.size(), std::numeric_limits<int64_t>::min() + 1);
  return fmt::format("[{}], [{}], [{}], [{}]", join(last, ", "), join(before_first, ", "), join(axes, ", "),
                     join(last, ", "));
}

// The sizes of an expand after N; L is read from the input, which ONNX does where the size is 1.
std::string sizes_text(const ir::Node& expand, Order order, Language language) {
  const char* words = language == Language::kOnnx  ? "1"
                      : language == Language::kCpp ? "{{0}}.size({})"
                                                   : "{{0}}.shape[{}]";
  const ir::Shape shape = physical_shape(order, expand.integers("shape"));
  std::vector<std::string> sizes;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    sizes.push_back(shape[axis] == ir::kSteps ? fmt::format(fmt::runtime(words), axis)
                                              : std::to_string(shape[axis]));
  return join(sizes, ", ");
}

// The axes of x behind that of the places, which they lack.
std::string behind_text(int64_t axis, int64_t rank, Language language) {
  std::string text;
  Ints axes;
  for (int64_t behind = axis + 1; behind < rank; ++behind) {
    axes.push_back(behind);
    text += language == Language::kCpp ? ".unsqueeze(-1)" : ", None";
  }
  if (language == Language::kOnnx) return list(axes, language);
  return language == Language::kCpp || text.empty() ? text : "[..." + text + "]";
}

std::string with_attributes(std::string text, const ir::Node& node, Language language, const Axes& axes) {
  if (node.op == ir::Op::kSlice && node.integer("end") == ir::kSteps) {  // of the last words
    text = replaced(text, "{begin}", std::to_string(node.integer("begin") - ir::kSteps));
    text = replaced(
        text, "{end}",
        language == Language::kCpp ? "std::nullopt" : std::to_string(std::numeric_limits<int64_t>::max()));
  }
  for (const ir::Attribute& a : node.attributes) {
    text =
        replaced(text, "{" + a.name + "}", attribute_text(a, language, axes, node.has_attribute("keepdims")));
    const std::string condition = "{" + a.name + "?";
    for (size_t at = text.find(condition); at != std::string::npos; at = text.find(condition)) {
      const size_t end = text.find('}', at), begin = at + condition.size();
      text.replace(at, end - at + 1, std::get<bool>(a.value) ? text.substr(begin, end - begin) : "");
    }
  }
  if (node.op == ir::Op::kSlice) text = replaced(text, "{index}", index_text(node, axes));
  if (node.op == ir::Op::kFlip) text = replaced(text, "{backwards}", backwards_text(node));
  if (text.find("{behind}") != std::string::npos) {
    const int64_t axis = node.integer("axis");
    text = replaced(text, "{behind}", behind_text(axis, static_cast<int64_t>(axes.rank), language));
    text = replaced(text, "{after}", std::to_string(axis + 1));
  }
  if (node.op == ir::Op::kExpand) text = replaced(text, "{sizes}", sizes_text(node, axes.order, language));
  return text;
}

}  // namespace

Spelled spell(const ir::Spelling& spelling, const ir::Node& node, std::vector<std::string> inputs,
              Language language, const Axes& axes) {
  if (any_order(node.op) && is_literal(inputs[0])) std::swap(inputs[0], inputs[1]);
  const std::string& number = node.op == ir::Op::kExpand ? inputs[0] : inputs.back();
  const bool scalar = inputs.size() == 2 && is_literal(number) && !spelling.scalar.empty();
  const bool zeros = scalar && number_in(number) == 0 && !spelling.zeros.empty();
  const std::string& chosen = zeros ? spelling.zeros : scalar ? spelling.scalar : spelling.call;
  const std::string text = with_attributes(chosen, node, language, axes);
  const auto filled = [&](std::string part) {
    // Alone between commas an input needs no brackets.
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string place = "{" + std::to_string(i) + "}";
      if (part == place) return inputs[i];
      part = replaced(part, place, operand(inputs[i]));
    }
    return part;
  };
  if (!is_call(text)) {
    const std::string flat = filled(text);
    return {.flat = flat, .infix = operand(flat) != flat};
  }
  const size_t open = text.find('(');
  Spelled made{.flat = {}, .head = filled(text.substr(0, open))};
  for (const std::string& part : split_arguments(text.substr(open + 1, text.size() - open - 2)))
    made.arguments.push_back(filled(part));
  made.flat = fmt::format("{}({})", made.head, join(made.arguments, ", "));
  return made;
}

}  // namespace bakeoff::emit
