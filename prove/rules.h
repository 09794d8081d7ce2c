#pragma once

// T12: the rules by which other tools decide that two programs differ, compared with Bakeoff on the same
// blocks. They are written from public documentation. Each rule takes as many blocks as its tool runs by
// default, from the first on. All get the interleaved, randomised blocks of Bakeoff's design, which favours
// them over their own order (all of A, then all of B).
//
//   rule            documented at
//   nvbench         github.com/NVIDIA/nvbench/docs/cli_help.md (--min-samples 10, --max-noise 0.5%), and
//                   scripts/nvbench_compare.py: SAME when |relative difference| <= the smaller noise
//   hyperfine       github.com/sharkdp/hyperfine README (at least 10 runs; "A ran 1.05 +- 0.02
//                   times faster"), scripts/welch_ttest.py (p < 0.05)
//   pyperf          pyperf.readthedocs.io/en/latest/run_benchmark.html (20 processes of 3 values) and
//                   cli.html, compare_to: Student's two-sample, two-tailed t-test, alpha 0.95
//   criterion       bheisler.github.io/criterion.rs/book/analysis.html: 100 samples, bootstrapped t-test at
//                   5%, then the 95% interval of the change against a noise threshold of 1%
//   tango           github.com/bazhenov/tango: iterations in turn; z >= 2.6 and a change above 0.5%
//   JMH             github.com/openjdk/jmh: 5 forks of 5 iterations, score +- error at 99.9%; no overlap
//   asv             asv.readthedocs.io/en/stable/using.html (compare, continuous: --factor 1.1) with
//                   Mann-Whitney's U at p < 0.002
//   Otava           otava.apache.org/docs (Fleming et al. 2023, Hunter): E-divisive means over a history, a
//                   t-test at p < 0.001 instead of permutations

#include <string>
#include <vector>

#include "prove/blocks.h"

namespace bakeoff::prove {

enum class Call { kNothing, kASlower, kAFaster };

struct Rule {
  std::string name;
  int processes = 0;  // started for each contender, at most
  Call (*decide)(const std::vector<Block>& blocks) = nullptr;
};

// Bakeoff's two rules first.
const std::vector<Rule>& rules();
// Blocks that the hungriest rule needs.
inline constexpr int kBlocksOfTrace = 45;

struct Score {
  std::string rule;
  int processes = 0;
  int false_verdicts = 0;  // A/A: any call
  int found_2 = 0;         // a slower by 2%: called slower
  int found_5 = 0;
};

struct Contest {
  std::string noise;
  int traces = 0;  // of each of the three truths
  std::vector<Score> scores;
};

}  // namespace bakeoff::prove
