#pragma once

// What programs call besides heavy.h (emit/helpers.h says how a program gets its copies). Every function takes the shape
// as template arguments and the number of rows at run time, writes its result anew, and adds gradients to what is there.
// A gradient that nobody needs is null. Sums over many elements are made in double: in float32 they would be what a
// step loses most digits by. Names of shapes: C channels, P places of a picture, held as N,P,C; count lines of a stretch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "emit/native/heavy.h"

// Zeroed memory for `count` numbers that lives as long as the program.
template <typename T>
T* allocate(int64_t count) {
  const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64 + 64;
  void* const memory = std::aligned_alloc(64, bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return static_cast<T*>(std::memset(memory, 0, bytes));
}

// Every row of y becomes the bias; null: zero.
template <int64_t K>
void start_rows(int64_t rows, const Real* bias, Real* y) {
  if (bias == nullptr) std::fill(y, y + rows * K, Real{0});
  for (int64_t row = 0; bias != nullptr && row < rows; ++row) std::copy(bias, bias + K, y + row * K);
}

// The gradient of a bias.
template <int64_t K>
void column_sums(int64_t rows, const Real* g, Real* dbias) {
  static double sums[K];
  std::fill(sums, sums + K, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < K; ++k) sums[k] += static_cast<double>(g[row * K + k]);
  }
  for (int64_t k = 0; k < K; ++k) dbias[k] += static_cast<Real>(sums[k]);
}

// The matrix product y += a b of m, k and k, n; a stride is the distance of two neighbours along rows and columns.
inline void matrix_product(int64_t m, int64_t n, int64_t k, const Real* a, int64_t a_row, int64_t a_column,
                           const Real* b, int64_t b_row, int64_t b_column, Real* y) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t l = 0; l < k; ++l) {
      const Real value = a[i * a_row + l * a_column];
      for (int64_t j = 0; j < n; ++j) y[i * n + j] += value * b[l * b_row + j * b_column];
    }
  }
}

// The finaliser of splitmix64: scatters the bits of a counter.
inline uint64_t mix(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// What dropout multiplies element `index` by: 0, or what keeps the mean. `key` stands for seed, step and layer.
inline Real dropout_factor(uint64_t key, uint64_t index, double rate) {
  const double uniform = static_cast<double>(mix(index ^ key) >> 11) * 0x1p-53;
  return uniform >= rate ? static_cast<Real>(1 / (1 - rate)) : Real{0};
}

// y += x, each element kept or dropped; masks are counted as in N,C,P. Forwards and backwards the same.
template <int64_t C, int64_t P>
void dropout(int64_t rows, uint64_t key, double rate, const Real* x, Real* y) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t p = 0; p < P; ++p) {
      for (int64_t c = 0; c < C; ++c) {
        const int64_t at = (row * P + p) * C + c, index = (row * C + c) * P + p;
        y[at] += x[at] * dropout_factor(key, static_cast<uint64_t>(index), rate);
      }
    }
  }
}

// The exponential's argument is never positive.
inline Real logistic(Real x) {
  const Real e = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

inline Real log_1p_exp(Real x) { return std::max(x, Real{0}) + std::log1p(std::exp(-std::abs(x))); }

inline Real sign_of(Real x) { return x > 0 ? Real{1} : x < 0 ? Real{-1} : x; }

inline Real mish_slope(Real x) {
  const Real t = std::tanh(log_1p_exp(x));
  return t + x * (1 - t * t) * logistic(x);
}

inline Real gelu_erf(Real x) { return x * (1 + std::erf(x * Real{0.7071067811865476})) / 2; }

inline Real gelu_erf_slope(Real x) {
  const Real density = std::exp(-x * x / 2) * Real{0.3989422804014327};
  return (1 + std::erf(x * Real{0.7071067811865476})) / 2 + x * density;
}

inline Real gelu_tanh(Real x) {
  return x * (1 + std::tanh(Real{0.7978845608028654} * (x + Real{0.044715} * x * x * x))) / 2;
}

inline Real gelu_tanh_slope(Real x) {
  const Real t = std::tanh(Real{0.7978845608028654} * (x + Real{0.044715} * x * x * x));
  return (1 + t) / 2 + x * (1 - t * t) * Real{0.7978845608028654} * (1 + Real{0.134145} * x * x) / 2;
}

// A convolution of volumes of d, h, w, c into od, oh, ow, k with kernels of q, r, s; the rest as in Conv, along D, H, W.
struct Volume {
  int64_t d = 1, h = 1, w = 1, c = 1, od = 1, oh = 1, ow = 1, k = 1, q = 1, r = 1, s = 1;
  int64_t stride_d = 1, stride_h = 1, stride_w = 1, front = 0, top = 0, left = 0;
  int64_t dilation_d = 1, dilation_h = 1, dilation_w = 1, groups = 1;
};

// Calls visit(place of y, place of x, first weight of the tap) wherever a tap of a kernel meets a real place.
template <Volume S, typename Visit>
void conv3d_taps(const Visit& visit) {
  for (int64_t p = 0; p < S.od * S.oh * S.ow; ++p) {
    for (int64_t tap = 0; tap < S.q * S.r * S.s; ++tap) {
      const int64_t a = p / (S.oh * S.ow) * S.stride_d - S.front + tap / (S.r * S.s) * S.dilation_d;
      const int64_t i = p / S.ow % S.oh * S.stride_h - S.top + tap / S.s % S.r * S.dilation_h;
      const int64_t j = p % S.ow * S.stride_w - S.left + tap % S.s * S.dilation_w;
      if (a < 0 || a >= S.d || i < 0 || i >= S.h || j < 0 || j >= S.w) continue;
      visit(p * S.k, ((a * S.h + i) * S.w + j) * S.c, tap * S.c / S.groups * S.k);
    }
  }
}

// Calls visit(element of x, first element of y, first weight) for every channel of x at a tap; of y S.k / S.groups
// elements belong to it, and as many weights.
template <Volume S, typename Visit>
void conv3d_channels(const Visit& visit) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  conv3d_taps<S>([&](int64_t to, int64_t from, int64_t weight) {
    for (int64_t c = 0; c < S.c; ++c)
      visit(from + c, to + c / kIn * kOut, weight + c % kIn * S.k + c / kIn * kOut);
  });
}

