#include "roofline/measure.h"

namespace bakeoff::roofline {

Limits measure(const MeasureOptions& options) {
  Limits limits;
  limits.cpus = static_cast<int>(options.cpus.size());
  const double begin = now_s();
  // Measurements in child processes come first, while there are no threads yet.
  for (const auto part :
       {measure_gemms, measure_gpus, measure_costs, measure_link, measure_peaks, measure_levels}) {
    if (!stopped(options)) part(options, limits);
  }
  limits.seconds = now_s() - begin;
  return limits;
}

}  // namespace bakeoff::roofline
