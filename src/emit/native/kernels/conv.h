#pragma once

// Convolutions of pictures x[N][H][W][C] with weights w[R][S][C / groups][K], and their gradients.
//
// A window slides over pictures: that is the forward pass, and also the gradient of x, whose pictures are the
// gradients of y and whose taps are turned round (a stride of 2 gives 2 x 2 windows of every second tap, each
// for every second pixel). Where a window looks beyond its picture the picture is copied into a frame of
// zeros first, which takes 1 to 2% of the time and spares all code for edges. Then all taps of one row of the
// kernel and their channels are neighbours in memory, C = 1 as C = 512, and one inner loop runs over them.
//
// Rows of taps that see only zeros are left out, and so are columns of taps at the left and right edge of a
// picture: their pixels are computed by tiles that stand upright.

#include <algorithm>

#include "emit/native/kernels/gemm.h"

namespace native {
inline namespace NATIVE_ISA {

// A convolution of pictures of h, w, c into oh, ow, k with kernels of r, s; `top` and `left` places of zeros
// before them.
struct Conv {
  int64_t h = 1, w = 1, c = 1, oh = 1, ow = 1, k = 1, r = 1, s = 1;
  int64_t stride_h = 1, stride_w = 1, top = 0, left = 0, dilation_h = 1, dilation_w = 1, groups = 1;
};

// What slides: of pictures of h x w pixels, `pitch` numbers apart, c numbers each; taps 0: nothing is summed.
struct Window {
  int64_t h, w, c, pitch, r, s;
  int64_t stride_h, stride_w, top, left, dilation_h, dilation_w;
  int64_t oh, ow, k, y_row, y_pixel;  // oh x ow pixels of k numbers, and how far apart they are
};

constexpr int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }
constexpr int64_t floor_div(int64_t a, int64_t b) { return -ceil_div(-a, b); }

// The pictures as tiles read them: where they are, or copied into a frame.
template <typename T, Window W>
struct Frame {
  static constexpr int64_t kTall = (W.oh - 1) * W.stride_h + (W.r - 1) * W.dilation_h + 1;
  static constexpr int64_t kWide = (W.ow - 1) * W.stride_w + (W.s - 1) * W.dilation_w + 1;
  static constexpr bool kInside = W.top <= 0 && W.left <= 0 && kTall - W.top <= W.h && kWide - W.left <= W.w;
  static constexpr bool kCopies =
      W.r * W.s > 0 && !(kInside && W.pitch == W.c && !collides<T>(W.stride_w * W.c));
  static constexpr int64_t kSpare = collides<T>(W.stride_w * W.c) ? Lanes<T>::kLanes : 0;
  static constexpr int64_t kPixel = kCopies ? W.c + kSpare : W.pitch;
  static constexpr int64_t kRow =
      kCopies ? kWide * kPixel + (collides<T>(kWide * kPixel) ? Lanes<T>::kLanes : 0) : W.w * kPixel;
  static constexpr bool kMerged = kPixel == W.c && W.dilation_w == 1;  // taps of a row are neighbours
  static constexpr int64_t kPicture = kCopies ? kTall * kRow : W.h * kRow;
  static constexpr int64_t kStart =
      kCopies ? 0 : -W.top * kRow - W.left * kPixel;  // of the first pixel's first tap

  // Pictures that share a pass over weights (or over sums of weights): what a second cache holds.
  static constexpr int64_t chunk(int64_t wanted) {
    const int64_t held = 262144 / (kPicture > 0 ? kPicture : 1);
    return std::max<int64_t>(1, std::min(held, wanted));
  }

