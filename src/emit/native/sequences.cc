// Attention, recurrent layers, tables of positions.

#include <fmt/format.h>

#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

void positions(const Call& c) {
  const ir::Shape& x = c.in(0).sizes;
  const Operand all{.strides = strides_of(x)};
  loops(c, x, {all, broadcast({1, x[1], x[2]}, x)},
        {fmt::format("{}[@0] = {}[@0] + {}[@1];", c.y(), c.x(), c.w("weight"))});
}
void positions_backward(const Call& c) {
  const ir::Shape& x = c.in(0).sizes;
  std::vector<std::string> statements;
  if (c.wants(0)) statements.push_back(fmt::format("{}[@0] += {}[@0];", c.dx(), c.g()));
  if (c.trains("weight")) statements.push_back(fmt::format("{}[@1] += {}[@0];", c.dw("weight"), c.g()));
  loops(c, x, {{.strides = strides_of(x)}, broadcast({1, x[1], x[2]}, x)}, statements);
}

std::string heads(const Call& c) {
  const ir::Shape &q = c.in(0).sizes, &k = c.in(1).sizes;
  std::string text = fmt::format("Heads{{.queries = {}, .keys = {}, .heads = {}, .groups = {}, .width = {}",
                                 q[1], k[1], q[2], k[2], q[3]);
  if (c.node().flag("causal")) text += ", .causal = true";
  if (const int64_t window = c.node().integer("window"); window > 0)
    text += fmt::format(", .window = {}", window);
  return text + "}";
}
std::vector<std::string> attention_arguments(const Call& c) {
  const double rate = c.graph.trains() ? c.node().real("rate") : 0;
  return {"first",
          "rows",
          rate > 0 ? fmt::format("dropout_key({})", c.step.node) : "0",
          rate > 0 ? fmt::format("dropout_rate({})", rate) : "0",
          c.x(0),
          c.x(1),
          c.x(2),
          c.step.inputs.size() == 4 ? c.x(3) : "nullptr"};
}
void attention(const Call& c) {
  auto arguments = attention_arguments(c);
  arguments.push_back(c.y());
  call(c, "attention", {heads(c)}, arguments);
}
void attention_backward(const Call& c) {
  auto arguments = attention_arguments(c);
  for (const std::string& more : {c.g(), c.dx(0), c.dx(1), c.dx(2)}) arguments.push_back(more);
  call(c, "attention_backward", {heads(c)}, arguments);
}

std::string cells(const Call& c) {
  const ir::Shape &x = c.in(0).sizes, &y = c.result().sizes;
  return fmt::format("Cells{{.length = {}, .inputs = {}, .units = {}{}}}", x[1], x[2], y[2],
                     c.node().flag("reverse") ? ", .reverse = true" : "");
}
bool is_lstm(const Call& c) { return c.node().op == Op::kLstm; }
void recurrent(const Call& c) {
  std::vector<std::string> arguments = {"rows", c.x(), c.w("weight_ih"), c.w("weight_hh")};
  if (is_lstm(c))
    arguments.push_back(c.w("bias"));
  else
    arguments.insert(arguments.end(), {c.w("bias_ih"), c.w("bias_hh")});
  arguments.insert(arguments.end(), {c.step.kept, c.y()});
  call(c, is_lstm(c) ? "lstm" : "gru", {cells(c)}, arguments);
}
void recurrent_backward(const Call& c) {
  std::vector<std::string> arguments = {
      "rows", c.x(), c.w("weight_ih"), c.w("weight_hh"),  c.step.kept,
      c.y(),  c.g(), c.step.spare,     c.dw("weight_ih"), c.dw("weight_hh")};
  if (is_lstm(c))
    arguments.push_back(c.dw("bias"));
  else
    arguments.insert(arguments.end(), {c.dw("bias_ih"), c.dw("bias_hh")});
  arguments.push_back(c.dx());
  call(c, is_lstm(c) ? "lstm_backward" : "gru_backward", {cells(c)}, arguments);
}
// Gates, and cells or what the state gives to n, of every place.
Count recurrent_kept(const Call& c) {
  const ir::Shape& y = c.result().sizes;
  return {y[1] * y[2] * (is_lstm(c) ? 5 : 4), true};
}
Count recurrent_spare(const Call& c) {
  const ir::Shape& y = c.result().sizes;
  return {is_lstm(c) ? (4 * y[1] + 2) * y[2] : (6 * y[1] + 1) * y[2], true};
}

}  // namespace

OpRows sequence_rows() {
  const OpRow layer = {recurrent, recurrent_backward, true, true, recurrent_kept, recurrent_spare};
  return {{Op::kPositionEmbedding, {positions, positions_backward, false, false}},
          {Op::kAttention, {attention, attention_backward, true, false}},
          {Op::kLstm, layer},
          {Op::kGru, layer}};
}

}  // namespace bakeoff::emit::native
