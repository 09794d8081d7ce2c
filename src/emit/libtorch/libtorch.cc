#include "emit/libtorch/libtorch.h"

#include "emit/generation.h"
#include "emit/libtorch/ops.h"
#include "emit/libtorch/optimizer.h"
#include "emit/libtorch/script.h"
#include "emit/precision.h"
#include "emit/torch_rules.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

// Compiles every program of its folder, and example.cc.
std::string cmake_text() {
  return R"cmake(# Compiles the LibTorch programs of this folder against the libtorch inside PyTorch's wheel:
#
#   cmake -S . -B build -DCMAKE_PREFIX_PATH="$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
#   cmake --build build
#   build/train_libtorch data.safetensors weights.safetensors
cmake_minimum_required(VERSION 3.18)
project(train_libtorch LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_package(Torch REQUIRED)

file(GLOB programs ${CMAKE_SOURCE_DIR}/*_libtorch*.cc ${CMAKE_SOURCE_DIR}/example.cc)
foreach(source ${programs})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE "${TORCH_LIBRARIES}")
endforeach()
)cmake";
}

bool supports(ir::Op op) { return libtorch::forward_functions().contains(op); }

Result<Emitted> emit_program(const Request& request) {
  CHECK_OK(check_supported(libtorch_framework(), request.workload));
  const bool trains = !request.training.predicts();
  if (trains) CHECK_OK(libtorch::check_optimizer(request.training));
  TRY(const std::vector<ir::Type> types, ir::infer(request.workload));
  return Emitted{.source = libtorch::program_text(request, types),
                 .beside = {{"CMakeLists.txt", cmake_text()}},
                 .example = trains && request.training.equalised() ? libtorch::example(request) : Example{}};
}

std::string environment(const Settings&) { return "torch"; }
bool unbiased_running_var(const Settings&) { return true; }

}  // namespace

const Framework& libtorch_framework() {
  static const Framework framework = {
      .name = "libtorch",
      .title = "LibTorch C++",
      .settings = {{.name = "channels_last",
                    .values = {"false", "true"},
                    .fallback = "false",
                    .doc = "memory format of the model and its pictures",
                    .tuned = {"true"}},
                   precision_setting("autocast as Python's torch.autocast, without loss scaling", true),
                   cache_setting()},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kGenerate},
      .extension = ".cc",
      .module = "torch",
      .environment = environment,
      .supports = supports,
      .emit = emit_program,
      .defaults = torch_defaults,
      .unbiased_running_var = unbiased_running_var,
      .proof_s = 4,
      .lacks = {{"devices",
                 "torch's packages lack gloo's headers, and its C++ has no DistributedDataParallel"}},
  };
  return framework;
}

}  // namespace bakeoff::emit
