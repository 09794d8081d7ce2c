#include "prove/engine.h"

#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "stats/e_process.h"
#include "stats/sign_flip.h"
#include "stats/trimmed.h"

namespace bakeoff::prove {
namespace {

using stats::Interval;

// Critical ratios depend on n alone.
double ratio_of(size_t n) {
  static const std::vector<double> kRatios = [] {
    std::vector<double> all;
    for (size_t i = 0; i <= 600; ++i) all.push_back(stats::critical_ratio(i, kAlpha));
    return all;
  }();
  return n < kRatios.size() ? kRatios[n] : stats::critical_ratio(n, kAlpha);
}

class Tested : public Judge {
 public:
  Tested(bool backup, double resolution)
      : backup_(std::log1p(kMargin)), careful_(backup), step_(resolution) {}
  void add(const Block& block) override {
    const double d = log_ratio(block);
    evidence_.add(d);
    if (careful_) backup_.add(d);
  }
  Interval interval() const override {
    const Interval t = evidence_.interval_at(ratio_of(evidence_.count()), step_);
    return careful_ ? backup_.widen(t, kAlpha) : t;
  }

 private:
  stats::EProcess evidence_;
  stats::SymmetricBackup backup_;
  bool careful_;
  double step_;
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

std::optional<Engine> mutant(std::string_view name) {
  if (name == "iid") return Engine::kIid;
  if (name == "pooled") return Engine::kPooled;
  if (name == "peeking") return Engine::kPeeking;
  return std::nullopt;
}

std::unique_ptr<Judge> make_judge(Engine engine, double resolution) {
  if (engine == Engine::kIid) return std::make_unique<IidSteps>();
  if (engine == Engine::kPooled) return std::make_unique<PooledSteps>();
  if (engine == Engine::kPeeking) return std::make_unique<Peeking>();
  return std::make_unique<Tested>(engine == Engine::kBackup, resolution);
}

bool decided(stats::Verdict verdict) { return verdict != stats::Verdict::kUndecided; }

bool names_a_winner(stats::Verdict verdict) { return decided(verdict) && !says_same(verdict); }

bool says_same(stats::Verdict verdict) { return verdict == stats::Verdict::kSame; }

Outcome race(const Source& source, double truth, Engine engine, double resolution, int most, Stop stop) {
  const std::unique_ptr<Judge> judge = make_judge(engine, resolution);
  Outcome outcome;
  while (outcome.pairs < most && !stop(outcome.verdict)) {
    judge->add(source());
    ++outcome.pairs;
    const stats::Interval interval = judge->interval();
    outcome.verdict = stats::judge(interval, kMargin);
    outcome.covered = outcome.covered && interval.contains(truth);
  }
  return outcome;
}

}  // namespace bakeoff::prove
