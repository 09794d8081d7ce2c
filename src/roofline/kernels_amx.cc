#include <immintrin.h>

#include "roofline/kernels.h"

// Compiled with -mamx-tile -mamx-int8 -mamx-bf16. Four sums of 16 x 16, two tiles of left and two of right
// factors. The operating system must have granted the tiles to this process (kernel_sets.cc).

namespace bakeoff::roofline {
namespace {

struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void configure() {
  TileShapes shapes;
  for (int t = 0; t < 8; ++t) shapes.row_bytes[t] = 64, shapes.rows[t] = 16;
  // Not _tile_loadconfig: as far as the compiler knows GCC 12's reads eight bytes, and the stores of the
  // others are left out as dead.
  asm volatile("ldtilecfg %0" : : "m"(shapes));
  alignas(64) static const uint8_t kFactors[1024] = {};
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, kFactors, 64);
  _tile_loadd(5, kFactors, 64);
  _tile_loadd(6, kFactors, 64);
  _tile_loadd(7, kFactors, 64);
}

void bf16(int64_t times) {
  configure();
  for (int64_t i = 0; i < times; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
}

void int8(int64_t times) {
  configure();
  for (int64_t i = 0; i < times; ++i) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
}

constexpr FmaKernel kFma[] = {
    {"bf16", 16 * 16 * 32, 4, bf16}, {"int8", 16 * 16 * 64, 4, int8}, {nullptr, 0, 0, nullptr}};

}  // namespace

const KernelSet kAmx = {"amx", kFma, nullptr};

}  // namespace bakeoff::roofline
