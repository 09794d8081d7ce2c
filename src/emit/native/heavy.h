#pragma once

// The operations that take nearly all of a step's time: convolution, fully connected layer, and their gradients. Plain
// loops, written so that the innermost one runs over neighbouring numbers without a dependence: a compiler makes vectors
// of it without being told that sums may be reordered. Kernels for one instruction set replace these functions one by
// one, under the same names and signatures. All gradients are added to what is there.
//
// Pictures are x[N][H][W][C], kernels w[R][S][C / groups][K], weights of a fully connected layer w[I][O].

#include <algorithm>
#include <cstdint>

using Real = float;

// A convolution of pictures of h, w, c into oh, ow, k with kernels of r, s; `top` and `left` places of zeros before them.
struct Conv {
  int64_t h = 1, w = 1, c = 1, oh = 1, ow = 1, k = 1, r = 1, s = 1;
  int64_t stride_h = 1, stride_w = 1, top = 0, left = 0, dilation_h = 1, dilation_w = 1, groups = 1;
};

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

// Calls visit(pixel of y, pixel of x, tap of the kernel) wherever a tap of one picture's kernel meets a real pixel.
template <Conv S, typename Visit>
void conv2d_taps(const Visit& visit) {
  for (int64_t p = 0; p < S.oh * S.ow; ++p) {
    for (int64_t tap = 0; tap < S.r * S.s; ++tap) {
      const int64_t i = p / S.ow * S.stride_h - S.top + tap / S.s * S.dilation_h;
      const int64_t j = p % S.ow * S.stride_w - S.left + tap % S.s * S.dilation_w;
      if (i >= 0 && i < S.h && j >= 0 && j < S.w) visit(p, i * S.w + j, tap);
    }
  }
}

// y += x * w.
template <Conv S>
void conv2d(int64_t n, const Real* x, const Real* w, Real* y) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  for (int64_t image = 0; image < n; ++image, x += S.h * S.w * S.c, y += S.oh * S.ow * S.k) {
    conv2d_taps<S>([&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t c = 0; c < S.c; ++c) {
        const Real value = x[from * S.c + c];
        const Real* const row = w + (tap * kIn + c % kIn) * S.k + c / kIn * kOut;
        Real* const out = y + to * S.k + c / kIn * kOut;
        for (int64_t k = 0; k < kOut; ++k) out[k] += value * row[k];
      }
    });
  }
}

// Of x, from the gradient g of y.
template <Conv S>
void conv2d_dx(int64_t n, const Real* g, const Real* w, Real* dx) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  for (int64_t image = 0; image < n; ++image, dx += S.h * S.w * S.c, g += S.oh * S.ow * S.k) {
    conv2d_taps<S>([&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t c = 0; c < S.c; ++c) {
        const Real* const row = w + (tap * kIn + c % kIn) * S.k + c / kIn * kOut;
        dx[from * S.c + c] += dot(kOut, g + to * S.k + c / kIn * kOut, row);
      }
    });
  }
}

// Of w: summed over each picture apart, so that a batch loses no more digits than a picture.
template <Conv S>
void conv2d_dw(int64_t n, const Real* x, const Real* g, Real* dw) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups, kCount = S.r * S.s * kIn * S.k;
  static Real own[kCount];
  for (int64_t image = 0; image < n; ++image, x += S.h * S.w * S.c, g += S.oh * S.ow * S.k) {
    std::fill(own, own + kCount, Real{0});
    conv2d_taps<S>([&](int64_t to, int64_t from, int64_t tap) {
      for (int64_t c = 0; c < S.c; ++c) {
        const Real value = x[from * S.c + c];
        const Real* const gradient = g + to * S.k + c / kIn * kOut;
        Real* const out = own + (tap * kIn + c % kIn) * S.k + c / kIn * kOut;
        for (int64_t k = 0; k < kOut; ++k) out[k] += value * gradient[k];
      }
    });
    for (int64_t i = 0; i < kCount; ++i) dw[i] += own[i];
  }
}

// y += x w, for m rows.
template <int64_t I, int64_t O>
void linear(int64_t m, const Real* x, const Real* w, Real* y) {
  for (int64_t first = 0; first < m; first += 8) {
    const int64_t end = std::min(first + 8, m);
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t row = first; row < end; ++row) {
        const Real value = x[row * I + i];
        for (int64_t o = 0; o < O; ++o) y[row * O + o] += value * w[i * O + o];
      }
    }
  }
}

// Of x, from the gradient g of y.
template <int64_t I, int64_t O>
void linear_dx(int64_t m, const Real* g, const Real* w, Real* dx) {
  for (int64_t first = 0; first < m; first += 8) {
    const int64_t end = std::min(first + 8, m);
    for (int64_t i = 0; i < I; ++i) {
      for (int64_t row = first; row < end; ++row) dx[row * I + i] += dot(O, g + row * O, w + i * O);
    }
  }
}

// Of w: summed over 64 rows apart, for the sake of its digits.
template <int64_t I, int64_t O>
void linear_dw(int64_t m, const Real* x, const Real* g, Real* dw) {
  static Real own[O];
  for (int64_t first = 0; first < m; first += 64) {
    const int64_t end = std::min(first + 64, m);
    for (int64_t i = 0; i < I; ++i) {
      std::fill(own, own + O, Real{0});
      for (int64_t row = first; row < end; ++row) {
        const Real value = x[row * I + i];
        for (int64_t o = 0; o < O; ++o) own[o] += value * g[row * O + o];
      }
      for (int64_t o = 0; o < O; ++o) dw[i * O + o] += own[o];
    }
  }
}