// y += x * w.
template <Volume S>
void conv3d(int64_t n, const Real* x, const Real* w, Real* y) {
  for (int64_t image = 0; image < n; ++image, x += S.d * S.h * S.w * S.c, y += S.od * S.oh * S.ow * S.k) {
    conv3d_channels<S>([&](int64_t from, int64_t to, int64_t weight) {
      for (int64_t k = 0; k < S.k / S.groups; ++k) y[to + k] += x[from] * w[weight + k];
    });
  }
}

// Of x, from the gradient g of y.
template <Volume S>
void conv3d_dx(int64_t n, const Real* g, const Real* w, Real* dx) {
  for (int64_t image = 0; image < n; ++image, dx += S.d * S.h * S.w * S.c, g += S.od * S.oh * S.ow * S.k) {
    conv3d_channels<S>([&](int64_t from, int64_t to, int64_t weight) {
      dx[from] += dot(S.k / S.groups, g + to, w + weight);
    });
  }
}

// Of w: summed over each volume apart, so that a batch loses no more digits than a volume.
template <Volume S>
void conv3d_dw(int64_t n, const Real* x, const Real* g, Real* dw) {
  constexpr int64_t kCount = S.q * S.r * S.s * S.c / S.groups * S.k;
  static Real own[kCount];
  for (int64_t image = 0; image < n; ++image, x += S.d * S.h * S.w * S.c, g += S.od * S.oh * S.ow * S.k) {
    std::fill(own, own + kCount, Real{0});
    conv3d_channels<S>([&](int64_t from, int64_t to, int64_t weight) {
      for (int64_t k = 0; k < S.k / S.groups; ++k) own[weight + k] += x[from] * g[to + k];
    });
    for (int64_t i = 0; i < kCount; ++i) dw[i] += own[i];
  }
}

// A pool of pictures of d, h, w, c into od, oh, ow, c; `front`, `top` and `left` places before them do not exist.
struct Pool {
  int64_t d = 1, h = 1, w = 1, c = 1, od = 1, oh = 1, ow = 1;
  int64_t kernel_d = 1, kernel_h = 1, kernel_w = 1, stride_d = 1, stride_h = 1, stride_w = 1;
  int64_t front = 0, top = 0, left = 0;
  bool count_padding = false;  // of a mean
};

// Calls visit(place of y, place of x) for every real place of every window, in order.
template <Pool S, typename Visit>
void pool_window(int64_t to, const Visit& visit) {
  const int64_t d = to / (S.oh * S.ow) * S.stride_d - S.front, h = to / S.ow % S.oh * S.stride_h - S.top;
  const int64_t w = to % S.ow * S.stride_w - S.left;
  for (int64_t i = std::max<int64_t>(d, 0); i < std::min(d + S.kernel_d, S.d); ++i) {
    for (int64_t j = std::max<int64_t>(h, 0); j < std::min(h + S.kernel_h, S.h); ++j) {
      for (int64_t k = std::max<int64_t>(w, 0); k < std::min(w + S.kernel_w, S.w); ++k)
        visit((i * S.h + j) * S.w + k);
    }
  }
}

// The maximum of each window.
template <Pool S>
void max_pool(int64_t n, const Real* x, Real* y) {
  constexpr int64_t kIn = S.d * S.h * S.w * S.c, kPlaces = S.od * S.oh * S.ow;
  for (int64_t image = 0; image < n; ++image, x += kIn, y += kPlaces * S.c) {
    for (int64_t to = 0; to < kPlaces; ++to) {
      Real* const out = y + to * S.c;
      std::fill(out, out + S.c, -std::numeric_limits<Real>::infinity());
      pool_window<S>(to, [&](int64_t from) {
        for (int64_t c = 0; c < S.c; ++c) out[c] = x[from * S.c + c] <= out[c] ? out[c] : x[from * S.c + c];
      });
    }
  }
}

// The first of equal maxima takes the gradient.
template <Pool S>
void max_pool_dx(int64_t n, const Real* x, const Real* y, const Real* g, Real* dx) {
  constexpr int64_t kIn = S.d * S.h * S.w * S.c, kPlaces = S.od * S.oh * S.ow;
  for (int64_t image = 0; image < n; ++image, x += kIn, dx += kIn) {
    for (int64_t to = 0; to < kPlaces; ++to, y += S.c, g += S.c) {
      bool taken[S.c] = {};
      pool_window<S>(to, [&](int64_t from) {
        for (int64_t c = 0; c < S.c; ++c) {
          const bool takes = !taken[c] && x[from * S.c + c] == y[c];
          taken[c] = taken[c] || takes;
          dx[from * S.c + c] += takes ? g[c] : Real{0};
        }
      });
    }
  }
}

// What the mean of a window is divided by.
template <Pool S>
Real pool_divisor(int64_t to) {
  int64_t real = 0;
  pool_window<S>(to, [&](int64_t) { ++real; });
  return static_cast<Real>(S.count_padding ? S.kernel_d * S.kernel_h * S.kernel_w : real);
}

// The mean of each window.
template <Pool S>
void avg_pool(int64_t n, const Real* x, Real* y) {
  constexpr int64_t kIn = S.d * S.h * S.w * S.c, kPlaces = S.od * S.oh * S.ow;
  for (int64_t image = 0; image < n; ++image, x += kIn, y += kPlaces * S.c) {
    for (int64_t to = 0; to < kPlaces; ++to) {
      Real* const out = y + to * S.c;
      std::fill(out, out + S.c, Real{0});
      pool_window<S>(to, [&](int64_t from) {
        for (int64_t c = 0; c < S.c; ++c) out[c] += x[from * S.c + c];
      });
      const Real divisor = pool_divisor<S>(to);
      for (int64_t c = 0; c < S.c; ++c) out[c] /= divisor;
    }
  }
}

// Every place of a window takes its share.
template <Pool S>
void avg_pool_dx(int64_t n, const Real* g, Real* dx) {
  constexpr int64_t kIn = S.d * S.h * S.w * S.c, kPlaces = S.od * S.oh * S.ow;
  for (int64_t image = 0; image < n; ++image, dx += kIn) {
    for (int64_t to = 0; to < kPlaces; ++to, g += S.c) {
      const Real divisor = pool_divisor<S>(to);
      pool_window<S>(to, [&](int64_t from) {
        for (int64_t c = 0; c < S.c; ++c) dx[from * S.c + c] += g[c] / divisor;
      });
    }
  }
}

