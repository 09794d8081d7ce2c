// Driver and libraries of a GPU are opened by name at run time, so that one program runs with and without
// them. All of it happens in a child process: a driver that hangs or crashes must not end `bakeoff machine`,
// and a context that was made here would hold memory of the device during a race. The numbers of cudaDataType
// and cublasComputeType_t are written out, as no header of CUDA is needed to build. The best of several
// rounds counts, timed by the device's own events; 0 is a type that this device does not compute in.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/texts.h"
#include "roofline/cuda_calls.h"
#include "roofline/isolated.h"
#include "roofline/measure.h"

namespace bakeoff::roofline {
namespace {

constexpr double kDeviceDeadline = 40;       // deadline of all devices
constexpr size_t kCopied = size_t{1} << 28;  // bytes
constexpr size_t kWorkspace = size_t{1} << 25;
constexpr uint64_t kSize = 8192;  // of the square matrices
constexpr int kGpuRounds = 8;

// cudaDataType and cublasComputeType_t.
struct Type {
  const char* name;
  int data, compute, scale;
  uint64_t bytes;
};
constexpr Type kTypes[] = {{"f32", 0, 68, 0, 4},
                           {"tf32", 0, 77, 0, 4},
                           {"f16", 2, 68, 0, 2},
                           {"bf16", 14, 68, 0, 2},
                           {"f64", 1, 70, 1, 8}};

// One device under measurement, in the child.
class Device {
 public:
  Device(const CudaDriver& cuda, const CublasLt& lt, bool has_lt) : cuda_(cuda), lt_(lt), has_lt_(has_lt) {}

  // Lines "gpu<TAB>name", "gemm<TAB>dtype<TAB>rate", "memory<TAB>rate", "to<TAB>rate", "from<TAB>rate".
  std::string lines(int index) {
    int device = 0;
    char name[128] = {};
    void* context = nullptr;
    if (cuda_.device_get(&device, index) != 0 || cuda_.device_name(name, sizeof name, device) != 0 ||
        cuda_.context_retain(&context, device) != 0 || cuda_.context_set(context) != 0 ||
        cuda_.event_create(&begin_, 0) != 0 || cuda_.event_create(&end_, 0) != 0)
      return fmt::format("error\tdevice {} cannot be opened\n", index);
    std::string out = fmt::format("gpu\t{}\n", name) + copies();
    if (has_lt_ && lt_.create(&handle_) == 0 && cuda_.allocate(&workspace_, kWorkspace) == 0) {
      for (const Type& type : kTypes) out += gemm(type);
    }
    return out;
  }

 private:
  // The best rate of `units` for each call; 0 where it fails.
  double best(double units, const std::function<int()>& call) {
    double rate = 0;
    for (int round = 0; round < kGpuRounds; ++round) {
      float ms = 0;
      if (cuda_.event_record(begin_, nullptr) != 0 || call() != 0 || cuda_.event_record(end_, nullptr) != 0 ||
          cuda_.event_wait(end_) != 0 || cuda_.event_elapsed(&ms, begin_, end_) != 0 || ms <= 0)
        return 0;
      rate = std::max(rate, units / static_cast<double>(ms) * 1e3);
    }
    return rate;
  }

  std::string copies() {
    DevicePointer a = 0, b = 0;
    void* host = nullptr;
    if (cuda_.allocate(&a, kCopied) != 0 || cuda_.allocate(&b, kCopied) != 0 ||
        cuda_.allocate_host(&host, kCopied) != 0)
      return "";
    constexpr auto bytes = static_cast<double>(kCopied);
    std::string out;
    const auto add = [&](const char* what, double rate) {
      if (rate > 0) out += fmt::format("{}\t{}\n", what, rate);
    };
    add("memory", best(2 * bytes, [&] { return cuda_.copy_within(b, a, kCopied, nullptr); }));
    add("to", best(bytes, [&] { return cuda_.copy_to(a, host, kCopied, nullptr); }));
    add("from", best(bytes, [&] { return cuda_.copy_from(host, a, kCopied, nullptr); }));
    cuda_.release(a);
    cuda_.release(b);
    return out;
  }

