#include "onnx/rows.h"

namespace bakeoff::onnx {

const Rows& rows() {
  static const Rows all = [] {
    Rows joined;
    for (Rows part : {elementwise_rows(), shape_rows(), axis_rows(), resize_rows(), layer_rows(),
                      window_rows(), place_rows(), recurrent_rows(), attention_rows()})
      joined.merge(part);
    return joined;
  }();
  return all;
}

Status want_graph(const Call& call, size_t input) {
  if (!call.in(input).is_graph())
    return refused("computes with constants alone, in a way that is not computed at import");
  return Done{};
}

}  // namespace bakeoff::onnx
