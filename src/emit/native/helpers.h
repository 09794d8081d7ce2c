#pragma once

// What programs call besides heavy.h (emit/helpers.h says how a program gets its copies). Every function takes the shape
// as template arguments and the number of rows at run time, writes its result anew, and adds gradients to what is there.
// A gradient that nobody needs is null. Sums over many elements are made in double: in float32 they would be what a
// step loses most digits by. Names of shapes: C channels, P places of a picture, held as N,P,C; count lines of a stretch.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "emit/native/heavy.h"

// Zeroed memory for `count` numbers that lives as long as the program, of pages that the system gives when
// they are first touched.
template <typename T>
T* allocate(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(T) + 64;
  void* memory = std::calloc(1, bytes + 64);
  if (memory == nullptr) throw std::bad_alloc();
  static auto& all = *new std::vector<void*>;  // so that no tool calls it lost
  all.push_back(memory);
  size_t room = bytes + 64;
  return static_cast<T*>(std::align(64, bytes, memory, room));
}

// Threads that do one thing together: run() calls act(thread) on each and returns when all are done; wait()
// inside is a barrier. A thread that waits looks 2,000 times, then sleeps: a neighbour may need the
// processor.
struct Team {
  explicit Team(int64_t size) : count(size) {
    for (int64_t thread = 1; thread < count; ++thread)
      threads.emplace_back([this, thread] { serve(thread); });
  }
  ~Team() {
    act_now = nullptr;
    ++begun;
    begun.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  int64_t size() const { return count; }
  void run(const std::function<void(int64_t)>& act) {
    act_now = &act;
    ++begun;
    begun.notify_all();
    act(0);
    wait();
  }
  void wait() {
    if (count == 1) return;
    const uint32_t round = rounds;
    if (++arrived == count) {
      arrived = 0;
      ++rounds;
      rounds.notify_all();
    } else {
      until_other(rounds, round);
    }
  }
  static void until_other(const std::atomic<uint32_t>& value, uint32_t old) {
    for (int i = 0; i < 2000; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
#if defined(__SSE2__)
      _mm_pause();
#endif
    }
    value.wait(old);
  }
  void serve(int64_t thread) {
    for (uint32_t seen = 0;;) {
      until_other(begun, seen++);
      if (act_now == nullptr) return;
      (*act_now)(thread);
      wait();
    }
  }
  const int64_t count;
  const std::function<void(int64_t)>* act_now = nullptr;
  std::atomic<uint32_t> begun = 0, rounds = 0;
  std::atomic<int64_t> arrived = 0;
  std::vector<std::thread> threads;
};

// As many as OMP_NUM_THREADS says, or as there are processors for this process.
inline int64_t default_threads() {
  const char* const wanted = std::getenv("OMP_NUM_THREADS");
  if (wanted != nullptr && std::atoll(wanted) > 0) return std::atoll(wanted);
  return std::max<int64_t>(std::thread::hardware_concurrency(), 1);
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
  static thread_local double sums[K];
  std::fill(sums, sums + K, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < K; ++k) sums[k] += static_cast<double>(g[row * K + k]);
  }
  for (int64_t k = 0; k < K; ++k) dbias[k] += static_cast<Real>(sums[k]);
}

// The finaliser of splitmix64: scatters the bits of a counter.
inline uint64_t mix(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// What dropout multiplies element `index` by: 0, or what keeps the mean. The upper 53 bits of a hash are a
// number from 0 to 1 that is kept where it is not below the rate. `key` stands for seed, step and layer.
inline Real dropout_factor(uint64_t key, uint64_t index, double rate) {
  const auto least = static_cast<uint64_t>(std::ceil(rate * 0x1p53));
  return mix(index ^ key) >> 11 >= least ? static_cast<Real>(1 / (1 - rate)) : Real{0};
}

// y = x or (kSets false) y += x, each element kept or dropped; masks are counted as in N,C,P, from row
// `first` of the batch on. Forwards and backwards the same.
template <int64_t C, int64_t P, bool kSets>
void dropout(int64_t first, int64_t rows, uint64_t key, double rate, const Real* x, Real* y) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t p = 0; p < P; ++p) {
      for (int64_t c = 0; c < C; ++c) {
        const int64_t at = (row * P + p) * C + c, index = ((first + row) * C + c) * P + p;
        const Real kept = x[at] * dropout_factor(key, static_cast<uint64_t>(index), rate);
        y[at] = kSets ? kept : y[at] + kept;
      }
    }
  }
}

