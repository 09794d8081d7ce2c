#pragma once

// What the kernels of src/emit/native/kernels are tried on: shapes that are hard, and shapes drawn at compile
// time. cases.cc is compiled once for each instruction set; the test takes its functions from a table.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace bakeoff {

struct ConvShape {
  int64_t h, w, c, oh, ow, k, r, s, stride_h, stride_w, top, left, dilation_h, dilation_w, groups;
};

constexpr ConvShape kHardConvs[] = {
    {9, 28, 1, 7, 26, 32, 3, 3, 1, 1, 0, 0, 1, 1, 1},    // one channel; taps of a row are three numbers
    {7, 7, 13, 7, 7, 13, 3, 3, 1, 1, 1, 1, 1, 1, 1},     // tiles over several rows, every vector has a tail
    {7, 13, 13, 3, 5, 1, 3, 3, 3, 3, 1, 1, 1, 1, 1},     // stride 3, one class
    {20, 22, 3, 10, 11, 16, 7, 7, 2, 2, 3, 3, 1, 1, 1},  // a stem
    {8, 9, 8, 4, 5, 50, 1, 1, 2, 2, 0, 0, 1, 1, 1},      // phases without taps; three vectors and a tail
    {9, 20, 6, 9, 20, 9, 3, 3, 1, 1, 2, 2, 2, 2, 3},     // dilation and groups
    {5, 4, 1024, 5, 4, 3, 1, 1, 1, 1, 0, 0, 1, 1, 1},    // pixels a page apart
    {6, 6, 4, 3, 5, 4, 4, 2, 2, 1, 2, 0, 1, 1, 4},       // depthwise
    {4, 4, 2, 2, 2, 2, 2, 2, 3, 3, 2, 2, 2, 2, 1},       // a stride that no multiple of the dilation fits
    {1, 30, 2, 1, 9, 33, 1, 5, 1, 3, 0, 1, 1, 1, 1},     // one row
};

struct LinearShape {
  int64_t in, out;
};
constexpr LinearShape kLinears[] = {{100, 128}, {128, 10}, {1024, 40}, {1, 1}, {13, 70}};

constexpr ConvShape drawn_conv(uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  const auto draw = [&](int64_t from, int64_t to) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return from + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(to - from + 1));
  };
  ConvShape s = {};
  s.r = draw(1, 4), s.s = draw(1, 4), s.stride_h = draw(1, 3), s.stride_w = draw(1, 3);
  s.dilation_h = draw(1, 2), s.dilation_w = draw(1, 2), s.groups = draw(1, 2);
  s.c = s.groups * draw(1, 20), s.k = s.groups * draw(1, 40);
  s.top = draw(0, s.r - 1), s.left = draw(0, s.s - 1);
  const int64_t bottom = draw(0, s.r - 1), right = draw(0, s.s - 1);
  s.h = (s.r - 1) * s.dilation_h + draw(1, 12), s.w = (s.s - 1) * s.dilation_w + draw(1, 40);
  s.oh = (s.h + s.top + bottom - (s.r - 1) * s.dilation_h - 1) / s.stride_h + 1;
  s.ow = (s.w + s.left + right - (s.s - 1) * s.dilation_w - 1) / s.stride_w + 1;
  return s;
}

constexpr size_t kHard = std::size(kHardConvs), kDrawn = 2;
constexpr ConvShape conv_shape(size_t i) { return i < kHard ? kHardConvs[i] : drawn_conv(i); }

// All arrays of one layer. `pieces`: one row or picture at a time, and rows of the gradient of w in parts.
template <typename T>
struct Layer {
  int64_t n = 1;
  std::vector<T> x, w, bias, dy;  // read
  std::vector<T> y, dx, dw;       // y = relu(y + x w + bias); dx = gradient where x > 0; dw += gradient
  bool pieces = false;
};

template <typename T>
struct Cases {
  std::array<void (*)(Layer<T>&), kHard + kDrawn> convs;
  std::array<void (*)(Layer<T>&), std::size(kLinears)> linears;
};
struct Isa {
  const char* name;
  Cases<float> floats;
  Cases<double> doubles;
};

const Isa& cases_avx512();
const Isa& cases_avx2();
const Isa& cases_portable();

}  // namespace bakeoff
