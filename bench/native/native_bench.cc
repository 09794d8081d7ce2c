// What share of this processor's peak the kernels of src/emit/native/kernels reach on one thread: each tile
// alone in the first cache, then layers of the MNIST CNN, of ResNet and of BERT.
//
//   native_bench [--quick] [word]   only lines that have the word
//
// The peak is the loop of `bakeoff machine`, run before and after every block of a kernel, so that a change
// of the clock or a neighbour touches both. Two figures: of the fastest blocks of each, and the median over
// blocks. Work is counted as frameworks count it, products with zeros of the padding too. The kernels were
// compiled for the processor that compiled them (-march=native).

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "emit/native/kernels/kernels.h"
#include "roofline/kernel_sets.h"

namespace bakeoff {
namespace {

using native::Conv;
using native::TileShape;

struct Bench {
  std::string word = {};
  int blocks = 60;
  double block_s = 0.002;
  bool fine = true;
};

struct Peak {
  const roofline::FmaKernel* loop = nullptr;
  double rate = 0;  // iterations a second
};

// Of processor time: what others take of a busy machine does not count.
double seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec t = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

// The widest loop of float32 that the kernels could use.
Peak peak_loop() {
  Peak peak;
  const std::string isa = native::kIsa;
  for (const roofline::KernelSet* set : roofline::supported_kernels()) {
    for (const roofline::FmaKernel* k = set->fma; k->dtype != nullptr; ++k) {
      if (set->isa == (isa == "portable" ? "scalar" : isa) && std::strcmp(k->dtype, "f32") == 0)
        peak.loop = k;
    }
  }
  peak.rate = 1e5 / seconds([&] { peak.loop->run(100000); });
  return peak;
}

// A line: `flops` of one call of `work`. `bar` 0: none.
void line(Bench& bench, const std::string& name, double flops, double bar,
          const std::function<void()>& work) {
  if (name.find(bench.word) == std::string::npos) return;
  static const Peak peak = peak_loop();
  work();
  const auto times = std::max<int64_t>(1, std::llround(bench.block_s / seconds(work)));
  const auto turns = std::max<int64_t>(1, std::llround(peak.rate * bench.block_s / 2));
  const auto peak_flops = static_cast<double>(turns * peak.loop->operations());
  double best_peak = 0, best = 0;
  std::vector<double> shares;
  double before = peak_flops / seconds([&] { peak.loop->run(turns); });
  for (int block = 0; block < bench.blocks; ++block) {
    const double here = flops * static_cast<double>(times) / seconds([&] {
                          for (int64_t i = 0; i < times; ++i) work();
                        });
    const double after = peak_flops / seconds([&] { peak.loop->run(turns); });
    best = std::max(best, here);
    best_peak = std::max({best_peak, before, after});
    shares.push_back(here / std::max(before, after));
    before = after;
  }
  std::nth_element(shares.begin(), shares.begin() + bench.blocks / 2, shares.end());
  const double share = best / best_peak;
  const std::string judged =
      bar == 0 ? "" : fmt::format(" (bar: {:g}%) {}", bar, share * 100 >= bar ? "ok" : "MISSED");
  if (share * 100 < bar) bench.fine = false;
  fmt::print("{:55} {:6.1f} of {:6.1f} GFLOP/s: {:5.1f}%, median block {:5.1f}%{}\n", name, best / 1e9,
             best_peak / 1e9, share * 100, shares[static_cast<size_t>(bench.blocks) / 2] * 100, judged);
  std::fflush(stdout);
}

// Numbers aligned to a line of the cache, none of them denormal.
class Numbers {
 public:
  explicit Numbers(int64_t count) : all_(static_cast<size_t>(count) + 16, 0.0f) {
    for (size_t i = 0; i < all_.size(); ++i) all_[i] = 0.001f * static_cast<float>(i % 1009) - 0.5f;
  }
  float* data() {
    return all_.data() + (64 - reinterpret_cast<uintptr_t>(all_.data()) % 64) % 64 / sizeof(float);
  }