// The mean over the places of a picture.
template <int64_t C, int64_t P>
void global_avg_pool(int64_t n, const Real* x, Real* y) {
  for (int64_t image = 0; image < n; ++image) {
    Real* const out = y + image * C;
    std::fill(out, out + C, Real{0});
    for (int64_t p = 0; p < P; ++p) {
      for (int64_t c = 0; c < C; ++c) out[c] += x[(image * P + p) * C + c];
    }
    for (int64_t c = 0; c < C; ++c) out[c] /= static_cast<Real>(P);
  }
}

// Every place takes the same share.
template <int64_t C, int64_t P>
void global_avg_pool_dx(int64_t n, const Real* g, Real* dx) {
  for (int64_t i = 0; i < n * P; ++i) {
    for (int64_t c = 0; c < C; ++c) dx[i * C + c] += g[i / P * C + c] / static_cast<Real>(P);
  }
}

// Place i of `to` lies at (first + i step) / per among `from` places.
struct Ruler {
  int64_t from = 1, to = 1, first = 0, step = 0, per = 1;
};

// A resize of pictures of c channels along up to three axes: to the place before, or between the two around.
struct Resize {
  Ruler d, h, w;
  int64_t c = 1;
  bool linear = false;
};

// Calls visit(place of y, place of x, weight) for all that each place of y is made of.
template <Resize S, typename Visit>
void resize_taps(const Visit& visit) {
  const auto tap = [](const Ruler& r, int64_t i, int64_t side) {
    const int64_t at = std::max<int64_t>(r.first + i * r.step, 0);
    const double share = S.linear ? static_cast<double>(at % r.per) / static_cast<double>(r.per) : 0;
    return std::pair<int64_t, double>(std::min(at / r.per + side, r.from - 1), side == 1 ? share : 1 - share);
  };
  for (int64_t to = 0; to < S.d.to * S.h.to * S.w.to; ++to) {
    for (int64_t corner = 0; corner < 8; ++corner) {
      const auto [i, of_i] = tap(S.d, to / (S.h.to * S.w.to), corner / 4);
      const auto [j, of_j] = tap(S.h, to / S.w.to % S.h.to, corner / 2 % 2);
      const auto [k, of_k] = tap(S.w, to % S.w.to, corner % 2);
      const Real weight = static_cast<Real>(of_i * of_j * of_k);
      if (weight != 0) visit(to, (i * S.h.from + j) * S.w.from + k, weight);
    }
  }
}

// The picture in its new sizes.
template <Resize S>
void resize(int64_t n, const Real* x, Real* y) {
  constexpr int64_t kIn = S.d.from * S.h.from * S.w.from * S.c, kOut = S.d.to * S.h.to * S.w.to * S.c;
  std::fill(y, y + n * kOut, Real{0});
  for (int64_t image = 0; image < n; ++image, x += kIn, y += kOut) {
    resize_taps<S>([&](int64_t to, int64_t from, Real weight) {
      for (int64_t c = 0; c < S.c; ++c) y[to * S.c + c] += weight * x[from * S.c + c];
    });
  }
}

// What each place was read for comes back to it.
template <Resize S>
void resize_dx(int64_t n, const Real* g, Real* dx) {
  constexpr int64_t kIn = S.d.from * S.h.from * S.w.from * S.c, kOut = S.d.to * S.h.to * S.w.to * S.c;
  for (int64_t image = 0; image < n; ++image, dx += kIn, g += kOut) {
    resize_taps<S>([&](int64_t to, int64_t from, Real weight) {
      for (int64_t c = 0; c < S.c; ++c) dx[from * S.c + c] += weight * g[to * S.c + c];
    });
  }
}

// Mean and biased variance of each of C columns.
template <int64_t C>
void column_moments(int64_t rows, const Real* x, double* mean, double* variance) {
  std::fill(mean, mean + C, 0.0);
  std::fill(variance, variance + C, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < C; ++c) mean[c] += static_cast<double>(x[i * C + c]);
  }
  for (int64_t c = 0; c < C; ++c) mean[c] /= static_cast<double>(rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < C; ++c) {
      const double off = static_cast<double>(x[i * C + c]) - mean[c];
      variance[c] += off * off;
    }
  }
  for (int64_t c = 0; c < C; ++c) variance[c] /= static_cast<double>(rows);
}

// Normalises columns by the batch's moments, which move the running ones; keeps mean and 1 / sqrt(variance + eps) of each
// column for the way back.
template <int64_t C>
void batch_norm(int64_t rows, double eps, double momentum, const Real* x, const Real* scale,
                const Real* shift, Real* running_mean, Real* running_var, Real* kept, Real* y) {
  static double mean[C], variance[C];
  column_moments<C>(rows, x, mean, variance);
  const double unbiased = static_cast<double>(rows) / static_cast<double>(rows - 1);
  for (int64_t c = 0; c < C; ++c) {
    const auto blend = [&](Real& running, double batch) {
      running = static_cast<Real>((1 - momentum) * static_cast<double>(running) + momentum * batch);
    };
    blend(running_mean[c], mean[c]);
    blend(running_var[c], variance[c] * unbiased);
    kept[c] = static_cast<Real>(mean[c]);
    kept[C + c] = static_cast<Real>(1 / std::sqrt(variance[c] + eps));
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < C; ++c)
      y[i * C + c] = (x[i * C + c] - kept[c]) * kept[C + c] * scale[c] + shift[c];
  }
}

// By the running moments, which are constants here.
template <int64_t C>
void batch_norm_fixed(int64_t rows, double eps, const Real* x, const Real* scale, const Real* shift,
                      const Real* running_mean, const Real* running_var, Real* y) {
  static Real slope[C];
  for (int64_t c = 0; c < C; ++c) slope[c] = scale[c] / std::sqrt(running_var[c] + static_cast<Real>(eps));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < C; ++c) y[i * C + c] = (x[i * C + c] - running_mean[c]) * slope[c] + shift[c];
  }
}

