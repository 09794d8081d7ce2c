#include "evidence/invariants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace bakeoff {
namespace {

constexpr double kAllowance = 0.05;
constexpr double kMillisecond = 1e-3;
constexpr double kBurstSlack = 0.02;  // seconds; the kernel's clocks of processor and time are read apart
constexpr double kBetweenStages = 2;  // seconds of a start-up that no stage of the worker counts
constexpr double kCloseSlack = 5;     // seconds of a worker's life that no stage counts: its end

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// "625e9", "12.5", "0.002": three or four digits.
std::string shown(double value, const char* unit) {
  if (std::isfinite(value) && std::abs(value) >= 1e9) return fmt::format("{:.4g}e9 {}", value / 1e9, unit);
  return fmt::format("{:.4g} {}", value, unit);
}

Broken broken(const char* rule, double claimed, double bound, const char* unit) {
  return {rule, shown(claimed, unit), shown(bound, unit)};
}

// Whether a is b within a share of b. False for what is not finite.
bool about(double a, double b, double share, double slack = 0) {
  return std::abs(a - b) <= share * std::abs(b) + slack;
}

}  // namespace

std::string Broken::text() const { return fmt::format("{}: {} against {}", rule, claimed, bound); }
std::string Broken::verdict() const { return "breaks a rule of physics or arithmetic, " + text(); }

std::optional<Broken> check_rate(double samples_per_s, double s, double samples, double within) {
  if (about(samples_per_s * s, samples, within) && samples > 0) return std::nullopt;
  return broken("samples/s x time = samples", samples_per_s * s, samples, "samples");
}

std::optional<Broken> check_clocks(std::span<const Burst> bursts, int64_t batch, bool contended) {
  const double within = contended ? 0.1 : 0.03, slack_s = contended ? 0.1 : 0.005;
  const auto apart = [](const Burst& burst) {
    return std::abs(seconds(burst.elapsed_ns) - seconds(burst.ns)) / seconds(burst.ns);
  };
  const Burst* nearest = nullptr;
  for (const Burst& burst : bursts) {
    if (burst.elapsed_ns <= 0 || burst.ns <= 0) continue;
    if (nearest == nullptr || apart(burst) < apart(*nearest)) nearest = &burst;
  }
  if (nearest == nullptr) return std::nullopt;
  const double claimed = seconds(nearest->ns), ours = seconds(nearest->elapsed_ns);
  if (std::abs(ours - claimed) <= slack_s) return std::nullopt;
  const double samples = static_cast<double>(nearest->steps) * static_cast<double>(batch);
  return check_rate(samples / claimed, ours, samples, within);
}

std::optional<Broken> check_waits(const Burst& burst) {
  if (!burst.wait) return std::nullopt;
  const double waited = seconds(burst.wait->ns) + seconds(burst.wait->first_ns), whole = seconds(burst.ns);
  if (burst.wait->ns >= 0 && burst.wait->first_ns >= 0 && waited <= whole * (1 + kAllowance) + kMillisecond)
    return std::nullopt;
  return broken("waiting for batches lies within its burst", waited, whole, "s");
}

std::optional<Broken> check_steps(int64_t asked, int64_t answered, int64_t per_call) {
  if (answered >= asked && answered < asked + std::max<int64_t>(per_call, 1)) return std::nullopt;
  return broken("steps answered = steps asked for", static_cast<double>(answered), static_cast<double>(asked),
                "steps");
}

std::optional<Broken> check_flops(double flops, double s, double peak) {
  const double rate = flops / s;
  if (s > 0 && rate <= peak * (1 + kAllowance)) return std::nullopt;
  return broken("FLOP/s <= measured peak", rate, peak, "FLOP/s");
}

std::optional<Broken> check_bytes(double bytes, double s, std::span<const std::pair<double, double>> levels) {
  for (const auto& [capacity, bandwidth] : levels) {
    const double beyond = std::isfinite(bytes) ? std::max(0.0, bytes - capacity) : bytes;
    if (!(s > 0 && beyond / s <= bandwidth * (1 + kAllowance)))
      return broken("bytes/s <= measured bandwidth", beyond / s, bandwidth, "bytes/s");
  }
  return std::nullopt;
}

