// Convolutions of volumes, held N,D,H,W,C with kernels Q,R,S,C,K. A transposed one is the way back of an ordinary one, as
// in dense.cc.

#include <fmt/format.h>

#include "base/texts.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

bool goes_back(const Call& c) { return ir::is_conv_transpose(c.node().op); }

std::string volume(const Call& c) {
  const ir::Node& node = c.node();
  const ir::Shape &in = (goes_back(c) ? c.result() : c.in(0)).sizes,
                  &out = (goes_back(c) ? c.in(0) : c.result()).sizes;
  std::vector<std::string> fields;
  const auto add = [&](const std::string& name, int64_t value, int64_t otherwise = 1) {
    if (value != otherwise) fields.push_back(fmt::format(".{} = {}", name, value));
  };
  const std::string axes = "dhw", kernel = "qrs";
  const char* const before[] = {"front", "top", "left"};
  for (size_t i = 0; i < 3; ++i) add(axes.substr(i, 1), in[i + 1]);
  add("c", in.back());
  for (size_t i = 0; i < 3; ++i) add("o" + axes.substr(i, 1), out[i + 1]);
  add("k", out.back());
  for (size_t i = 0; i < 3; ++i) add(kernel.substr(i, 1), c.shape_of_w("weight")[i + 2]);
  for (size_t i = 0; i < 3; ++i) add("stride_" + axes.substr(i, 1), node.integers("stride")[i]);
  for (size_t i = 0; i < 3; ++i) add(before[i], node.integers("pad")[2 * i], 0);
  for (size_t i = 0; i < 3; ++i) add("dilation_" + axes.substr(i, 1), node.integers("dilation")[i]);
  add("groups", node.integer("groups"));
  return fmt::format("Volume{{{}}}", join(fields, ", "));
}

Count places_of(const Value& v) { return count_of(v.sizes, 0, v.sizes.size() - 1); }

void volumes(const Call& c) {
  call(c, "start_rows", {std::to_string(c.result().sizes.back())},
       {places_of(c.result()).text(), c.w("bias"), c.y()});
  call(c, goes_back(c) ? "conv3d_dx" : "conv3d", {volume(c)}, {"rows", c.x(), c.w("weight"), c.y()});
}

void volumes_backward(const Call& c) {
  if (c.trains("bias"))
    call(c, "column_sums", {std::to_string(c.result().sizes.back())},
         {places_of(c.result()).text(), c.g(), c.dw("bias")});
  const bool back = goes_back(c);
  if (c.trains("weight"))
    call(c, "conv3d_dw", {volume(c)}, {"rows", back ? c.g() : c.x(), back ? c.x() : c.g(), c.dw("weight")});
  if (c.wants(0)) call(c, back ? "conv3d" : "conv3d_dx", {volume(c)}, {"rows", c.g(), c.w("weight"), c.dx()});
}

}  // namespace

OpRows volume_rows() {
  const OpRow row = {volumes, volumes_backward, true, false};
  return {{Op::kConv3d, row}, {Op::kConvTranspose3d, row}};
}

}  // namespace bakeoff::emit::native