  // Zeros around, once; then pictures into the frame.
  static void clear(int64_t pictures, T* work) {
    if constexpr (kCopies) std::fill_n(work, pictures * kPicture, T{0});
  }
  static const T* fill(int64_t pictures, const T* x, T* work) {
    if constexpr (!kCopies) return x;
    constexpr int64_t kLeft = std::max<int64_t>(0, -W.left), kFirst = std::max<int64_t>(0, -W.top);
    constexpr int64_t kPixels = std::min(W.w, kWide - W.left) - kLeft, kEnd = std::min(W.h, kTall - W.top);
    for (int64_t n = 0; n < pictures; ++n) {
      for (int64_t i = kFirst; i < kEnd; ++i) {
        const T* from = x + ((n * W.h + i) * W.w + kLeft) * W.pitch;
        T* to = work + n * kPicture + (i + W.top) * kRow + (kLeft + W.left) * kPixel;
        if constexpr (kPixel == W.pitch) {
          std::copy_n(from, std::max<int64_t>(0, kPixels) * kPixel, to);
        } else {
          for (int64_t j = 0; j < kPixels; ++j) std::copy_n(from + j * W.pitch, W.c, to + j * kPixel);
        }
      }
    }
    return work;
  }
};

// Tiles of a window's pixels: kWide of a row, and of kTall rows where a row is short. Columns kFirst to kLast see
// all taps; those before and after them are edges.
template <Window W, int64_t kVectors>
struct Grid {
  static constexpr int64_t kLow = std::max<int64_t>(0, ceil_div(W.left, W.stride_w));
  static constexpr int64_t kHigh =
      std::min(W.ow, floor_div(W.w - 1 + W.left - (W.s - 1) * W.dilation_w, W.stride_w) + 1);
  static constexpr bool kEdges = kHigh - kLow >= 4 && kHigh - kLow < W.ow;
  static constexpr int64_t kFirst = kEdges ? kLow : 0, kLast = kEdges ? kHigh : W.ow;
  static constexpr int64_t kWide = best_rows(kLast - kFirst, kVectors);
  static constexpr int64_t kTall = kWide == kLast - kFirst ? best_rows(W.oh, kVectors, kWide) : 1;
};

// Steps of a sum from which on it costs less than 1% to store it before it is finished.
inline constexpr int64_t kLong = 256;

template <typename T, Window W, unsigned kFinish>
struct Slide {
  using F = Frame<T, W>;
  static constexpr int64_t kSteps = W.r * W.s * W.c;  // of each sum
  static constexpr int64_t kPictures = packed_size<T>(kSteps, W.k) > 131072 ? F::chunk(16) : 1;
  static constexpr int64_t kWork = F::kCopies ? kPictures * F::kPicture : 0;

  // Rows of taps [first, last) that see the picture from a tile whose pixels begin at `at` and end at `end`.
  static int64_t first_tap(int64_t end) {
    return std::max<int64_t>(0, ceil_div(W.top - end * W.stride_h, W.dilation_h));
  }
  static int64_t last_tap(int64_t at) {
    return std::min(W.r, floor_div(W.h - 1 + W.top - at * W.stride_h, W.dilation_h) + 1);
  }

  template <int64_t kTall, int64_t kWide, int64_t kVectors, int64_t kPart>
  static void at(const T* x, const T* b, Beside<T> with, T* y, int64_t oy, int64_t ox, int64_t s,
                 int64_t s_count) {
    constexpr int64_t kB = kVectors * Lanes<T>::kLanes;
    constexpr TileShape kTile = {.tall = kTall,
                                 .wide = kWide,
                                 .vectors = kVectors,
                                 .a_tall = kTall > 1 ? W.stride_h * F::kRow : 0,
                                 .a_wide = kWide > 1 ? W.stride_w * F::kPixel : 0,
                                 .a_step = 1,
                                 .b_step = kB,
                                 .b_part = Lanes<T>::kLanes,
                                 .finish = kSteps < kLong ? kFinish : kAny};
    const int64_t r = first_tap(oy + kTall - 1), r_count = last_tap(oy) - r;
    const T* const from = x + F::kStart + (oy * W.stride_h + r * W.dilation_h) * F::kRow +
                          (ox * W.stride_w + s * W.dilation_w) * F::kPixel;
    const int64_t to = oy * W.y_row + ox * W.y_pixel;
    const Turns turns = {.outer = r_count,
                         .middle = F::kMerged ? 1 : s_count,
                         .inner = F::kMerged ? s_count * W.c : W.c,
                         .a_leap = W.dilation_h * F::kRow,
                         .b_leap = W.s * W.c * kB,
                         .a_jump = W.dilation_w * F::kPixel,
                         .b_jump = W.c * kB};
    tile<T, kTile>(from, b + (r * W.s + s) * W.c * kB, turns, with.moved(0, to), y + to,
                   {.tall = W.y_row, .wide = W.y_pixel, .part = kPart, .finish = kFinish});
  }

