// From the steps of one heat to the length of bursts:
//
//   samples_of     turns steps into (contender, time, log); pools short steps until at most 2,500 samples remain
//   noise_of       fits variances of the machine and of processes, by time constant
//   variance_of_d  predicts the variance of a heat's d for bursts of one length under this noise
//   plan_bursts    tries lengths from 0.5 s downwards and keeps the best variance per second of wall time
//
// Why products of pairs of samples and not a spectrum: the samples of one contender have gaps while the
// others run. Products need no regular grid. For two samples a time t apart, the expected product is the
// sum of v_k exp(-t / T_k): over the machine's parts if the contenders differ, over machine and process if
// they are one. This is linear in the variances v_k, so the average products by distance determine them by
// least squares with v_k >= 0. The number of pairs is quadratic, hence the limit of 2,500 samples.

#include "stats/burst_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "stats/boundary.h"
#include "stats/heat_value.h"
#include "stats/trimmed.h"

namespace bakeoff::stats {
namespace {

constexpr size_t kFewestBursts = 4;  // of a contender
constexpr size_t kFewestSteps = 40;
constexpr double kMostSamples = 2500;
constexpr double kSpike = 4;  // robust standard deviations above the median

// A step, or as many short ones as last kShortStep.
struct Sample {
  size_t contender = 0;
  double at_s = 0;    // its middle
  double log_ms = 0;  // about the contender's median
};

struct Samples {
  std::vector<Sample> all = {};      // in the order of time
  std::vector<double> step_s = {};   // median, by contender; 0: it has no bursts
  std::vector<double> sampled = {};  // duration of a sample in seconds, by contender
};

std::vector<double> median_steps(std::span<const TimedBurst> bursts) {
  std::vector<std::vector<double>> steps;
  std::vector<size_t> count;
  for (const TimedBurst& burst : bursts) {
    if (burst.contender >= steps.size()) steps.resize(burst.contender + 1), count.resize(steps.size());
    steps[burst.contender].insert(steps[burst.contender].end(), burst.step_s.begin(), burst.step_s.end());
    ++count[burst.contender];
  }
  std::vector<double> medians(steps.size(), 0.0);
  for (size_t i = 0; i < steps.size(); ++i)
    if (count[i] >= kFewestBursts) medians[i] = median(steps[i]);
  return medians;
}

Samples samples_of(std::span<const TimedBurst> bursts) {
  Samples samples = {.step_s = median_steps(bursts)};
  double seconds = 0;
  for (const TimedBurst& burst : bursts)
    seconds = std::accumulate(burst.step_s.begin(), burst.step_s.end(), seconds);
  const double least_s = std::max(kShortStep, seconds / kMostSamples);
  std::vector<std::vector<double>> logs(samples.step_s.size());
  for (const TimedBurst& burst : bursts) {
    const double step_s = samples.step_s[burst.contender];
    if (!(step_s > 0)) continue;
    const auto together = static_cast<size_t>(std::ceil(least_s / step_s));
    double at_s = burst.start_s;
    for (size_t k = 0; k + together <= burst.step_s.size(); k += together) {
      const auto from = burst.step_s.begin() + static_cast<std::ptrdiff_t>(k);
      const double sum = std::accumulate(from, from + static_cast<std::ptrdiff_t>(together), 0.0);
      if (sum > 0 && std::isfinite(sum)) {
        samples.all.push_back(
            {burst.contender, at_s + sum / 2, std::log(sum / static_cast<double>(together))});
        logs[burst.contender].push_back(samples.all.back().log_ms);
      }
      at_s += sum;
    }
  }
  for (const std::vector<double>& own : logs) samples.sampled.push_back(median(own));
  for (Sample& sample : samples.all) sample.log_ms -= samples.sampled[sample.contender];
  for (size_t i = 0; i < samples.step_s.size(); ++i)
    samples.sampled[i] = std::ceil(least_s / std::max(samples.step_s[i], 1e-12)) * samples.step_s[i];
  std::sort(samples.all.begin(), samples.all.end(),
            [](const Sample& a, const Sample& b) { return a.at_s < b.at_s; });
  return samples;
}

// What the noise of the samples is made of: variances of logs.
struct Noise {
  double sample = 0;              // of each sample alone
  std::vector<double> lasting_s;  // time constants
  std::vector<double> machine;    // by time constant: common to all contenders
  std::vector<double> process;    // by time constant: of one process
  double spike_share = 0;         // share of the samples that are spikes
  double spike = 0;               // mean square of what a spike adds
};

// Non-negative least squares of rows * x = target by coordinate descent.
std::vector<double> non_negative_fit(const std::vector<std::vector<double>>& rows,
                                     const std::vector<double>& target, const std::vector<double>& weight) {
  const size_t unknowns = rows.front().size();
  std::vector<double> x(unknowns, 0.0), rest = target;
  for (int sweep = 0; sweep < 2000; ++sweep) {
    for (size_t j = 0; j < unknowns; ++j) {
      double along = 0, length = 0;
      for (size_t r = 0; r < rows.size(); ++r) {
        along += weight[r] * rows[r][j] * rest[r];
        length += weight[r] * rows[r][j] * rows[r][j];
      }
      const double step = length > 0 ? std::max(-x[j], along / length) : 0;
      x[j] += step;
      for (size_t r = 0; r < rows.size(); ++r) rest[r] -= step * rows[r][j];
    }
  }
  return x;
}

// Sums of products of pairs of samples that are about equally far apart.
struct Bin {
  double pairs = 0, product = 0, apart_s = 0;
};

// Takes the spikes out of the samples.
void set_spikes_aside(std::vector<Sample>& samples, Noise& noise) {
  std::vector<double> logs;
  for (const Sample& sample : samples) logs.push_back(sample.log_ms);
  const double most = kSpike * std::max(robust_sd(logs), 1e-6);
  for (Sample& sample : samples) {
    if (sample.log_ms > most) {
      noise.spike_share += 1 / static_cast<double>(samples.size());
      const double excess = std::expm1(sample.log_ms);
      noise.spike += excess * excess;
    }
    sample.log_ms = std::clamp(sample.log_ms, -most, most);
  }
  if (noise.spike_share > 0) noise.spike /= noise.spike_share * static_cast<double>(samples.size());
}

// Time constants grow by 2.5 from twice the shortest sample; bins of distance by the root of 2. The first
// equation is the mean square, to which every part contributes. A bin with fewer pairs than samples weighs
// less.
Noise noise_of(std::vector<Sample> samples, double shortest_s) {
  Noise noise;
  set_spikes_aside(samples, noise);
  const double whole_s = samples.back().at_s - samples.front().at_s;
  for (double lasting = 2 * shortest_s; lasting < whole_s; lasting *= 2.5) noise.lasting_s.push_back(lasting);
  const double narrow = 0.5 * shortest_s;
  const auto bins = static_cast<size_t>(2 * std::log2(std::max(2.0, whole_s / narrow))) + 2;
  std::vector<Bin> same(bins), other(bins);
  double squares = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    squares += samples[i].log_ms * samples[i].log_ms;
    for (size_t j = i + 1; j < samples.size(); ++j) {
      const double apart = samples[j].at_s - samples[i].at_s;
      if (apart > whole_s / 2) break;
      const auto at = static_cast<size_t>(2 * std::log2(std::max(1.0, apart / narrow)));
      Bin& bin = (samples[i].contender == samples[j].contender ? same : other)[at];
      ++bin.pairs;
      bin.product += samples[i].log_ms * samples[j].log_ms;
      bin.apart_s += apart;
    }
  }
  const size_t parts = noise.lasting_s.size();
  const auto n = static_cast<double>(samples.size());
  std::vector<std::vector<double>> rows = {std::vector<double>(1 + 2 * parts, 1.0)};
  std::vector<double> target = {squares / n}, weight = {1};
  for (const std::vector<Bin>* kind : {&same, &other}) {
    for (const Bin& bin : *kind) {
      if (bin.pairs == 0) continue;
      std::vector<double>& row = rows.emplace_back(1 + 2 * parts, 0.0);
      for (size_t p = 0; p < parts; ++p) {
        row[1 + p] = std::exp(-bin.apart_s / bin.pairs / noise.lasting_s[p]);
        if (kind == &same) row[1 + parts + p] = row[1 + p];
      }
      target.push_back(bin.product / bin.pairs);
      weight.push_back(std::min(1.0, bin.pairs / n));
    }
  }
  const std::vector<double> found = non_negative_fit(rows, target, weight);
  noise.sample = found[0];
  noise.machine.assign(found.begin() + 1, found.begin() + 1 + static_cast<std::ptrdiff_t>(parts));
  noise.process.assign(found.begin() + 1 + static_cast<std::ptrdiff_t>(parts), found.end());
  return noise;
}

// Variance of a weighted sum of a state of variance 1 at ascending times. Values a time t apart have the
// correlation exp(-t / lasting), a product over the gaps between them. So one number, the sum of the
// earlier weights decayed to the present, replaces a pass over all earlier values.
class WeightedState {
 public:
  explicit WeightedState(double lasting_s) : lasting_s_(lasting_s) {}
  void add(double at_s, double weight) {
    carried_ *= std::exp((last_s_ - at_s) / lasting_s_);
    variance_ += weight * (weight + 2 * carried_);
    carried_ += weight;
    last_s_ = at_s;
  }
  double variance() const { return variance_; }

