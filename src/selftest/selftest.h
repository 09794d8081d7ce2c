#pragma once

// `bakeoff selftest`: races whose truth is known, on this machine, with the same heats, rules and
// statistics as `bakeoff run`. Identical contenders must not be distinguished; a planted slowdown of real
// extra work must be found, with its size inside the interval; a missing completion barrier must be caught;
// and an honest worker of the same framework must not be accused.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evidence/host_rounds.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "records/watch.h"

namespace bakeoff {

// Names of the frameworks that can race against themselves; work can be planted in the first `plantable`.
struct SelfTestNames {
  std::vector<std::string> all = {};
  size_t plantable = 0;
};
SelfTestNames selftest_names();

struct SelfTestOptions {
  double minutes = 8;
  std::string framework = {};         // one of selftest_names(); empty: the first that is installed
  std::filesystem::path record = {};  // file to append blocks to; empty: they are not kept
  bool identical_only = false;  // nothing is planted and blocks are shorter: more races in the same time
  std::filesystem::path folder = {};  // for scripts and logs: empty or new
};
// What was measured. d: log of the ratio of step times, one value for each block.
struct Planted {
  int every = 0;  // every so many steps one is done twice: the true d is log(1 + 1/every)
  std::vector<double> d = {};
};
struct BarrierCase {
  std::string what = {};     // "jax, loss read late"
  bool missing = false;      // the worker has no completion barrier
  std::string outcome = {};  // the rule that it broke, in words; empty: none
};
struct SelfTestEvidence {
  std::string framework = {};
  std::vector<double> identical = {};  // d of two identical contenders
  std::vector<Planted> planted = {};
  std::vector<BarrierCase> barriers = {};
  std::string no_barriers = {};  // why there are no barrier cases
  HostTally host = {};
};

// One row of the table.
struct Claim {
  enum class Outcome { kHeld, kMissed, kNotTried };
  std::string claim = {}, bar = {}, seen = {};
  Outcome outcome = Outcome::kNotTried;
  bool operator==(const Claim&) const = default;
};

inline constexpr double kSelfTestMargin = 0.03;
inline constexpr double kSelfTestAlpha = 0.01;
inline constexpr size_t kPairsOfRace = 8;  // the budget of a race between identical contenders

// The table from the evidence; pure. Identical contenders race again and again; a race ends with a look
// that decides, or after kPairsOfRace pairs. The blocks are divided into races in the order in which they
// were measured.
std::vector<Claim> judge(const SelfTestEvidence& evidence);

// How many complete races the blocks make.
int races_finished(const std::vector<double>& identical);

// How many pairs are needed to distinguish d from 0, with a look after every pair; nothing: all of them do
// not suffice.
std::optional<size_t> pairs_to_decide(const std::vector<double>& d, double alpha);

// One block of two identical contenders, in the format that prove/blocks.h reads: ms of each step ("a",
// "b"), and ms per step of each burst after warm-up ("a_bursts", "b_bursts").
std::string block_line(const Trial& a, const Trial& b);

Result<SelfTestEvidence> selftest(const SelfTestOptions& options, const Interpreters& interpreters,
                                  const Progress& progress, const Watch& watch);

}  // namespace bakeoff
