#include "summary/row_checks.h"

#include <fmt/format.h>

#include <cmath>

#include "summary/devices.h"
#include "table/numbers.h"

namespace bakeoff {
namespace {

// A number that a row has must be one.
std::optional<Broken> check_sizes(const Row& row) {
  const std::pair<const char*, std::optional<double>> numbers[] = {
      {"FLOP/s", row.gflops},
      {"processors busy", row.usage.cores},
      {"share of waiting", row.usage.waiting},
      {"page faults", row.usage.faults},
      {"joules a step", row.usage.joules},
      {"resident memory", row.memory.in_bursts},
      {"PSS", row.memory.pss},
      {"allocator's peak", row.memory.allocator_peak},
      {"memory a sample", row.memory.per_sample},
      {"joules of a GPU", row.gpu.joules},
      {"power of a GPU", row.gpu.power_w},
      {"price of an epoch", row.epoch.price},
      {"joules of an epoch", row.epoch.joules},
      {"CO2 of an epoch", row.epoch.grams_co2},
  };
  for (const auto& [what, number] : numbers) {
    if (number && !(std::isfinite(*number) && *number >= 0))
      return Broken{fmt::format("{}: a number that is not negative", what), fmt::format("{:g}", *number),
                    "0"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Broken> check_row(const Row& row, int64_t batch, int64_t rows) {
  const Estimate& ms = row.ms_per_step;
  if (!(ms.value > 0 && ms.low <= ms.value && ms.value <= ms.high)) {
    return Broken{"an interval holds its value", fmt::format("{:g} ms", ms.value),
                  fmt::format("[{:g}, {:g}] ms", ms.low, ms.high)};
  }
  if (auto broken = check_rate(row.samples_per_second, ms.value / 1e3, static_cast<double>(batch)))
    return broken;
  if (row.epoch.seconds && rows > 0) {
    if (auto broken = check_rate(row.samples_per_second, *row.epoch.seconds, static_cast<double>(rows)))
      return broken;
  }
  return check_sizes(row);
}

std::map<std::string, Broken> check_devices(const Summary& summary) {
  std::map<std::string, Broken> broken;
  for (const OnDevices& row : against_one_device(summary)) {
    if (!row.ratio || !table::bounded_below(row.speed)) continue;
    const auto why = check_scaling(1, row.speed.low, static_cast<double>(row.devices));
    if (why) broken.emplace(row.contender, *why);
  }
  return broken;
}

void take_out_broken(Summary& summary, int64_t rows) {
  const auto faster = check_devices(summary);
  for (auto at = summary.ranked.begin(); at != summary.ranked.end();) {
    auto broken = at->at_least ? std::nullopt : check_row(*at, summary.batch, rows);
    if (const auto found = faster.find(at->contender.id); found != faster.end()) broken = found->second;
    if (!broken) {
      ++at;
      continue;
    }
    at->failure = Failure{Stage::kRun, broken->verdict(), {}};
    summary.unranked.push_back(std::move(*at));
    at = summary.ranked.erase(at);
  }
}

}  // namespace bakeoff