 private:
  double lasting_s_;
  double last_s_ = 0, carried_ = 0, variance_ = 0;
};

// A contender in a burst, as it is planned.
struct Turn {
  size_t contender = 0;
  double lead_s = 0, sample_s = 0;
  int64_t samples = 0;
};

// Mean over pairs of the variance of d when `rounds` rounds of these bursts alternate in random order, by
// twice the sample variance of the contenders' means. Spikes count as far as more than a quarter of the
// bursts have some.
double variance_of_d(const Noise& noise, std::vector<Turn> turns, int64_t rounds, size_t contenders) {
  const auto k = static_cast<double>(turns.size());
  std::mt19937_64 random(1);
  double total = 0;
  for (size_t p = 0; p < noise.lasting_s.size(); ++p) {
    if (noise.machine[p] + noise.process[p] <= 0) continue;
    std::vector<WeightedState> own(contenders, WeightedState(noise.lasting_s[p]));
    WeightedState together(noise.lasting_s[p]);
    double at_s = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      std::shuffle(turns.begin(), turns.end(), random);
      for (const Turn& turn : turns) {
        at_s += turn.lead_s;
        const double weight = 1 / static_cast<double>(rounds * turn.samples);
        for (int64_t i = 0; i < turn.samples; ++i, at_s += turn.sample_s) {
          own[turn.contender].add(at_s + turn.sample_s / 2, weight);
          together.add(at_s + turn.sample_s / 2, weight / k);
        }
      }
    }
    // The machine's state is common, so the mean over pairs of Var(m_a - m_b) is twice the sample variance
    // of the contenders' means m. Processes are independent: their part is 2 Var(m).
    double apart = 0;
    for (const Turn& turn : turns) apart += own[turn.contender].variance();
    total += 2 * noise.process[p] * apart / k;
    total += 2 * noise.machine[p] * (apart - k * together.variance()) / (k - 1);
  }
  for (const Turn& turn : turns) {
    const auto samples = static_cast<double>(turn.samples);
    // Trimming removes the slowest quarter of the bursts: `left` is the share of spiked bursts that
    // remains.
    const double hit = 1 - std::pow(1 - noise.spike_share, samples);
    const double left = hit > kTrimmedBursts ? 1 - kTrimmedBursts / hit : 0;
    const double each = noise.sample + noise.spike_share * noise.spike * left;
    total += 2 * each / (samples * static_cast<double>(rounds)) / k;
  }
  return total;
}

