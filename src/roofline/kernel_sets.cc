#include "roofline/kernel_sets.h"

#include <algorithm>
#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace bakeoff::roofline {
namespace {

#if defined(__x86_64__)
// Asks the kernel for the tiles, which a process does not have by itself.
bool amx_granted() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::vector<const KernelSet*> find_kernels() {
  std::vector<const KernelSet*> sets = {&kScalar};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(&kAvx2);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("avxvnni")) sets.push_back(&kAvxVnni);
  if (__builtin_cpu_supports("avx512f")) {
    sets.push_back(&kAvx512);
    if (__builtin_cpu_supports("avx512bf16")) sets.push_back(&kAvx512Bf16);
    if (__builtin_cpu_supports("avx512vnni")) sets.push_back(&kAvx512Vnni);
  }
  if (__builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
      __builtin_cpu_supports("amx-bf16") && amx_granted())
    sets.push_back(&kAmx);
  return sets;
}
#elif defined(__aarch64__)
std::vector<const KernelSet*> find_kernels() { return {&kScalar, &kNeon}; }
#else
std::vector<const KernelSet*> find_kernels() { return {&kScalar}; }
#endif

bool one_of(int value, std::initializer_list<int> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

int amd_units(const Processor& p, int bits) {
  if (p.family == 0x17) return bits == 256 ? (p.model < 0x30 ? 1 : 2) : 0;  // Zen 1; Zen 2
  if (p.family == 0x19) return bits == 256 ? 2 : 1;                         // Zen 3; Zen 4 in two halves
  // Zen 5: full width in servers and desktops, halves in mobile ones.
  if (p.family == 0x1a) return bits == 256 || p.model < 0x20 || (p.model >= 0x40 && p.model < 0x50) ? 2 : 1;
  return 0;
}

int intel_units(const Processor& p, int bits) {
  if (p.family != 6) return 0;
  const bool servers = one_of(p.model, {0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae});  // Ice Lake-SP and later
  const bool clients = one_of(p.model, {0x7d, 0x7e, 0x8c, 0x8d, 0xa7});        // Ice, Tiger, Rocket Lake
  if (bits == 512) return servers ? 2 : clients ? 1 : 0;  // of Skylake-SP some models have one, some two
  return servers || clients || one_of(p.model, {0x3c, 0x3f, 0x45, 0x46, 0x3d, 0x47, 0x4f, 0x56, 0x4e, 0x5e,
                                                0x55, 0x8e, 0x9e, 0xa5, 0xa6, 0x97, 0x9a, 0xb7, 0xba, 0xbf})
             ? 2
             : 0;
}

}  // namespace

const std::vector<const KernelSet*>& supported_kernels() {
  static const std::vector<const KernelSet*> sets = find_kernels();
  return sets;
}

const StreamKernels& best_streams() {
  const StreamKernels* best = kScalar.streams;
  for (const KernelSet* set : supported_kernels()) {
    if (set->streams != nullptr) best = set->streams;
  }
  return *best;
}

Processor this_processor() {
  Processor p;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return p;
  for (const unsigned word : {b, d, c}) {
    for (int byte = 0; byte < 4; ++byte) p.vendor += static_cast<char>((word >> (8 * byte)) & 0xff);
  }
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return p;
  const unsigned family = (a >> 8) & 0xf;
  p.family = static_cast<int>(family == 0xf ? family + ((a >> 20) & 0xff) : family);
  p.model = static_cast<int>(((a >> 4) & 0xf) | ((a >> 12) & 0xf0));
#endif
  return p;
}

int fma_units(const Processor& processor, int bits) {
  if (processor.vendor == "AuthenticAMD") return amd_units(processor, bits);
  if (processor.vendor == "GenuineIntel") return intel_units(processor, bits);
  return 0;
}

}  // namespace bakeoff::roofline