 private:
  std::vector<float> all_;
};

template <int64_t kRows, int64_t kVectors>
void tile(Bench& bench) {
  constexpr int64_t kSteps = 128, kWide = kVectors * native::Lanes<float>::kLanes;
  constexpr TileShape kTile = {.wide = kRows,
                               .vectors = kVectors,
                               .a_wide = kSteps,
                               .b_step = kWide,
                               .b_part = native::Lanes<float>::kLanes};
  Numbers a(kRows * kSteps), b(kSteps * kWide), y(kRows * kWide);
  line(bench, fmt::format("tile {} x {} in the first cache", kRows, kVectors), 200.0 * kRows * kWide * kSteps,
       92, [&] {
         for (int i = 0; i < 100; ++i)
           native::tile<float, kTile>(a.data(), b.data(), {.inner = kSteps}, {}, y.data(),
                                      {.wide = kWide, .part = native::Lanes<float>::kLanes});
       });
}

void tiles(Bench& bench) {
  tile<native::most_rows(1), 1>(bench);
  tile<native::most_rows(2), 2>(bench);
  tile<native::most_rows(2) - 2, 2>(bench);
  tile<native::most_rows(3), 3>(bench);
}

enum Which : unsigned { kForward = 1, kInput = 2, kWeights = 4, kAll = 7 };

struct Bars {
  double forward = 0, dx = 0, dw = 0;
};

template <Conv S>
void conv(Bench& bench, const std::string& name, int64_t n, unsigned which = kAll, Bars bars = {}) {
  const double flops = 2.0 * static_cast<double>(n * S.oh * S.ow * S.r * S.s * (S.c / S.groups) * S.k);
  Numbers x(n * S.h * S.w * S.c), w(S.r * S.s * S.c / S.groups * S.k), y(n * S.oh * S.ow * S.k), bias(S.k);
  Numbers work(std::max({native::conv2d_work<float, S>(), native::conv2d_dx_work<float, S>(),
                         native::conv2d_dw_work<float, S>()}));
  Numbers packed(std::max(native::conv2d_packed<float, S>(), native::conv2d_dx_packed<float, S>()));
  if (which & kForward)
    line(bench, name + " forward", flops, bars.forward, [&] {
      native::conv2d_pack<float, S>(w.data(), packed.data());
      native::conv2d<float, S, native::kBias | native::kRelu>(n, x.data(), packed.data(),
                                                              {.bias = bias.data()}, y.data(), work.data());
    });
  if (which & kInput)
    line(bench, name + " dX", flops, bars.dx, [&] {
      native::conv2d_dx_pack<float, S>(w.data(), packed.data());
      native::conv2d_dx<float, S, native::kPlain>(n, y.data(), packed.data(), {}, x.data(), work.data());
    });
  if (which & kWeights)
    line(bench, name + " dW", flops, bars.dw,
         [&] { native::conv2d_dw<float, S>(n, x.data(), y.data(), w.data(), work.data()); });
}

template <int64_t kIn, int64_t kOut>
void linear(Bench& bench, const std::string& name, int64_t m) {
  const double flops = 2.0 * static_cast<double>(m * kIn * kOut);
  Numbers x(m * kIn), w(kIn * kOut), y(m * kOut), bias(kOut), work(native::linear_work<float>());
  Numbers packed(std::max(native::packed_size<float>(kIn, kOut), native::packed_size<float>(kOut, kIn)));
  line(bench, name + " forward, packing too", flops, 0, [&] {
    native::linear_pack<float>(kIn, kOut, w.data(), packed.data());
    native::linear<float>(m, kIn, kOut, x.data(), packed.data(), {.bias = bias.data()}, y.data(),
                          native::kBias, work.data());
  });
  line(bench, name + " forward", flops, 0, [&] {
    native::linear<float>(m, kIn, kOut, x.data(), packed.data(), {.bias = bias.data()}, y.data(),
                          native::kBias, work.data());
  });
  line(bench, name + " dX", flops, 0, [&] {
    native::linear_dx<float>(m, kIn, kOut, y.data(), packed.data(), {}, x.data(), native::kPlain,
                             work.data());
  });
  line(bench, name + " dW", flops, 0, [&] {
    native::linear_dw<float>(m, kIn, kOut, x.data(), y.data(), w.data(), native::kPlain, work.data());
  });
}

void mnist(Bench& bench) {
  constexpr Conv kFirst = {.h = 28, .w = 28, .oh = 26, .ow = 26, .k = 32, .r = 3, .s = 3};
  constexpr Conv kSecond = {.h = 26, .w = 26, .c = 32, .oh = 24, .ow = 24, .k = 32, .r = 3, .s = 3};
  constexpr Conv kThird = {.h = 12, .w = 12, .c = 32, .oh = 10, .ow = 10, .k = 32, .r = 3, .s = 3};
  constexpr Conv kFourth = {.h = 10, .w = 10, .c = 32, .oh = 8, .ow = 8, .k = 64, .r = 3, .s = 3};
  constexpr Bars kBars = {.forward = 90, .dx = 78, .dw = 86};
  // 4 pictures and their results stay in a second cache of 1 MiB, 32 do not.
  conv<kFirst>(bench, "MNIST conv1 28, 1 to 32, 4 pictures", 4, kForward | kWeights);
  conv<kFirst>(bench, "MNIST conv1 28, 1 to 32, 32 pictures", 32, kForward | kWeights);
  conv<kSecond>(bench, "MNIST conv2 26, 32 to 32, 4 pictures", 4, kAll, kBars);
  conv<kSecond>(bench, "MNIST conv2 26, 32 to 32, 32 pictures", 32);
  conv<kThird>(bench, "MNIST conv3 12, 32 to 32, 32 pictures", 32, kAll, kBars);
  conv<kFourth>(bench, "MNIST conv4 10, 32 to 64, 32 pictures", 32, kAll, kBars);
  linear<4096, 128>(bench, "MNIST fc1, 256 rows, 4096 to 128", 256);
  linear<128, 10>(bench, "MNIST fc2, 256 rows, 128 to 10", 256);
}

void resnet(Bench& bench) {
  conv<Conv{.h = 224,
            .w = 224,
            .c = 3,
            .oh = 112,
            .ow = 112,
            .k = 64,
            .r = 7,
            .s = 7,
            .stride_h = 2,
            .stride_w = 2,
            .top = 3,
            .left = 3}>(bench, "ResNet stem 224, 3 to 64, 7x7/2", 1, kForward | kWeights);
  conv<Conv{.h = 56, .w = 56, .c = 64, .oh = 56, .ow = 56, .k = 64, .r = 3, .s = 3, .top = 1, .left = 1}>(
      bench, "ResNet 56, 64 to 64, 3x3", 2);
  conv<Conv{.h = 56, .w = 56, .c = 64, .oh = 56, .ow = 56, .k = 256}>(bench, "ResNet 56, 64 to 256, 1x1", 2);
  conv<Conv{.h = 56,
            .w = 56,
            .c = 128,
            .oh = 28,
            .ow = 28,
            .k = 128,
            .r = 3,
            .s = 3,
            .stride_h = 2,
            .stride_w = 2,
            .top = 1,
            .left = 1}>(bench, "ResNet 56, 128 to 128, 3x3/2", 2);
  conv<Conv{.h = 14, .w = 14, .c = 256, .oh = 14, .ow = 14, .k = 256, .r = 3, .s = 3, .top = 1, .left = 1}>(
      bench, "ResNet 14, 256 to 256, 3x3", 8);
  conv<Conv{.h = 14, .w = 14, .c = 1024, .oh = 14, .ow = 14, .k = 256}>(bench, "ResNet 14, 1024 to 256, 1x1",
                                                                        8);
  conv<Conv{.h = 7, .w = 7, .c = 512, .oh = 7, .ow = 7, .k = 512, .r = 3, .s = 3, .top = 1, .left = 1}>(
      bench, "ResNet 7, 512 to 512, 3x3", 16);
}

void bert(Bench& bench) {
  linear<768, 768>(bench, "BERT 512 rows, 768 to 768", 512);
  linear<768, 3072>(bench, "BERT 512 rows, 768 to 3072", 512);
  linear<3072, 768>(bench, "BERT 512 rows, 3072 to 768", 512);
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) {
  bakeoff::Bench bench;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quick") == 0)
      bench.blocks = 3, bench.block_s = 0.0005;
    else
      bench.word = argv[i];
  }
  bakeoff::tiles(bench);
  bakeoff::mnist(bench);
  bakeoff::resnet(bench);
  bakeoff::bert(bench);
  return bench.fine ? 0 : 1;
}
