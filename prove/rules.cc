#include "prove/rules.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <random>
#include <span>

#include "prove/engine.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using Values = std::vector<double>;

struct Sides {
  Values a;
  Values b;
};

double count_of(const Values& values) { return static_cast<double>(values.size()); }
double sd(const Values& values) { return std::sqrt(stats::variance(values)); }
Call sign(double difference) { return difference > 0 ? Call::kASlower : Call::kAFaster; }

// The first `most` steps of one process each.
Sides one_run(const std::vector<Block>& blocks, size_t most) {
  const auto head = [&](const Values& side) {
    return Values(side.begin(), side.begin() + static_cast<std::ptrdiff_t>(std::min(most, side.size())));
  };
  return {head(blocks[0].a), head(blocks[0].b)};
}

// `parts` means of consecutive steps out of each of the first `runs` processes.
Sides means(const std::vector<Block>& blocks, size_t runs, size_t parts) {
  Sides sides;
  for (size_t r = 0; r < std::min(runs, blocks.size()); ++r) {
    for (const auto& [from, to] : {std::pair{&blocks[r].a, &sides.a}, std::pair{&blocks[r].b, &sides.b}}) {
      const std::span<const double> steps(*from);
      const size_t length = std::max<size_t>(1, steps.size() / parts);
      for (size_t p = 0; p < parts && (p + 1) * length <= steps.size(); ++p) {
        to->push_back(stats::mean(steps.subspan(p * length, length)));
      }
    }
  }
  return sides;
}

Call beyond(double ratio, double threshold) {
  if (ratio > 1 + threshold) return Call::kASlower;
  return ratio < 1 / (1 + threshold) ? Call::kAFaster : Call::kNothing;
}

double two_sided_t(double t, double df) {
  if (!std::isfinite(t)) return t == t ? 0 : 1;
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(df), std::abs(t)));
}

double welch_p(const Values& a, const Values& b) {
  const double va = stats::variance(a) / count_of(a);
  const double vb = stats::variance(b) / count_of(b);
  const double df = (va + vb) * (va + vb) / (va * va / (count_of(a) - 1) + vb * vb / (count_of(b) - 1));
  return two_sided_t((stats::mean(a) - stats::mean(b)) / std::sqrt(va + vb), df);
}

double student_p(const Values& a, const Values& b) {
  const double df = count_of(a) + count_of(b) - 2;
  const double pooled =
      ((count_of(a) - 1) * stats::variance(a) + (count_of(b) - 1) * stats::variance(b)) / df;
  return two_sided_t(
      (stats::mean(a) - stats::mean(b)) / std::sqrt(pooled * (1 / count_of(a) + 1 / count_of(b))), df);
}

Call if_significant(double p, double level, const Values& a, const Values& b) {
  return p < level ? sign(stats::mean(a) - stats::mean(b)) : Call::kNothing;
}

Call by_engine(const std::vector<Block>& blocks, Engine engine) {
  size_t next = 0;
  const Outcome outcome = race([&] { return blocks[next++]; }, 0, engine, 0,
                               std::max(1, static_cast<int>(blocks.size()) - kConfirmations), names_a_winner);
  if (!names_a_winner(outcome.verdict)) return Call::kNothing;
  return outcome.verdict == stats::Verdict::kFaster ? Call::kAFaster : Call::kASlower;
}

Call bakeoff(const std::vector<Block>& blocks) { return by_engine(blocks, Engine::kRaced); }
Call bakeoff_backup(const std::vector<Block>& blocks) { return by_engine(blocks, Engine::kBackup); }

Call hundred_steps(const std::vector<Block>& blocks) {
  const Sides run = one_run(blocks, 100);
  return beyond(stats::mean(run.a) / stats::mean(run.b), 0.02);
}

Call mean_of(const std::vector<Block>& blocks, size_t runs) {
  const Sides run = means(blocks, runs, 1);
  return beyond(stats::mean(run.a) / stats::mean(run.b), 0.02);
}
Call mean_of_3(const std::vector<Block>& blocks) { return mean_of(blocks, 3); }
Call mean_of_5(const std::vector<Block>& blocks) { return mean_of(blocks, 5); }