// With x^ = (x - mean) inverse: dscale = sum g x^, dshift = sum g, dx = scale inverse (g - dshift / M - x^ dscale / M).
template <int64_t C>
void batch_norm_backward(int64_t rows, const Real* x, const Real* scale, const Real* kept, const Real* g,
                         Real* dscale, Real* dshift, Real* dx) {
  static double sums[C], products[C];
  std::fill(sums, sums + C, 0.0);
  std::fill(products, products + C, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = 0; c < C; ++c) {
      sums[c] += static_cast<double>(g[i * C + c]);
      products[c] += static_cast<double>(g[i * C + c] * ((x[i * C + c] - kept[c]) * kept[C + c]));
    }
  }
  for (int64_t c = 0; c < C; ++c) {
    if (dscale != nullptr) dscale[c] += static_cast<Real>(products[c]);
    if (dshift != nullptr) dshift[c] += static_cast<Real>(sums[c]);
    sums[c] /= static_cast<double>(rows);
    products[c] /= static_cast<double>(rows);
  }
  for (int64_t i = 0; dx != nullptr && i < rows; ++i) {
    for (int64_t c = 0; c < C; ++c) {
      const Real hat = (x[i * C + c] - kept[c]) * kept[C + c];
      const Real rest = static_cast<Real>(sums[c]) + hat * static_cast<Real>(products[c]);
      dx[i * C + c] += scale[c] * kept[C + c] * (g[i * C + c] - rest);
    }
  }
}

// Stretches that are normalised each by itself: `size` elements of `groups` in a row of P places of C channels; a layer
// norm has one channel for each element. `about_zero`: without taking the mean off.
struct Stretch {
  int64_t c = 1, p = 1, groups = 1;
  bool about_zero = false;
  constexpr int64_t size() const { return c / groups * p; }
};

// Where element i of stretch `s` stands, and its channel.
template <Stretch S>
std::pair<int64_t, int64_t> stretch_place(int64_t s, int64_t i) {
  constexpr int64_t kChannels = S.c / S.groups;
  const int64_t channel = s % S.groups * kChannels + i % kChannels;
  return {(s / S.groups * S.p + i / kChannels) * S.c + channel, channel};
}

// Keeps mean and 1 / sqrt(variance + eps) of every stretch for the way back. `scale` and `shift` may be null.
template <Stretch S>
void stretch_norm(int64_t rows, double eps, const Real* x, const Real* scale, const Real* shift, Real* kept,
                  Real* y) {
  for (int64_t s = 0; s < rows * S.groups; ++s) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; !S.about_zero && i < S.size(); ++i)
      mean += static_cast<double>(x[stretch_place<S>(s, i).first]);
    mean /= static_cast<double>(S.size());
    for (int64_t i = 0; i < S.size(); ++i) {
      const double off = static_cast<double>(x[stretch_place<S>(s, i).first]) - mean;
      variance += off * off;
    }
    const double inverse = 1 / std::sqrt(variance / static_cast<double>(S.size()) + eps);
    kept[2 * s] = static_cast<Real>(mean);
    kept[2 * s + 1] = static_cast<Real>(inverse);
    for (int64_t i = 0; i < S.size(); ++i) {
      const auto [at, c] = stretch_place<S>(s, i);
      const Real hat = (x[at] - kept[2 * s]) * kept[2 * s + 1];
      y[at] = (scale == nullptr ? hat : hat * scale[c]) + (shift == nullptr ? Real{0} : shift[c]);
    }
  }
}

// With u = g scale: dx = inverse (u - mean(u) - x^ mean(u x^)), without mean(u) about zero.
template <Stretch S>
void stretch_norm_backward(int64_t rows, const Real* x, const Real* scale, const Real* kept, const Real* g,
                           Real* dscale, Real* dshift, Real* dx) {
  static double scales[S.c], shifts[S.c];
  std::fill(scales, scales + S.c, 0.0);
  std::fill(shifts, shifts + S.c, 0.0);
  for (int64_t s = 0; s < rows * S.groups; ++s) {
    double mean_u = 0, mean_uh = 0;
    const Real mean = kept[2 * s], inverse = kept[2 * s + 1];
    for (int64_t i = 0; i < S.size(); ++i) {
      const auto [at, c] = stretch_place<S>(s, i);
      const Real hat = (x[at] - mean) * inverse, u = scale == nullptr ? g[at] : g[at] * scale[c];
      scales[c] += static_cast<double>(g[at] * hat);
      shifts[c] += static_cast<double>(g[at]);
      if (!S.about_zero) mean_u += static_cast<double>(u);
      mean_uh += static_cast<double>(u * hat);
    }
    const Real a = static_cast<Real>(mean_u / static_cast<double>(S.size()));
    const Real b = static_cast<Real>(mean_uh / static_cast<double>(S.size()));
    for (int64_t i = 0; dx != nullptr && i < S.size(); ++i) {
      const auto [at, c] = stretch_place<S>(s, i);
      const Real hat = (x[at] - mean) * inverse, u = scale == nullptr ? g[at] : g[at] * scale[c];
      dx[at] += inverse * (u - a - hat * b);
    }
  }
  for (int64_t c = 0; c < S.c; ++c) {
    if (dscale != nullptr) dscale[c] += static_cast<Real>(scales[c]);
    if (dshift != nullptr) dshift[c] += static_cast<Real>(shifts[c]);
  }
}

// x / (k + alpha s)^beta, s being the sum of squares over `size` channels; keeps k + alpha s for the way back.
template <int64_t C, int64_t Size>
void lrn(int64_t places, double alpha, double beta, double k, const Real* x, Real* kept, Real* y) {
  for (int64_t i = 0; i < places; ++i) {
    for (int64_t c = 0; c < C; ++c) {
      Real sum = 0;
      for (int64_t near = std::max<int64_t>(c - Size / 2, 0); near < std::min(c - Size / 2 + Size, C); ++near)
        sum += x[i * C + near] * x[i * C + near];
      kept[i * C + c] = static_cast<Real>(k) + static_cast<Real>(alpha) * sum;
      y[i * C + c] = x[i * C + c] * std::pow(kept[i * C + c], static_cast<Real>(-beta));
    }
  }
}

// With S = k + alpha s: dx_j = g_j S_j^-beta - 2 alpha beta x_j sum g_c y_c / S_c over the channels c that have j near.
template <int64_t C, int64_t Size>
void lrn_dx(int64_t places, double alpha, double beta, const Real* x, const Real* y, const Real* kept,
            const Real* g, Real* dx) {
  for (int64_t i = 0; i < places; ++i) {
    for (int64_t c = 0; c < C; ++c) {
      const int64_t at = i * C + c;
      dx[at] += g[at] * std::pow(kept[at], static_cast<Real>(-beta));
      for (int64_t near = std::max<int64_t>(c - Size / 2, 0); near < std::min(c - Size / 2 + Size, C); ++near)
        dx[i * C + near] -= static_cast<Real>(2 * alpha * beta) * x[i * C + near] * g[at] * y[at] / kept[at];
    }
  }
}

