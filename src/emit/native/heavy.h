#pragma once

// The operations that take nearly all of a step's time, by the kernels of kernels/: convolution, fully connected layer,
// products of small matrices. `packed` and `turned`: weights as kernels read them.
//
// Pictures are x[N][H][W][C], kernels w[R][S][C / groups][K], weights of a fully connected layer w[I][O].

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "emit/native/kernels/kernels.h"

using Real = float;

// Room of this thread for a kernel's copies; it grows at the first step alone.
inline Real* room(int64_t count) {
  struct Room {
    Real* numbers = nullptr;
    int64_t count = 0;
    ~Room() { std::free(numbers); }
  };
  static thread_local Room own;
  if (own.count < count) {
    std::free(own.numbers);
    own = {nullptr, 0};
    own.numbers = static_cast<Real*>(
        std::aligned_alloc(64, (static_cast<size_t>(count) * sizeof(Real) + 63) / 64 * 64));
    if (own.numbers == nullptr) throw std::bad_alloc();
    own.count = count;
  }
  return own.numbers;
}

// y = finish(x * w) for n pictures; kFinish: what is done to a sum, by native::Finish, with what stands in `beside`.
template <native::Conv S, unsigned kFinish>
void conv2d(int64_t n, const Real* x, const Real* packed, native::Beside<Real> beside, Real* y) {
  native::conv2d<Real, S, kFinish>(n, x, packed, beside, y, room(native::conv2d_work<Real, S>()));
}

// dx = finish(gradient of x), from the gradient g of y.
template <native::Conv S, unsigned kFinish>
void conv2d_dx(int64_t n, const Real* g, const Real* turned, native::Beside<Real> beside, Real* dx) {
  native::conv2d_dx<Real, S, kFinish>(n, g, turned, beside, dx, room(native::conv2d_dx_work<Real, S>()));
}

// dw += the gradient of w.
template <native::Conv S>
void conv2d_dw(int64_t n, const Real* x, const Real* g, Real* dw) {
  native::conv2d_dw<Real, S>(n, x, g, dw, room(native::conv2d_dw_work<Real, S>()));
}

// y = finish(x w) for m rows.
inline void linear(int64_t m, int64_t in, int64_t out, const Real* x, const Real* packed,
                   native::Beside<Real> beside, Real* y, unsigned finish) {
  native::linear<Real>(m, in, out, x, packed, beside, y, finish, room(native::linear_work<Real>()));
}

// dw += x^T g.
inline void linear_dw(int64_t m, int64_t in, int64_t out, const Real* x, const Real* g, Real* dw) {
  native::linear_dw<Real>(m, in, out, x, g, dw, native::kAdd, room(native::linear_work<Real>()));
}

// y = a b (or y += a b) of matrices m x k and k x n that lie anywhere; `pitch`: from row to row of y.
inline void product(int64_t m, int64_t k, int64_t n, native::Matrix<Real> a, native::Matrix<Real> b, Real* y,
                    int64_t pitch, unsigned finish = native::kAdd) {
  native::multiply<Real>(m, k, n, a, b, {}, y, pitch, finish, room(native::linear_work<Real>()));
}

// The sum of a[i] b[i], in 16 sums side by side.
inline Real dot(int64_t count, const Real* a, const Real* b) {
  Real sums[16] = {}, sum = 0;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int64_t j = 0; j < 16; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (int64_t j = 0; j < 16; ++j) sum += sums[j];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}
