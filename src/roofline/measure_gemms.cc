// The peak of arithmetic is what the best library reaches, not what a data sheet says: frameworks call such
// libraries, and a contender above our own loop's rate would look impossible. Every library that an
// environment brings is tried, by whichever interface it exports, in a child process with a deadline: a
// library may crash, hang or start threads that never end. Affinity and numbers of threads are set before it
// is loaded, as it reads them then. The product is checked, because a symbol of the right name may have
// another signature (64-bit integers, other orders of arguments), and a wrong product is often a fast one.

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>

#include "base/texts.h"
#include "roofline/isolated.h"
#include "roofline/measure.h"

namespace bakeoff::roofline {
namespace {

constexpr double kSeconds = 20;  // deadline of a library
constexpr int64_t kSizes[] = {1024, 2048};
constexpr int kGemmRounds = 4;

// C = A B for square matrices, by whichever interface a library has.
template <typename T>
using Product = std::function<void(int64_t n, const T* a, const T* b, T* c)>;

template <typename T, typename Int>
Product<T> cblas(void* symbol) {
  using Function = void (*)(int, int, int, Int, Int, Int, T, const T*, Int, const T*, Int, T, T*, Int);
  const auto call = reinterpret_cast<Function>(symbol);
  return [call](int64_t size, const T* a, const T* b, T* c) {
    const auto n = static_cast<Int>(size);
    call(101, 111, 111, n, n, n, 1, a, n, b, n, 0, c, n);  // row-major, not transposed
  };
}

template <typename T>
Product<T> fortran(void* symbol) {
  using Function = void (*)(const char*, const char*, const int*, const int*, const int*, const T*, const T*,
                            const int*, const T*, const int*, const T*, T*, const int*);
  const auto call = reinterpret_cast<Function>(symbol);
  return [call](int64_t size, const T* a, const T* b, T* c) {
    const auto n = static_cast<int>(size);
    const T one = 1, zero = 0;
    call("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
  };
}

Product<float> onednn(void* symbol) {
  using Function = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                           int64_t, float, float*, int64_t);
  const auto call = reinterpret_cast<Function>(symbol);
  return [call](int64_t n, const float* a, const float* b, float* c) {
    call('N', 'N', n, n, n, 1, a, n, b, n, 0, c, n);
  };
}

// The first interface that the library has; `letter` is 's' or 'd'.
template <typename T>
Product<T> find_product(void* library, char letter) {
  const auto symbol = [&](const char* pattern) {
    return ::dlsym(library, fmt::format(fmt::runtime(pattern), letter).c_str());
  };
  if constexpr (std::is_same_v<T, float>) {
    if (void* found = ::dlsym(library, "dnnl_sgemm")) return onednn(found);
  }
  for (const char* name : {"cblas_{}gemm64_", "scipy_cblas_{}gemm64_"}) {
    if (void* found = symbol(name)) return cblas<T, int64_t>(found);
  }
  for (const char* name : {"cblas_{}gemm", "scipy_cblas_{}gemm"}) {
    if (void* found = symbol(name)) return cblas<T, int>(found);
  }
  for (const std::string& name :
       {fmt::format("{}gemm_", letter), fmt::format("{}GEMM", static_cast<char>(letter - 'a' + 'A'))}) {
    if (void* found = ::dlsym(library, name.c_str())) return fortran<T>(found);
  }
  return {};
}

// "f32<TAB>size<TAB>operations per second", the best of all; empty where the product is wrong or there is
// none.
template <typename T>
std::string best_line(const Product<T>& product, const char* dtype) {
  if (!product) return "";
  double best = 0;
  int64_t best_size = 0;
  for (const int64_t n : kSizes) {
    const auto count = static_cast<size_t>(n * n);
    const std::vector<T> a(count, T(0.5)), b(count, T(0.25));
    std::vector<T> c(count, T(0));
    for (int round = 0; round < kGemmRounds; ++round) {
      const double begin = now_s();
      product(n, a.data(), b.data(), c.data());
      const double rate = 2.0 * static_cast<double>(n) * static_cast<double>(n * n) / (now_s() - begin);
      if (rate > best) best = rate, best_size = n;
    }
    const T expected = static_cast<T>(n) * T(0.125);
    if (c.front() != expected || c.back() != expected) return "";
  }
  return fmt::format("{}\t{}\t{}\n", dtype, best_size, best);
}

// In the child: the library's threads follow the affinity and these variables.
std::string try_library(const std::filesystem::path& path, const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    ::setenv(name, std::to_string(cpus.size()).c_str(), 1);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return fmt::format("error\t{}\n", ::dlerror());
  return best_line(find_product<float>(library, 's'), "f32") +
         best_line(find_product<double>(library, 'd'), "f64") + "end\n";
}

// Adds what a child answered to `found`, as the rate that `which` names.
std::string take(const std::string& answer, const GemmLibrary& library, double Rate::*which,
                 std::vector<Gemm>& found) {
  for (const std::string& line : lines_of(answer)) {
    const std::vector<std::string> fields = split(line, "\t");
    if (fields[0] == "error") return fields.size() > 1 ? fields[1] : "cannot be loaded";
    if (fields.size() != 3) continue;
    auto at = std::find_if(found.begin(), found.end(), [&](const Gemm& g) { return g.dtype == fields[0]; });
    if (at == found.end()) {
      found.push_back({.library = library.name, .path = library.path.string(), .dtype = fields[0]});
      at = found.end() - 1;
    }
    at->ops.*which = std::strtod(fields[2].c_str(), nullptr);
    at->size = std::max<int64_t>(at->size, std::strtoll(fields[1].c_str(), nullptr, 10));
  }
  return found.empty() ? "it has no matrix product that we know how to call, or a wrong one" : "";
}

// Empty, or why there is nothing of it.
std::string measure_library(const MeasureOptions& options, const GemmLibrary& library, Limits& limits) {
  std::vector<Gemm> found;
  for (const auto& [cpus, which] :
       {std::pair(std::vector<int>{options.cpus[0]}, &Rate::one), std::pair(options.cpus, &Rate::all)}) {
    const auto answer =
        in_child([&, c = cpus] { return try_library(library.path, c); }, kSeconds, options.stop);
    if (!answer) return answer.error().message;
    if (const std::string why = take(*answer, library, which, found); !why.empty()) return why;
  }
  limits.gemms.insert(limits.gemms.end(), found.begin(), found.end());
  return "";
}

}  // namespace

void measure_gemms(const MeasureOptions& options, Limits& limits) {
  for (const GemmLibrary& library : options.gemms) {
    if (stopped(options)) return;
    report_progress(options, "matrix product: " + library.name);
    if (const std::string why = measure_library(options, library, limits); !why.empty())
      limits.absent.push_back({library.name + " matrix product", library.path.string() + ": " + why});
  }
}

}  // namespace bakeoff::roofline
