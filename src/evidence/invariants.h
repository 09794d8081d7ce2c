#pragma once

// Rules that no true result can break. Each is a pure function over plain numbers; if it is broken, it
// returns both numbers. A number that is not finite breaks every rule. check_trial() applies the rules for
// which a Trial has numbers: a contender that breaks one is shown as broken, with the rule and both
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

// samples/s x seconds equals the number of samples, within 1%.
std::optional<Broken> check_rate(double samples_per_s, double seconds, double samples, double within = 0.01);
// The same for bursts, with the rate from the worker's clock and the time from ours, from request to
// answer. Only the burst in which both agree best is checked, as another process may delay any answer.
// Within 3% and 5 ms; on a contended machine (`contended`) within 10% and 100 ms. Bursts without a time of
// our clock are left out.
std::optional<Broken> check_clocks(std::span<const Burst> bursts, int64_t batch, bool contended);
// The time that a loop waited for batches is not negative and not longer than its burst.
std::optional<Broken> check_waits(const Burst& burst);
// The number of steps done is the number requested; a framework that makes `per_call` steps per call may do
// up to `per_call` - 1 more.
std::optional<Broken> check_steps(int64_t asked, int64_t answered, int64_t per_call);
// FLOP/s are at most the measured peak, within 5%: the clock may be a little higher than during the
// measurement.
std::optional<Broken> check_flops(double flops, double seconds, double peak);
// A step moves at least `bytes`. What does not fit into a memory level of `capacity` bytes comes from the
// next one. `levels`: pairs of a capacity and the bandwidth behind it, and (0, bandwidth of the first
// level) for all bytes. Within 5%.
std::optional<Broken> check_bytes(double bytes, double seconds,
                                  std::span<const std::pair<double, double>> levels);
// CPU seconds are at most cores x wall seconds, within 5% and `slack_s` per core for time that the wall clock
// misses.
std::optional<Broken> check_cpu(double cpu_s, double cores, double wall_s, double slack_s);
// Joules equal mean power x time, within 20%.
std::optional<Broken> check_energy(double joules, double watts, double seconds);
// The first step, compilation included, takes at least half as long as a steady step. check_trial() uses the
// fastest first step, and only if the bursts had the processors to themselves (kContended): other work that
// begins after the first step makes every later step longer, which is not the contender's fault.
std::optional<Broken> check_first_step(double first_s, double steady_s);
// Phases add up to the whole, within 5% and `slack_s`. check_trial(): process start, import, build and
// first step add up to the time that elapsed by our clock, within two seconds, if no other worker started
// at that time.
std::optional<Broken> check_phases(std::span<const double> parts_s, double whole_s, double slack_s = 1e-3);
// Parts of a whole are at most the whole, with the same tolerance: step marks lie within their bursts.
std::optional<Broken> check_within(double parts_s, double whole_s);
// The same number of steps on the same batches from the same weights gives the same loss, within a relative
// `tolerance`.
std::optional<Broken> check_loss(int64_t steps, double loss, double expected, double tolerance);
// Latencies are not negative and rise with their percentiles.
std::optional<Broken> check_percentiles(const std::map<double, double>& latency_by_percentile);
// Little's law: requests in flight = rate x mean latency, within 5%.
std::optional<Broken> check_littles_law(double in_flight, double per_s, double latency_s);
// N ranks are at most N times as fast as one, within 5%.
std::optional<Broken> check_scaling(double rate_one, double rate_all, double ranks);

// Limit of the share of a trial's bursts in which its threads waited for a processor, or which other
// processes used. Above it the measured steps are longer than the contender needs.
inline constexpr double kContended = 0.1;
// Whether a trial's bursts are known to have had the processors to themselves, by kContended. False if
// nothing is known.
bool had_the_processors(const Trial& trial);

// The numbers that a contender's trials are compared with. Zero or empty: unknown, and the rules that need
// the number are not checked.
struct TrialBounds {
  double cores = 0;
  int64_t batch = 1;  // samples per step
  double flops_per_step = 0;
  double bytes_per_step = 0;  // at least: parameters, gradients, optimizer state and batch, once each
  double peak_flops = 0;      // of the processors
  double gpu_peak_flops = 0;  // replaces peak_flops for a trial on a GPU (Trial::memory has "on_gpu")
  // Memory levels of the processors, as check_bytes() takes them; not used for a trial on a GPU.
  std::vector<std::pair<double, double>> levels = {};
  int64_t per_call = 1;                   // steps that the framework makes in one call
  std::map<int64_t, double> losses = {};  // expected losses by steps since the weights were loaded
  double loss_tolerance = 1e-3;
};

// All rules that a trial breaks; none for a trial that failed.
std::vector<Broken> check_trial(const Trial& trial, const TrialBounds& bounds);

// The trials, with `invalid` set if a rule is broken. `bounds` by contender; a contender that is missing
// there is not checked.
std::vector<Trial> mark_broken(std::vector<Trial> trials, const std::map<std::string, TrialBounds>& bounds);

}  // namespace bakeoff
