#include "roofline/cuda_calls.h"

#include <dlfcn.h>

#include <vector>

namespace bakeoff::roofline {
namespace {

// Takes a function from a library; notes the first that is missing.
class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <typename Function>
  void operator()(Function& to, const char* name) {
    to = reinterpret_cast<Function>(::dlsym(library_, name));
    if (to == nullptr && missing_.empty()) missing_ = std::string("it lacks ") + name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

std::string reason() {
  const char* text = ::dlerror();
  return text == nullptr ? "cannot be loaded" : text;
}

}  // namespace

std::string CudaDriver::load(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return reason();
  Finder find(library);
  find(init, "cuInit");
  find(device_count, "cuDeviceGetCount");
  find(device_get, "cuDeviceGet");
  find(device_name, "cuDeviceGetName");
  find(context_retain, "cuDevicePrimaryCtxRetain");
  find(context_set, "cuCtxSetCurrent");
  find(allocate, "cuMemAlloc_v2");
  find(release, "cuMemFree_v2");
  find(allocate_host, "cuMemAllocHost_v2");
  find(fill, "cuMemsetD8_v2");
  find(copy_within, "cuMemcpyDtoDAsync_v2");
  find(copy_to, "cuMemcpyHtoDAsync_v2");
  find(copy_from, "cuMemcpyDtoHAsync_v2");
  find(event_create, "cuEventCreate");
  find(event_record, "cuEventRecord");
  find(event_wait, "cuEventSynchronize");
  find(event_elapsed, "cuEventElapsedTime");
  return find.missing();
}

std::string CublasLt::load(const std::string& path) {
  std::vector<std::string> names = {path};
  if (path.empty()) names = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"};
  void* library = nullptr;
  std::string why;
  for (const std::string& name : names) {
    library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library != nullptr) break;
    if (why.empty()) why = reason();
  }
  if (library == nullptr) return why;
  Finder find(library);
  find(create, "cublasLtCreate");
  find(desc_create, "cublasLtMatmulDescCreate");
  find(layout_create, "cublasLtMatrixLayoutCreate");
  find(preference_create, "cublasLtMatmulPreferenceCreate");
  find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
  find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
  find(matmul, "cublasLtMatmul");
  return find.missing();
}

}  // namespace bakeoff::roofline