constexpr double kHeatOfPlan = 8;  // seconds of bursts

BurstPlan planned(const Samples& samples, const Noise& noise, const LeadIns& lead_ins, double burst_s) {
  BurstPlan plan = {.burst_s = burst_s, .steps = std::vector<int64_t>(samples.step_s.size(), 0)};
  std::vector<Turn> turns;
  for (size_t i = 0; i < samples.step_s.size(); ++i) {
    if (!(samples.step_s[i] > 0)) continue;
    plan.steps[i] = counted_steps(samples.step_s[i], burst_s);
    const double counted_s = static_cast<double>(plan.steps[i]) * samples.step_s[i];
    const double lead_s = i < lead_ins.size() ? lead_ins[i] : 0;
    const auto parts = std::max<int64_t>(1, std::llround(counted_s / samples.sampled[i]));
    turns.push_back({i, lead_s, counted_s / static_cast<double>(parts), parts});
    plan.round_s += lead_s + counted_s;
  }
  const auto rounds = std::max<int64_t>(kFewestRounds, std::llround(kHeatOfPlan / plan.round_s));
  plan.variance_s = variance_of_d(noise, std::move(turns), rounds, samples.step_s.size()) *
                    static_cast<double>(rounds) * plan.round_s;
  return plan;
}

}  // namespace

