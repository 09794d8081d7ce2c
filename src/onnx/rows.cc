#include "onnx/rows.h"

namespace bakeoff::onnx {

const Rows& rows() {
  static const Rows all = [] {
    Rows joined;
    for (Rows part : {elementwise_rows(), shape_rows(), axis_rows(), resize_rows(), layer_rows(),
                      window_rows(), recurrent_rows(), attention_rows()})
      joined.merge(part);
    return joined;
  }();
  return all;
}

}  // namespace bakeoff::onnx
