#pragma once

// Where the variance is: the log of a step time as
//
//   y[heat, contender, burst, step] = mu[contender] + H[heat] + P[heat, contender] + B[burst] + e[step]
//
// with one fresh process per contender and heat. H is the state of the machine, the same for all members of
// a heat: it cancels in every paired difference. P is what starting the process again changes (addresses,
// page colours, thread placement), B what differs between bursts of one process, e a single step.
//
// Method of moments (Searle, Casella & McCulloch 1992, ch. 3 and 5; Henderson's method I), unbiased for any
// unbalanced design: every sum of squares is set equal to its expectation, from the inside out.
//
//   e:  sum (s_k - 1) v_k = sum (s_k - 1) E                        v_k: variance of the s_k steps of burst k
//   B:  sum_p SS_p        = sum_p (1 - 1/b_p) sum_k (B + E/n_k)    SS_p: of burst means about their process
//   P:  sum_pairs SS_ij   = sum_pairs (1 - 1/m_ij) sum_h (V_ih + V_jh)   SS_ij: of differences d_h, m_ij
//   heats
//                           V = P + own, own = sum_k (B + E/n_k)/b^2: the variance of a process's mean
//   H:  sum_c SS_c        = sum_c (1 - 1/m_c) sum_h (H + V_ch)      SS_c: of a contender's heats about its
//   mean
//
// n_k steps lie behind a burst's mean, s_k of them were seen one by one (none where a framework's marks mean
// nothing: then E = 0, and B holds what both did). A component below zero is zero.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bakeoff::stats {

// One burst: log of its mean step time, steps behind it, and the sample variance (divisor n - 1) of the logs
// of `seen` single steps; seen < 2: not known.
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

// Variances of logs: sqrt(process) = 0.03 means that starting anew changes the result by 3%.
struct Components {
  std::optional<double> heat = {};     // needs a contender in two heats, and `process`
  std::optional<double> process = {};  // needs two contenders that met in two heats
  std::optional<double> burst = {};    // needs a process with two bursts
  std::optional<double> step = {};     // needs steps seen one by one
  int64_t process_degrees = 0;         // of freedom behind `process`
  double bursts = 0;                   // a process, on average
  double steps = 0;                    // a burst, on average
  bool operator==(const Components&) const = default;

  // Of a paired difference of two contenders when each process runs `bursts` bursts of this->steps steps;
  // infinite `bursts`: what no number of steps removes. Nothing while a part is unknown.
  std::optional<double> pair_variance(double bursts) const;
};

// Processes without bursts, and times that are not finite, are left out.
Components components(std::span<const ProcessRecord> processes);

// Bursts of one process that cost least for the precision they buy (steps_per_block of planning.h):
// sqrt((start / burst_cost) (variance of a burst's mean / process)), at least 1. Costs in one unit, > 0.
// Nothing while a part is unknown or `process` is 0: then one process with many bursts is best.
std::optional<int64_t> cheapest_bursts(const Components& found, double start_cost, double burst_cost);

}  // namespace bakeoff::stats
