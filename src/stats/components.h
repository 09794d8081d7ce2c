#pragma once

// Components of variance: the log of a step time is modelled as
//
//   y[heat, contender, burst, step] = mu[contender] + H[heat] + P[heat, contender] + B[burst] + e[step]
//
// with one fresh process per contender and heat. H is the state of the machine, equal for all members of a
// heat, so it cancels in every paired difference. P is what restarting the process changes (addresses, page
// colours, placement of threads), B what differs between bursts of one process, e what differs between
// single steps.
//
// Method of moments (Searle, Casella & McCulloch 1992, ch. 3 and 5; Henderson's method I), unbiased for any
// unbalanced design: every sum of squares is set equal to its expectation, beginning with e.
//
//   e:  sum (s_k - 1) v_k = sum (s_k - 1) E
//   B:  sum_p SS_p        = sum_p (1 - 1/b_p) sum_k (B + E/n_k)
//   P:  sum_pairs SS_ij   = sum_pairs (1 - 1/m_ij) sum_h (V_ih + V_jh)
//   H:  sum_c SS_c        = sum_c (1 - 1/m_c) sum_h (H + V_ch)
//
//   v_k    variance of the s_k single steps known of burst k
//   SS_p   of the means of the b_p bursts of process p, about the mean of the process
//   SS_ij  of the differences d_h of contenders i and j in their m_ij common heats
//   SS_c   of the m_c heats of contender c, about the mean of the contender
//   V      variance of a process's mean: V = P + sum_k (B + E/n_k) / b^2
//
// n_k: number of steps of burst k; s_k of them are known one by one (none if the framework's marks are not
// usable: then E = 0, and B contains both). A component below zero is set to zero.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bakeoff::stats {

// One burst: log of its mean step time, its number of steps, and the sample variance (divisor n - 1) of the
// logs of `seen` single steps; seen < 2: the variance is unknown.
struct BurstRecord {
  double log_ms = 0;
  int64_t steps = 1;
  int64_t seen = 0;
  double step_variance = 0;
};

// One process: a contender in a heat.
struct ProcessRecord {
  int heat = 0;
  size_t contender = 0;
  std::vector<BurstRecord> bursts = {};  // at least one
};

// Variances of logs: sqrt(process) = 0.03 means that restarting the process changes the result by 3%.
struct Components {
  std::optional<double> heat = {};     // needs a contender in two heats, and `process`
  std::optional<double> process = {};  // needs two contenders that met in two heats
  std::optional<double> burst = {};    // needs a process with two bursts
  std::optional<double> step = {};     // needs steps seen one by one
  int64_t process_degrees = 0;         // degrees of freedom of `process`
  double bursts = 0;                   // mean number of bursts in a process
  double steps = 0;                    // mean number of steps in a burst
  bool operator==(const Components&) const = default;
  // Variance of a paired difference of two contenders if each process runs `bursts` bursts of this->steps
  // steps; infinite `bursts`: the part that no number of steps removes. Nothing if a component is unknown.
  std::optional<double> pair_variance(double bursts) const;
};

// Processes without bursts, and times that are not finite, are left out.
Components components(std::span<const ProcessRecord> processes);

// The number of bursts per process that gives the most precision for its cost (steps_per_block of
// planning.h): sqrt((start / burst_cost) (variance of a burst's mean / process)), at least 1. Costs in one
// unit, > 0. Nothing if a component is unknown or `process` is 0: then one process with many bursts is
// best.
std::optional<int64_t> cheapest_bursts(const Components& found, double start_cost, double burst_cost);

}  // namespace bakeoff::stats