  std::string gemm(const Type& type) {
    DevicePointer at[3] = {};
    const size_t bytes = kSize * kSize * type.bytes;
    bool ready = true;
    for (DevicePointer& p : at)
      ready = ready && cuda_.allocate(&p, bytes) == 0 && cuda_.fill(p, 0x3c, bytes) == 0;
    const double rate = ready ? product(type, at) : 0;
    for (const DevicePointer p : at) {
      if (p != 0) cuda_.release(p);
    }
    return rate > 0 ? fmt::format("gemm\t{}\t{}\n", type.name, rate) : "";
  }

  double product(const Type& type, const DevicePointer (&at)[3]) {
    constexpr int kMaxWorkspace = 1;  // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
    void *desc = nullptr, *layout = nullptr, *preference = nullptr;
    LtHeuristic plan{};
    int found = 0;
    const size_t workspace = kWorkspace;
    if (lt_.desc_create(&desc, type.compute, type.scale) != 0 ||
        lt_.layout_create(&layout, type.data, kSize, kSize, kSize) != 0 ||
        lt_.preference_create(&preference) != 0 ||
        lt_.preference_set(preference, kMaxWorkspace, &workspace, sizeof workspace) != 0 ||
        lt_.heuristic(handle_, desc, layout, layout, layout, layout, preference, 1, &plan, &found) != 0 ||
        found == 0)
      return 0;
    const double one_d = 1, zero_d = 0;
    const float one_f = 1, zero_f = 0;
    const bool wide = type.scale == 1;
    const void* one = wide ? static_cast<const void*>(&one_d) : &one_f;
    const void* zero = wide ? static_cast<const void*>(&zero_d) : &zero_f;
    constexpr double n = kSize;
    return best(2 * n * n * n, [&] {
      return lt_.matmul(handle_, desc, one, at[0], layout, at[1], layout, zero, at[2], layout, at[2], layout,
                        plan.algorithm, workspace_, kWorkspace, nullptr);
    });
  }

  const CudaDriver& cuda_;
  const CublasLt& lt_;
  bool has_lt_;
  void *begin_ = nullptr, *end_ = nullptr, *handle_ = nullptr;
  DevicePointer workspace_ = 0;
};

std::string try_devices(const std::string& cuda_path, const std::string& lt_path) {
  CudaDriver cuda;
  if (const std::string why = cuda.load(cuda_path); !why.empty()) return fmt::format("error\t{}\n", why);
  int count = 0;
  if (const int code = cuda.init(0); code != 0) return fmt::format("error\tcuInit gives error {}\n", code);
  if (cuda.device_count(&count) != 0 || count == 0) return "error\tthe driver sees no device\n";
  CublasLt lt;
  const std::string why = lt.load(lt_path);
  std::string out = why.empty() ? "" : fmt::format("no-lt\t{}\n", why);
  for (int i = 0; i < count; ++i) out += Device(cuda, lt, why.empty()).lines(i);
  return out;
}

void take_line(const std::vector<std::string>& fields, Limits& limits) {
  if (fields.size() < 2) return;
  const double rate = std::strtod(fields.back().c_str(), nullptr);
  if (fields[0] == "error") limits.absent.push_back({"GPU", fields[1]});
  if (fields[0] == "no-lt") limits.absent.push_back({"GPU matrix product", fields[1]});
  if (fields[0] == "gpu") limits.gpus.push_back({.name = fields[1]});
  if (limits.gpus.empty()) return;
  Gpu& gpu = limits.gpus.back();
  if (fields[0] == "gemm" && fields.size() == 3) gpu.gemm.push_back({fields[1], rate});
  if (fields[0] == "memory") gpu.memory = rate;
  if (fields[0] == "to") gpu.to_device = rate;
  if (fields[0] == "from") gpu.from_device = rate;
}

}  // namespace

void measure_gpus(const MeasureOptions& options, Limits& limits) {
  report_progress(options, "GPU");
  const auto answer =
      in_child([&] { return try_devices(options.cuda, options.cublas); }, kDeviceDeadline, options.stop);
  if (!answer) {
    limits.absent.push_back({"GPU", answer.error().message});
    return;
  }
  for (const std::string& line : lines_of(*answer)) take_line(split(line, "\t"), limits);
}

}  // namespace bakeoff::roofline
