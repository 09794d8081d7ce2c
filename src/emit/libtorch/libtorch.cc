#include "emit/libtorch/libtorch.h"

#include "emit/libtorch/forward.h"
#include "emit/libtorch/script.h"
#include "emit/torch_rules.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

bool supports(ir::Op op) { return libtorch::forward_functions().contains(op); }

Result<Emitted> emit_program(const Request& request) {
  CHECK_OK(check_supported(libtorch_framework(), request.workload));
  TRY(const std::vector<ir::Type> types, ir::infer(request.workload));
  return Emitted{.source = libtorch::program_text(request, types),
                 .beside = {{"CMakeLists.txt", libtorch::cmake_text()}}};
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
                    .doc = "memory format of the model and its pictures"}},
      .extension = ".cc",
      .environment = environment,
      .supports = supports,
      .emit = emit_program,
      .defaults = torch_defaults,
      .unbiased_running_var = unbiased_running_var,
  };
  return framework;
}

}  // namespace bakeoff::emit
