#include "prove/engine.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <cstdlib>

#include "stats/boundary.h"
#include "stats/e_process.h"
#include "stats/level.h"
#include "stats/pair_table.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using stats::Interval;

// By the paired table and the intervals of races (evidence/evidence.h, tabulate(); stats/level.h).
class Tested : public Judge {
 public:
  Tested(Engine engine, double resolution)
      : table_(2, engine == Engine::kTest ? std::nullopt : std::optional<double>(std::log1p(kMargin)),
               engine == Engine::kRaced ? stats::Backup::kOnSigns : stats::Backup::kAlways),
        resolution_(resolution) {}
  void add(const Block& block) override { assert_added(table_.add(heat_of(block))); }
  void watch(const Block& block) override { assert_added(table_.watch(heat_of(block))); }
  Interval interval() const override {
    return stats::Level(table_, kAlpha, {.resolution = resolution_}).of(0, 1);
  }
  bool warned() const override { return table_.signs(0, 1).any(); }

 private:
  // A simulated heat is sound; one that is not would silently weaken the proof.
  static void assert_added(const Status& added) {
    if (!added) std::abort();
  }

  stats::PairTable table_;
  double resolution_;
};

double normal_z() {
  static const double kZ = boost::math::quantile(boost::math::normal(), 1 - kAlpha / 2);
  return kZ;
}

class IidSteps : public Judge {
 public:
  void add(const Block& block) override {
    sum_ += log_ratio(block);
    for (const auto* side : {&block.a, &block.b}) {
      const double mean = stats::mean(*side);
      variance_ += stats::variance(*side) / (mean * mean * static_cast<double>(side->size()));
    }
    ++n_;
  }
  Interval interval() const override {
    const double half = normal_z() * std::sqrt(variance_) / n_;
    return {sum_ / n_ - half, sum_ / n_ + half};
  }

 private:
  double n_ = 0;
  double sum_ = 0;
  double variance_ = 0;
};

class PooledSteps : public Judge {
 public:
  void add(const Block& block) override {
    for (const double ms : block.a) a_.add(std::log(ms));
    for (const double ms : block.b) b_.add(std::log(ms));
  }
  Interval interval() const override {
    const double error = std::sqrt(a_.sd() * a_.sd() / static_cast<double>(a_.count()) +
                                   b_.sd() * b_.sd() / static_cast<double>(b_.count()));
    const double gap = a_.mean() - b_.mean();
    return {gap - normal_z() * error, gap + normal_z() * error};
  }

 private:
  stats::EProcess a_;  // for its running mean and sd
  stats::EProcess b_;
};

// The t e-process on values from which steal has been taken out by a slope of each contender's own: least
// squares within the processes of the heats before.
class OwnSlopes : public Judge {
 public:
  void add(const Block& block) override {
    const double a = a_.value(block.a_bursts, block.a_steal);
    evidence_.add(a - b_.value(block.b_bursts, block.b_steal));
  }
  Interval interval() const override {
    return evidence_.interval_at(stats::boundary_ratio(evidence_.count(), kAlpha));
  }

 private:
  class Side {
   public:
    double value(const std::vector<double>& bursts, const std::vector<double>& steal) {
      const bool known = steal.size() == bursts.size() && !steal.empty();
      const double slope = known && xx_ > 0 ? xy_ / xx_ : 0;
      double log_ms = 0, share = 0;
      for (const double ms : bursts) log_ms += std::log(ms) / static_cast<double>(bursts.size());
      if (!known) return log_ms;
      for (const double one : steal) share += one / static_cast<double>(steal.size());
      for (size_t i = 0; i < bursts.size(); ++i) {
        xx_ += (steal[i] - share) * (steal[i] - share);
        xy_ += (steal[i] - share) * (std::log(bursts[i]) - log_ms);
      }
      return log_ms - slope * share;
    }

   private:
    double xx_ = 0, xy_ = 0;
  };

  Side a_, b_;
  stats::EProcess evidence_;
};

class Peeking : public Judge {
 public:
  void add(const Block& block) override { evidence_.add(log_ratio(block)); }
  Interval interval() const override {
    const size_t n = evidence_.count();
    if (n < 3) return {};
    const boost::math::students_t student(static_cast<double>(n - 1));
    const double half =
        boost::math::quantile(student, 1 - kAlpha / 2) * evidence_.sd() / std::sqrt(static_cast<double>(n));
    return {evidence_.mean() - half, evidence_.mean() + half};
  }

 private:
  stats::EProcess evidence_;
};

}  // namespace

std::unique_ptr<Judge> make_judge(Engine engine, double resolution, Mutant mutant) {
  if (mutant == Mutant::kIid) return std::make_unique<IidSteps>();
  if (mutant == Mutant::kPooled) return std::make_unique<PooledSteps>();
  if (mutant == Mutant::kPeeking) return std::make_unique<Peeking>();
  if (mutant == Mutant::kSlopes) return std::make_unique<OwnSlopes>();
  return std::make_unique<Tested>(engine, resolution);
}

bool decided(stats::Verdict verdict) { return verdict != stats::Verdict::kUndecided; }

bool names_a_winner(stats::Verdict verdict) { return decided(verdict) && !says_same(verdict); }

bool says_same(stats::Verdict verdict) { return verdict == stats::Verdict::kSame; }

Outcome race(const Source& source, double truth, Engine engine, double resolution, int most, Stop stop,
             Mutant mutant) {
  const std::unique_ptr<Judge> judge = make_judge(engine, resolution, mutant);
  Outcome outcome;
  int confirmed = 0;
  const auto look = [&] {
    const stats::Interval interval = judge->interval();
    outcome.verdict = stats::judge(interval, kMargin);
    outcome.covered = outcome.covered && interval.contains(truth);
  };
  for (;;) {
    if (!stop(outcome.verdict)) {
      if (outcome.pairs >= most) break;
      judge->add(source());
      ++outcome.pairs;
    } else {
      if (engine != Engine::kRaced || confirmed >= kConfirmations) break;
      judge->watch(source());
      ++confirmed;
    }
    look();
  }
  outcome.warned = judge->warned();
  return outcome;
}

}  // namespace bakeoff::prove