// Calls visit(first element, distance of two) for each line of `Count` elements with `Inner` others between two.
template <int64_t Count, int64_t Inner, typename Visit>
void each_line(int64_t outer, const Visit& visit) {
  for (int64_t line = 0; line < outer * Inner; ++line)
    visit(line / Inner * Inner * Count + line % Inner, Inner);
}

// The largest element of a line and the logarithm of the sum of exp(x - largest).
inline std::pair<Real, Real> log_sum(int64_t count, const Real* x, int64_t step) {
  Real top = x[0], sum = 0;
  for (int64_t i = 1; i < count; ++i) top = std::max(top, x[i * step]);
  for (int64_t i = 0; i < count; ++i) sum += std::exp(x[i * step] - top);
  return {top, std::log(sum)};
}

// exp(x) / sum exp(x) along lines.
template <int64_t Count, int64_t Inner>
void softmax(int64_t outer, const Real* x, Real* y) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    const auto [top, log] = log_sum(Count, x + first, step);
    for (int64_t i = 0; i < Count; ++i) y[first + i * step] = std::exp(x[first + i * step] - top - log);
  });
}

// dx = y (g - sum g y).
template <int64_t Count, int64_t Inner>
void softmax_dx(int64_t outer, const Real* y, const Real* g, Real* dx) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    Real sum = 0;
    for (int64_t i = 0; i < Count; ++i) sum += g[first + i * step] * y[first + i * step];
    for (int64_t i = 0; i < Count; ++i)
      dx[first + i * step] += y[first + i * step] * (g[first + i * step] - sum);
  });
}

// x - log(sum(exp(x))) along lines.
template <int64_t Count, int64_t Inner>
void log_softmax(int64_t outer, const Real* x, Real* y) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    const auto [top, log] = log_sum(Count, x + first, step);
    for (int64_t i = 0; i < Count; ++i) y[first + i * step] = x[first + i * step] - top - log;
  });
}

// dx = g - exp(y) sum g.
template <int64_t Count, int64_t Inner>
void log_softmax_dx(int64_t outer, const Real* y, const Real* g, Real* dx) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    Real sum = 0;
    for (int64_t i = 0; i < Count; ++i) sum += g[first + i * step];
    for (int64_t i = 0; i < Count; ++i)
      dx[first + i * step] += g[first + i * step] - std::exp(y[first + i * step]) * sum;
  });
}

// The sum of all elements of a line up to this one.
template <int64_t Count, int64_t Inner>
void cumsum(int64_t outer, const Real* x, Real* y) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    Real sum = 0;
    for (int64_t i = 0; i < Count; ++i) y[first + i * step] = sum += x[first + i * step];
  });
}

// The sum of all gradients from this element on.
template <int64_t Count, int64_t Inner>
void cumsum_dx(int64_t outer, const Real* g, Real* dx) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    Real sum = 0;
    for (int64_t i = Count; i-- > 0;) dx[first + i * step] += sum += g[first + i * step];
  });
}

// The product of each line.
template <int64_t Count, int64_t Inner>
void prod(int64_t outer, const Real* x, Real* y) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    Real product = 1;
    for (int64_t i = 0; i < Count; ++i) product *= x[first + i * step];
    *y++ = product;
  });
}

// The product of all others, those before and those behind: nothing is divided by 0.
template <int64_t Count, int64_t Inner>
void prod_dx(int64_t outer, const Real* x, const Real* g, Real* dx) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    Real before[Count], product = 1;
    for (int64_t i = 0; i < Count; ++i) {
      before[i] = product;
      product *= x[first + i * step];
    }
    Real behind = *g++;
    for (int64_t i = Count; i-- > 0; behind *= x[first + i * step])
      dx[first + i * step] += before[i] * behind;
  });
}

// The place of the largest element of each line, the first of equal ones.
template <int64_t Count, int64_t Inner>
void argmax(int64_t outer, const Real* x, int32_t* y) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    int32_t best = 0;
    for (int32_t i = 1; i < Count; ++i) {
      if (x[first + i * step] > x[first + best * step]) best = i;
    }
    *y++ = best;
  });
}

// The maximum of y and x; NaN where either is NaN.
inline Real larger(Real y, Real x) { return x <= y || std::isnan(y) ? y : x; }

inline Real smaller(Real y, Real x) { return x >= y || std::isnan(y) ? y : x; }

// Rows of the table, one for each integer.
template <int64_t Width>
void embedding(int64_t count, const int32_t* ids, const Real* table, Real* y) {
  for (int64_t i = 0; i < count; ++i) std::copy_n(table + ids[i] * Width, Width, y + i * Width);
}

// The gradient of row `padding` is not taken; -1: all are.
template <int64_t Width>
void embedding_dw(int64_t count, const int32_t* ids, int64_t padding, const Real* g, Real* dtable) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; ids[i] != padding && j < Width; ++j) dtable[ids[i] * Width + j] += g[i * Width + j];
  }
}

// From the `Size` stretches of Width elements along an axis those at `Count` places; To and From swap in `take_dx`.
template <int64_t Size, int64_t Count, int64_t Width>
void take(int64_t outer, const Real* x, const int32_t* places, Real* y) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < Count; ++i)
      std::copy_n(x + (o * Size + places[i]) * Width, Width, y + (o * Count + i) * Width);
  }
}

template <int64_t Size, int64_t Count, int64_t Width>
void take_dx(int64_t outer, const int32_t* places, const Real* g, Real* dx) {
  for (int64_t i = 0; i < outer * Count * Width; ++i) {
    const int64_t at = i / Width % Count, o = i / Width / Count;
    dx[(o * Size + places[at]) * Width + i % Width] += g[i];
  }
}

// The same where every row names places of its own.
template <int64_t Size, int64_t Count, int64_t Width>
void gather(int64_t outer, const Real* x, const int32_t* places, Real* y) {
  for (int64_t e = 0; e < outer * Count; ++e)
    std::copy_n(x + (e / Count * Size + places[e]) * Width, Width, y + e * Width);
}

template <int64_t Size, int64_t Count, int64_t Width>
void gather_dx(int64_t outer, const Real* g, const int32_t* places, Real* dx) {
  for (int64_t i = 0; i < outer * Count * Width; ++i) {
    const int64_t e = i / Width;
    dx[i] += g[(e / Count * Size + places[e]) * Width + i % Width];
  }
}

