#include "summary/limits.h"

#include <fmt/format.h>

#include <limits>

#include "emit/all/frameworks.h"
#include "summary/pair_ratios.h"
#include "table/numbers.h"

namespace bakeoff {
namespace {

constexpr double kWaits = 0.15;        // share of a step
constexpr double kNoProcessor = 0.10;  // share of the threads' runnable time
constexpr double kNearPeak = 0.5;      // share of the measured peak; real kernels seldom reach more than 0.8
constexpr double kFaultS = 0.25e-6;    // the least that a minor page fault costs, s
constexpr double kFaultShare = 0.10;   // of a step
constexpr double kIdle = 0.7;  // share of its threads that compute, below which most of the step is serial
constexpr double kGpuIdle = 0.7;

std::string share(double value) { return fmt::format("{:.0f}%", 100 * value); }

std::optional<Limit> limit_on_gpu(const Row& row) {
  if (!row.gpu.busy) return {};
  const std::string busy = "its GPU computes " + share(*row.gpu.busy) + " of the time";
  if (*row.gpu.busy < kGpuIdle) return Limit{"dispatch", busy + ", the rest it waits for the host"};
  return Limit{"the GPU", busy};
}

std::optional<Limit> limit_on_processors(const Row& row) {
  const Usage& usage = row.usage;
  if (usage.waiting && *usage.waiting >= kNoProcessor)
    return Limit{"processors",
                 "its threads wait for a processor " + share(*usage.waiting) + " of their time"};
  const double step_s = row.ms_per_step.value / 1e3;
  if (usage.faults && *usage.faults * kFaultS >= kFaultShare * step_s)
    return Limit{"page faults", fmt::format("{:.0f} page faults a step, at least {} of it", *usage.faults,
                                            share(*usage.faults * kFaultS / step_s))};
  if (row.flop_use && *row.flop_use >= kNearPeak)
    return Limit{"arithmetic", share(*row.flop_use) + " of the machine's measured peak"};
  if (row.byte_use && *row.byte_use >= kNearPeak)
    return Limit{"memory",
                 "its ops move " + share(*row.byte_use) + " of what the memory can, if none is fused"};
  if (usage.cores && row.threads > 1 && *usage.cores < kIdle * row.threads)
    return Limit{"serial work", fmt::format("{:.1f} of {} threads compute: starting ops, or ops that use one "
                                            "thread",
                                            *usage.cores, row.threads)};
  if (!row.flop_use || !usage.cores) return {};
  return Limit{"its kernels", fmt::format("{:.1f} of {} threads compute, at {} of the peak", *usage.cores,
                                          row.threads, share(*row.flop_use))};
}

}  // namespace

std::optional<Limit> limit_of(const Row& row) {
  if (row.failure || row.at_least || !(row.ms_per_step.value > 0)) return {};
  if (row.wait.share && *row.wait.share >= kWaits)
    return Limit{"input", "it waits for batches " + share(*row.wait.share) + " of the time"};
  return row.gpu.on_gpu ? limit_on_gpu(row) : limit_on_processors(row);
}

bool is_native(const std::string& framework) {
  const emit::Framework* found = emit::find_framework(framework);
  return found != nullptr && found->limit;
}

const Row* native_row(const Summary& summary) {
  const auto found = std::ranges::find_if(summary.ranked, [](const Row& row) {
    return is_native(row.contender.framework) && row.contender.own_script.empty() && !row.at_least;
  });
  return found == summary.ranked.end() ? nullptr : &*found;
}

void hold_against_native(Summary& summary) {
  const Row* native = native_row(summary);
  if (native == nullptr) return;
  const PairRatios pairs(summary);
  for (Row& row : summary.ranked) {
    if (row.gpu.on_gpu) continue;
    if (&row == native) {
      row.over_native = Estimate{1, 1, 1};
    } else if (const auto pair = pairs.between(row.contender.id, native->contender.id)) {
      row.over_native =
          pair->bound ? Estimate{pair->ratio.low, pair->ratio.low, std::numeric_limits<double>::infinity()}
                      : pair->ratio;
    }
  }
}

namespace {

// " [1.95, 2.27]"; empty where neither end is known.
std::string range(const Estimate& of) {
  return table::bounded_below(of) || table::bounded_above(of) ? " " + table::interval(of, table::times) : "";
}

}  // namespace

std::string over_native_text(const Row& row) {
  const Estimate& over = *row.over_native;
  return row.at_least ? "at least " + table::times(over.low) : table::times(over.value) + range(over);
}

std::string native_limit_of(const Row& row) {
  if (!row.over_native || is_native(row.contender.framework)) return "";
  const Estimate needs = inverse(*row.over_native);
  if (row.at_least)
    return fmt::format("plain C++ needs at most {} times as long on this machine", table::times(needs.value));
  return fmt::format("plain C++ needs {} times as long on this machine{}", table::times(needs.value),
                     range(needs));
}

}  // namespace bakeoff
