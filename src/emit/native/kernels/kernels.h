#pragma once

// The kernels that take nearly all of a step's time, for one processor: fully connected layers and
// convolutions, forward and backward. Shapes of convolutions are template parameters, T is float or double. All of this
// folder needs the standard library and <immintrin.h> alone, so that a generated source can hold it:
// vector.h, tile.h, pack.h, gemm.h, conv.h, this file.
//
//   pictures x[N][H][W][C], kernels w[R][S][C / groups][K], weights of a fully connected layer w[I][O]
//
//   linear_pack(I, O, w, packed)                           packed_size<T>(I, O) numbers
//   linear(m, I, O, x, packed, beside, y, F, work)         y = F(x w) for m rows
//   linear_dx_pack(I, O, w, packed)                        packed_size<T>(O, I)
//   linear_dx(m, I, O, dy, packed, beside, dx, F, work)    dx = F(dy w^T)
//   linear_dw(m, I, O, x, dy, dw, F, work)                 dw = x^T dy; F kPlain or kAdd
//   multiply(m, k, n, a, b, beside, y, pitch, F, work)     y = F(a b) of matrices that lie anywhere (gemm.h)
//   linear_work<T>()                                       numbers of `work` that any of them needs
//
//   conv2d_pack<T, S>(w, packed)                           conv2d_packed<T, S>() numbers
//   conv2d<T, S, F>(n, x, packed, beside, y, work)         y = F(x * w) for n pictures; conv2d_work<T, S>()
//   conv2d_dx_pack<T, S>(w, packed)                        conv2d_dx_packed<T, S>()
//   conv2d_dx<T, S, F>(n, dy, packed, beside, dx, work)    dx = F(gradient of x); conv2d_dx_work<T, S>()
//   conv2d_dw<T, S>(n, x, dy, dw, work)                    dw += gradient of w; conv2d_dw_work<T, S>()
//
// S is a Conv (conv.h); F a Finish (tile.h), several of them joined by |: kBias | kRelu, kAdd, kMask;
// `beside` holds what they read. Weights are packed once after every update. Every thread has a `work` of its
// own and takes whole rows or pictures, for dw a fixed group of them with its own dw:
// then the order of every sum depends on shapes alone, never on the number of threads. Arrays should begin at
// a multiple of 64 bytes.
//
// Nothing here flushes denormals, and no kernel allocates. Any level of optimisation from -O2 on gives the
// same loops (tests/native_kernels/loops_test.py reads them).

#include "emit/native/kernels/conv.h"

namespace native {
inline namespace NATIVE_ISA {

template <typename T>
constexpr int64_t linear_work() {
  return Blocks<T>::kWork;
}

template <typename T>
void linear_pack(int64_t in, int64_t out, const T* w, T* packed) {
  pack<T>(in, 0, in, out, {w, out, 1}, packed);
}
template <typename T>
void linear(int64_t m, int64_t in, int64_t out, const T* x, const T* packed, Beside<T> with, T* y,
            unsigned finish, T* work) {
  multiply_packed<T>(m, in, out, {x, in, 1}, packed, with, y, out, finish, work);
}

template <typename T>
void linear_dx_pack(int64_t in, int64_t out, const T* w, T* packed) {
  pack<T>(out, 0, out, in, {w, 1, out}, packed);
}
template <typename T>
void linear_dx(int64_t m, int64_t in, int64_t out, const T* dy, const T* packed, Beside<T> with, T* dx,
               unsigned finish, T* work) {
  multiply_packed<T>(m, out, in, {dy, out, 1}, packed, with, dx, in, finish, work);
}

template <typename T>
void linear_dw(int64_t m, int64_t in, int64_t out, const T* x, const T* dy, T* dw, unsigned finish, T* work) {
  multiply<T>(in, m, out, {x, 1, in}, {dy, out, 1}, {}, dw, out, finish, work);
}

}  // namespace NATIVE_ISA
}  // namespace native