std::optional<Broken> check_cpu(double cpu_s, double cores, double wall_s, double slack_s) {
  if (cpu_s >= 0 && cpu_s <= cores * (wall_s * (1 + kAllowance) + slack_s)) return std::nullopt;
  return broken("CPU seconds <= cores x wall", cpu_s, cores * wall_s, "s");
}

std::optional<Broken> check_energy(double joules, double watts, double s) {
  if (joules >= 0 && about(joules, watts * s, 0.2)) return std::nullopt;
  return broken("energy = mean power x time", joules, watts * s, "J");
}

std::optional<Broken> check_first_step(double first_s, double steady_s) {
  constexpr double kShare = 0.5;
  if (first_s >= kShare * steady_s) return std::nullopt;
  return broken("first step >= half of a steady step", first_s * 1e3, kShare * steady_s * 1e3, "ms");
}

std::optional<Broken> check_phases(std::span<const double> parts_s, double whole_s, double slack_s) {
  const double sum = std::accumulate(parts_s.begin(), parts_s.end(), 0.0);
  const bool sound = std::all_of(parts_s.begin(), parts_s.end(), [](double part) { return part >= 0; });
  if (sound && about(sum, whole_s, kAllowance, slack_s)) return std::nullopt;
  return broken("phases add up to the whole", sum, whole_s, "s");
}

std::optional<Broken> check_within(double parts_s, double whole_s) {
  if (parts_s >= 0 && parts_s <= whole_s * (1 + kAllowance) + kMillisecond) return std::nullopt;
  return broken("steps lie within their bursts", parts_s, whole_s, "s");
}

std::optional<Broken> check_loss(int64_t steps, double loss, double expected, double tolerance) {
  if (about(loss, expected, tolerance, 1e-6)) return std::nullopt;
  return Broken{fmt::format("equal losses for equal work, here {} steps", steps), fmt::format("{:.6g}", loss),
                fmt::format("{:.6g}", expected)};
}

std::optional<Broken> check_percentiles(const std::map<double, double>& latency_by_percentile) {
  double last = 0;
  for (const auto& [percentile, latency] : latency_by_percentile) {
    if (!(latency >= last)) return broken("latencies ascend with their percentiles", latency, last, "s");
    last = latency;
  }
  return std::nullopt;
}

std::optional<Broken> check_littles_law(double in_flight, double per_s, double latency_s) {
  if (in_flight >= 0 && about(in_flight, per_s * latency_s, kAllowance)) return std::nullopt;
  return broken("requests in flight = rate x latency", in_flight, per_s * latency_s, "requests");
}

std::optional<Broken> check_scaling(double rate_one, double rate_all, double ranks) {
  if (rate_all >= 0 && rate_all <= ranks * rate_one * (1 + kAllowance)) return std::nullopt;
  return broken("N ranks <= N x one rank", rate_all, ranks * rate_one, "times one");
}

bool had_the_processors(const Trial& trial) {
  double waited = 0, wall = 0;
  for (const Burst& burst : trial.bursts) {
    const auto w = burst.used.find("wait_s"), all = burst.used.find("wall_s");
    if (w == burst.used.end() || all == burst.used.end()) return false;
    waited += w->second;
    wall += all->second;
  }
  if (!(waited <= kContended * wall)) return false;
  bool known = trial.rounds.empty();
  for (const HostRound& round : trial.rounds) {
    const auto others = round.seen.find("others");
    if (others == round.seen.end()) continue;  // a short round is judged with the next one
    if (others->second > kContended) return false;
    known = true;
  }
  return known;
}

namespace {

// Sums over a trial's bursts.
struct Bursts {
  double s = 0, steps = 0;
};

Bursts total(const Trial& trial) {
  Bursts all;
  for (const Burst& burst : trial.bursts) {
    all.s += seconds(burst.ns);
    all.steps += static_cast<double>(burst.steps);
  }
  return all;
}

// Seconds of a worker's life that its stages account for.
double life(const Trial& t) {
  double s = seconds(t.start_ns + t.import_ns + t.build_ns + t.first_step_ns + t.warmup_ns) + total(t).s;
  for (const Burst& burst : t.void_bursts) s += seconds(burst.ns);
  return s;
}

class Checker {
 public:
  Checker(const Trial& trial, const TrialBounds& bounds) : t_(trial), b_(bounds) {}

