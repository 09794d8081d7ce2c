#include "sample/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/clock.h"
#include "base/kernel_file.h"
#include "base/result.h"

namespace bakeoff::sample {
namespace {

Result<int64_t> whole_number(const fs::path& file) {
  TRY(const std::string text, read_kernel_file(file));
  const std::string line = first_line(text);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (code != std::errc() || end != line.data() + line.size() || value < 0) {
    return Error{
        .message = fmt::format("{} is not as expected: '{}'", file.filename().string(), line.substr(0, 40))};
  }
  return value;
}

// Packages, and memory: a package's own count does not hold it. Cores and graphics are parts of a package;
// "psys" is all of it once more.
bool counts(const std::string& name) { return name.starts_with("package") || name == "dram"; }

constexpr double kMostWatts = 5000;       // of a zone: no processor takes so much
constexpr int64_t kShortest = 1'000'000;  // ns: the counters are renewed no more often

// Whether so much energy can have been used in that time.
bool possible(int64_t microjoules, int64_t ns) {
  const double s = static_cast<double>(std::max(ns, kShortest)) / 1e9;
  return static_cast<double>(microjoules) / 1e6 <= kMostWatts * s;
}

}  // namespace

EnergySnapshot sample_energy(const fs::path& root) {
  EnergySnapshot snapshot{.ns = monotonic_clock().now_ns()};
  const fs::path folder = root / "sys/class/powercap";
  std::error_code code;
  if (!fs::is_directory(folder, code)) {
    snapshot.absent = "there is no /sys/class/powercap";
    return snapshot;
  }
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string id = entry.path().filename().string();
    if (!id.starts_with("intel-rapl:")) continue;  // "intel-rapl-mmio:" has the same counters again
    const auto name = read_kernel_file(entry.path() / "name");
    if (!name || !counts(first_line(*name))) continue;
    const auto energy = whole_number(entry.path() / "energy_uj");
    if (!energy) {
      snapshot.zones.clear();
      snapshot.absent = "the energy counter cannot be read: " + energy.error().message;
      return snapshot;
    }
    const auto range = whole_number(entry.path() / "max_energy_range_uj");
    snapshot.zones[id] = {*energy, range ? *range : 0};
  }
  if (snapshot.zones.empty()) snapshot.absent = "/sys/class/powercap has no energy counter of a processor";
  return snapshot;
}

Reading energy_between(const EnergySnapshot& before, const EnergySnapshot& after) {
  for (const EnergySnapshot* snapshot : {&before, &after}) {
    if (!snapshot->absent.empty()) return Reading::absent(snapshot->absent);
    if (snapshot->zones.empty()) return Reading::absent("not read");
  }
  double sum = 0;
  for (const auto& [id, then] : before.zones) {
    const auto now = after.zones.find(id);
    if (now == after.zones.end()) return Reading::absent(fmt::format("the energy counter {} went away", id));
    int64_t used = now->second.microjoules - then.microjoules;
    const bool wrapped = used < 0 && then.range > 0;
    if (wrapped) used += then.range;
    if (wrapped && used >= 0 && !possible(used, after.ns - before.ns))
      return Reading::absent(fmt::format("the energy counter {} jumped", id));
    if (used < 0) return Reading::absent(fmt::format("the energy counter {} went backwards", id));
    sum += static_cast<double>(used) / 1e6;
  }
  if (after.zones.size() != before.zones.size()) return Reading::absent("an energy counter appeared");
  if (sum == 0 && after.ns - before.ns > kStandsStill)
    return Reading::absent("the energy counters stand still");
  return sum;
}

}  // namespace bakeoff::sample
