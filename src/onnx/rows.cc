#include "onnx/rows.h"

namespace bakeoff::onnx {

const Rows& rows() {
  static const Rows all = [] {
    Rows joined = elementwise_rows();
    joined.merge(shape_rows());
    joined.merge(layer_rows());
    return joined;
  }();
  return all;
}

}  // namespace bakeoff::onnx
