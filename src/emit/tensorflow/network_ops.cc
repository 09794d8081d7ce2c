#include "emit/tensorflow/network_ops.h"

#include <fmt/format.h>

namespace bakeoff::emit::tensorflow {
namespace {

using ir::Node;

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.stored_as_table(slot) ? fmt::format("tf.transpose({})", p.full_param(slot)) : p.full_param(slot);
}

}  // namespace

void position_embedding(ForwardPrinter& p, const Node&) { emit::position_embedding(p, "tf.add"); }

void recurrent(ForwardPrinter& p, const Node&) {
  emit::recurrent(p, stored_weight(p, "weight_ih"), stored_weight(p, "weight_hh"));
}

}  // namespace bakeoff::emit::tensorflow
