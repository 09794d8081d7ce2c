#include "roofline/limits.h"

#include <fmt/format.h>

#include <algorithm>

namespace bakeoff::roofline {

double Peak::of_width() const {
  const double width = 2.0 * static_cast<double>(lanes) * units * clock_hz;
  return width > 0 ? ops.one / width : 0;
}

std::string impossible(const Peak& peak, const std::vector<Peak>& all) {
  constexpr double kClockChanges = 1.05, kMostOfWidth = 1.25;
  if (peak.isa == "amx") return "";
  if (peak.of_width() > kMostOfWidth)
    return fmt::format("the loop seemed to do {:.1f} times what {} lanes in {} units can at {:.2f} GHz",
                       peak.of_width(), peak.lanes, peak.units, peak.clock_hz / 1e9);
  const int64_t narrower = peak.dtype == "bf16" ? 2 : peak.dtype == "int8" ? 4 : 0;
  for (const Peak& plain : all) {
    if (narrower == 0 || plain.dtype != "f32" || plain.lanes * narrower != peak.lanes) continue;
    const double most = static_cast<double>(narrower) * kClockChanges;
    const double one = peak.ops.one / plain.ops.one, every = peak.ops.all / plain.ops.all;
    if (std::max(one, every) > most)
      return fmt::format(
          "the loop seemed to do {:.1f} times the f32 operations of {}; more than {:.1f} times is "
          "not possible",
          std::max(one, every), plain.isa, most);
  }
  return "";
}

Rate Level::best() const {
  Rate best;
  for (const Rate& rate : {read, write, copy, triad, triad_nt}) {
    best.one = std::max(best.one, rate.one);
    best.all = std::max(best.all, rate.all);
  }
  return best;
}

const Peak* Limits::peak(const std::string& dtype) const {
  const Peak* best = nullptr;
  for (const Peak& p : peaks) {
    if (p.dtype == dtype && (best == nullptr || p.ops.all > best->ops.all)) best = &p;
  }
  return best;
}

const Level* Limits::level(const std::string& name) const {
  const auto at = std::find_if(levels.begin(), levels.end(), [&](const Level& l) { return l.name == name; });
  return at == levels.end() ? nullptr : &*at;
}

}  // namespace bakeoff::roofline