// exp without a branch, so that compilers make vectors of it: 2^n e^r, |r| <= ln 2 / 2, e^r by a polynomial fitted to
// 2e-9; 2 ulp in all. 0 below -86.6. In double, as below, the library's.
inline Real exp_of(Real x) {
  if constexpr (sizeof(Real) == 8) return std::exp(x);
  const float f = std::min(static_cast<float>(x), 88.8f);
  const float near = f * 1.44269504f + 12582912.0f,
              n = near - 12582912.0f;  // 1.5 2^23: n is in the last bits
  const float r = (f - n * 0.693145751953125f) - n * 1.428606765330187e-06f;
  float p = 0.0013835752615705132f;
  p = p * r + 0.00837564468383789f;
  p = p * r + 0.04166828840970993f;
  p = p * r + 0.16666410863399506f;
  p = p * r + 0.49999991059303284f;
  p = (p * r + 1) * r + 1;
  const float half = std::bit_cast<float>((std::bit_cast<int32_t>(near) << 23) + 0x3f000000);  // 2^(n - 1)
  const float y = p * half * 2;
  return static_cast<Real>(f < -86.6f ? 0 : f > 88.72f ? std::numeric_limits<float>::infinity() : y);
}

// Near 0 x + x^3 p(x^2), elsewhere by exp; 2 ulp.
inline Real tanh_of(Real x) {
  if constexpr (sizeof(Real) == 8) return std::tanh(x);
  const Real a = std::abs(x), q = x * x;
  Real p = Real(0.002064682310447097);
  p = p * q - Real(0.00809199083596468);
  p = p * q + Real(0.021666357293725014);
  p = p * q - Real(0.05394056439399719);
  p = p * q + Real(0.13333158195018768);
  p = p * q - Real(0.333333283662796);
  const Real far = 1 - 2 / (exp_of(2 * a) + 1);
  return a < Real(0.65) ? x + x * q * p : std::copysign(far, x);
}

// Near 0 x p(x^2), elsewhere 1 - exp(-x^2) p(1 / (1 + |x| / 2)); 2e-7.
inline Real erf_of(Real x) {
  if constexpr (sizeof(Real) == 8) return std::erf(x);
  const Real a = std::min(std::abs(x), Real(4.2)), q = x * x, t = 1 / (1 + a / 2);
  Real p = Real(7.889851258369163e-05);
  p = p * q - Real(0.0008021077956072986);
  p = p * q + Real(0.005189564544707537);
  p = p * q - Real(0.026854462921619415);
  p = p * q + Real(0.11283600330352783);
  p = p * q - Real(0.3761262595653534);
  p = p * q + Real(1.1283791065216064);
  Real r = Real(-0.0330686941742897);
  r = r * t + Real(0.26642411947250366);
  r = r * t - Real(0.755703866481781);
  r = r * t + Real(0.8758968114852905);
  r = r * t - Real(0.317048579454422);
  r = r * t + Real(0.4405108392238617);
  r = r * t + Real(0.23466753959655762);
  r = r * t + Real(0.28874871134757996);
  r = r * t - Real(0.0004100488731637597);
  const Real far = 1 - exp_of(-a * a) * r;
  return a < 1 ? x * p : std::copysign(far, x);
}