  std::vector<Broken> all() {
    for (const auto* bursts : {&t_.bursts, &t_.void_bursts}) {
      for (const Burst& burst : *bursts) check(burst);
    }
    check_both_clocks();
    for (const int64_t phase : {t_.start_ns, t_.import_ns, t_.build_ns, t_.first_step_ns, t_.warmup_ns}) {
      if (phase < 0) add(check_phases(std::array{seconds(phase)}, 0));
    }
    if (t_.bursts.empty()) return std::move(found_);
    const Bursts sum = total(t_);
    const double step_s = sum.s / sum.steps;
    const bool alone = had_the_processors(t_);
    if (alone) add(check_first_step(seconds(t_.first_step_ns), fastest_step_s()));
    if (t_.start_up_ns > 0 && t_.alone && alone) {
      const double parts[] = {seconds(t_.start_ns), seconds(t_.import_ns), seconds(t_.build_ns),
                              seconds(t_.first_step_ns)};
      add(check_phases(parts, seconds(t_.start_up_ns), kBetweenStages));
    }
    add(check_within(seconds(std::accumulate(t_.step_ns.begin(), t_.step_ns.end(), int64_t{0})), sum.s));
    if (b_.cores > 0) add(check_cpu(t_.user_s + t_.system_s, b_.cores, life(t_), kCloseSlack));
    const bool on_gpu = t_.memory.contains("on_gpu");
    const double peak = on_gpu ? b_.gpu_peak_flops : b_.peak_flops;
    if (peak > 0 && b_.flops_per_step > 0) add(check_flops(b_.flops_per_step, step_s, peak));
    if (!on_gpu && !b_.levels.empty() && b_.bytes_per_step > 0)
      add(check_bytes(b_.bytes_per_step, step_s, b_.levels));
    return std::move(found_);
  }

 private:
  // The fastest known step: other work on the machine makes steps longer, sometimes all steps of a burst.
  double fastest_step_s() const {
    double fastest = std::numeric_limits<double>::infinity();
    for (const auto* bursts : {&t_.bursts, &t_.void_bursts}) {
      for (const Burst& burst : *bursts) fastest = std::min(fastest, burst.ms_per_step() / 1e3);
    }
    for (const auto* steps : {&t_.step_ns, &t_.warmup_step_ns}) {
      for (const int64_t ns : *steps) fastest = std::min(fastest, seconds(ns));
    }
    return fastest;
  }
  void check_both_clocks() {
    std::vector<Burst> all = t_.bursts;
    all.insert(all.end(), t_.void_bursts.begin(), t_.void_bursts.end());
    add(check_clocks(all, b_.batch, !had_the_processors(t_)));
  }
  void check(const Burst& burst) {
    add(check_waits(burst));
    const auto cpu = burst.used.find("cpu_s"), wall = burst.used.find("wall_s");
    if (b_.cores > 0 && cpu != burst.used.end() && wall != burst.used.end())
      add(check_cpu(cpu->second, b_.cores, wall->second, kBurstSlack));
    if (burst.asked > 0) add(check_steps(burst.asked, burst.steps, per_call()));
    for (const auto& [steps, loss] : burst.losses) {
      const auto expected = b_.losses.find(steps);
      if (expected != b_.losses.end()) add(check_loss(steps, loss, expected->second, b_.loss_tolerance));
    }
  }
  // A user's own script reports how many steps it makes per call only after it is built.
  int64_t per_call() const {
    const auto at = t_.effective.find("steps_per_call");
    const int64_t own = at == t_.effective.end() ? 1 : std::atoll(at->second.c_str());
    return std::max(b_.per_call, own);
  }
  void add(std::optional<Broken> broken) {
    if (broken) found_.push_back(std::move(*broken));
  }

  const Trial& t_;
  const TrialBounds& b_;
  std::vector<Broken> found_;
};

}  // namespace

std::vector<Broken> check_trial(const Trial& trial, const TrialBounds& bounds) {
  if (trial.failure || trial.invalid || (trial.bursts.empty() && trial.void_bursts.empty())) return {};
  return Checker(trial, bounds).all();
}

std::vector<Trial> mark_broken(std::vector<Trial> trials, const std::map<std::string, TrialBounds>& bounds) {
  for (Trial& trial : trials) {
    const auto at = bounds.find(trial.contender);
    if (at == bounds.end()) continue;
    const std::vector<Broken> broken = check_trial(trial, at->second);
    if (!broken.empty()) trial.invalid = broken.front().verdict();
  }
  return trials;
}

}  // namespace bakeoff
