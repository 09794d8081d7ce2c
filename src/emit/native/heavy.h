#pragma once

// The operations that take nearly all of a step's time, by the kernels of kernels/: convolution, fully connected layer,
// products of small matrices. `packed` and `turned`: weights as kernels read them. What is called for the first time
// in a step writes its result, else it adds to what is there (native::kAdd).
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

// y = x * w + bias, which may be null; n pictures.
template <native::Conv S>
void conv2d(int64_t n, const Real* x, const Real* packed, const Real* bias, Real* y) {
  Real* const work = room(native::conv2d_work<Real, S>());
  if (bias != nullptr)
    native::conv2d<Real, S, native::kBias>(n, x, packed, {.bias = bias}, y, work);
  else
    native::conv2d<Real, S, native::kPlain>(n, x, packed, {}, y, work);
}

// y += x * w.
template <native::Conv S>
void add_conv2d(int64_t n, const Real* x, const Real* packed, Real* y) {
  native::conv2d<Real, S, native::kAdd>(n, x, packed, {}, y, room(native::conv2d_work<Real, S>()));
}

// The gradient of x, from the gradient g of y.
template <native::Conv S>
void conv2d_dx(int64_t n, const Real* g, const Real* turned, Real* dx) {
  native::conv2d_dx<Real, S, native::kPlain>(n, g, turned, {}, dx, room(native::conv2d_dx_work<Real, S>()));
}

// dx += the gradient of x.
template <native::Conv S>
void add_conv2d_dx(int64_t n, const Real* g, const Real* turned, Real* dx) {
  native::conv2d_dx<Real, S, native::kAdd>(n, g, turned, {}, dx, room(native::conv2d_dx_work<Real, S>()));
}

// dw += the gradient of w.
template <native::Conv S>
void conv2d_dw(int64_t n, const Real* x, const Real* g, Real* dw) {
  native::conv2d_dw<Real, S>(n, x, g, dw, room(native::conv2d_dw_work<Real, S>()));
}

// y = x w + bias for m rows; the bias may be null.
inline void linear(int64_t m, int64_t in, int64_t out, const Real* x, const Real* packed, const Real* bias,
                   Real* y) {
  native::linear<Real>(m, in, out, x, packed, {.bias = bias}, y,
                       bias != nullptr ? native::kBias : native::kPlain, room(native::linear_work<Real>()));
}

// y += x w.
inline void add_linear(int64_t m, int64_t in, int64_t out, const Real* x, const Real* packed, Real* y) {
  native::linear<Real>(m, in, out, x, packed, {}, y, native::kAdd, room(native::linear_work<Real>()));
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