// y += x, what goes to the same place is added up.
template <int64_t Size, int64_t Count, int64_t Width>
void scatter_add(int64_t outer, const int32_t* places, const Real* x, Real* y) {
  for (int64_t i = 0; i < outer * Count * Width; ++i) {
    const int64_t e = i / Width;
    y[(e / Count * Size + places[e]) * Width + i % Width] += x[i];
  }
}

// -log softmax(logits)[label]; `smoothing`: the target's share that goes to all classes alike. Labels equal to `ignored`
// do not count, -1 where all do. `mean`: over those that count.
template <int64_t Classes>
Real softmax_cross_entropy(int64_t count, double smoothing, int64_t ignored, bool mean, const Real* x,
                           const int32_t* labels) {
  double sum = 0, counted = 0;
  for (int64_t row = 0; row < count; ++row) {
    if (labels[row] == ignored) continue;
    const Real* const logits = x + row * Classes;
    const auto [top, log] = log_sum(Classes, logits, 1);
    double target = static_cast<double>(logits[labels[row]]), all = 0;
    for (int64_t i = 0; smoothing != 0 && i < Classes; ++i) all += static_cast<double>(logits[i]);
    target = (1 - smoothing) * target + smoothing * all / static_cast<double>(Classes);
    sum += static_cast<double>(log) + (static_cast<double>(top) - target);
    counted += 1;
  }
  return static_cast<Real>(mean ? sum / std::max(counted, 1.0) : sum);
}

// (softmax - target) times the gradient of the loss.
template <int64_t Classes>
void softmax_cross_entropy_dx(int64_t count, double smoothing, int64_t ignored, bool mean, const Real* x,
                              const int32_t* labels, Real g, Real* dx) {
  const int64_t counted = count - std::count(labels, labels + count, ignored);
  const Real factor = mean ? g / static_cast<Real>(std::max<int64_t>(counted, 1)) : g;
  for (int64_t row = 0; row < count; ++row) {
    if (labels[row] == ignored) continue;
    const Real* const logits = x + row * Classes;
    const auto [top, log] = log_sum(Classes, logits, 1);
    for (int64_t i = 0; i < Classes; ++i) {
      const double hit = (i == labels[row] ? 1 - smoothing : 0) + smoothing / static_cast<double>(Classes);
      dx[row * Classes + i] += factor * (std::exp(logits[i] - top - log) - static_cast<Real>(hit));
    }
  }
}

// max(x, 0) - x t + log(1 + exp(-|x|)).
inline Real binary_cross_entropy(Real x, Real t) {
  return std::max(x, Real{0}) - x * t + std::log1p(std::exp(-std::abs(x)));
}

// Heads of `queries` and `keys` words with `width` numbers each; neighbouring heads share the keys of one of `groups`.
struct Heads {
  int64_t queries = 1, keys = 1, heads = 1, groups = 1, width = 1;
  bool causal = false;
  int64_t window = 0;  // with causal: how many of the last keys a query sees; 0: all
};

// The softmax of one query's scores over the keys that it sees: from `first` on, `count` in all. `last`: the last
// key of each row that is no padding; null: all.
template <Heads S>
std::pair<int64_t, int64_t> attention_weights(int64_t row, int64_t head, int64_t t, const Real* q,
                                              const Real* k, const int32_t* last, Real* weights) {
  int64_t end = S.causal ? std::min(t + 1, S.keys) : S.keys;
  if (last != nullptr) end = std::min<int64_t>(end, last[row] + 1);
  const int64_t first = S.window > 0 ? std::max<int64_t>(0, t + 1 - S.window) : 0;
  const Real scale = 1 / std::sqrt(static_cast<Real>(S.width));
  const Real* const query = q + ((row * S.queries + t) * S.heads + head) * S.width;
  Real top = -std::numeric_limits<Real>::infinity(), sum = 0;
  for (int64_t s = first; s < end; ++s) {
    const Real* const key = k + ((row * S.keys + s) * S.groups + head / (S.heads / S.groups)) * S.width;
    weights[s] = dot(S.width, query, key) * scale;
    top = std::max(top, weights[s]);
  }
  for (int64_t s = first; s < end; ++s) sum += weights[s] = std::exp(weights[s] - top);
  for (int64_t s = first; s < end; ++s) weights[s] /= sum;
  return {first, end};
}

// softmax(q k^T / sqrt width) v, one query at a time: the matrix of all scores is never held.
template <Heads S>
void attention(int64_t rows, uint64_t key, double rate, const Real* q, const Real* k, const Real* v,
               const int32_t* last, Real* y) {
  static Real weights[S.keys];
  for (int64_t i = 0; i < rows * S.heads * S.queries; ++i) {
    const int64_t row = i / S.queries / S.heads, head = i / S.queries % S.heads, t = i % S.queries;
    const auto [first, end] = attention_weights<S>(row, head, t, q, k, last, weights);
    Real* const out = y + ((row * S.queries + t) * S.heads + head) * S.width;
    std::fill(out, out + S.width, Real{0});
    for (int64_t s = first; s < end; ++s) {
      const Real* const value = v + ((row * S.keys + s) * S.groups + head / (S.heads / S.groups)) * S.width;
      const Real kept = rate > 0 ? dropout_factor(key, static_cast<uint64_t>(i * S.keys + s), rate) : Real{1};
      for (int64_t j = 0; j < S.width; ++j) out[j] += kept * weights[s] * value[j];
    }
  }
}

