#include <fmt/format.h>

#include <cmath>

#include "selftest/selftest.h"
#include "stats/e_process.h"
#include "stats/trimmed.h"

namespace bakeoff {
namespace {

using Outcome = Claim::Outcome;

// The races of identical contenders: each goes on until a look decides, or its budget is spent.
struct Races {
  int wrong = 0, same = 0, undecided = 0;
  size_t pairs = 0;
  int all() const { return wrong + same + undecided; }
};

Races cut_into_races(const std::vector<double>& d) {
  Races races{.pairs = d.size()};
  stats::EProcess evidence;
  for (const double one : d) {
    evidence.add(one);
    const stats::Interval gap = evidence.interval(kSelfTestAlpha);
    const bool wrong = gap.low > 0 || gap.high < 0;
    const bool same = gap.low > -std::log1p(kSelfTestMargin) && gap.high < std::log1p(kSelfTestMargin);
    if (!wrong && !same && evidence.count() < kPairsOfRace) continue;
    ++(wrong ? races.wrong : same ? races.same : races.undecided);
    evidence = {};
  }
  return races;
}

double sd_of(const std::vector<double>& d) { return d.size() < 2 ? 0 : std::sqrt(stats::variance(d)); }

Claim judge_identical(const SelfTestEvidence& evidence) {
  const Races races = cut_into_races(evidence.identical);
  Claim claim{.claim = fmt::format("identical contenders ({}) are not distinguished", evidence.framework),
              .bar = "0 false verdicts"};
  claim.seen = fmt::format(
      "{} false in {} races of up to {} pairs ({} same, {} undecided), {} pairs, sd(d) {:.2f}%", races.wrong,
      races.all(), kPairsOfRace, races.same, races.undecided, races.pairs, 100 * sd_of(evidence.identical));
  if (races.all() > 0) claim.outcome = races.wrong == 0 ? Outcome::kHeld : Outcome::kMissed;
  return claim;
}

// T4: pairs that a gap of this size should take on this machine, at most on average.
double allowed_pairs(double sd, double truth) { return 1.1 * 17.8 * (sd / truth) * (sd / truth) + 5; }

Claim judge_planted(const Planted& planted, double sd) {
  const double truth = std::log1p(1.0 / planted.every);
  const double allowed = allowed_pairs(sd, truth);
  Claim claim{.claim = fmt::format("{:g}% of real extra work is found", 100.0 / planted.every),
              .bar = fmt::format("found, size in the interval; {:.0f} pairs on average", std::ceil(allowed))};
  stats::EProcess evidence;
  for (const double d : planted.d) evidence.add(d);
  const stats::Interval gap = evidence.interval(kSelfTestAlpha);
  const auto pairs = pairs_to_decide(planted.d, kSelfTestAlpha);
  const bool covered = gap.low <= truth && truth <= gap.high;
  if (planted.d.empty()) {
    claim.seen = "no block was measured";
  } else if (pairs && evidence.mean() > 0) {
    claim.seen =
        fmt::format("{} pairs: {:+.2f}% ({:+.2f}% to {:+.2f}%)", *pairs, 100 * std::expm1(evidence.mean()),
                    100 * std::expm1(gap.low), 100 * std::expm1(gap.high));
    claim.outcome = covered ? Outcome::kHeld : Outcome::kMissed;
  } else {
    claim.seen = fmt::format("undecided after {} pairs: {:+.2f}%", planted.d.size(),
                             100 * std::expm1(evidence.mean()));
    // A single run may take longer than the average; the time may be too short.
    if ((pairs && evidence.mean() < 0) || static_cast<double>(planted.d.size()) > 2 * allowed)
      claim.outcome = Outcome::kMissed;
  }
  return claim;
}

Claim judge_barrier(const BarrierCase& one) {
  Claim claim{.claim = one.missing ? "a missing barrier is caught: " + one.what
                                   : "a barrier that is there is not doubted: " + one.what,
              .bar = one.missing ? "caught" : "not accused",
              .seen = one.outcome.empty() ? "no rule broken" : one.outcome};
  const bool accused = one.outcome.starts_with("answers before");
  claim.outcome =
      one.missing == accused && (one.missing || one.outcome.empty()) ? Outcome::kHeld : Outcome::kMissed;
  return claim;
}

Claim judge_host(const HostTally& host) {
  const auto refusal = host.refusal({});
  Claim claim{.claim = "this machine was quiet enough to judge by",
              .bar = "at most half of the rounds disturbed"};
  claim.seen = fmt::format("{} of {} rounds disturbed, {} run again{}", host.busy, host.judged, host.reruns,
                           host.worst.empty() ? "" : "; for example: " + host.worst);
  if (host.judged > 0) claim.outcome = refusal ? Outcome::kMissed : Outcome::kHeld;
  return claim;
}

}  // namespace

int races_finished(const std::vector<double>& identical) { return cut_into_races(identical).all(); }

std::optional<size_t> pairs_to_decide(const std::vector<double>& d, double alpha) {
  stats::EProcess evidence;
  for (const double one : d) {
    evidence.add(one);
    if (evidence.log_e(0) >= std::log(1 / alpha)) return evidence.count();
  }
  return std::nullopt;
}

std::vector<Claim> judge(const SelfTestEvidence& evidence) {
  std::vector<Claim> claims = {judge_identical(evidence)};
  for (const Planted& planted : evidence.planted)
    claims.push_back(judge_planted(planted, sd_of(evidence.identical)));
  for (const BarrierCase& one : evidence.barriers) claims.push_back(judge_barrier(one));
  if (evidence.barriers.empty())
    claims.push_back({.claim = "a missing barrier is caught", .bar = "caught", .seen = evidence.no_barriers});
  claims.push_back(judge_host(evidence.host));
  return claims;
}

}  // namespace bakeoff