  // One picture, one block of columns.
  template <int64_t kVectors, int64_t kPart>
  static void picture(const T* x, const T* b, Beside<T> with, T* y) {
    using G = Grid<W, kVectors>;
    for_all_rows<W.oh, G::kTall>([&](auto tall, int64_t oy) {
      for_all_rows<G::kLast - G::kFirst, G::kWide>([&](auto wide, int64_t i) {
        at<tall.value, wide.value, kVectors, kPart>(x, b, with, y, oy, G::kFirst + i, 0, W.s);
      });
    });
    if constexpr (G::kEdges) {
      for_all_rows<W.oh, best_rows(W.oh, kVectors)>([&](auto tall, int64_t oy) {
        for (int64_t ox = G::kFirst > 0 ? 0 : G::kLast; ox < W.ow;
             ox = ox + 1 == G::kFirst ? G::kLast : ox + 1) {
          const int64_t left = ox * W.stride_w - W.left;
          const int64_t s = std::max<int64_t>(0, ceil_div(-left, W.dilation_w));
          const int64_t end = std::min(W.s, floor_div(W.w - 1 - left, W.dilation_w) + 1);
          at<tall.value, 1, kVectors, kPart>(x, b, with, y, oy, ox, s, std::max<int64_t>(0, end - s));
        }
      });
    }
  }

  // Pictures x, `y_picture` numbers from result to result.
  static void run(int64_t pictures, const T* x, const T* b, Beside<T> with, T* y, int64_t y_picture,
                  T* work) {
    F::clear(std::min(kPictures, pictures), work);
    for (int64_t first = 0; first < pictures; first += kPictures) {
      const int64_t count = std::min(kPictures, pictures - first);
      const T* const from = F::fill(count, x + first * W.h * W.w * W.pitch, work);
      for_all_columns<T, W.k>([&](auto n, auto part, int64_t column) {
        for (int64_t i = 0; i < count; ++i) {
          const int64_t to = (first + i) * y_picture + column;
          picture<n.value, part.value>(from + i * F::kPicture, b + column * kSteps, with.moved(column, to),
                                       y + to);
        }
      });
    }
  }
};

// Whether pixels are rows of a matrix.
constexpr bool is_product(const Conv& s) {
  return s.r * s.s == 1 && s.stride_h == 1 && s.stride_w == 1 && s.groups == 1 && s.oh == s.h &&
         s.ow == s.w && s.top == 0 && s.left == 0;
}

// The window of one group.
constexpr Window forward_window(const Conv& s) {
  return {s.h,        s.w,        s.c / s.groups, s.c,        s.r,          s.s,
          s.stride_h, s.stride_w, s.top,          s.left,     s.dilation_h, s.dilation_w,
          s.oh,       s.ow,       s.k / s.groups, s.ow * s.k, s.k};
}

template <typename T, Conv S>
constexpr int64_t conv2d_packed() {
  return S.groups * packed_size<T>(S.r * S.s * (S.c / S.groups), S.k / S.groups);
}

template <typename T, Conv S>
void conv2d_pack(const T* w, T* packed) {
  constexpr int64_t kDeep = S.r * S.s * (S.c / S.groups), kOut = S.k / S.groups;
  for (int64_t g = 0; g < S.groups; ++g)
    pack<T>(kDeep, 0, kDeep, kOut, {w + g * kOut, S.k, 1}, packed + g * packed_size<T>(kDeep, kOut));
}

template <typename T, Conv S>
constexpr int64_t conv2d_work() {
  if constexpr (is_product(S)) return Blocks<T>::kWork;
  return Slide<T, forward_window(S), kPlain>::kWork;
}

// y = finish(x * w), for n pictures.
template <typename T, Conv S, unsigned kFinish>
void conv2d(int64_t n, const T* x, const T* packed, Beside<T> with, T* y, T* work) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  if constexpr (is_product(S))
    return multiply_packed<T>(n * S.h * S.w, S.c, S.k, {x, S.c, 1}, packed, with, y, S.k, kFinish, work);
  for (int64_t g = 0; g < S.groups; ++g)
    Slide<T, forward_window(S), kFinish>::run(
        n, x + g * kIn, packed + g * packed_size<T>(S.r * S.s * kIn, kOut), with.moved(g * kOut, g * kOut),
        y + g * kOut, S.oh * S.ow * S.k, work);
}

