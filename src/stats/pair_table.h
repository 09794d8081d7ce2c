#pragma once

// The paired evidence of a race, accumulated heat by heat.
//
//   PairTable table(contenders);
//   CHECK_OK(table.add({{4.31, std::nullopt, 4.36}}));   // contender 1 sat this heat out
//   Race race = race_state(table, options);             // stats/ranking.h
//
// A heat is one block of fresh processes on one CPU set, bursts alternating. What the heat itself did to all
// its members (clock speed, a neighbour) cancels in every difference, so two contenders have one paired d in
// each heat in which both took part, and contenders that never met are compared by no interval at all.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "stats/e_process.h"
#include "stats/sign_flip.h"

namespace bakeoff::stats {

// One heat: log of each contender's top-trimmed mean step time in ms (log_trimmed_mean of stats/trimmed.h);
// index = contender. Empty where a contender did not take part or its worker died: that pair is void.
struct HeatResult {
  std::vector<std::optional<double>> log_ms;
  bool promised = true;  // whether RankingOptions::ceiling speaks of this heat (stats/ranking.h)
  bool operator==(const HeatResult&) const = default;
};

class PairTable {
 public:
  // With `epsilon` (log1p of the margin of the verdicts) every interval needs the sign-flip backup's consent
  // (stats/sign_flip.h), in what is derived from this table: dearer, but sound for any symmetric noise.
  explicit PairTable(size_t contenders, std::optional<double> epsilon = std::nullopt);

  // O(members^2). Error, and nothing added, when the heat has another number of contenders or a time that is
  // not finite. A heat with fewer than two members is accepted and changes nothing.
  Status add(const HeatResult& heat);

  size_t contenders() const { return heats_.size(); }
  // Heats in which the contender met at least one other.
  size_t heats(size_t contender) const { return heats_[contender]; }

  // For a != b, d = log(a / b): the number of heats both took part in, the mean of d, and its confidence
  // interval with ratio = critical_ratio(met(a, b), alpha).
  size_t met(size_t a, size_t b) const { return evidence(a, b).count(); }
  double gap(size_t a, size_t b) const;
  // The same of the heats alone that a promised ceiling speaks of.
  size_t promised(size_t a, size_t b) const { return promised_[a < b ? slot(a, b) : slot(b, a)].count(); }
  double promised_gap(size_t a, size_t b) const;
  Interval interval(size_t a, size_t b, double ratio, double resolution = 0) const;
  // `d` of a against b as far as the backup confirms it at level alpha; `d` itself without a backup.
  Interval confirmed(size_t a, size_t b, const Interval& d, double alpha) const;

  // Least-squares estimates of the contenders in log_ms = heat + contender + noise, summing to 0: one scale
  // for contenders that ran in different heats. For choosing a leader and an order, not for deciding. Empty
  // outside the largest set of contenders that are linked by common heats (of equal ones, the one with the
  // lowest index). O(contenders^2) a step of conjugate gradients, of which few are needed.
  std::vector<std::optional<double>> effects() const;

  bool operator==(const PairTable&) const = default;

 private:
  const EProcess& evidence(size_t a, size_t b) const { return pairs_[slot(a < b ? a : b, a < b ? b : a)]; }
  static size_t slot(size_t low, size_t high) { return high * (high - 1) / 2 + low; }
  std::vector<bool> largest_linked_set() const;

  std::vector<size_t> heats_;
  std::vector<EProcess> pairs_;           // slot(a, b), a < b: d = log(a / b)
  std::vector<EProcess> promised_;        // the same slots: of promised heats
  std::vector<SymmetricBackup> backups_;  // the same slots; empty: none
  std::vector<double> laplacian_;         // normal equations of effects(), contenders x contenders, row-major
  std::vector<double> right_;
};

// All heats at once. Error as in add(), naming the heat.
Result<PairTable> tabulate(std::span<const HeatResult> heats, size_t contenders);

}  // namespace bakeoff::stats
