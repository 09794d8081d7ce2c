#include "summary/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "emit/devices.h"
#include "records/names.h"
#include "study/section_rows.h"
#include "summary/pair_ratios.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

bool differ_in_devices(const Row& a, const Row& b) {
  return a.group == b.group && a.contender.framework == b.contender.framework &&
         a.contender.environment == b.contender.environment && a.contender.stated == b.contender.stated &&
         emit::on_one_device(a.contender.settings) == emit::on_one_device(b.contender.settings);
}

// The counterpart on one device: of one's own scripts the same one, else the emitted one.
const Row* on_one_device(const Summary& s, const Row& row) {
  const Row* found = nullptr;
  for (const Row& other : s.ranked) {
    if (emit::devices_of(other.contender.settings) != 1 || !differ_in_devices(row, other)) continue;
    if (other.contender.own_script == row.contender.own_script) return &other;
    if (other.contender.own_script.empty()) found = &other;
  }
  return found;
}

Estimate divided(const Estimate& e, double by) { return {e.value / by, e.low / by, e.high / by}; }

const std::vector<Quantity<OnDevices>> kQuantities = {
    contender_quantity<OnDevices>(),
    {{.key = "devices", .title = "devices", .meaning = "How many devices share every batch."},
     [](const OnDevices& r) { return Json(r.devices); },
     count},
    {{.key = "times_as_fast_as_one",
      .csv = {{"times_as_fast_as_one", "/value"},
              {"times_as_fast_as_one_low", "/low"},
              {"times_as_fast_as_one_high", "/high"}},
      .title = "speed-up",
      .meaning = "How many times as fast as on one device.",
      .range_title = "interval"},
     [](const OnDevices& r) { return r.ratio ? estimate(r.speed) : Json(nullptr); },
     ratio},
    {{.key = "efficiency",
      .csv = {{"efficiency", "/value"}, {"efficiency_low", "/low"}, {"efficiency_high", "/high"}},
      .title = "efficiency",
      .meaning = "The speed-up over the number of devices: 1 where nothing is lost.",
      .range_title = "interval"},
     [](const OnDevices& r) { return r.ratio ? estimate(r.efficiency) : Json(nullptr); },
     ratio},
    {{.key = "note", .in_csv = false}, [](const OnDevices& r) { return text_or_null(r.note); }},
};

}  // namespace

std::vector<OnDevices> against_one_device(const Summary& s) {
  const PairRatios ratios(s);
  std::vector<OnDevices> all;
  for (const Row& row : s.ranked) {
    const int64_t devices = emit::devices_of(row.contender.settings);
    const Row* one = devices == 1 ? nullptr : on_one_device(s, row);
    if (one == nullptr) continue;
    OnDevices found{.contender = row.contender.id, .devices = devices};
    found.ratio = ratios.between(row.contender.id, one->contender.id);
    if (!found.ratio) {
      found.note = "no heat links it with the contender on one device yet";
    } else {
      found.speed = inverse(found.ratio->ratio);
      found.efficiency = divided(found.speed, static_cast<double>(devices));
      if (found.ratio->bound) found.note = "a bound: one of the two looked hopeless and was not timed";
      if (!s.refusal.empty()) found.note = "not judged: the run has no verdict";
    }
    all.push_back(std::move(found));
  }
  return all;
}

std::optional<Section> devices_section(const Summary& s) {
  const std::vector<OnDevices> rows = against_one_device(s);
  if (rows.empty()) return std::nullopt;
  Section section = section_of(kQuantities, rows);
  section.key = "devices";
  section.label = section.title = "Devices";
  section.legend = fmt::format(
      "Each contender on several devices against the same one on one device. The batch is fixed: {} rows of all devices "
      "together (strong scaling). The intervals are those of the race.",
      count(static_cast<double>(s.batch)));
  for (const OnDevices& row : rows) {
    if (!row.ratio || !s.refusal.empty() || row.ratio->bound) continue;
    section.sentences.push_back(fmt::format("{} is {}x as fast as on one device {}: an efficiency of {} {}.",
                                            spoken(s.manifest.contenders, row.contender),
                                            times(row.speed.value), interval(row.speed, times),
                                            times(row.efficiency.value), interval(row.efficiency, times)));
  }
  add_csv(section, kQuantities, rows, "devices_");
  section.json = {{"batch", s.batch}, {"scaling", "strong"}, {"rows", json_rows(kQuantities, rows)}};
  return section;
}

}  // namespace bakeoff
