#include "emit/keras/network_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/texts.h"
#include "ir/dropout.h"

namespace bakeoff::emit::keras {
namespace {

using Strings = std::vector<std::string>;

// 1 / sqrt(width). On TensorFlow Keras rounds a Python number to float32, also for float64; a numpy one it
// keeps.
std::string scale(int64_t width, const std::string& backend) {
  const std::string plain = fmt::format("{}**-0.5", width);
  const double value = 1 / std::sqrt(static_cast<double>(width));
  const bool exact = value == static_cast<double>(static_cast<float>(value));
  return exact || backend != "tensorflow" ? plain : fmt::format("np.float64({})", plain);
}

}  // namespace

void lrn(Printer& p, const ir::Node& node) {
  p.assign("local_response_norm",
           {p.input(node, 0), fmt::format("size={}", node.integer("size")),
            "alpha=" + python_real(node.real("alpha")), "beta=" + python_real(node.real("beta")),
            "k=" + python_real(node.real("k"))});
}

void position_embedding(Printer& p, const ir::Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight"))].shape;
  p.layer(node, "PositionEmbedding", {std::to_string(w[0])}, p.input(node, 0), {{"weight", "embeddings"}});
}

void attention(Printer& p, const ir::Node& node) {
  if (node.has("keys")) {
    Strings options = {
        std::to_string(p.workload.parameters[static_cast<size_t>(node.param("keys"))].shape[1])};
    if (const int64_t window = node.integer("window"); window > 0)
      options.push_back(fmt::format("window={}", window));
    Strings read;
    for (size_t i = 0; i < node.inputs.size(); ++i) read.push_back(p.input(node, i));
    return p.layer(node, "CachedAttention", options, fmt::format("[{}]", join(read, ", ")),
                   {{"keys", "keys"}, {"values", "values"}});
  }
  Strings arguments = {p.input(node, 0), p.input(node, 1), p.input(node, 2)};
  const int64_t times = p.shape(node.inputs[0])[2] / p.shape(node.inputs[1])[2];
  for (size_t i = 1; times > 1 && i < 3; ++i)
    arguments[i] = fmt::format("{}({}, {}, axis=2)", p.dialect.op("repeat"), arguments[i], times);
  if (node.inputs.size() == 4) {
    const std::string keys = std::to_string(p.shape(node.inputs[1])[1]);
    arguments.push_back("mask=" + p.once("mask", "padding_mask", node, 3, keys));
  }
  const bool drops = ir::drops(node), own = p.backend == "jax" || p.dialect.second || drops;
  if (!own) arguments.push_back("scale=" + scale(p.shape(node.inputs[0])[3], p.backend));
  if (const int64_t window = node.integer("window"); window > 0)
    arguments.push_back(fmt::format("mask=window_mask({}, {})", p.shape(node.inputs[1])[1], window));
  else if (node.flag("causal"))
    arguments.push_back("is_causal=True");
  if (drops) arguments.push_back("rate=" + python_real(node.real("rate")));
  p.assign(own ? "attention" : "ops.dot_product_attention", arguments);
}

// Prints the layer; one that begins at the last place gives its outputs in the order of its steps.
void recurrent_layer(Printer& p, const ir::Node& node, const std::string& head, Strings arguments,
                     const std::map<std::string, std::string>& variables) {
  const bool reverse = node.flag("reverse");
  if (reverse) arguments.push_back("go_backwards=True");
  p.layer(node, head, arguments, p.input(node, 0), variables);
  if (!reverse) return;
  const std::string h = p.value_name(p.workload.output_of(p.node));
  p.out.line(p.dialect.second ? fmt::format("{0} = tf.reverse({0}, axis=[1])", h)
                              : fmt::format("{0} = ops.flip({0}, axis=1)", h));
}

// Keras has the gates i, f, c, o: the same order.
void lstm(Printer& p, const ir::Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight_hh"))].shape;
  Strings arguments = {std::to_string(w[1]), "return_sequences=True"};
  if (!node.has("bias")) arguments.push_back("use_bias=False");
  recurrent_layer(p, node, "layers.LSTM", arguments,
                  {{"weight_ih", "lstm_cell/kernel"},
                   {"weight_hh", "lstm_cell/recurrent_kernel"},
                   {"bias", "lstm_cell/bias"}});
}

void gru(Printer& p, const ir::Node& node) {
  const ir::Shape& w = p.workload.parameters[static_cast<size_t>(node.param("weight_hh"))].shape;
  const std::string cell =
      fmt::format("GRUCell({}{}, name=\"gru_cell\")", w[1], node.has("bias_ih") ? "" : ", use_bias=False");
  recurrent_layer(p, node, "layers.RNN", {cell, "return_sequences=True"},
                  {{"weight_ih", "gru_cell/kernel"},
                   {"weight_hh", "gru_cell/recurrent_kernel"},
                   {"bias_ih", "gru_cell/bias"},
                   {"bias_hh", "gru_cell/recurrent_bias"}});
}

}  // namespace bakeoff::emit::keras
