// The kernels over all shapes, for the instruction set that this file is compiled for. Work and packed
// weights begin as numbers that would show, and are no longer than what the kernels say that they need.

#include <utility>

#include "emit/native/kernels/kernels.h"
#include "shapes.h"

#define CASES_OF_NAME(isa) cases_##isa
#define CASES_OF(isa) CASES_OF_NAME(isa)

namespace bakeoff {
namespace {

using namespace native;

constexpr Conv conv_of(const ConvShape& s) {
  return {s.h,        s.w,        s.c,   s.oh,   s.ow,         s.k,          s.r,     s.s,
          s.stride_h, s.stride_w, s.top, s.left, s.dilation_h, s.dilation_w, s.groups};
}

template <typename T>
std::vector<T> used(int64_t count) {
  return std::vector<T>(static_cast<size_t>(count), T(7));
}

template <typename T, size_t kIndex>
void conv(Layer<T>& l) {
  constexpr Conv S = conv_of(conv_shape(kIndex));
  constexpr int64_t kX = S.h * S.w * S.c, kY = S.oh * S.ow * S.k;
  auto packed = used<T>(conv2d_packed<T, S>()), turned = used<T>(conv2d_dx_packed<T, S>());
  auto work = used<T>(conv2d_work<T, S>()), dx_work = used<T>(conv2d_dx_work<T, S>());
  auto dw_work = used<T>(conv2d_dw_work<T, S>());
  conv2d_pack<T, S>(l.w.data(), packed.data());
  conv2d_dx_pack<T, S>(l.w.data(), turned.data());
  const int64_t step = l.pieces ? 1 : l.n;
  for (int64_t i = 0; i < l.n; i += step) {
    conv2d<T, S, kBias | kAdd | kRelu>(step, l.x.data() + i * kX, packed.data(), {.bias = l.bias.data()},
                                       l.y.data() + i * kY, work.data());
    conv2d_dx<T, S, kMask>(step, l.dy.data() + i * kY, turned.data(), {.mask = l.x.data() + i * kX},
                           l.dx.data() + i * kX, dx_work.data());
  }
  conv2d_dw<T, S>(l.n, l.x.data(), l.dy.data(), l.dw.data(), dw_work.data());
}

template <typename T, size_t kIndex>
void fully_connected(Layer<T>& l) {
  constexpr int64_t kIn = kLinears[kIndex].in, kOut = kLinears[kIndex].out;
  auto packed = used<T>(packed_size<T>(kIn, kOut)), turned = used<T>(packed_size<T>(kOut, kIn));
  auto work = used<T>(linear_work<T>());
  linear_pack<T>(kIn, kOut, l.w.data(), packed.data());
  linear_dx_pack<T>(kIn, kOut, l.w.data(), turned.data());
  const int64_t step = l.pieces ? 1 : l.n, row = l.pieces ? (kIn + 2) / 3 : kIn;
  for (int64_t i = 0; i < l.n; i += step) {
    linear<T>(step, kIn, kOut, l.x.data() + i * kIn, packed.data(), {.bias = l.bias.data()},
              l.y.data() + i * kOut, kBias | kAdd | kRelu, work.data());
    linear_dx<T>(step, kIn, kOut, l.dy.data() + i * kOut, turned.data(), {.mask = l.x.data() + i * kIn},
                 l.dx.data() + i * kIn, kMask, work.data());
  }
  for (int64_t i = 0; i < kIn; i += row)
    multiply<T>(std::min(row, kIn - i), l.n, kOut, {l.x.data() + i, 1, kIn}, {l.dy.data(), kOut, 1}, {},
                l.dw.data() + i * kOut, kOut, kAdd, work.data());
}

template <typename T, size_t... kConvs, size_t... kLinear>
Cases<T> cases(std::index_sequence<kConvs...>, std::index_sequence<kLinear...>) {
  return {{conv<T, kConvs>...}, {fully_connected<T, kLinear>...}};
}

template <typename T>
Cases<T> all_cases() {
  return cases<T>(std::make_index_sequence<kHard + kDrawn>{},
                  std::make_index_sequence<std::size(kLinears)>{});
}

}  // namespace

const Isa& CASES_OF(NATIVE_ISA)() {
  static const Isa isa = {kIsa, all_cases<float>(), all_cases<double>()};
  return isa;
}

}  // namespace bakeoff
