#pragma once

// What one op is in a program: the statements of its forward and backward functions, by a table of ops.

#include <map>
#include <string>

#include "emit/code_writer.h"
#include "emit/native/graph.h"
#include "emit/native/loop_book.h"

namespace bakeoff::emit::native {

// One step on its way into a program.
struct Call {
  const Graph& graph;
  const Step& step;
  CodeWriter& out;
  uint64_t begun = 0;  // backwards: a bit for each input whose gradient is written here for the first time
  LoopBook* book = nullptr;  // of the program that is printed

  const ir::Node& node() const { return graph.node(step); }
  const Value& in(size_t i) const { return graph.values[static_cast<size_t>(step.inputs[i])]; }
  const Value& result() const { return graph.values[static_cast<size_t>(step.output)]; }
  // Pointers: an input, the output and their gradients; "nullptr" for a gradient that nobody needs.
  const std::string& x(size_t i = 0) const { return in(i).name; }
  const std::string& y() const { return result().name; }
  const std::string& g() const { return result().gradient; }
  bool wants(size_t i) const { return !in(i).gradient.empty(); }
  std::string dx(size_t i = 0) const { return wants(i) ? in(i).gradient : "nullptr"; }
  // Whether the gradient of x(i) is written here first, to be set and not added to.
  bool begins(size_t i) const { return (begun >> i & 1) != 0; }
  const char* adds(size_t i) const { return begins(i) ? "=" : "+="; }
  // Parameters in a slot; "nullptr" where it is missing.
  std::string w(std::string_view slot) const;
  std::string dw(std::string_view slot) const;
  bool trains(std::string_view slot) const { return dw(slot) != "nullptr"; }
  // Whether the loss is a share's part of a sum.
  bool adds_up() const { return graph.schedule.adds_up && step.output == graph.workload.loss(); }
  const ir::Shape& shape_of_w(std::string_view slot) const;
  // Which axis of `x(i)`, in the order in which it is held, a canonical axis is.
  size_t axis(int64_t canonical, size_t i = 0) const;
};

struct OpRow {
  void (*forward)(const Call&) = nullptr;
  void (*backward)(const Call&) = nullptr;        // null: no gradient passes
  bool reads_inputs = true, reads_output = true;  // by backward
  Count (*kept)(const Call&) = nullptr;           // how many numbers forward keeps for backward
  Count (*spare)(const Call&) = nullptr;          // and how many backward needs room for
  // Weights as products read them, forwards and backwards, without their names: "$$" stands for the name.
  std::pair<Pack, Pack> (*packs)(const Call&) = nullptr;
  // Whether backward can set the gradient of input i; null: it adds.
  bool (*sets)(const Call&, size_t i) = nullptr;
};

using OpRows = std::map<ir::Op, OpRow>;
const OpRow* find_row(ir::Op op);
// The row of steps that turn a value into another order.
const OpRow& turn_row();

// Its parts.
OpRows dense_rows();      // convolutions, linear, embedding, matmul
OpRows volume_rows();     // convolutions of three axes
OpRows pointwise_rows();  // element by element, broadcast
OpRows window_rows();     // pools
OpRows norm_rows();
OpRows axis_rows();  // reductions, softmax
OpRows move_rows();  // reshape, transpose, concat, ...
OpRows sequence_rows();
OpRows loss_rows();

// ---- what they share

// "name<2, 3>(a, b);"
void call(const Call& c, const std::string& name, const std::vector<std::string>& constants,
          const std::vector<std::string>& arguments);
// "name(a, b);"
void invoke(const Call& c, const std::string& name, const std::vector<std::string>& arguments);
std::string text_of(const std::vector<int64_t>& numbers);
// The convolution of a step: "native::Conv{.h = 5, .k = 3}", of three axes a Volume. A transposed one is the way back of
// that which reads its output.
std::string shape_of_conv(const Call& c);
bool transposed(const Call& c);
// As many as the output has.
inline Count as_many(const Call& c) { return count_of(c.result().sizes); }
// A number as C++ has it: "Real{0.5}".
std::string real(double value);

// One of the arrays of a loop over places.
struct Operand {
  std::vector<int64_t> strides;  // by axis of the loop
  int64_t offset = 0;
};
// Strides of an array of these sizes.
std::vector<int64_t> strides_of(const ir::Shape& sizes);
// The same over the axes of `sizes`, 0 where the operand's own size is 1.
Operand broadcast(const ir::Shape& own, const ir::Shape& sizes);
// Loops over `sizes`; "@0" in a statement is the index of the first operand.
void loops(CodeWriter& out, const ir::Shape& sizes, const std::vector<Operand>& operands,
           const std::vector<std::string>& statements);
// The same, by a function where other steps have this loop too. Statements name nothing but arrays, which stand before
// "[@0]" or " + @0", `rows`, and functions.
void loops(const Call& c, const ir::Shape& sizes, const std::vector<Operand>& operands,
           const std::vector<std::string>& statements);
// "std::fill_n(y, count, value);"
void fill(CodeWriter& out, const std::string& pointer, const Count& count,
          const std::string& value = "Real{0}");

}  // namespace bakeoff::emit::native