// Samples until their relative standard deviation is below 0.5%, 10 at least.
Values nvbench_samples(const Values& steps) {
  Values samples;
  for (const double ms : steps) {
    samples.push_back(ms);
    if (samples.size() >= 10 && sd(samples) < 0.005 * stats::mean(samples)) break;
  }
  return samples;
}

Call nvbench(const std::vector<Block>& blocks) {
  const Values a = nvbench_samples(blocks[0].a);
  const Values b = nvbench_samples(blocks[0].b);
  const double noise = std::min(sd(a) / stats::mean(a), sd(b) / stats::mean(b));
  const double change = stats::mean(a) / stats::mean(b) - 1;
  return std::abs(change) <= noise ? Call::kNothing : sign(change);
}

Call hyperfine(const std::vector<Block>& blocks) {
  const Sides run = means(blocks, 10, 1);
  const Values& slow = stats::mean(run.a) > stats::mean(run.b) ? run.a : run.b;
  const Values& fast = stats::mean(run.a) > stats::mean(run.b) ? run.b : run.a;
  const double ratio = stats::mean(slow) / stats::mean(fast);
  const double error = ratio * std::hypot(sd(slow) / stats::mean(slow), sd(fast) / stats::mean(fast));
  return ratio - error > 1 ? sign(stats::mean(run.a) - stats::mean(run.b)) : Call::kNothing;
}

Call hyperfine_welch(const std::vector<Block>& blocks) {
  const Sides run = means(blocks, 10, 1);
  return if_significant(welch_p(run.a, run.b), 0.05, run.a, run.b);
}

Call pyperf(const std::vector<Block>& blocks) {
  const Sides run = means(blocks, 20, 3);
  return if_significant(student_p(run.a, run.b), 0.05, run.a, run.b);
}

double resampled_mean(const Values& from, std::mt19937_64& random, double* variance, size_t size) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < size; ++i) {
    const double value = from[random() % from.size()];
    sum += value;
    squares += value * value;
  }
  const double n = static_cast<double>(size);
  if (variance) *variance = (squares - sum * sum / n) / (n - 1);
  return sum / n;
}

// 1,000 resamples for the documented 100,000: p then has a standard error below 0.7% at 5%.
Call criterion(const std::vector<Block>& blocks) {
  const Sides run = one_run(blocks, 100);
  const double va = stats::variance(run.a) / count_of(run.a);
  const double vb = stats::variance(run.b) / count_of(run.b);
  const double t = (stats::mean(run.a) - stats::mean(run.b)) / std::sqrt(va + vb);
  Values pooled = run.a;
  pooled.insert(pooled.end(), run.b.begin(), run.b.end());
  std::mt19937_64 random(1);
  constexpr int kResamples = 1000;
  int below = 0;
  Values changes;
  for (int i = 0; i < kResamples; ++i) {
    double v1 = 0, v2 = 0;
    const double m1 = resampled_mean(pooled, random, &v1, run.a.size());
    const double m2 = resampled_mean(pooled, random, &v2, run.b.size());
    below += (m1 - m2) / std::sqrt(v1 / count_of(run.a) + v2 / count_of(run.b)) < t;
    changes.push_back(resampled_mean(run.a, random, nullptr, run.a.size()) /
                          resampled_mean(run.b, random, nullptr, run.b.size()) -
                      1);
  }
  const double p = 2.0 * std::min(below, kResamples - below) / kResamples;
  if (p >= 0.05) return Call::kNothing;
  if (stats::quantile(changes, 0.025) > 0.01) return Call::kASlower;
  return stats::quantile(changes, 0.975) < -0.01 ? Call::kAFaster : Call::kNothing;
}

