#pragma once

// Prints source text: scopes, indentation, named substitution.
//
//   CodeWriter out;
//   out.print("def $name$($args$):\n", {{"name", "forward"}, {"args", "x"}});
//   {
//     auto body = out.indent();
//     out.print("return x\n");
//   }
//   out.text();
//
// Each line of a printed text gets the current indentation, empty lines none. "$name$" is replaced, "$$" is a
// dollar sign; a name without a value is a bug and aborts.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bakeoff::emit {

using Variables = std::map<std::string, std::string, std::less<>>;

// What is printed as one piece: a line, or a call that may need several lines.
struct Statement {
  int level = 0;
  std::string head = {};
  std::vector<std::string> arguments = {};  // of a call
  std::string tail = {};
  bool call = false;
  bool operator==(const Statement&) const = default;
};

class CodeWriter {
 public:
  // `wide`: what it holds is printed again, so that lines may be as long as they like.
  explicit CodeWriter(int spaces_per_level = 4, bool wide = false) : spaces_(spaces_per_level), wide_(wide) {}

  class Scope {
   public:
    explicit Scope(CodeWriter& writer) : writer_(writer) { ++writer_.level_; }
    ~Scope() { --writer_.level_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CodeWriter& writer_;
  };

  void print(std::string_view text, const Variables& variables = {});
  // Prints one line as it is (no substitution), indented.
  void line(std::string_view text);
  void blank(int lines = 1);
  [[nodiscard]] Scope indent() { return Scope(*this); }
  // Columns of the current indentation.
  int column() const { return level_ * spaces_; }
  bool wide() const { return wide_; }

  // Python: prints `head(arg, arg, ...)tail` the way black and ruff format it at 88 columns: on one line if
  // it fits; else all arguments on one indented line; else one argument a line with a trailing comma.
  void call(std::string_view head, const std::vector<std::string>& arguments, std::string_view tail = "");
  // Prints it at its level, counted from the present one.
  void statement(const Statement& statement);

  // "return value", or "return f(x)" in place of a last line "value = f(x)".
  void give_back(const std::string& value);

  // What was printed, before it was broken into lines.
  const std::vector<Statement>& statements() const { return statements_; }
  std::string text() const;

 private:
  int spaces_;
  bool wide_;
  int level_ = 0;
  std::vector<Statement> statements_;
};

// A Python literal: "1e-4", "0.9", "1.0".
std::string python_real(double value);
// A Python literal: "(1, 2)", with one element "(1,)".
std::string python_tuple(const std::vector<int64_t>& values);
// A Python literal: "True" or "False".
std::string python_bool(bool value);
// In camel case: "mnist_cnn" -> "MnistCnn".
std::string camel_case(std::string_view name);
// From camel case: "EncoderLayer" -> "encoder_layer".
std::string snake_case(std::string_view name);
// An identifier: "conv1.weight" -> "conv1_weight". The caller's Namer makes it unique.
std::string identifier(std::string_view name);
// The same without leading underscores: an attribute with one is private to TensorFlow, and no layer of Keras 2
// may be called so.
std::string public_identifier(std::string_view name);
// The part before the last dot: "block1.conv.weight" -> "block1.conv".
std::string layer_of(std::string_view parameter);
// The part after the last dot: "block1.conv.weight" -> "weight".
std::string leaf_of(std::string_view parameter);

}  // namespace bakeoff::emit
