// loops() is the one place where a program gets its loops over elements. Axes along which every operand goes
// on as it went are joined, so a sum of two whole values is one loop and not four. Sizes and strides are
// written as numbers, not as variables: the compiler then knows how often a loop runs.
//
// g++ cannot know that two arrays of the arena never overlap. It would compare pointers before each loop and
// compile it twice; the pragma says that rounds are independent. That is false where the innermost round adds
// to an element that stands still, so independent() looks for such statements.

#include "emit/native/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "base/texts.h"
#include "emit/cpp.h"
#include "ir/op_table.h"

namespace bakeoff::emit::native {

std::string Call::w(std::string_view slot) const {
  const ir::ParamId id = node().param(slot);
  return id < 0 ? "nullptr" : graph.parameters[static_cast<size_t>(id)];
}

std::string Call::dw(std::string_view slot) const {
  const ir::ParamId id = node().param(slot);
  const bool trained = id >= 0 && !graph.gradients[static_cast<size_t>(id)].empty();
  return trained ? graph.gradients[static_cast<size_t>(id)] : "nullptr";
}

const ir::Shape& Call::shape_of_w(std::string_view slot) const {
  return graph.workload.parameters[static_cast<size_t>(node().param(slot))].shape;
}

size_t Call::axis(int64_t canonical, size_t i) const {
  return static_cast<size_t>(physical_axis(in(i).order, canonical, in(i).sizes.size()));
}

const OpRow* find_row(ir::Op op) {
  static const OpRows all = [] {
    OpRows rows;
    for (const OpRows& part : {dense_rows(), volume_rows(), pointwise_rows(), window_rows(), norm_rows(),
                               axis_rows(), move_rows(), sequence_rows(), loss_rows()})
      rows.insert(part.begin(), part.end());
    return rows;
  }();
  const auto found = all.find(op);
  return found == all.end() ? nullptr : &found->second;
}

void call(const Call& c, const std::string& name, const std::vector<std::string>& constants,
          const std::vector<std::string>& arguments) {
  cpp::statement(c.out, fmt::format("{}<{}>({});", name, join(constants, ", "), join(arguments, ", ")));
}

void invoke(const Call& c, const std::string& name, const std::vector<std::string>& arguments) {
  cpp::statement(c.out, fmt::format("{}({});", name, join(arguments, ", ")));
}

std::string text_of(const std::vector<int64_t>& numbers) { return join(numbers, ", "); }

std::string real(double value) {
  if (std::isinf(value))
    return value < 0 ? "-std::numeric_limits<Real>::infinity()" : "std::numeric_limits<Real>::infinity()";
  return fmt::format("Real{{{}}}", value);
}

std::vector<int64_t> strides_of(const ir::Shape& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t axis = sizes.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * sizes[axis];
  return strides;
}

Operand broadcast(const ir::Shape& own, const ir::Shape& sizes) {
  if (own.empty()) return {.strides = std::vector<int64_t>(sizes.size(), 0)};
  Operand all{.strides = strides_of(own)};
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    if (own[axis] == 1 && sizes[axis] != 1) all.strides[axis] = 0;
  }
  return all;
}

namespace {

// Arrays of a loop never overlap, each is a place of its own in the arena; without being told, g++ compares pointers before
// every loop, and compiles it twice.
constexpr const char* kIndependent = "#pragma GCC ivdep";

// Axes of a loop, those joined along which every operand goes on as it went.
struct Nest {
  std::vector<Count> sizes;
  std::vector<Operand> operands;

  Nest(const ir::Shape& shape, const std::vector<Operand>& given) {
    for (const Operand& operand : given) operands.push_back({{}, operand.offset});
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 1) continue;
      const Count size = shape[axis] == ir::kBatch ? Count{1, true} : Count{shape[axis], false};
      bool joins = !sizes.empty() && !size.rows;
      for (size_t k = 0; joins && k < given.size(); ++k)
        joins = operands[k].strides.back() == given[k].strides[axis] * size.count;
      if (joins) sizes.back().count *= size.count;
      if (!joins) sizes.push_back(size);
      for (size_t k = 0; k < given.size(); ++k) {
        if (!joins) operands[k].strides.push_back(0);
        operands[k].strides.back() = given[k].strides[axis];
      }
    }
  }

  // "i * 20 + j"
  std::string index(const Operand& operand) const {
    std::vector<std::string> terms;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const std::string name(1, static_cast<char>('i' + axis));
      const int64_t stride = operand.strides[axis];
      if (stride != 0) terms.push_back(stride == 1 ? name : fmt::format("{} * {}", name, stride));
    }
    if (operand.offset != 0 || terms.empty()) terms.push_back(std::to_string(operand.offset));
    std::string text = join(terms, " + ");
    for (size_t at = text.find("+ -"); at != std::string::npos; at = text.find("+ -"))
      text.replace(at, 3, "- ");
    return text;
  }
};

// Whether no two rounds of the innermost loop write the same element: "y[@0] += x[@1];" with @0 that stands still does.
bool independent(const Nest& nest, const std::vector<std::string>& statements) {
  for (const std::string& statement : statements) {
    if (statement.find(" + @") != std::string::npos) return false;  // a function gets the array
    for (size_t k = 0; k < nest.operands.size(); ++k) {
      for (const char* writes : {"[@{}] = ", "[@{}] += ", "[@{}] -= ", "[@{}] /= "}) {
        const bool written = statement.find(fmt::format(fmt::runtime(writes), k)) != std::string::npos;
        if (written && nest.operands[k].strides.back() == 0) return false;
      }
    }
  }
  return true;
}