int64_t counted_steps(double step_s, double burst_s) {
  const double least = step_s < kShortStep ? std::ceil(kShortestBurst / step_s) : 1;
  return static_cast<int64_t>(std::max(least, std::round(std::min(burst_s, kLongestBurst) / step_s)));
}

std::optional<BurstPlan> plan_bursts(std::span<const TimedBurst> bursts, const LeadIns& lead_ins) {
  const Samples samples = samples_of(bursts);
  const auto timed =
      std::count_if(samples.step_s.begin(), samples.step_s.end(), [](double s) { return s > 0; });
  if (timed < 2 || samples.all.size() < kFewestSteps) return std::nullopt;
  double fastest_s = kLongestBurst, shortest_s = kLongestBurst;
  for (size_t i = 0; i < samples.step_s.size(); ++i) {
    if (!(samples.step_s[i] > 0)) continue;
    fastest_s = std::min(fastest_s, samples.step_s[i]);
    shortest_s = std::min(shortest_s, samples.sampled[i]);
  }
  const Noise noise = noise_of(samples.all, shortest_s);
  const BurstPlan longest = planned(samples, noise, lead_ins, kLongestBurst);
  BurstPlan best = longest;
  constexpr double kWorthIt = 0.97;  // of the variance: longer bursts need fewer requests
  for (double burst_s = kLongestBurst / 1.4; burst_s > 0.7 * fastest_s; burst_s /= 1.4) {
    const BurstPlan plan = planned(samples, noise, lead_ins, burst_s);
    if (plan.variance_s < kWorthIt * best.variance_s) best = plan;
  }
  best.variance_s_longest = longest.variance_s;
  return best;
}

HeatVariance heat_variance(std::span<const PastHeat> heats) {
  constexpr double kProcess = 0.01, kBurst = 0.07, kLeast = 0.003;  // standard deviations
  constexpr double kPriorHeats = 4;
  constexpr double kPrior = 2 * kProcess * kProcess;
  if (heats.size() < 2) return {kPrior, 2 * kBurst * kBurst};
  const auto n = static_cast<double>(heats.size());
  HeatVariance found;
  std::vector<double> d;
  double within = 0;
  for (const PastHeat& heat : heats) {
    d.push_back(heat.d);
    within += heat.within / n;
    found.round += heat.within * static_cast<double>(heat.rounds) / n;
  }
  const double seen = (n - 1) * (variance(d) - within) + kPriorHeats * kPrior;
  found.restart = std::max(2 * kLeast * kLeast, seen / (n - 1 + kPriorHeats));
  return found;
}

int64_t plan_rounds(const HeatVariance& variance, const HeatCost& cost, double gap, double alpha,
                    int64_t current, double most_s) {
  constexpr double kWorthAChange = 1.25;
  constexpr size_t kMostHeats = 400;
  const auto seconds = [&](int64_t rounds) {
    const double sd = std::sqrt(variance.restart + variance.round / static_cast<double>(rounds));
    size_t heats = 3;
    while (heats < kMostHeats && !(boundary_half_width(heats, alpha) * sd <= gap)) ++heats;
    return static_cast<double>(heats) * (cost.start_s + static_cast<double>(rounds) * cost.round_s);
  };
  const auto most = std::max(kFewestRounds, static_cast<int64_t>(most_s / cost.round_s));
  current = std::clamp(current, kFewestRounds, most);
  int64_t best = current;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rounds = kFewestRounds; rounds <= most; rounds = std::max(rounds + 1, rounds * 5 / 4)) {
    const double needed = seconds(rounds);
    if (needed < least) least = needed, best = rounds;
  }
  return seconds(current) <= kWorthAChange * least ? current : best;
}

}  // namespace bakeoff::stats
