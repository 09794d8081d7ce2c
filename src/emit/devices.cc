#include "emit/devices.h"

#include <fmt/format.h>

namespace bakeoff::emit {
namespace {

constexpr const char* kSetting = "devices";

}  // namespace

Setting devices_setting(const std::string& how) {
  return {.name = kSetting,
          .values = {},
          .fallback = "1",
          .doc = fmt::format("over how many devices the rows of every batch are split, by {}",
                             how),
          .scenarios = {ir::Scenario::kTrain}};
}

bool on_devices(const Request& request) {
  return !request.training.predicts() && setting_or(request.settings, kSetting, "1") != "1";
}

std::string devices_constant(const Request& request) {
  return fmt::format("DEVICES = {}", request.settings.at(kSetting));
}

Status check_devices(const Request& request, const std::string& parts) {
  if (!on_devices(request) || request.training.optimizer.accumulate == 1) return Done{};
  return Error{.message = fmt::format("devices = {}: {}", request.settings.at(kSetting), parts),
               .remedy = "remove optimizer.accumulate, or the setting devices of this contender"};
}

}  // namespace bakeoff::emit