// Of one axis: the taps that reach inputs whose index is `phase` modulo the stride. They are every `step`-th
// tap from `first`; input `stride * q + phase` meets the outputs q - `before` + dilation * t for t = 0, 1,
// ..., last tap first.
struct Phase {
  int64_t first = 0, step = 1, count = 0, before = 0, dilation = 1;
};
constexpr Phase phase_of(int64_t phase, int64_t stride, int64_t taps, int64_t dilation, int64_t pad) {
  Phase p;
  while (p.step * dilation % stride != 0) ++p.step;
  p.dilation = p.step * dilation / stride;
  while (p.first < p.step && (phase + pad - p.first * dilation) % stride != 0) ++p.first;
  if (p.first == p.step || p.first >= taps) return p;
  p.count = (taps - p.first + p.step - 1) / p.step;
  p.before = (p.count - 1) * p.dilation - (phase + pad - p.first * dilation) / stride;
  return p;
}

template <Conv S, int64_t kPhase>
struct Backward {
  static constexpr int64_t kY = kPhase / S.stride_w, kX = kPhase % S.stride_w;
  static constexpr Phase kRows = phase_of(kY, S.stride_h, S.r, S.dilation_h, S.top);
  static constexpr Phase kColumns = phase_of(kX, S.stride_w, S.s, S.dilation_w, S.left);
  static constexpr bool kTaps = kRows.count * kColumns.count > 0;
  static constexpr Window kWindow = {S.oh,
                                     S.ow,
                                     S.k / S.groups,
                                     S.k,
                                     kTaps ? kRows.count : 0,
                                     kTaps ? kColumns.count : 0,
                                     1,
                                     1,
                                     kRows.before,
                                     kColumns.before,
                                     kRows.dilation,
                                     kColumns.dilation,
                                     (S.h - kY + S.stride_h - 1) / S.stride_h,
                                     (S.w - kX + S.stride_w - 1) / S.stride_w,
                                     S.c / S.groups,
                                     S.stride_h* S.w* S.c,
                                     S.stride_w* S.c};
  static constexpr bool kSees = kWindow.oh > 0 && kWindow.ow > 0;
  static constexpr int64_t kSteps = kWindow.r * kWindow.s * kWindow.c;
};

// Calls visit(Number<phase>, numbers of the packed weights before it).
template <typename T, Conv S, int64_t kPhase = 0, typename Visit>
constexpr int64_t for_phases(const Visit& visit, int64_t before = 0) {
  if constexpr (kPhase < S.stride_h * S.stride_w) {
    visit(Number<kPhase>{}, before);
    return for_phases<T, S, kPhase + 1>(visit,
                                        before + packed_size<T>(Backward<S, kPhase>::kSteps, S.c / S.groups));
  } else {
    return before;
  }
}

