#pragma once

// The few calls of the CUDA driver and of cuBLASLt that the measurement needs. They are loaded at run time;
// the build needs nothing of CUDA. Types and numbers follow cuda.h and cublasLt.h, whose interfaces are
// stable over versions.

#include <cstddef>
#include <cstdint>
#include <string>

namespace bakeoff::roofline {

using DevicePointer = unsigned long long;

// libcuda.so.1. Every call returns 0 for success.
struct CudaDriver {
  int (*init)(unsigned flags) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int* device, int index) = nullptr;
  int (*device_name)(char* name, int length, int device) = nullptr;
  int (*context_retain)(void** context, int device) = nullptr;
  int (*context_set)(void* context) = nullptr;
  int (*allocate)(DevicePointer*, size_t bytes) = nullptr;
  int (*release)(DevicePointer) = nullptr;
  int (*allocate_host)(void** pinned, size_t bytes) = nullptr;
  int (*fill)(DevicePointer, unsigned char value, size_t bytes) = nullptr;
  int (*copy_within)(DevicePointer to, DevicePointer from, size_t bytes, void* stream) = nullptr;
  int (*copy_to)(DevicePointer to, const void* from, size_t bytes, void* stream) = nullptr;
  int (*copy_from)(void* to, DevicePointer from, size_t bytes, void* stream) = nullptr;
  int (*event_create)(void** event, unsigned flags) = nullptr;
  int (*event_record)(void* event, void* stream) = nullptr;
  int (*event_wait)(void* event) = nullptr;
  int (*event_elapsed)(float* ms, void* begin, void* end) = nullptr;

  // Loads it. Returns an empty text, or why it cannot be used.
  std::string load(const std::string& path);
};

struct LtHeuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

// libcublasLt. Every call returns 0 for success; handles are opaque.
struct CublasLt {
  int (*create)(void** handle) = nullptr;
  int (*desc_create)(void** desc, int compute_type, int scale_type) = nullptr;
  int (*layout_create)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading) = nullptr;
  int (*preference_create)(void** preference) = nullptr;
  int (*preference_set)(void* preference, int attribute, const void* value, size_t bytes) = nullptr;
  int (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference, int wanted,
                   LtHeuristic* results, int* found) = nullptr;
  int (*matmul)(void* handle, void* desc, const void* alpha, DevicePointer a, void* a_layout, DevicePointer b,
                void* b_layout, const void* beta, DevicePointer c, void* c_layout, DevicePointer d,
                void* d_layout, const uint64_t* algorithm, DevicePointer workspace, size_t bytes,
                void* stream) = nullptr;

  // Loads `path` or, if it is empty, the newest version that is found. Returns as above.
  std::string load(const std::string& path);
};

}  // namespace bakeoff::roofline