// Prints them; `outermost`: how often the outermost one runs.
void print_loops(CodeWriter& out, const Nest& nest, const std::string& outermost,
                 const std::vector<std::string>& statements) {
  std::string indent;
  for (size_t axis = 0; axis < nest.sizes.size(); ++axis) {
    const char name = static_cast<char>('i' + axis);
    if (axis + 1 == nest.sizes.size() && independent(nest, statements)) out.line(indent + kIndependent);
    out.line(fmt::format("{0}for (int64_t {1} = 0; {1} < {2}; ++{1}) {{", indent, name,
                         axis == 0 ? outermost : nest.sizes[axis].text()));
    indent += "  ";
  }
  for (std::string statement : statements) {
    for (size_t k = 0; k < nest.operands.size(); ++k) {
      const std::string index = nest.index(nest.operands[k]), mark = fmt::format("@{}", k),
                        none = " + " + mark;
      for (size_t at = 0; index == "0" && (at = statement.find(none)) != std::string::npos;)
        statement.erase(at, none.size());
      for (size_t at = statement.find(mark); at != std::string::npos;
           at = statement.find(mark, at + index.size()))
        statement.replace(at, mark.size(), index);
    }
    out.line(indent + statement);
  }
  while (!indent.empty()) {
    indent.resize(indent.size() - 2);
    out.line(indent + "}");
  }
}

// Statements with letters for arrays.
class Lettered {
 public:
  Lettered(const Call& c, const std::vector<Operand>& operands, const std::vector<std::string>& given)
      : c_(c), operands_(operands) {
    static const std::regex use(R"((\w+)(\[@|\s\+\s@)(\d)(\]\s[-+*/]?=\s)?)");
    for (const std::string& statement : given) {
      std::string text;
      auto last = statement.cbegin();
      for (std::sregex_iterator found(statement.begin(), statement.end(), use), end; found != end; ++found) {
        const bool by_function = (*found)[2] != "[@" && found->prefix().str().back() != '{';
        const size_t letter = letter_of((*found)[1], static_cast<size_t>(std::stoi((*found)[3])));
        if ((*found)[4].matched || by_function) written_.insert(letter);
        text += std::string(last, (*found)[1].first) + names[letter];
        last = (*found)[1].second;
      }
      statements.push_back(text + std::string(last, statement.cend()));
    }
  }

  // ", Real* a, const int32_t* b"
  std::string parameters() const {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto value = std::ranges::find(c_.graph.values, arrays_[i].first, &Value::name);
      const bool whole = value != c_.graph.values.end() && value->whole();
      text += fmt::format(", {}{}* {}", written_.contains(i) ? "" : "const ", whole ? "int32_t" : "Real",
                          names[i]);
    }
    return text;
  }
  std::vector<std::string> arguments() const {
    std::vector<std::string> all;
    for (const auto& [array, offset] : arrays_)
      all.push_back(offset == 0 ? array
                                : fmt::format("{} {} {}", array, offset < 0 ? "-" : "+", std::abs(offset)));
    return all;
  }

  std::vector<std::string> statements, names;

 private:
  size_t letter_of(const std::string& array, size_t operand) {
    const std::pair<std::string, int64_t> key = {array, operands_[operand].offset};
    const auto known = std::ranges::find(arrays_, key);
    if (known == arrays_.end()) {
      arrays_.push_back(key);
      const size_t n = names.size();
      names.push_back(n < 8 ? std::string(1, "abcdefgh"[n])
                            : fmt::format("a{}", n));  // loops count in i, j and so on
      return n;
    }
    return static_cast<size_t>(known - arrays_.begin());
  }

  const Call& c_;
  const std::vector<Operand>& operands_;
  std::vector<std::pair<std::string, int64_t>> arrays_;
  std::set<size_t> written_;
};

}  // namespace

void loops(CodeWriter& out, const ir::Shape& sizes, const std::vector<Operand>& operands,
           const std::vector<std::string>& statements) {
  const Nest nest(sizes, operands);
  print_loops(out, nest, nest.sizes.empty() ? "" : nest.sizes[0].text(), statements);
}

void loops(const Call& c, const ir::Shape& sizes, const std::vector<Operand>& operands,
           const std::vector<std::string>& statements) {
  Nest nest(sizes, operands);
  if (c.book == nullptr || nest.sizes.empty()) return loops(c.out, sizes, operands, statements);
  const Lettered letters(c, operands, statements);
  for (Operand& operand : nest.operands) operand.offset = 0;
  CodeWriter body(2);
  print_loops(body, nest, "count", letters.statements);
  const bool rows = std::regex_search(body.text(), std::regex("\\brows\\b"));
  const std::string head = (rows ? "int64_t rows, int64_t count" : "int64_t count") + letters.parameters();
  const std::string op = c.step.node < 0 ? "turn" : ir::info(c.node().op).name;
  const std::string name = c.book->note(head, body.text(), "each_" + op);
  if (name.empty()) return loops(c.out, sizes, operands, statements);
  std::vector<std::string> arguments = letters.arguments();
  arguments.insert(arguments.begin(), nest.sizes[0].text());
  if (rows) arguments.insert(arguments.begin(), "rows");
  invoke(c, name, arguments);
}

void fill(CodeWriter& out, const std::string& pointer, const Count& count, const std::string& value) {
  out.line(fmt::format("std::fill_n({}, {}, {});", pointer, count.text(), value));
}

}  // namespace bakeoff::emit::native