// Numbers of one group's packed weights for the gradient of x.
template <typename T, Conv S>
constexpr int64_t conv2d_dx_group() {
  return for_phases<T, S>([](auto, int64_t) {});
}
template <typename T, Conv S>
constexpr int64_t conv2d_dx_packed() {
  return S.groups * conv2d_dx_group<T, S>();
}

template <typename T, Conv S>
void conv2d_dx_pack(const T* w, T* packed) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  for (int64_t g = 0; g < S.groups; ++g, packed += conv2d_dx_group<T, S>()) {
    for_phases<T, S>([&](auto phase, int64_t before) {
      using B = Backward<S, phase.value>;
      for (int64_t i = 0; i < B::kWindow.r; ++i) {
        for (int64_t j = 0; j < B::kWindow.s; ++j) {
          const int64_t r = B::kRows.first + B::kRows.step * (B::kWindow.r - 1 - i);
          const int64_t s = B::kColumns.first + B::kColumns.step * (B::kWindow.s - 1 - j);
          pack<T>(B::kSteps, (i * B::kWindow.s + j) * kOut, kOut, kIn,
                  {w + (r * S.s + s) * kIn * S.k + g * kOut, 1, S.k}, packed + before);
        }
      }
    });
  }
}

template <typename T, Conv S>
constexpr int64_t conv2d_dx_work() {
  int64_t most = is_product(S) ? Blocks<T>::kWork : 0;
  for_phases<T, S>([&](auto phase, int64_t) {
    if constexpr (Backward<S, phase.value>::kSees)
      most = std::max(most, Slide<T, Backward<S, phase.value>::kWindow, kPlain>::kWork);
  });
  return most;
}

// dx = finish(gradient of x), from the gradient dy of y.
template <typename T, Conv S, unsigned kFinish>
void conv2d_dx(int64_t n, const T* dy, const T* packed, Beside<T> with, T* dx, T* work) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  if constexpr (is_product(S))
    return multiply_packed<T>(n * S.h * S.w, S.k, S.c, {dy, S.k, 1}, packed, with, dx, S.c, kFinish, work);
  for (int64_t g = 0; g < S.groups; ++g, packed += conv2d_dx_group<T, S>()) {
    for_phases<T, S>([&](auto phase, int64_t before) {
      using B = Backward<S, phase.value>;
      if constexpr (B::kSees) {
        const int64_t to = (B::kY * S.w + B::kX) * S.c + g * kIn;
        Slide<T, B::kWindow, kFinish>::run(n, dy + g * kOut, packed + before, with.moved(g * kIn, to),
                                           dx + to, S.h * S.w * S.c, work);
      }
    });
  }
}

// The gradient of w. A row of a tile is a channel of a tap, the loop runs over all pixels of `kPictures`
// pictures.
template <typename T, Conv S>
struct WeightGradient {
  static constexpr Window kWindow = forward_window(S);
  using F = Frame<T, kWindow>;
  static constexpr int64_t kIn = kWindow.c, kOut = kWindow.k;
  static constexpr int64_t kPictures = F::chunk(ceil_div(1024, S.oh* S.ow));
  static constexpr int64_t kWork = F::kCopies ? kPictures * F::kPicture : 0;
  // Rows of dy at a time, so that all tiles find dy and x in the second cache.
  static constexpr int64_t kStrip =
      std::clamp<int64_t>(131072 / (S.ow * S.k + S.stride_h * F::kRow), 1, S.oh);
  static constexpr int64_t kRun = F::kMerged ? S.s * kIn : kIn;   // rows that are neighbours in x and in w
  static constexpr int64_t kRuns = F::kMerged ? S.r : S.r * S.s;  // how many such

