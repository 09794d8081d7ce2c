// Every kernel against plain loops in double, on every instruction set that this processor has; and the same
// bits however rows and pictures are shared out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "shapes.h"

namespace bakeoff {
namespace {

struct Sizes {
  int64_t x, w, bias, y;
};

// What must come out of a layer, of what it is before.
struct Truth {
  std::vector<double> y, dx, dw;
};

template <typename T>
std::vector<T> numbers(int64_t count, uint64_t& state) {
  std::vector<T> all;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    all.push_back(static_cast<T>(static_cast<double>(state >> 11) * 0x1p-52 - 1));
  }
  return all;
}

template <typename T>
Layer<T> layer(int64_t n, const Sizes& s) {
  uint64_t state = 7;
  Layer<T> l;
  l.n = n;
  l.x = numbers<T>(n * s.x, state), l.w = numbers<T>(s.w, state), l.bias = numbers<T>(s.bias, state);
  l.dy = numbers<T>(n * s.y, state), l.y = numbers<T>(n * s.y, state), l.dx = numbers<T>(n * s.x, state);
  l.dw = numbers<T>(s.w, state);
  return l;
}

// `products(visit)` calls visit(index in x, in w, in y) for every product of the forward pass.
template <typename T, typename Products>
Truth truth(const Layer<T>& l, const Products& products) {
  Truth t = {{l.y.begin(), l.y.end()}, std::vector<double>(l.x.size()), {l.dw.begin(), l.dw.end()}};
  for (size_t i = 0; i < t.y.size(); ++i) t.y[i] += l.bias[i % l.bias.size()];
  products([&](int64_t x, int64_t w, int64_t y) {
    t.y[y] += static_cast<double>(l.x[x]) * l.w[w];
    t.dx[x] += static_cast<double>(l.dy[y]) * l.w[w];
    t.dw[w] += static_cast<double>(l.x[x]) * l.dy[y];
  });
  for (double& y : t.y) y = std::max(y, 0.0);
  for (size_t i = 0; i < t.dx.size(); ++i) t.dx[i] = l.x[i] > 0 ? t.dx[i] : 0;
  return t;
}

template <typename T>
void expect_near(const char* what, const std::vector<T>& seen, const std::vector<double>& right) {
  double worst = 0;
  for (size_t i = 0; i < right.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(seen[i]) - right[i]) / (1 + std::abs(right[i])));
  EXPECT_LT(worst, sizeof(T) == 4 ? 3e-5 : 1e-13) << what;  // of up to 1,024 products, which may cancel
}

template <typename T, typename Products>
void expect_right(void (*run)(Layer<T>&), int64_t n, const Sizes& sizes, const Products& products) {
  Layer<T> whole = layer<T>(n, sizes), pieces = whole;
  const Truth right = truth(whole, products);
  run(whole);
  expect_near("y", whole.y, right.y);
  expect_near("dx", whole.dx, right.dx);
  expect_near("dw", whole.dw, right.dw);
  pieces.pieces = true;
  run(pieces);
  EXPECT_TRUE(whole.y == pieces.y && whole.dx == pieces.dx && whole.dw == pieces.dw)
      << "depends on the shares";
}

template <typename Visit>
void conv_products(const ConvShape& s, int64_t n, const Visit& visit) {
  const int64_t in = s.c / s.groups, out = s.k / s.groups;
  for (int64_t pixel = 0; pixel < n * s.oh * s.ow; ++pixel) {
    for (int64_t tap = 0; tap < s.r * s.s; ++tap) {
      const int64_t i = pixel / s.ow % s.oh * s.stride_h - s.top + tap / s.s * s.dilation_h;
      const int64_t j = pixel % s.ow * s.stride_w - s.left + tap % s.s * s.dilation_w;
      if (i < 0 || i >= s.h || j < 0 || j >= s.w) continue;
      const int64_t x = ((pixel / (s.oh * s.ow) * s.h + i) * s.w + j) * s.c;
      for (int64_t k = 0; k < s.k; ++k) {
        for (int64_t c = 0; c < in; ++c)
          visit(x + k / out * in + c, (tap * in + c) * s.k + k, pixel * s.k + k);
      }
    }
  }
}

template <typename T>
void try_all(const Cases<T>& cases) {
  for (size_t i = 0; i < cases.convs.size(); ++i) {
    const ConvShape s = conv_shape(i);
    for (const int64_t n : {1, 3}) {
      SCOPED_TRACE("conv " + std::to_string(i) + ", pictures " + std::to_string(n));
      const Sizes sizes = {s.h * s.w * s.c, s.r * s.s * s.c / s.groups * s.k, s.k, s.oh * s.ow * s.k};
      expect_right(cases.convs[i], n, sizes, [&](const auto& visit) { conv_products(s, n, visit); });
    }
  }
  for (size_t i = 0; i < cases.linears.size(); ++i) {
    const auto [in, out] = kLinears[i];
    for (const int64_t n : {1, 19, 400}) {
      SCOPED_TRACE("linear " + std::to_string(i) + ", rows " + std::to_string(n));
      expect_right(cases.linears[i], n, {in, in * out, out, out}, [&, in = in, out = out](const auto& visit) {
        for (int64_t at = 0; at < n * in * out; ++at) {
          const int64_t w = at % (in * out), row = at / (in * out);
          visit(row * in + w / out, w, row * out + w % out);
        }
      });
    }
  }
}

void try_isa(const Isa& isa) {
  SCOPED_TRACE(isa.name);
  try_all(isa.floats);
  try_all(isa.doubles);
}

TEST(NativeKernels, Portable) { try_isa(cases_portable()); }

#if defined(__x86_64__)
TEST(NativeKernels, Avx2) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no AVX2 here";
  try_isa(cases_avx2());
}

TEST(NativeKernels, Avx512) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512 here";
  try_isa(cases_avx512());
}
#endif

}  // namespace
}  // namespace bakeoff
