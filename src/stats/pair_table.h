#pragma once

// The paired evidence of a race, accumulated heat by heat.
//
//   PairTable table(contenders);
//   CHECK_OK(table.add({{4.31, std::nullopt, 4.36}}));   // contender 1 was not in this heat
//   Race race = race_state(table, options);             // stats/ranking.h
//
// A heat is one block of fresh processes on one CPU set, with alternating bursts. An effect of the heat on
// all its members (clock speed, other processes) cancels in every difference. So two contenders have one
// paired d for each heat in which both took part, and contenders that never met have no interval.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "stats/e_process.h"
#include "stats/node_intervals.h"
#include "stats/sign_flip.h"
#include "stats/signs.h"

namespace bakeoff::stats {

// One heat; index = contender. Empty if a contender did not take part or its worker died: then its pairs get
// no value.
struct HeatResult {
  std::vector<std::optional<double>> log_ms;  // HeatMeasure::log_ms of stats/heat_value.h
  // Share of processor time, 0 to 1, that the hypervisor took during the heat's bursts; empty: unknown.
  std::optional<double> steal = {};
  int node = 0;          // number of the machine that ran it, where a race has several
  bool promised = true;  // whether RankingOptions::ceiling applies to this heat (stats/ranking.h)
  // HeatMeasure::log_mean_ms, of the same contenders as log_ms; no element: stalls are unknown.
  std::vector<std::optional<double>> log_mean_ms = {};
  // HeatMeasure::variance_high(), with which a promise applies. An empty element: no promise applies to its
  // pairs in this heat. No element: 0, so that a promise has to cover the noise of bursts too.
  std::vector<std::optional<double>> variance = {};
  bool operator==(const HeatResult&) const = default;
};

// When the sign-flip backup (stats/sign_flip.h) must agree with a verdict.
enum class Backup {
  kAlways,   // more expensive, but valid for any symmetric noise
  kOnSigns,  // for a pair, from the first heat on whose data show a sign (stats/signs.h): races use this
};

// A heat of a pair to which a promise applies.
struct PromisedHeat {
  double d = 0;
  double variance = 0;  // of d, as the heat's own bursts show it
  bool operator==(const PromisedHeat&) const = default;
};

// The difference of the stalls of a pair (HeatMeasure::stalls of stats/heat_value.h): how much more of
// a's than of b's time is work that falls into few bursts; mean of the heats in which both took part.
struct StallGap {
  size_t heats = 0;
  double gap = 0;         // log(a / b) by means minus log(a / b) by the quicker bursts
  double half_width = 0;  // of its 80% interval (Student's t, this look alone); infinite below two heats
  bool decides = false;   // the mean decides between the two: the interval lies beyond what matters
  bool operator==(const StallGap&) const = default;
};

// Of epsilon: a difference of stalls beyond this lets the mean decide.
inline constexpr double kStallsThatMatter = 0.25;

class PairTable {
 public:
  // With `epsilon` (log1p of the margin of the verdicts), intervals derived from this table need the
  // agreement of the backup, as `backup` says, and stalls are compared: where those of a pair differ by more
  // than epsilon / 4, its d is that of the means, and else that of the quicker bursts. Which one decides
  // may change from heat to heat, so each has its share of alpha (stats/level.h). Without epsilon intervals
  // rest on the t e-process of the quicker bursts alone.
  explicit PairTable(size_t contenders, std::optional<double> epsilon = std::nullopt,
                     Backup backup = Backup::kAlways);

  // Adds a heat that is no evidence (a confirmation heat, stats/racing.h) but may show a sign: then the
  // verdict that it was to confirm needs the agreement of the backup. Errors as in add().
  Status watch(const HeatResult& heat);

  // Says that the contender never took part and never will (it was dropped before its first heat had a
  // value). There is no statement about it, so its pairs get no share of alpha (stats/ranking.h).
  void leave_out(size_t contender) { left_out_[contender] = true; }
  bool left_out(size_t contender) const { return left_out_[contender]; }

  // O(members^2). Error, and nothing is added: the heat has another number of contenders, or a time that is
  // not finite. A heat with fewer than two members is accepted and changes nothing.
  Status add(const HeatResult& heat);

  size_t contenders() const { return heats_.size(); }
  // Number of heats in which the contender met at least one other.
  size_t heats(size_t contender) const { return heats_[contender]; }

  bool compares_stalls() const { return epsilon_.has_value(); }
  StallGap stalls(size_t a, size_t b) const;
  bool mean_decides(size_t a, size_t b) const { return mean_decides_[slot(std::min(a, b), std::max(a, b))]; }

