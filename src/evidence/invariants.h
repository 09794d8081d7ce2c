#pragma once

// What no true result can break. Each rule is a pure function over plain numbers and gives both of them where
// it is broken; a number that is not finite breaks every rule. check_trial() applies those that a Trial has
// the numbers for, before it is shown: a contender that breaks one is shown as broken, with the rule and both
// numbers, and is not ranked.
//
//   if (const auto broken = check_flops(12.5e9, 0.02, 230e9)) broken->text();
//   // "FLOP/s <= measured peak: 625e9 FLOP/s is claimed, 230e9 FLOP/s is possible"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "records/trial.h"

namespace bakeoff {

struct Broken {
  std::string rule = {};     // "FLOP/s <= measured peak"
  std::string claimed = {};  // "625e9 FLOP/s"
  std::string bound = {};    // "230e9 FLOP/s"
  std::string text() const;
  std::string verdict() const;  // "breaks a rule of physics or arithmetic, " and the text
  bool operator==(const Broken&) const = default;
};

// samples/s x seconds is the number of samples, within 1%.
std::optional<Broken> check_rate(double samples_per_s, double seconds, double samples, double within = 0.01);
// The same of bursts whose rate is by the worker's clock and whose time is by ours, from request to answer:
// of the burst for which both come nearest, as a neighbour may hold any answer up. Within 3% and 5 ms; beside
// others (`contended`) within 10% and 100 ms. Bursts without our time are left out.
std::optional<Broken> check_clocks(std::span<const Burst> bursts, int64_t batch, bool contended);
// What a loop waited for batches lies within its burst; none of it is negative.
std::optional<Broken> check_waits(const Burst& burst);
// The steps answered are those asked for: at most `per_call` - 1 more, where a framework makes so many a
// call.
std::optional<Broken> check_steps(int64_t asked, int64_t answered, int64_t per_call);
// Within 5%: the clock may be a little higher than it was when the peak was measured.
std::optional<Broken> check_flops(double flops, double seconds, double peak);
// A step touches `bytes` at the least. What does not fit in a memory level of `capacity` bytes comes from the
// next: pairs of capacity and the bandwidth behind it, with (0, bandwidth of the first level) for all of it.
// Within 5%.
std::optional<Broken> check_bytes(double bytes, double seconds,
                                  std::span<const std::pair<double, double>> levels);
// Processor seconds used are at most cores x wall seconds, with 5% and `slack_s` a core for what the wall
// leaves out.
std::optional<Broken> check_cpu(double cpu_s, double cores, double wall_s, double slack_s);
// Joules are mean power x time, within 20%.
std::optional<Broken> check_energy(double joules, double watts, double seconds);
// The first step, compilation included, takes at least half of a steady one. check_trial() takes the fastest
// that was seen, and asks only where the bursts had the processors to themselves (kContended): a neighbour
// who comes after the first step makes every later one longer, which is no lie of the contender.
std::optional<Broken> check_first_step(double first_s, double steady_s);
// Phases add up to the whole, within 5% and `slack_s`. check_trial(): process start, import, build and first
// step to what went by outside, within two seconds, of a start-up that had the machine to itself.
std::optional<Broken> check_phases(std::span<const double> parts_s, double whole_s, double slack_s = 1e-3);
// Parts of a whole are at most the whole, with the same allowance: step marks within their bursts.
std::optional<Broken> check_within(double parts_s, double whole_s);
// The same number of steps on the same batches from the same weights gives the same loss, within `tolerance`
// (relative).
std::optional<Broken> check_loss(int64_t steps, double loss, double expected, double tolerance);
// Latencies ascend with their percentiles, and none is negative.
std::optional<Broken> check_percentiles(const std::map<double, double>& latency_by_percentile);
// Little's law: requests in flight = rate x mean latency, within 5%.
std::optional<Broken> check_littles_law(double in_flight, double per_s, double latency_s);
// N ranks are at most N times as fast as one, within 5%.
std::optional<Broken> check_scaling(double rate_one, double rate_all, double ranks);

// Share of a trial's bursts that its threads waited for a processor, or that other processes used, above
// which its steps do not show what they take.
inline constexpr double kContended = 0.1;
// Whether a trial's bursts are known to have had the processors to themselves, by kContended. False where
// nothing is known of it.
bool had_the_processors(const Trial& trial);

// What a contender's trials are held against. Zero or empty: not known, and the rules that need it are left
// out.
struct TrialBounds {
  double cores = 0;
  int64_t batch = 1;  // samples of a step
  double flops_per_step = 0;
  double bytes_per_step = 0;  // at the least: parameters, gradients, state and batch, once each
  double peak_flops = 0;      // of the processors
  double gpu_peak_flops = 0;  // holds a trial on a GPU (Trial::memory has "on_gpu") in place of that
  // Of the processors, as check_bytes() takes them: not for a trial on a GPU.
  std::vector<std::pair<double, double>> levels = {};
  int64_t per_call = 1;                   // steps that the framework makes in one call
  std::map<int64_t, double> losses = {};  // by steps since the weights were loaded
  double loss_tolerance = 1e-3;
};

// All rules that a sound trial breaks; none of one that failed.
std::vector<Broken> check_trial(const Trial& trial, const TrialBounds& bounds);

// The trials with `invalid` set where a rule is broken. `bounds` by contender; one that is missing is not
// checked.
std::vector<Trial> mark_broken(std::vector<Trial> trials, const std::map<std::string, TrialBounds>& bounds);

}  // namespace bakeoff
