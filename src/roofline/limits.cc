#include "roofline/limits.h"

#include <algorithm>

namespace bakeoff::roofline {

double Peak::of_width() const {
  const double width = 2.0 * static_cast<double>(lanes) * units * clock_hz;
  return width > 0 ? ops.one / width : 0;
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