  // For a != b and d = log(a / b), of what decides between the two: the number of heats in which both took
  // part, and the mean of d.
  size_t met(size_t a, size_t b) const { return pairs_[slot(std::min(a, b), std::max(a, b))].size(); }
  double gap(size_t a, size_t b) const;
  // What decides between a and b, after all heats so far: of d = log(low / high) by index. met(a, b) > 0.
  const EProcess& seen(size_t a, size_t b) const { return looks(std::min(a, b), std::max(a, b)).back(); }
  // The heats of a pair to which a promised ceiling applies, of d = log(low / high) by index.
  const std::vector<PromisedHeat>& promised(size_t a, size_t b) const {
    return promised_[slot(std::min(a, b), std::max(a, b))];
  }
  // Whether an interval of some look may exclude 0: cheaper than interval(), for the many pairs that are
  // alike.
  bool may_differ(size_t a, size_t b, std::span<const double> ratios) const;
  // What the confidence intervals of d after each heat have in common, as they hold together: after n heats
  // with ratio = ratios[n] (boundary_ratio of stats/boundary.h; more than met(a, b) elements). The last one
  // alone if they have nothing in common, which has probability below alpha.
  Interval interval(size_t a, size_t b, std::span<const double> ratios, double resolution = 0) const;
  // The part of the interval `d` of a against b that the backup confirms at level alpha; `d` itself if none
  // is needed.
  Interval confirmed(size_t a, size_t b, const Interval& d, double alpha) const;
  // `d` widened by what machines differ by (stats/node_intervals.h): of these nodes, once their heats show that they
  // differ; of their kind always.
  Interval with_nodes(size_t a, size_t b, const Interval& d, double alpha, About about) const;

  // Signs that the heats of this pair have shown so far, of d = log(low / high) by index; always empty
  // unless the backup waits for signs.
  Signs signs(size_t a, size_t b) const;

  // Least-squares estimates of the contenders in log_ms = heat + contender + noise, with sum 0: one scale
  // for contenders that ran in different heats. It chooses a leader and an order and decides nothing. Empty
  // for contenders outside the largest set that is linked by common heats (of equally large sets, the one
  // with the lowest index). O(contenders^2) per step of conjugate gradients; few steps are needed.
  std::vector<std::optional<double>> effects() const;

  bool operator==(const PairTable&) const = default;

 private:
  using Looks = std::vector<EProcess>;  // after each heat
  // What decides between a and b, a < b.
  const Looks& looks(size_t a, size_t b) const {
    return mean_decides_[slot(a, b)] ? means_[slot(a, b)] : pairs_[slot(a, b)];
  }
  void add_pair(const HeatResult& heat, size_t a, size_t b);      // a < b
  void add_promised(const HeatResult& heat, size_t a, size_t b);  // a < b
  static size_t slot(size_t low, size_t high) { return high * (high - 1) / 2 + low; }
  // Members of a heat; error as in add().
  Result<std::vector<size_t>> members_of(const HeatResult& heat) const;
  void look_for_signs(const HeatResult& heat, size_t a, size_t b);
  std::vector<bool> largest_linked_set() const;

  // The heats of one pair, and the signs in them.
  struct Watched {
    std::vector<double> d;
    std::vector<int> node;
    std::vector<std::optional<double>> steal;
    Signs signs;
    bool operator==(const Watched&) const = default;
  };

  // The heats of one pair that are evidence.
  struct OnNodes {
    std::vector<int> node;
    std::vector<double> d, mean_d;  // by the quicker bursts; by the means, of the heats that have them
    bool operator==(const OnNodes&) const = default;
  };

  std::vector<size_t> heats_;
  std::vector<Looks> pairs_;       // slot(a, b), a < b: d = log(a / b)
  std::vector<Looks> means_;       // the same slots: d of the means; heats without them are missing
  std::vector<EProcess> stalls_;   // the same slots: their difference
  std::vector<OnNodes> on_nodes_;  // the same slots
  std::vector<std::vector<PromisedHeat>> promised_;  // the same slots
  std::vector<bool> mean_decides_;                   // the same slots
  std::optional<double> epsilon_;
  std::vector<SymmetricBackup> backups_;       // the same slots; empty: none
  std::vector<SymmetricBackup> mean_backups_;  // the same, of the means
  std::vector<Watched> watched_;               // the same slots; empty: the backup always has to agree
  std::vector<bool> left_out_;
  std::vector<double> laplacian_;  // normal equations of effects(), contenders x contenders, row-major
  std::vector<double> right_;
};

// Adds all heats. Errors as in add(), with the number of the heat.
Result<PairTable> tabulate(std::span<const HeatResult> heats, size_t contenders);

}  // namespace bakeoff::stats
