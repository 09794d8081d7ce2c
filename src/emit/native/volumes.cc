// Convolutions of volumes, held N,D,H,W,C with kernels Q,R,S,C,K. A transposed one is the way back of an ordinary one, as
// in dense.cc.

#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

Count places_of(const Value& v) { return count_of(v.sizes, 0, v.sizes.size() - 1); }

void volumes(const Call& c) {
  call(c, "start_rows", {std::to_string(c.result().sizes.back())},
       {places_of(c.result()).text(), c.w("bias"), c.y()});
  call(c, transposed(c) ? "conv3d_dx" : "conv3d", {shape_of_conv(c)}, {"rows", c.x(), c.w("weight"), c.y()});
}

void volumes_backward(const Call& c) {
  if (c.trains("bias"))
    call(c, "column_sums", {std::to_string(c.result().sizes.back())},
         {places_of(c.result()).text(), c.g(), c.dw("bias")});
  const bool back = transposed(c);
  if (c.trains("weight"))
    call(c, "conv3d_dw", {shape_of_conv(c)},
         {"rows", back ? c.g() : c.x(), back ? c.x() : c.g(), c.dw("weight")});
  if (c.wants(0))
    call(c, back ? "conv3d" : "conv3d_dx", {shape_of_conv(c)}, {"rows", c.g(), c.w("weight"), c.dx()});
}

}  // namespace

OpRows volume_rows() {
  const OpRow row = {volumes, volumes_backward, true, false};
  return {{Op::kConv3d, row}, {Op::kConvTranspose3d, row}};
}

}  // namespace bakeoff::emit::native