Call tango(const std::vector<Block>& blocks) {
  const Sides run = one_run(blocks, 1000);
  Values differences;
  for (size_t i = 0; i < std::min(run.a.size(), run.b.size()); ++i)
    differences.push_back(run.a[i] - run.b[i]);
  const double mean = stats::mean(differences);
  const double z = mean / (sd(differences) / std::sqrt(count_of(differences)));
  return std::abs(z) >= 2.6 && std::abs(mean / stats::mean(run.b)) > 0.005 ? sign(mean) : Call::kNothing;
}

Call jmh(const std::vector<Block>& blocks) {
  const Sides run = means(blocks, 5, 5);
  const auto half = [](const Values& values) {
    const boost::math::students_t student(count_of(values) - 1);
    return boost::math::quantile(student, 1 - 0.0005) * sd(values) / std::sqrt(count_of(values));
  };
  const double gap = stats::mean(run.a) - stats::mean(run.b);
  return std::abs(gap) > half(run.a) + half(run.b) ? sign(gap) : Call::kNothing;
}

double mann_whitney_p(const Values& a, const Values& b) {
  double u = 0;
  for (const double x : a) {
    for (const double y : b) u += x > y ? 1 : x == y ? 0.5 : 0;
  }
  const double n = count_of(a), m = count_of(b);
  const double z = (u - n * m / 2) / std::sqrt(n * m * (n + m + 1) / 12);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), std::abs(z)));
}

Call asv(const std::vector<Block>& blocks, double factor) {
  const Sides run = means(blocks, 2, 10);
  if (mann_whitney_p(run.a, run.b) >= 0.002) return Call::kNothing;
  return beyond(stats::median(run.a) / stats::median(run.b), factor - 1);
}
Call asv_default(const std::vector<Block>& blocks) { return asv(blocks, 1.1); }
Call asv_fine(const std::vector<Block>& blocks) { return asv(blocks, 1.01); }

// Twice the mean distance between the sides less the mean distances within, weighted (Matteson & James 2014).
size_t divide(std::span<const double> values, double& best) {
  const size_t n = values.size();
  size_t at = 0;
  best = 0;
  for (size_t k = 2; k + 2 <= n; ++k) {
    double between = 0, left = 0, right = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) {
        const double distance = std::abs(values[i] - values[j]);
        (j < k ? left : i >= k ? right : between) += distance;
      }
    }
    const double l = static_cast<double>(k), r = static_cast<double>(n - k);
    const double energy = 2 * between / (l * r) - 2 * left / (l * (l - 1)) - 2 * right / (r * (r - 1));
    const double q = l * r / (l + r) * energy;
    if (q > best) {
      best = q;
      at = k;
    }
  }
  return at;
}

// The first change point is tested; no further division is needed to know whether there is any.
Call otava(const std::vector<Block>& blocks) {
  const Sides run = means(blocks, 15, 1);
  Values history = run.b;  // the older version first
  history.insert(history.end(), run.a.begin(), run.a.end());
  double best = 0;
  const size_t at = divide(history, best);
  if (at == 0) return Call::kNothing;
  const Values before(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(at));
  const Values after(history.begin() + static_cast<std::ptrdiff_t>(at), history.end());
  return if_significant(student_p(after, before), 0.001, after, before);
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {"Bakeoff", 45, bakeoff},
      {"Bakeoff with backup", 45, bakeoff_backup},
      {"100 steps after the first, > 2%", 1, hundred_steps},
      {"mean of 3 runs, > 2%", 3, mean_of_3},
      {"mean of 5 runs, > 2%", 5, mean_of_5},
      {"nvbench", 1, nvbench},
      {"hyperfine, ratio +- sd", 10, hyperfine},
      {"hyperfine, Welch script", 10, hyperfine_welch},
      {"pyperf", 20, pyperf},
      {"criterion", 1, criterion},
      {"tango", 1, tango},
      {"JMH", 5, jmh},
      {"asv, factor 1.1", 2, asv_default},
      {"asv, factor 1.01", 2, asv_fine},
      {"Otava, 15 + 15 runs", 15, otava},
  };
  return kRules;
}

}  // namespace bakeoff::prove
