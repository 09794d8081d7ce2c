#include "emit/native/native.h"

#include <fmt/format.h>

#include "emit/native/ops.h"
#include "emit/native/program.h"
#include "emit/optimizer_terms.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

bool supports(ir::Op op) { return native::find_row(op) != nullptr; }

Result<Emitted> emit_program(const Request& request) {
  CHECK_OK(check_supported(native_framework(), request.workload));
  if (!request.training.equalised()) {
    return Error{.message = "native has no initialisers and no order of data of its own",
                 .remedy = "race it in the equalised track: track = \"equalised\""};
  }
  if (!request.training.predicts()) CHECK_OK(check_eps_form(request.training));
  TRY(const std::vector<ir::Type> types, ir::infer(request.workload));
  return Emitted{.source = native::program_text(request, types)};
}

std::string environment(const Settings&) { return ""; }
bool unbiased_running_var(const Settings&) { return true; }

}  // namespace

const Framework& native_framework() {
  static const Framework framework = {
      .name = "native",
      .title = "native C++",
      .settings = {},
      .scenarios = {ir::Scenario::kTrain, ir::Scenario::kPredict},
      .extension = ".cc",
      .environment = environment,
      .supports = supports,
      .emit = emit_program,
      .unbiased_running_var = unbiased_running_var,
      .proof_s = 3,
      .limit = true,
  };
  return framework;
}

}  // namespace bakeoff::emit
