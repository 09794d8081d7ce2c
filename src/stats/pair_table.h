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
#include "stats/signs.h"

namespace bakeoff::stats {

// One heat: log of each contender's top-trimmed mean step time in ms (log_trimmed_mean of stats/trimmed.h);
// index = contender. Empty where a contender did not take part or its worker died: that pair is void.
struct HeatResult {
  std::vector<std::optional<double>> log_ms;
  // Share of processor time, 0 to 1, that the hypervisor took while the heat's bursts ran; empty: not read.
  std::optional<double> steal = {};
  bool promised = true;  // whether RankingOptions::ceiling speaks of this heat (stats/ranking.h)
  bool operator==(const HeatResult&) const = default;
};

// When the sign-flip backup (stats/sign_flip.h) has to agree.
enum class Backup {
  kAlways,   // dearer, but sound for any symmetric noise
  kOnSigns,  // of a pair from the first heat on whose data show a sign (stats/signs.h): what races use
};

class PairTable {
 public:
  // With `epsilon` (log1p of the margin of the verdicts) the intervals that are derived from this table need
  // the backup's consent, by `backup`. Without it they rest on the t e-process alone.
  explicit PairTable(size_t contenders, std::optional<double> epsilon = std::nullopt,
                     Backup backup = Backup::kAlways);

  // A heat that is no evidence (it measures the winner again, stats/racing.h), but may show a sign: then the
  // verdict that it was to confirm needs the backup's consent after all. Errors as in add().
  Status watch(const HeatResult& heat);

  // The contender never took part and never will (it was dropped before its first heat had a value): no
  // statement about it was or will be made, so no share of alpha is kept for its pairs (stats/ranking.h).
  void leave_out(size_t contender) { left_out_[contender] = true; }
  bool left_out(size_t contender) const { return left_out_[contender]; }

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
  // `d` of a against b as far as the backup confirms it at level alpha; `d` itself where it need not.
  Interval confirmed(size_t a, size_t b, const Interval& d, double alpha) const;

  // What the heats of this pair have shown so far, of d = log(low / high) by index; always empty unless the
  // backup waits for it.
  Signs signs(size_t a, size_t b) const;

  // Least-squares estimates of the contenders in log_ms = heat + contender + noise, summing to 0: one scale
  // for contenders that ran in different heats. For choosing a leader and an order, not for deciding. Empty
  // outside the largest set of contenders that are linked by common heats (of equal ones, the one with the
  // lowest index). O(contenders^2) a step of conjugate gradients, of which few are needed.
  std::vector<std::optional<double>> effects() const;

  bool operator==(const PairTable&) const = default;

 private:
  const EProcess& evidence(size_t a, size_t b) const { return pairs_[slot(a < b ? a : b, a < b ? b : a)]; }
  static size_t slot(size_t low, size_t high) { return high * (high - 1) / 2 + low; }
  // Members of a heat; error as in add().
  Result<std::vector<size_t>> members_of(const HeatResult& heat) const;
  void look_for_signs(const HeatResult& heat, size_t a, size_t b);
  std::vector<bool> largest_linked_set() const;

  // One pair's heats, and what they have shown.
  struct Watched {
    std::vector<double> d;
    std::vector<std::optional<double>> steal;
    Signs signs;
    bool operator==(const Watched&) const = default;
  };

  std::vector<size_t> heats_;
  std::vector<EProcess> pairs_;           // slot(a, b), a < b: d = log(a / b)
  std::vector<EProcess> promised_;        // the same slots: of promised heats
  std::vector<SymmetricBackup> backups_;  // the same slots; empty: none
  std::vector<Watched> watched_;          // the same slots; empty: the backup always has to agree
  std::vector<bool> left_out_;
  std::vector<double> laplacian_;  // normal equations of effects(), contenders x contenders, row-major
  std::vector<double> right_;
};

// All heats at once. Error as in add(), naming the heat.
Result<PairTable> tabulate(std::span<const HeatResult> heats, size_t contenders);

}  // namespace bakeoff::stats
