// What one look at the evidence costs, after the table has taken a heat: race_state() and next_heat().

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "stats/racing.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

constexpr size_t kContenders = 256;
constexpr size_t kLive = 8;
constexpr double kBarMs = 1;

stats::HeatResult heat(const std::vector<size_t>& members, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, 0.01);
  stats::HeatResult result{std::vector<std::optional<double>>(kContenders)};
  for (const size_t i : members) result.log_ms[i] = 1e-4 * static_cast<double>(i) + normal(random);
  return result;
}

// Median milliseconds of a look while the race runs its first 600 heats.
int run(double ceiling) {
  stats::RacingOptions options;
  options.live = kLive;
  options.ranking.ceiling = ceiling;
  std::mt19937_64 random(1);
  stats::PairTable table(kContenders);
  const std::vector<stats::ContenderState> states(kContenders);
  std::vector<double> ms;
  for (int i = 0; i < 600; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const stats::Race race = race_state(table, options.ranking);
    const stats::Heat next = next_heat(table, race, states, 0, options);
    ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    if (next.members.empty() || !table.add(heat(next.members, random))) break;
  }
  const double median = stats::median(ms);
  const double worst = stats::quantile(ms, 0.99);
  fmt::print("look at K = {}{}: {:.3f} ms, 99% of {} below {:.3f} ms (bar: below {:g} ms) {}\n", kContenders,
             ceiling > 0 ? " with a ceiling" : "", median, ms.size(), worst, kBarMs,
             median < kBarMs ? "ok" : "MISSED");
  return median < kBarMs ? 0 : 1;
}

}  // namespace
}  // namespace bakeoff

int main() {
  const int plain = bakeoff::run(0);
  return bakeoff::run(0.1) + plain > 0 ? 1 : 0;
}