  template <int64_t kTall, int64_t kWide, int64_t kVectors, int64_t kPart>
  static void at(int64_t pictures, const T* x, const T* dy, T* dw, int64_t run, int64_t row, int64_t oy) {
    constexpr TileShape kTile = {.tall = kTall,
                                 .wide = kWide,
                                 .vectors = kVectors,
                                 .a_tall = kTall > 1 ? S.dilation_h * F::kRow : 0,
                                 .a_wide = 1,
                                 .a_step = 0,
                                 .b_step = 0,
                                 .b_part = kPart,
                                 .finish = kAdd};
    const int64_t r = F::kMerged ? run : run / S.s, s = F::kMerged ? 0 : run % S.s;
    // Rows of dy whose tap lies in the picture: for the first or the last row of taps of the tile.
    const int64_t first = std::max(oy, ceil_div(S.top - (r + kTall - 1) * S.dilation_h, S.stride_h));
    const int64_t last =
        std::min({oy + kStrip, S.oh, floor_div(S.h - 1 + S.top - r * S.dilation_h, S.stride_h) + 1});
    const int64_t from =
        F::kStart + (first * S.stride_h + r * S.dilation_h) * F::kRow + s * S.dilation_w * F::kPixel;
    const Turns turns = {.outer = pictures,
                         .middle = last - first,
                         .inner = S.ow,
                         .a_leap = F::kPicture,
                         .b_leap = S.oh * S.ow * S.k,
                         .a_jump = S.stride_h * F::kRow,
                         .b_jump = S.ow * S.k,
                         .a_step = S.stride_w * F::kPixel,
                         .b_step = S.k};
    if (last > first)
      tile<T, kTile>(x + from + row, dy + first * S.ow * S.k, turns, {}, dw + (run * kRun + row) * S.k,
                     {.tall = kRun * S.k, .wide = S.k, .part = kPart});
  }

  // dw += the sum over n pictures.
  static void run(int64_t n, const T* x, const T* dy, T* dw, T* work) {
    F::clear(std::min(kPictures, n), work);
    for (int64_t begin = 0; begin < n; begin += kPictures) {
      const int64_t count = std::min(kPictures, n - begin);
      const T* const from = F::fill(count, x + begin * S.h * S.w * S.c, work);
      const T* const gradient = dy + begin * S.oh * S.ow * S.k;
      for (int64_t oy = 0; oy < S.oh; oy += kStrip) {
        for_all_columns<T, kOut>([&](auto vectors, auto part, int64_t column) {
          constexpr int64_t kWide = best_rows(kRun, vectors.value);
          constexpr int64_t kTall = F::kMerged && kWide == kRun ? best_rows(kRuns, vectors.value, kWide) : 1;
          for_all_rows<kRuns, kTall>([&](auto tall, int64_t run) {
            for_all_rows<kRun, kWide>([&](auto wide, int64_t row) {
              at<tall.value, wide.value, vectors.value, part.value>(count, from, gradient + column,
                                                                    dw + column, run, row, oy);
            });
          });
        });
      }
    }
  }
};

template <typename T, Conv S>
constexpr int64_t conv2d_dw_work() {
  return is_product(S) ? Blocks<T>::kWork : WeightGradient<T, S>::kWork;
}

// dw += gradient of w. The order of its sums depends on n alone: give each fixed group of pictures a dw of
// its own.
template <typename T, Conv S>
void conv2d_dw(int64_t n, const T* x, const T* dy, T* dw, T* work) {
  constexpr int64_t kIn = S.c / S.groups, kOut = S.k / S.groups;
  if constexpr (is_product(S))
    return multiply<T>(S.c, n * S.h * S.w, S.k, {x, 1, S.c}, {dy, S.k, 1}, {}, dw, S.k, kAdd, work);
  for (int64_t g = 0; g < S.groups; ++g)
    WeightGradient<T, S>::run(n, x + g * kIn, dy + g * kOut, dw + g * kOut, work);
}

}  // namespace NATIVE_ISA
}  // namespace native
