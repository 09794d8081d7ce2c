// Layers whose tiles are of every kind: full and with tails, of one, two and three vectors, over several
// rows, upright at the edges, over packed and over plain arrays. Only compiled: loops_test.py reads the
// machine code.

#include "emit/native/kernels/kernels.h"

namespace native {
inline namespace NATIVE_ISA {

template <typename T, Conv S>
void layer(int64_t n, const T* x, const T* w, const T* dy, T* y, T* dx, T* dw, T* packed, T* work) {
  conv2d_pack<T, S>(w, packed);
  conv2d<T, S, kBias | kRelu>(n, x, packed, {.bias = w}, y, work);
  conv2d_dx_pack<T, S>(w, packed);
  conv2d_dx<T, S, kMask>(n, dy, packed, {.mask = x}, dx, work);
  conv2d_dw<T, S>(n, x, dy, dw, work);
}

template <typename T, int64_t kIn, int64_t kOut>
void fully_connected(int64_t m, const T* x, const T* w, const T* dy, T* y, T* dx, T* dw, T* packed, T* work) {
  linear_pack<T>(kIn, kOut, w, packed);
  linear<T>(m, kIn, kOut, x, packed, {.bias = w}, y, kBias, work);
  linear_dx_pack<T>(kIn, kOut, w, packed);
  linear_dx<T>(m, kIn, kOut, dy, packed, {}, dx, kPlain, work);
  linear_dw<T>(m, kIn, kOut, x, dy, dw, kPlain, work);
}

#define LAYER_OF(T, ...) \
  template void layer<T, Conv{__VA_ARGS__}>(int64_t, const T*, const T*, const T*, T*, T*, T*, T*, T*);
#define FULLY_CONNECTED_OF(T, in, out) \
  template void fully_connected<T, in, out>(int64_t, const T*, const T*, const T*, T*, T*, T*, T*, T*);

LAYER_OF(float, .h = 7, .w = 7, .c = 13, .oh = 7, .ow = 7, .k = 40, .r = 3, .s = 3, .top = 1, .left = 1)
LAYER_OF(double, .h = 56, .w = 56, .c = 3, .oh = 28, .ow = 28, .k = 16, .r = 3, .s = 3, .stride_h = 2,
         .stride_w = 2)
FULLY_CONNECTED_OF(float, 100, 70)

}  // namespace NATIVE_ISA
}  // namespace native
