#include "emit/jax/network_ops.h"

namespace bakeoff::emit::jax {
namespace {

using ir::Node;

// A weight of a linear layer or an LSTM as I,O.
std::string stored_weight(const ForwardPrinter& p, std::string_view slot) {
  return p.full_param(slot) + (p.stored_as_table(slot) ? ".T" : "");
}

}  // namespace

void position_embedding(ForwardPrinter& p, const Node&) { emit::position_embedding(p, "jnp.add"); }

void recurrent(ForwardPrinter& p, const Node&) {
  emit::recurrent(p, stored_weight(p, "weight_ih"), stored_weight(p, "weight_hh"));
}

}  // namespace bakeoff::emit::jax
