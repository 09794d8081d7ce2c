#pragma once

// The kernels that take nearly all of a step's time, for one processor: fully connected layers and
// convolutions, forward and backward. Shapes are template parameters, T is float or double. All of this
// folder needs the standard library and <immintrin.h> alone, so that a generated source can hold it:
// vector.h, tile.h, pack.h, gemm.h, conv.h, this file.
//
//   pictures x[N][H][W][C], kernels w[R][S][C / groups][K], weights of a fully connected layer w[I][O]
//
//   linear_pack<T, I, O>(w, packed)                        packed_size<T>(I, O) numbers
//   linear<T, I, O, F>(m, x, packed, beside, y, work)      y = F(x w) for m rows
//   linear_dx_pack<T, I, O>(w, packed)                     packed_size<T>(O, I)
//   linear_dx<T, I, O, F>(m, dy, packed, beside, dx, work) dx = F(dy w^T)
//   linear_dw<T, I, O, F>(m, x, dy, dw, first, last, work) dw = x^T dy, rows `first` to `last`; F kPlain or kAdd
//   linear_work<T, I, O>()                                 numbers of `work` that any of them needs
//
//   conv2d_pack<T, S>(w, packed)                           conv2d_packed<T, S>() numbers
//   conv2d<T, S, F>(n, x, packed, beside, y, work)         y = F(x * w) for n pictures; conv2d_work<T, S>()
//   conv2d_dx_pack<T, S>(w, packed)                        conv2d_dx_packed<T, S>()
//   conv2d_dx<T, S, F>(n, dy, packed, beside, dx, work)    dx = F(gradient of x); conv2d_dx_work<T, S>()
//   conv2d_dw<T, S>(n, x, dy, dw, work)                    dw += gradient of w; conv2d_dw_work<T, S>()
//
// S is a Conv (conv.h); F a Finish (tile.h), several of them joined by |: kBias | kRelu, kAdd, kMask;
// `beside` holds what they read. Weights are packed once after every update. Every thread has a `work` of its
// own and takes whole rows or pictures, for dw rows of dw or fixed groups of pictures, each with its own dw:
// then the order of every sum depends on shapes alone, never on the number of threads. Arrays should begin at
// a multiple of 64 bytes.
//
// Nothing here flushes denormals, and no kernel allocates. Any level of optimisation from -O2 on gives the
// same loops (tests/native_kernels/loops_test.py reads them).

#include "emit/native/kernels/conv.h"

namespace native {
inline namespace NATIVE_ISA {

template <typename T, int64_t kIn, int64_t kOut>
constexpr int64_t linear_work() {
  return std::max({RowProduct<T, kIn>::kWork, RowProduct<T, kOut>::kWork, ColumnProduct<T, kOut>::kWork});
}

template <typename T, int64_t kIn, int64_t kOut>
void linear_pack(const T* w, T* packed) {
  pack<T, kOut>(kIn, 0, kIn, w, kOut, packed);
}
template <typename T, int64_t kIn, int64_t kOut, unsigned kFinish>
void linear(int64_t m, const T* x, const T* packed, Beside<T> with, T* y, T* work) {
  multiply_rows<T, kIn, kOut, kFinish>(m, x, packed, with, y, work);
}

template <typename T, int64_t kIn, int64_t kOut>
void linear_dx_pack(const T* w, T* packed) {
  pack_transposed<T, kIn>(kOut, 0, kOut, w, kOut, packed);
}
template <typename T, int64_t kIn, int64_t kOut, unsigned kFinish>
void linear_dx(int64_t m, const T* dy, const T* packed, Beside<T> with, T* dx, T* work) {
  multiply_rows<T, kOut, kIn, kFinish>(m, dy, packed, with, dx, work);
}

template <typename T, int64_t kIn, int64_t kOut, unsigned kFinish>
void linear_dw(int64_t m, const T* x, const T* dy, T* dw, int64_t first, int64_t last, T* work) {
  multiply_transposed<T, kIn, kOut, kFinish>(m, x, dy, dw, first, last, work);
}

}  // namespace NATIVE_ISA
}  // namespace native