// With weights P, of which dropout keeps M P: dv = (M P)^T g, dP = M g v^T, dS = P (dP - sum dP P) / sqrt width, dq = dS k,
// dk = dS^T q. The weights are computed anew.
template <Heads S>
void attention_backward(int64_t rows, uint64_t key, double rate, const Real* q, const Real* k, const Real* v,
                        const int32_t* last, const Real* g, Real* dq, Real* dk, Real* dv) {
  static Real weights[S.keys], scores[S.keys];
  const Real scale = 1 / std::sqrt(static_cast<Real>(S.width));
  for (int64_t i = 0; i < rows * S.heads * S.queries; ++i) {
    const int64_t row = i / S.queries / S.heads, head = i / S.queries % S.heads, t = i % S.queries;
    const auto [first, end] = attention_weights<S>(row, head, t, q, k, last, weights);
    const int64_t at_query = ((row * S.queries + t) * S.heads + head) * S.width;
    const auto at_key = [&](int64_t s) {
      return ((row * S.keys + s) * S.groups + head / (S.heads / S.groups)) * S.width;
    };
    Real sum = 0;
    for (int64_t s = first; s < end; ++s) {
      const Real kept = rate > 0 ? dropout_factor(key, static_cast<uint64_t>(i * S.keys + s), rate) : Real{1};
      scores[s] = kept * dot(S.width, g + at_query, v + at_key(s));
      sum += scores[s] * weights[s];
      for (int64_t j = 0; dv != nullptr && j < S.width; ++j)
        dv[at_key(s) + j] += kept * weights[s] * g[at_query + j];
    }
    for (int64_t s = first; s < end; ++s) {
      const Real d = weights[s] * (scores[s] - sum) * scale;
      for (int64_t j = 0; dq != nullptr && j < S.width; ++j) dq[at_query + j] += d * k[at_key(s) + j];
      for (int64_t j = 0; dk != nullptr && j < S.width; ++j) dk[at_key(s) + j] += d * q[at_query + j];
    }
  }
}

// A recurrent layer: `length` words of `inputs` numbers into as many of `units`.
struct Cells {
  int64_t length = 1, inputs = 1, units = 1;
  bool reverse = false;
  constexpr int64_t place(int64_t n, int64_t t) const { return n * length + (reverse ? length - 1 - t : t); }
};

// Gates are i, f, g, o; keeps them and the cells of every place for the way back. `bias` may be null.
template <Cells S>
void lstm(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* bias, Real* kept,
          Real* y) {
  constexpr int64_t kGates = 4 * S.units;
  Real* const cells = kept + rows * S.length * kGates;
  start_rows<kGates>(rows * S.length, bias, kept);
  linear<S.inputs, kGates>(rows * S.length, x, w_ih, kept);
  for (int64_t t = 0; t < S.length; ++t) {
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t p = S.place(n, t), before = t > 0 ? S.place(n, t - 1) : -1;
      Real* const gates = kept + p * kGates;
      if (t > 0) linear<S.units, kGates>(1, y + before * S.units, w_hh, gates);
      for (int64_t u = 0; u < S.units; ++u) {
        Real &i = gates[u], &f = gates[S.units + u], &g = gates[2 * S.units + u], &o = gates[3 * S.units + u];
        i = logistic(i), f = logistic(f), g = std::tanh(g), o = logistic(o);
        cells[p * S.units + u] = i * g + (t > 0 ? f * cells[before * S.units + u] : Real{0});
        y[p * S.units + u] = o * std::tanh(cells[p * S.units + u]);
      }
    }
  }
}

// `spare`: room for the gradients of all gates.
template <Cells S>
void lstm_backward(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* kept,
                   const Real* y, const Real* g, Real* spare, Real* dw_ih, Real* dw_hh, Real* dbias,
                   Real* dx) {
  constexpr int64_t kGates = 4 * S.units;
  const Real* const cells = kept + rows * S.length * kGates;
  for (int64_t n = 0; n < rows; ++n) {
    static Real dcell[S.units], dhidden[S.units];
    std::fill(dcell, dcell + S.units, Real{0});
    for (int64_t t = S.length; t-- > 0;) {
      const int64_t p = S.place(n, t);
      std::copy_n(g + p * S.units, S.units, dhidden);
      if (t + 1 < S.length) linear_dx<S.units, kGates>(1, spare + S.place(n, t + 1) * kGates, w_hh, dhidden);
      const Real* const gates = kept + p * kGates;
      Real* const out = spare + p * kGates;
      for (int64_t u = 0; u < S.units; ++u) {
        const Real i = gates[u], f = gates[S.units + u], c = gates[2 * S.units + u],
                   o = gates[3 * S.units + u];
        const Real squashed = std::tanh(cells[p * S.units + u]);
        const Real dc = dcell[u] + dhidden[u] * o * (1 - squashed * squashed);
        const Real before = t > 0 ? cells[S.place(n, t - 1) * S.units + u] : Real{0};
        out[u] = dc * c * i * (1 - i);
        out[S.units + u] = dc * before * f * (1 - f);
        out[2 * S.units + u] = dc * i * (1 - c * c);
        out[3 * S.units + u] = dhidden[u] * squashed * o * (1 - o);
        dcell[u] = dc * f;
      }
      if (t > 0 && dw_hh != nullptr)
        linear_dw<S.units, kGates>(1, y + S.place(n, t - 1) * S.units, out, dw_hh);
    }
  }
  if (dw_ih != nullptr) linear_dw<S.inputs, kGates>(rows * S.length, x, spare, dw_ih);
  if (dbias != nullptr) column_sums<kGates>(rows * S.length, spare, dbias);
  if (dx != nullptr) linear_dx<S.inputs, kGates>(rows * S.length, spare, w_ih, dx);
}

// Gates are r, z, n; keeps them and what the state gives to n for the way back. Biases may be null.
template <Cells S>
void gru(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* bias_ih,
         const Real* bias_hh, Real* kept, Real* y) {
  constexpr int64_t kGates = 3 * S.units;
  Real* const given = kept + rows * S.length * kGates;
  static Real sums[kGates];
  start_rows<kGates>(rows * S.length, bias_ih, kept);
  linear<S.inputs, kGates>(rows * S.length, x, w_ih, kept);
  for (int64_t t = 0; t < S.length; ++t) {
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t p = S.place(n, t), before = t > 0 ? S.place(n, t - 1) : -1;
      Real* const gates = kept + p * kGates;
      start_rows<kGates>(1, bias_hh, sums);
      if (t > 0) linear<S.units, kGates>(1, y + before * S.units, w_hh, sums);
      for (int64_t u = 0; u < S.units; ++u) {
        Real &r = gates[u], &z = gates[S.units + u], &c = gates[2 * S.units + u];
        r = logistic(r + sums[u]), z = logistic(z + sums[S.units + u]);
        given[p * S.units + u] = sums[2 * S.units + u];
        c = std::tanh(c + r * sums[2 * S.units + u]);
        y[p * S.units + u] = (1 - z) * c + (t > 0 ? z * y[before * S.units + u] : Real{0});
      }
    }
  }
}

