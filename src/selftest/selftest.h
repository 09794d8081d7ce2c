#pragma once

// `bakeoff selftest`: races on this machine whose truth is known, through the very heats, rules and
// statistics of `bakeoff run`. Identical contenders must not be told apart; a planted slowdown of real extra
// work must be found, with its size in the interval; a missing completion barrier must be caught, and an
// honest worker of the same framework must not be accused.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evidence/host_rounds.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "records/watch.h"

namespace bakeoff {

// Names of those that can race against themselves; in the first `plantable` of them work can be planted.
struct SelfTestNames {
  std::vector<std::string> all = {};
  size_t plantable = 0;
};
SelfTestNames selftest_names();

struct SelfTestOptions {
  double minutes = 8;
  std::string framework = {};         // of selftest_names(); empty: the first that is installed
  std::filesystem::path record = {};  // appended to; empty: nothing is kept
  bool identical_only = false;        // nothing is planted, and shorter blocks: more races in the time
  std::filesystem::path folder = {};  // for scripts and logs: empty or new
};

// What was measured. d: log of the ratio of step times, one a block.
struct Planted {
  int every = 0;  // one step in so many was done twice: the truth is log(1 + 1/every)
  std::vector<double> d = {};
};
struct BarrierCase {
  std::string what = {};     // "jax, loss read late"
  bool missing = false;      // the barrier
  std::string outcome = {};  // the rule it broke, in the lab's words; empty: none
};
struct SelfTestEvidence {
  std::string framework = {};
  std::vector<double> identical = {};  // d of two identical contenders
  std::vector<Planted> planted = {};
  std::vector<BarrierCase> barriers = {};
  std::string no_barriers = {};  // why there are none
  HostTally host = {};
};

// A line of the table.
struct Claim {
  enum class Outcome { kHeld, kMissed, kNotTried };
  std::string claim = {}, bar = {}, seen = {};
  Outcome outcome = Outcome::kNotTried;
  bool operator==(const Claim&) const = default;
};

inline constexpr double kSelfTestMargin = 0.03;
inline constexpr double kSelfTestAlpha = 0.01;
inline constexpr size_t kPairsOfRace = 8;  // the budget of a race between identical contenders

// Pure: the table from the evidence. Identical contenders race again and again, each race ending with a look
// that decides, or after kPairsOfRace pairs: the blocks are cut into races in the order in which they were
// measured.
std::vector<Claim> judge(const SelfTestEvidence& evidence);

// How many of these races the blocks are enough for.
int races_finished(const std::vector<double>& identical);

// How many pairs a look after every pair takes to tell d from 0; nothing: all of them do not.
std::optional<size_t> pairs_to_decide(const std::vector<double>& d, double alpha);

// One block of two identical contenders as prove/blocks.h reads it: ms of each step ("a", "b"), ms per step
// of each burst after warm-up ("a_bursts", "b_bursts").
std::string block_line(const Trial& a, const Trial& b);

Result<SelfTestEvidence> selftest(const SelfTestOptions& options, const Interpreters& interpreters,
                                  const Progress& progress, const Watch& watch);

}  // namespace bakeoff