// The exponential's argument is never positive.
inline Real logistic(Real x) {
  const Real e = exp_of(-std::abs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

inline Real log_1p_exp(Real x) { return std::max(x, Real{0}) + std::log1p(exp_of(-std::abs(x))); }

inline Real sign_of(Real x) { return x > 0 ? Real{1} : x < 0 ? Real{-1} : x; }

inline Real mish_slope(Real x) {
  const Real t = tanh_of(log_1p_exp(x));
  return t + x * (1 - t * t) * logistic(x);
}

inline Real gelu_erf(Real x) { return x * (1 + erf_of(x * Real{0.7071067811865476})) / 2; }

inline Real gelu_erf_slope(Real x) {
  const Real density = exp_of(-x * x / 2) * Real{0.3989422804014327};
  return (1 + erf_of(x * Real{0.7071067811865476})) / 2 + x * density;
}

inline Real gelu_tanh(Real x) {
  return x * (1 + tanh_of(Real{0.7978845608028654} * (x + Real{0.044715} * x * x * x))) / 2;
}

inline Real gelu_tanh_slope(Real x) {
  const Real t = tanh_of(Real{0.7978845608028654} * (x + Real{0.044715} * x * x * x));
  return (1 + t) / 2 + x * (1 - t * t) * Real{0.7978845608028654} * (1 + Real{0.134145} * x * x) / 2;
}

// A convolution of volumes of d, h, w, c into od, oh, ow, k with kernels of q, r, s; the rest as in Conv,
// along D, H, W.
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
      Real left[S.c];
      std::copy(g, g + S.c, left);
      pool_window<S>(to, [&](int64_t from) {
        for (int64_t c = 0; c < S.c; ++c) {
          const bool takes = x[from * S.c + c] == y[c];
          dx[from * S.c + c] += takes ? left[c] : Real{0};
          left[c] = takes ? Real{0} : left[c];
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
  Ruler d = {}, h = {}, w = {};
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

// Columns of part `part` of `parts` of C, in sixteens.
template <int64_t C>
std::pair<int64_t, int64_t> columns_of(int64_t part, int64_t parts) {
  constexpr int64_t kBlocks = (C + 15) / 16;
  return {std::min(kBlocks * part / parts * 16, C), std::min(kBlocks * (part + 1) / parts * 16, C)};
}

// Normalises columns by the batch's moments, which move the running ones; keeps mean and 1 / sqrt(variance +
// eps) of each column for the way back. Part `part` of `parts` of the columns.
template <int64_t C>
void batch_norm(int64_t part, int64_t parts, int64_t rows, double eps, double momentum, const Real* x,
                const Real* scale, const Real* shift, Real* running_mean, Real* running_var, Real* kept,
                Real* y) {
  static thread_local double mean[C], variance[C];
  const auto [begin, end] = columns_of<C>(part, parts);
  std::fill(mean + begin, mean + end, 0.0);
  std::fill(variance + begin, variance + end, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = begin; c < end; ++c) mean[c] += static_cast<double>(x[i * C + c]);
  }
  for (int64_t c = begin; c < end; ++c) mean[c] /= static_cast<double>(rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = begin; c < end; ++c) {
      const double off = static_cast<double>(x[i * C + c]) - mean[c];
      variance[c] += off * off;
    }
  }
  const double unbiased = static_cast<double>(rows) / static_cast<double>(rows - 1);
  for (int64_t c = begin; c < end; ++c) {
    variance[c] /= static_cast<double>(rows);
    const auto blend = [&](Real& running, double batch) {
      running = static_cast<Real>((1 - momentum) * static_cast<double>(running) + momentum * batch);
    };
    blend(running_mean[c], mean[c]);
    blend(running_var[c], variance[c] * unbiased);
    kept[c] = static_cast<Real>(mean[c]);
    kept[C + c] = static_cast<Real>(1 / std::sqrt(variance[c] + eps));
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = begin; c < end; ++c)
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

// With x^ = (x - mean) inverse: dscale = sum g x^, dshift = sum g, dx = scale inverse (g - dshift / M - x^
// dscale / M). `sets`: dx begins here.
template <int64_t C>
void batch_norm_backward(int64_t part, int64_t parts, int64_t rows, const Real* x, const Real* scale,
                         const Real* kept, const Real* g, Real* dscale, Real* dshift, Real* dx, bool sets) {
  static thread_local double sums[C], products[C];
  const auto [begin, end] = columns_of<C>(part, parts);
  std::fill(sums + begin, sums + end, 0.0);
  std::fill(products + begin, products + end, 0.0);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t c = begin; c < end; ++c) {
      sums[c] += static_cast<double>(g[i * C + c]);
      products[c] += static_cast<double>(g[i * C + c] * ((x[i * C + c] - kept[c]) * kept[C + c]));
    }
  }
  static thread_local Real mean_g[C], mean_gh[C];
  for (int64_t c = begin; c < end; ++c) {
    if (dscale != nullptr) dscale[c] += static_cast<Real>(products[c]);
    if (dshift != nullptr) dshift[c] += static_cast<Real>(sums[c]);
    mean_g[c] = static_cast<Real>(sums[c] / static_cast<double>(rows));
    mean_gh[c] = static_cast<Real>(products[c] / static_cast<double>(rows));
  }
  for (int64_t i = 0; dx != nullptr && i < rows; ++i) {
    for (int64_t c = begin; c < end; ++c) {
      const Real hat = (x[i * C + c] - kept[c]) * kept[C + c];
      const Real d = scale[c] * kept[C + c] * (g[i * C + c] - (mean_g[c] + hat * mean_gh[c]));
      dx[i * C + c] = sets ? d : dx[i * C + c] + d;
    }
  }
}

// Stretches that are normalised each by itself: `size` elements of `groups` in a row of P places of C
// channels; a layer norm has one channel for each element. `about_zero`: without taking the mean off.
struct Stretch {
  int64_t c = 1, p = 1, groups = 1;
  bool about_zero = false;
  constexpr int64_t size() const { return c / groups * p; }
};

// Calls visit(first place, first channel) for each of a stretch's P runs of kChannels neighbours.
template <Stretch S, typename Visit>
void each_run(int64_t s, const Visit& visit) {
  constexpr int64_t kChannels = S.c / S.groups;
  const int64_t channel = s % S.groups * kChannels;
  for (int64_t p = 0; p < S.p; ++p) visit((s / S.groups * S.p + p) * S.c + channel, channel);
}

// The sum of f(place, channel) over a stretch, 16 side by side.
template <Stretch S, typename F>
double stretch_sum(int64_t s, const F& f) {
  constexpr int64_t kChannels = S.c / S.groups;
  double sums[16] = {}, rest = 0;
  each_run<S>(s, [&](int64_t at, int64_t channel) {
    constexpr int64_t kWhole = kChannels / 16 * 16;
    for (int64_t i = 0; i < kWhole; i += 16) {
      for (int64_t j = 0; j < 16; ++j) sums[j] += static_cast<double>(f(at + i + j, channel + i + j));
    }
    for (int64_t i = kWhole; i < kChannels; ++i) rest += static_cast<double>(f(at + i, channel + i));
  });
  for (int64_t j = 0; j < 16; ++j) rest += sums[j];
  return rest;
}

// Keeps mean and 1 / sqrt(variance + eps) of every stretch for the way back. `scale` and `shift` may be null.
template <Stretch S>
void stretch_norm(int64_t rows, double eps, const Real* x, const Real* scale, const Real* shift, Real* kept,
                  Real* y) {
  constexpr double kSize = static_cast<double>(S.size());
  for (int64_t s = 0; s < rows * S.groups; ++s) {
    const double mean =
        S.about_zero ? 0 : stretch_sum<S>(s, [&](int64_t at, int64_t) { return x[at]; }) / kSize;
    const double variance = stretch_sum<S>(s,
                                           [&](int64_t at, int64_t) {
                                             const double off = static_cast<double>(x[at]) - mean;
                                             return off * off;
                                           }) /
                            kSize;
    const Real middle = static_cast<Real>(mean), inverse = static_cast<Real>(1 / std::sqrt(variance + eps));
    kept[2 * s] = middle;
    kept[2 * s + 1] = inverse;
    each_run<S>(s, [&](int64_t at, int64_t channel) {
      for (int64_t i = 0; i < S.c / S.groups; ++i) {
        const Real hat = (x[at + i] - middle) * inverse;
        y[at + i] = (scale == nullptr ? hat : hat * scale[channel + i]) +
                    (shift == nullptr ? Real{0} : shift[channel + i]);
      }
    });
  }
}

// With u = g scale: dx = inverse (u - mean(u) - x^ mean(u x^)), without mean(u) about zero. `sets`: dx begins here.
template <Stretch S>
void stretch_norm_backward(int64_t rows, const Real* x, const Real* scale, const Real* kept, const Real* g,
                           Real* dscale, Real* dshift, Real* dx, bool sets) {
  static thread_local double scales[S.c], shifts[S.c];
  std::fill(scales, scales + S.c, 0.0);
  std::fill(shifts, shifts + S.c, 0.0);
  for (int64_t s = 0; s < rows * S.groups; ++s) {
    const Real mean = kept[2 * s], inverse = kept[2 * s + 1];
    const auto scaled_g = [&](int64_t at, int64_t c) { return scale == nullptr ? g[at] : g[at] * scale[c]; };
    const double mean_u = S.about_zero ? 0 : stretch_sum<S>(s, scaled_g);
    const double mean_uh = stretch_sum<S>(
        s, [&](int64_t at, int64_t c) { return scaled_g(at, c) * ((x[at] - mean) * inverse); });
    const Real a = static_cast<Real>(mean_u / static_cast<double>(S.size()));
    const Real b = static_cast<Real>(mean_uh / static_cast<double>(S.size()));
    each_run<S>(s, [&](int64_t at, int64_t channel) {
      for (int64_t i = 0; i < S.c / S.groups; ++i) {
        const Real hat = (x[at + i] - mean) * inverse;
        scales[channel + i] += static_cast<double>(g[at + i] * hat);
        shifts[channel + i] += static_cast<double>(g[at + i]);
      }
      for (int64_t i = 0; dx != nullptr && i < S.c / S.groups; ++i) {
        const Real hat = (x[at + i] - mean) * inverse;
        const Real d = inverse * (scaled_g(at + i, channel + i) - a - hat * b);
        dx[at + i] = sets ? d : dx[at + i] + d;
      }
    });
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

// With S = k + alpha s: dx_j = g_j S_j^-beta - 2 alpha beta x_j sum g_c y_c / S_c over the channels c that
// have j near.
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
  Real tops[16], sums[16] = {}, top = x[0], sum = 0;
  const int64_t blocks = step == 1 ? count / 16 * 16 : 0;  // 16 side by side
  std::fill(tops, tops + 16, top);
  for (int64_t i = 0; i < blocks; i += 16) {
    for (int64_t j = 0; j < 16; ++j) tops[j] = x[i + j] > tops[j] ? x[i + j] : tops[j];
  }
  for (int64_t j = 0; j < 16; ++j) top = std::max(top, tops[j]);
  for (int64_t i = blocks; i < count; ++i) top = std::max(top, x[i * step]);
  for (int64_t i = 0; i < blocks; i += 16) {
    for (int64_t j = 0; j < 16; ++j) sums[j] += exp_of(x[i + j] - top);
  }
  for (int64_t j = 0; j < 16; ++j) sum += sums[j];
  for (int64_t i = blocks; i < count; ++i) sum += exp_of(x[i * step] - top);
  return {top, std::log(sum)};
}

// exp(x) / sum exp(x) along lines.
template <int64_t Count, int64_t Inner>
void softmax(int64_t outer, const Real* x, Real* y) {
  each_line<Count, Inner>(outer, [&](int64_t first, int64_t step) {
    const auto [top, log] = log_sum(Count, x + first, step);
    for (int64_t i = 0; i < Count; ++i) y[first + i * step] = exp_of(x[first + i * step] - top - log);
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
      dx[first + i * step] += g[first + i * step] - exp_of(y[first + i * step]) * sum;
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

// -log softmax(logits)[label]; `smoothing`: the target's share that goes to all classes alike. Labels equal
// to `ignored` do not count, -1 where all do. `over`: what the sum is divided by; 0: how many count.
template <int64_t Classes>
Real softmax_cross_entropy(int64_t count, double smoothing, int64_t ignored, int64_t over, const Real* x,
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
  return static_cast<Real>(sum / (over > 0 ? static_cast<double>(over) : std::max(counted, 1.0)));
}

// (softmax - target) times the gradient of the loss.
template <int64_t Classes>
void softmax_cross_entropy_dx(int64_t count, double smoothing, int64_t ignored, int64_t over, const Real* x,
                              const int32_t* labels, Real g, Real* dx) {
  if (over == 0) over = std::max<int64_t>(count - std::count(labels, labels + count, ignored), 1);
  const Real factor = g / static_cast<Real>(over);
  for (int64_t row = 0; row < count; ++row) {
    if (labels[row] == ignored) continue;
    const Real* const logits = x + row * Classes;
    const auto [top, log] = log_sum(Classes, logits, 1);
    Real* const to = dx + row * Classes;
    const Real all = static_cast<Real>(smoothing / static_cast<double>(Classes));
    for (int64_t i = 0; i < Classes; ++i) to[i] += factor * (exp_of(logits[i] - top - log) - all);
    to[labels[row]] -= factor * static_cast<Real>(1 - smoothing);
  }
}

// max(x, 0) - x t + log(1 + exp(-|x|)).
inline Real binary_cross_entropy(Real x, Real t) {
  return std::max(x, Real{0}) - x * t + std::log1p(exp_of(-std::abs(x)));
}

// Heads of `queries` and `keys` words with `width` numbers each; neighbouring heads share the keys of one of
// `groups`.
struct Heads {
  int64_t queries = 1, keys = 1, heads = 1, groups = 1, width = 1;
  bool causal = false;
  int64_t window = 0;  // with causal: how many of the last keys a query sees; 0: all
};

// Heads of one row, a block of queries at a time.
template <Heads S>
struct HeadBlock {
  static constexpr int64_t kQueries = std::min<int64_t>(S.queries, 64);
  int64_t row, head, t, count, end;  // queries t to t + count, which see keys below `end`
  int64_t at_query() const { return ((row * S.queries + t) * S.heads + head) * S.width; }
  int64_t at_key() const { return (row * S.keys * S.groups + head / (S.heads / S.groups)) * S.width; }
  native::Matrix<Real> queries(const Real* q) const { return {q + at_query(), S.heads * S.width, 1}; }
  native::Matrix<Real> keys(const Real* k) const { return {k + at_key(), S.groups * S.width, 1}; }
  native::Matrix<Real> across(const Real* k) const { return {k + at_key(), 1, S.groups * S.width}; }
};

// Calls visit(block) for all queries of all rows.
template <Heads S, typename Visit>
void each_block(int64_t rows, const int32_t* last, const Visit& visit) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t there = last != nullptr ? std::min<int64_t>(S.keys, last[row] + 1) : S.keys;
    for (int64_t head = 0; head < S.heads; ++head) {
      for (int64_t t = 0; t < S.queries; t += HeadBlock<S>::kQueries) {
        const int64_t count = std::min(HeadBlock<S>::kQueries, S.queries - t);
        visit(HeadBlock<S>{row, head, t, count, S.causal ? std::min(t + count, there) : there});
      }
    }
  }
}

// Softmax of the block's scores; 0 for keys that a query does not see.
template <Heads S>
void attention_weights(const HeadBlock<S>& b, const Real* q, const Real* k, Real* weights) {
  product(b.count, S.width, b.end, b.queries(q), b.across(k), weights, S.keys, native::kPlain);
  const Real scale = 1 / std::sqrt(static_cast<Real>(S.width));
  for (int64_t i = 0; i < b.count; ++i) {
    Real* const line = weights + i * S.keys;
    const int64_t end = S.causal ? std::min(b.t + i + 1, b.end) : b.end;
    const int64_t first = S.window > 0 ? std::max<int64_t>(0, b.t + i + 1 - S.window) : 0;
    std::fill(line, line + std::min(first, b.end), Real{0});
    std::fill(line + std::max<int64_t>(end, 0), line + b.end, Real{0});
    if (end <= first) continue;
    for (int64_t s = first; s < end; ++s) line[s] *= scale;
    const auto [top, log] = log_sum(end - first, line + first, 1);
    for (int64_t s = first; s < end; ++s) line[s] = exp_of(line[s] - top - log);
  }
}

// Multiplies weights (or their gradients) by the factors of dropout, which are counted as in N,heads,queries,keys.
template <Heads S>
void drop_weights(const HeadBlock<S>& b, int64_t begin, uint64_t key, double rate, Real* weights) {
  const int64_t first = (((begin + b.row) * S.heads + b.head) * S.queries + b.t) * S.keys;
  for (int64_t i = 0; i < b.count; ++i) {
    for (int64_t s = 0; s < b.end; ++s)
      weights[i * S.keys + s] *= dropout_factor(key, static_cast<uint64_t>(first + i * S.keys + s), rate);
  }
}

// softmax(q k^T / sqrt width) v, a block of queries at a time: the matrix of all scores is never held. Masks
// of dropout are counted from row `begin` of the batch on. `last`: the last key of each row that is no
// padding; null: all.
template <Heads S>
void attention(int64_t begin, int64_t rows, uint64_t key, double rate, const Real* q, const Real* k,
               const Real* v, const int32_t* last, Real* y) {
  static thread_local Real weights[HeadBlock<S>::kQueries * S.keys];
  each_block<S>(rows, last, [&](const HeadBlock<S>& b) {
    if (b.end <= 0) {
      for (int64_t i = 0; i < b.count; ++i)
        std::fill_n(y + b.at_query() + i * S.heads * S.width, S.width, Real{0});
      return;
    }
    attention_weights(b, q, k, weights);
    if (rate > 0) drop_weights(b, begin, key, rate, weights);
    product(b.count, b.end, S.width, {weights, S.keys, 1}, b.keys(v), y + b.at_query(), S.heads * S.width,
            native::kPlain);
  });
}

// With weights P, of which dropout keeps M P: dv = (M P)^T g, dP = M g v^T, dS = P (dP - sum dP P) / sqrt
// width, dq = dS k, dk = dS^T q. The weights are computed anew.
template <Heads S>
void attention_backward(int64_t begin, int64_t rows, uint64_t key, double rate, const Real* q, const Real* k,
                        const Real* v, const int32_t* last, const Real* g, Real* dq, Real* dk, Real* dv) {
  constexpr int64_t kCount = HeadBlock<S>::kQueries * S.keys, kPitch = S.groups * S.width;
  static thread_local Real weights[kCount], scores[kCount], kept[kCount];
  const Real scale = 1 / std::sqrt(static_cast<Real>(S.width));
  each_block<S>(rows, last, [&](const HeadBlock<S>& b) {
    if (b.end <= 0) return;
    attention_weights(b, q, k, weights);
    product(b.count, S.width, b.end, b.queries(g), b.across(v), scores, S.keys, native::kPlain);
    std::copy(weights, weights + b.count * S.keys, kept);
    if (rate > 0) drop_weights(b, begin, key, rate, kept), drop_weights(b, begin, key, rate, scores);
    if (dv != nullptr)
      product(b.end, b.count, S.width, {kept, 1, S.keys}, b.queries(g), dv + b.at_key(), kPitch);
    for (int64_t i = 0; i < b.count; ++i) {
      const Real* const p = weights + i * S.keys;
      Real* const d = scores + i * S.keys;
      const Real sum = dot(b.end, p, d);
      for (int64_t s = 0; s < b.end; ++s) d[s] = p[s] * (d[s] - sum) * scale;
    }
    if (dq != nullptr)
      product(b.count, b.end, S.width, {scores, S.keys, 1}, b.keys(k), dq + b.at_query(), S.heads * S.width);
    if (dk != nullptr)
      product(b.end, b.count, S.width, {scores, 1, S.keys}, b.queries(q), dk + b.at_key(), kPitch);
  });
}

// A recurrent layer: `length` words of `inputs` numbers into as many of `units`.
struct Cells {
  int64_t length = 1, inputs = 1, units = 1;
  bool reverse = false;
  constexpr int64_t place(int64_t n, int64_t t) const { return n * length + (reverse ? length - 1 - t : t); }
};

// dw += y^T g, y of the word before and g of every word but the first.
template <Cells S>
void state_dw(int64_t rows, int64_t gates, const Real* y, const Real* g, Real* dw) {
  if (S.length > rows) {
    for (int64_t n = 0; n < rows; ++n)
      linear_dw(S.length - 1, S.units, gates, y + (n * S.length + S.reverse) * S.units,
                g + (n * S.length + !S.reverse) * gates, dw);
    return;
  }
  for (int64_t t = 1; t < S.length; ++t)
    product(S.units, rows, gates, {y + S.place(0, t - 1) * S.units, 1, S.length * S.units},
            {g + S.place(0, t) * gates, S.length * gates, 1}, dw, gates);
}

// Gates are i, f, g, o; keeps them and the cells of every place for the way back. `bias` may be null.
template <Cells S>
void lstm(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* bias, Real* kept,
          Real* y) {
  constexpr int64_t kGates = 4 * S.units;
  Real* const cells = kept + rows * S.length * kGates;
  start_rows<kGates>(rows * S.length, bias, kept);
  product(rows * S.length, S.inputs, kGates, {x, S.inputs, 1}, {w_ih, kGates, 1}, kept, kGates);
  for (int64_t t = 0; t < S.length; ++t) {
    if (t > 0)
      product(rows, S.units, kGates, {y + S.place(0, t - 1) * S.units, S.length * S.units, 1},
              {w_hh, kGates, 1}, kept + S.place(0, t) * kGates, S.length * kGates);
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t p = S.place(n, t), before = t > 0 ? S.place(n, t - 1) : -1;
      Real* const gates = kept + p * kGates;
      for (int64_t u = 0; u < S.units; ++u) {
        Real &i = gates[u], &f = gates[S.units + u], &g = gates[2 * S.units + u], &o = gates[3 * S.units + u];
        i = logistic(i), f = logistic(f), g = tanh_of(g), o = logistic(o);
        cells[p * S.units + u] = i * g + (t > 0 ? f * cells[before * S.units + u] : Real{0});
        y[p * S.units + u] = o * tanh_of(cells[p * S.units + u]);
      }
    }
  }
}

// `spare`: room for the gradients of all gates, and of each row's state and cells.
template <Cells S>
void lstm_backward(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* kept,
                   const Real* y, const Real* g, Real* spare, Real* dw_ih, Real* dw_hh, Real* dbias,
                   Real* dx) {
  constexpr int64_t kGates = 4 * S.units;
  const Real* const cells = kept + rows * S.length * kGates;
  Real *const dhidden = spare + rows * S.length * kGates, *const dcell = dhidden + rows * S.units;
  std::fill(dcell, dcell + rows * S.units, Real{0});
  for (int64_t t = S.length; t-- > 0;) {
    for (int64_t n = 0; n < rows; ++n)
      std::copy_n(g + S.place(n, t) * S.units, S.units, dhidden + n * S.units);
    if (t + 1 < S.length)
      product(rows, kGates, S.units, {spare + S.place(0, t + 1) * kGates, S.length * kGates, 1},
              {w_hh, 1, kGates}, dhidden, S.units);
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t p = S.place(n, t);
      const Real* const gates = kept + p * kGates;
      Real* const out = spare + p * kGates;
      for (int64_t u = 0; u < S.units; ++u) {
        const Real i = gates[u], f = gates[S.units + u], c = gates[2 * S.units + u],
                   o = gates[3 * S.units + u], dh = dhidden[n * S.units + u];
        const Real squashed = tanh_of(cells[p * S.units + u]);
        const Real dc = dcell[n * S.units + u] + dh * o * (1 - squashed * squashed);
        const Real before = t > 0 ? cells[S.place(n, t - 1) * S.units + u] : Real{0};
        out[u] = dc * c * i * (1 - i);
        out[S.units + u] = dc * before * f * (1 - f);
        out[2 * S.units + u] = dc * i * (1 - c * c);
        out[3 * S.units + u] = dh * squashed * o * (1 - o);
        dcell[n * S.units + u] = dc * f;
      }
    }
  }
  if (dw_hh != nullptr) state_dw<S>(rows, kGates, y, spare, dw_hh);
  if (dw_ih != nullptr) linear_dw(rows * S.length, S.inputs, kGates, x, spare, dw_ih);
  if (dbias != nullptr) column_sums<kGates>(rows * S.length, spare, dbias);
  if (dx != nullptr)
    product(rows * S.length, kGates, S.inputs, {spare, kGates, 1}, {w_ih, 1, kGates}, dx, S.inputs);
}

// Gates are r, z, n; keeps them and what the state gives to n for the way back. Biases may be null.
template <Cells S>
void gru(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* bias_ih,
         const Real* bias_hh, Real* kept, Real* y) {
  constexpr int64_t kGates = 3 * S.units;
  Real* const given = kept + rows * S.length * kGates;
  static thread_local std::vector<Real> all;
  all.resize(static_cast<size_t>(rows * kGates));
  start_rows<kGates>(rows * S.length, bias_ih, kept);
  product(rows * S.length, S.inputs, kGates, {x, S.inputs, 1}, {w_ih, kGates, 1}, kept, kGates);
  for (int64_t t = 0; t < S.length; ++t) {
    start_rows<kGates>(rows, bias_hh, all.data());
    if (t > 0)
      product(rows, S.units, kGates, {y + S.place(0, t - 1) * S.units, S.length * S.units, 1},
              {w_hh, kGates, 1}, all.data(), kGates);
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t p = S.place(n, t), before = t > 0 ? S.place(n, t - 1) : -1;
      Real* const gates = kept + p * kGates;
      const Real* const sums = all.data() + n * kGates;
      for (int64_t u = 0; u < S.units; ++u) {
        Real &r = gates[u], &z = gates[S.units + u], &c = gates[2 * S.units + u];
        r = logistic(r + sums[u]), z = logistic(z + sums[S.units + u]);
        given[p * S.units + u] = sums[2 * S.units + u];
        c = tanh_of(c + r * sums[2 * S.units + u]);
        y[p * S.units + u] = (1 - z) * c + (t > 0 ? z * y[before * S.units + u] : Real{0});
      }
    }
  }
}

// `spare`: room for the gradients of what x and of what the state gives to all gates, and of each row's state.
template <Cells S>
void gru_backward(int64_t rows, const Real* x, const Real* w_ih, const Real* w_hh, const Real* kept,
                  const Real* y, const Real* g, Real* spare, Real* dw_ih, Real* dw_hh, Real* dbias_ih,
                  Real* dbias_hh, Real* dx) {
  constexpr int64_t kGates = 3 * S.units;
  const Real* const given = kept + rows * S.length * kGates;
  Real *const of_state = spare + rows * S.length * kGates, *const dstate =
                                                               of_state + rows * S.length * kGates;
  std::fill(dstate, dstate + rows * S.units, Real{0});
  for (int64_t t = S.length; t-- > 0;) {
    for (int64_t n = 0; n < rows; ++n) {
      const int64_t p = S.place(n, t);
      const Real* const gates = kept + p * kGates;
      Real *const of_x = spare + p * kGates, *const of_h = of_state + p * kGates,
                  *const dhidden = dstate + n * S.units;
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
    }
    product(rows, kGates, S.units, {of_state + S.place(0, t) * kGates, S.length * kGates, 1},
            {w_hh, 1, kGates}, dstate, S.units);
  }
  if (dw_hh != nullptr) state_dw<S>(rows, kGates, y, of_state, dw_hh);
  if (dw_ih != nullptr) linear_dw(rows * S.length, S.inputs, kGates, x, spare, dw_ih);
  if (dbias_ih != nullptr) column_sums<kGates>(rows * S.length, spare, dbias_ih);
  if (dbias_hh != nullptr) column_sums<kGates>(rows * S.length, of_state, dbias_hh);
  if (dx != nullptr)
    product(rows * S.length, kGates, S.inputs, {spare, kGates, 1}, {w_ih, 1, kGates}, dx, S.inputs);
}

// log(exp(a) + exp(b)).
inline double log_add(double a, double b) {
  const double least = std::min(a, b), most = std::max(a, b);
  return least == -std::numeric_limits<double>::infinity() ? most : most + std::log1p(std::exp(least - most));
}

// From how many states of ctc state s is reached: itself, the one before, and the one before that, over a
// blank between different labels.
inline int64_t ctc_reach(const int64_t* states, int64_t s) {
  if (s < 2) return s + 1;
  return states[s] != 0 && states[s] != states[s - 2] ? 3 : 2;
}

// A row of ctc in log space (Graves et al. 2006, section 4): its states blank, l1, blank, ..., blank; log_p
// of each class by frame; log p of all paths up to each state by frame. Gives the number of states.
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