// `spare`: room for the gradients of what x and of what the state gives to all gates, in this order.
template <Cells S>
void gru_backward(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* kept,
                  const Real* y, const Real* g, Real* spare, Real* dw_ih, Real* dw_hh, Real* dbias_ih,
                  Real* dbias_hh, Real* dx) {
  constexpr int64_t kGates = 3 * S.units;
  const Real* const given = kept + rows * S.length * kGates;
  Real* const of_state = spare + rows * S.length * kGates;
  for (int64_t n = 0; n < rows; ++n) {
    static Real dhidden[S.units];
    std::fill(dhidden, dhidden + S.units, Real{0});
    for (int64_t t = S.length; t-- > 0;) {
      const int64_t p = S.place(n, t);
      const Real* const gates = kept + p * kGates;
      Real *const of_x = spare + p * kGates, *const of_h = of_state + p * kGates;
      for (int64_t u = 0; u < S.units; ++u) {
        const Real r = gates[u], z = gates[S.units + u], c = gates[2 * S.units + u];
        const Real before = t > 0 ? y[S.place(n, t - 1) * S.units + u] : Real{0};
        const Real dh = dhidden[u] + g[p * S.units + u], dn = dh * (1 - z) * (1 - c * c);
        of_x[u] = of_h[u] = dn * given[p * S.units + u] * r * (1 - r);
        of_x[S.units + u] = of_h[S.units + u] = dh * (before - c) * z * (1 - z);
        of_x[2 * S.units + u] = dn;
        of_h[2 * S.units + u] = dn * r;
        dhidden[u] = dh * z;
      }
      linear_dx<S.units, kGates>(1, of_h, w_hh, dhidden);
      if (t > 0 && dw_hh != nullptr)
        linear_dw<S.units, kGates>(1, y + S.place(n, t - 1) * S.units, of_h, dw_hh);
    }
  }
  if (dw_ih != nullptr) linear_dw<S.inputs, kGates>(rows * S.length, x, spare, dw_ih);
  if (dbias_ih != nullptr) column_sums<kGates>(rows * S.length, spare, dbias_ih);
  if (dbias_hh != nullptr) column_sums<kGates>(rows * S.length, of_state, dbias_hh);
  if (dx != nullptr) linear_dx<S.inputs, kGates>(rows * S.length, spare, w_ih, dx);
}

// log(exp(a) + exp(b)).
inline double log_add(double a, double b) {
  const double least = std::min(a, b), most = std::max(a, b);
  return least == -std::numeric_limits<double>::infinity() ? most : most + std::log1p(std::exp(least - most));
}

// From how many states of ctc state s is reached: itself, the one before, and the one before that, over a blank between
// different labels.
inline int64_t ctc_reach(const int64_t* states, int64_t s) {
  if (s < 2) return s + 1;
  return states[s] != 0 && states[s] != states[s - 2] ? 3 : 2;
}

// A row of ctc in log space (Graves et al. 2006, section 4): its states blank, l1, blank, ..., blank; log_p of each class
// by frame; log p of all paths up to each state by frame. Gives the number of states.
template <int64_t T, int64_t C, int64_t L>
int64_t ctc_paths(const Real* logits, const int32_t* labels, int64_t* states, double* log_p, double* before) {
  int64_t count = 1;
  states[0] = 0;
  for (int64_t i = 0; i < L && labels[i] >= 0; ++i) {
    states[count++] = labels[i];
    states[count++] = 0;
  }
  for (int64_t t = 0; t < T; ++t) {
    const double most = static_cast<double>(*std::max_element(logits + t * C, logits + (t + 1) * C));
    double sum = 0;
    for (int64_t k = 0; k < C; ++k) sum += std::exp(static_cast<double>(logits[t * C + k]) - most);
    for (int64_t k = 0; k < C; ++k)
      log_p[t * C + k] = static_cast<double>(logits[t * C + k]) - most - std::log(sum);
  }
  for (int64_t t = 0; t < T; ++t) {
    for (int64_t s = 0; s < count; ++s) {
      double sum = t == 0 && s < 2 ? 0 : -std::numeric_limits<double>::infinity();
      for (int64_t step = 0; t > 0 && step < ctc_reach(states, s); ++step)
        sum = log_add(sum, before[(t - 1) * count + s - step]);
      before[t * count + s] = sum + log_p[t * C + states[s]];
    }
  }
  return count;
}

// log p of the labels: of the paths that end in the last label or in the blank behind it.
inline double ctc_total(int64_t count, const double* last) {
  return count == 1 ? last[0] : log_add(last[count - 1], last[count - 2]);
}

// The sum of -log p(labels) over the rows.
template <int64_t T, int64_t C, int64_t L>
double ctc(int64_t rows, const Real* x, const int32_t* labels) {
  static int64_t states[2 * L + 1];
  static double log_p[T * C], before[T * (2 * L + 1)];
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = ctc_paths<T, C, L>(x + row * T * C, labels + row * L, states, log_p, before);
    sum -= ctc_total(count, before + (T - 1) * count);
  }
  return sum;
}

// dx = scale (softmax - the share of the labels' paths that have the class in this frame).
template <int64_t T, int64_t C, int64_t L>
void ctc_dx(int64_t rows, Real scale, const Real* x, const int32_t* labels, Real* dx) {
  static int64_t states[2 * L + 1];
  static double log_p[T * C], before[T * (2 * L + 1)], shares[T * C], behind[2][2 * L + 1];
  const double never = -std::numeric_limits<double>::infinity();
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t count = ctc_paths<T, C, L>(x + row * T * C, labels + row * L, states, log_p, before);
    const double total = ctc_total(count, before + (T - 1) * count);
    std::fill(shares, shares + T * C, 0.0);
    double *now = behind[0], *earlier = behind[1];  // log p of the rest, from a state of frame t
    std::fill(now, now + count, never);
    for (int64_t s = std::max<int64_t>(count - 2, 0); s < count; ++s) now[s] = 0;
    for (int64_t t = T; t-- > 0; std::swap(now, earlier)) {
      std::fill(earlier, earlier + count, never);
      for (int64_t s = 0; s < count; ++s) {
        shares[t * C + states[s]] += std::exp(before[t * count + s] + now[s] - total);
        for (int64_t step = 0; step < ctc_reach(states, s); ++step)
          earlier[s - step] = log_add(earlier[s - step], log_p[t * C + states[s]] + now[s]);
      }
    }
    for (int64_t i = 0; i < T * C; ++i)
      dx[row * T * C + i] += scale * static_cast<Real>(std::exp(log_p[i]) - shares[i]);
  }
}
