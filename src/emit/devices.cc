#include "emit/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/op_table.h"

namespace bakeoff::emit {
namespace {

constexpr const char* kSetting = "devices";
constexpr const char* kProcesses = "processes";

std::vector<const ir::Node*> losses_of(const ir::Workload& workload) {
  std::vector<const ir::Node*> all;
  for (const ir::Node& node : workload.nodes)
    if (ir::is_loss(node.op)) all.push_back(&node);
  return all;
}

bool is_mean(const ir::Node* loss) { return loss->word("reduction") == "mean"; }

}  // namespace

Setting devices_setting(const std::string& how) {
  return {.name = kSetting,
          .values = {},
          .fallback = "1",
          .doc = fmt::format("over how many devices the rows of every batch are split, by {}", how),
          .scenarios = {ir::Scenario::kTrain}};
}

int64_t devices_of(const Settings& settings) { return std::stoll(setting_or(settings, kSetting, "1")); }

Settings on_one_device(Settings settings) {
  for (const auto& [name, value] : {std::pair{"devices", "1"}, {"processes", "1"}, {"parallel", "data"}})
    if (const auto found = settings.find(name); found != settings.end()) found->second = value;
  return settings;
}

bool on_devices(const Request& request) {
  return !request.training.predicts() && devices_of(request.settings) != 1;
}

Setting processes_setting(const std::string& how) {
  return {
      .name = kProcesses,
      .values = {},
      .fallback = "1",
      .doc = fmt::format("how many processes the devices are in: 1, or one for each, connected by {}", how),
      .scenarios = {ir::Scenario::kTrain}};
}

bool over_processes(const Request& request) {
  return on_devices(request) && setting_or(request.settings, kProcesses, "1") != "1";
}

Status check_processes(const Request& request, const std::string& title) {
  const std::string processes = setting_or(request.settings, kProcesses, "1");
  const std::string devices = setting_or(request.settings, kSetting, "1");
  if (request.training.predicts() || processes == "1" || processes == devices) return Done{};
  return Error{.message = fmt::format("{}: processes = {} of devices = {}: each process has one device",
                                      title, processes, devices),
               .remedy = fmt::format("set devices = {}, or processes = 1", processes)};
}

std::string process_loop(const Request& request, const std::string& given) {
  std::string numbers;
  for (int64_t i = 0; i < devices_of(request.settings); ++i) numbers += fmt::format(" {}", i);
  return fmt::format("for i in{}; do {} python {{__file__}} & done; wait", numbers, given);
}

std::string devices_constant(const Request& request) {
  return fmt::format("DEVICES = {}", request.settings.at(kSetting));
}

Status check_devices(const Request& request, const std::string& parts) {
  if (!on_devices(request) || request.training.optimizer.accumulate == 1) return Done{};
  return Error{.message = fmt::format("devices = {}: {}", request.settings.at(kSetting), parts),
               .remedy = "remove optimizer.accumulate, or the setting devices of this contender"};
}

bool means(const ir::Workload& workload) { return std::ranges::all_of(losses_of(workload), is_mean); }

Status check_means(const ir::Workload& workload, const std::string& title) {
  const auto losses = losses_of(workload);
  const auto counts = [](const ir::Node* loss) {
    return is_mean(loss) && ir::ignore_index(*loss).has_value();
  };
  std::string what;
  if (std::ranges::any_of(losses, counts))
    what = "a loss that ignores targets is a mean over those that count";
  if (!means(workload) && std::ranges::any_of(losses, is_mean))
    what = "one loss is a mean, another one a sum";
  if (what.empty()) return Done{};
  return Error{
      .message = fmt::format("{}: {}: no loss of the rows of one device is a part of it", title, what),
      .remedy = "set devices = 1, or leave the contender out"};
}

}  // namespace bakeoff::emit
