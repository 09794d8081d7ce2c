#include "plan/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "emit/devices.h"

namespace bakeoff {
namespace {

constexpr const char* kSetting = "devices";

// NVIDIA's driver makes one file for each.
size_t gpus(const fs::path& root) {
  size_t count = 0;
  while (fs::exists(root / fmt::format("dev/nvidia{}", count))) ++count;
  return count;
}

}  // namespace

Status check_shares(const recipe::Recipe& recipe) {
  const int64_t batch = recipe.training.batch;
  for (const recipe::Contender& contender : recipe.contenders) {
    const int64_t devices = emit::devices_of(contender.settings);
    if (batch % devices == 0) continue;
    int64_t fewer = std::min(devices, batch);
    while (batch % fewer != 0) --fewer;
    return Error{.message = fmt::format("{}: a batch of {} rows does not divide by devices = {}",
                                        contender.id, batch, devices),
                 .where = recipe::where(recipe, contender, kSetting),
                 .remedy = fmt::format("set devices = {}, or batch = {}: it is of all devices together",
                                       fewer, (batch / devices + 1) * devices)};
  }
  return Done{};
}

Status check_devices(const Texts& settings, const Controls& controls, const Machine& machine) {
  const auto devices = static_cast<size_t>(emit::devices_of(settings));
  if (devices == 1) return Done{};
  if (const size_t there = controls.device == "cpu" ? 0 : gpus(machine.root); there > 0) {
    if (devices <= there) return Done{};
    return Error{.message = fmt::format("devices = {}, but this machine has {} GPU{}", devices, there,
                                        there == 1 ? "" : "s"),
                 .remedy = fmt::format("set devices to at most {}, or device = \"cpu\"", there)};
  }
  WorkerSpec spec;
  CHECK_OK(apply(controls, machine, spec));
  const size_t processors = spec.cpus.empty() ? machine.cpus.size() : spec.cpus.size();
  if (devices <= processors) return Done{};
  const bool more = machine.cpus.size() >= devices;
  return Error{
      .message = fmt::format("devices = {} need a processor each, and it may run on {} (pin = \"{}\", "
                             "threads = {}, {} allowed to Bakeoff)",
                             devices, processors, controls.pin, controls.threads, machine.cpus.size()),
      .remedy = more ? fmt::format("set threads and pin so that it has {} or more", devices)
                     : fmt::format("set devices to at most {}", machine.cpus.size())};
}

Status check_devices(const recipe::Recipe& recipe, const Controls& shared, const Machine& machine) {
  for (const recipe::Contender& contender : recipe.contenders) {
    const Status enough =
        check_devices(contender.settings, controls_from(contender.controls, shared), machine);
    if (enough) continue;
    Error error = enough.error();
    error.message = contender.id + ": " + error.message;
    error.where = recipe::where(recipe, contender, kSetting);
    return error;
  }
  return Done{};
}

}  // namespace bakeoff
