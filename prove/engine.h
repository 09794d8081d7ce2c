#pragma once

// What turns blocks into an interval of d = log(a / b): Bakeoff's, and three that are wrong, to see that the
// proof notices.

#include <memory>
#include <optional>
#include <string_view>

#include "prove/blocks.h"
#include "stats/interval.h"
#include "stats/verdict.h"

namespace bakeoff::prove {

inline constexpr double kAlpha = 0.01;
inline constexpr double kMargin = 0.02;

enum class Engine {
  kTest,     // the t e-process
  kBackup,   // and the sign-flip backup
  kIid,      // mutant: block means with the standard errors that independent steps would have
  kPooled,   // mutant: Welch's t over all steps of all blocks
  kPeeking,  // mutant: Student's t over blocks, as if each look were the only one
};
// "iid", "pooled", "peeking"; nothing for another word.
std::optional<Engine> mutant(std::string_view name);

class Judge {
 public:
  virtual ~Judge() = default;
  virtual void add(const Block& block) = 0;
  virtual stats::Interval interval() const = 0;
};
// resolution: see stats/e_process.h.
std::unique_ptr<Judge> make_judge(Engine engine, double resolution = 0);

struct Outcome {
  stats::Verdict verdict = stats::Verdict::kUndecided;
  int pairs = 0;
  bool covered = true;  // the true d, at every look
};
using Stop = bool (*)(stats::Verdict);
bool decided(stats::Verdict verdict);
bool names_a_winner(stats::Verdict verdict);
bool says_same(stats::Verdict verdict);

// Looks after every pair, until `stop` or `most` pairs.
Outcome race(const Source& source, double truth, Engine engine, double resolution, int most, Stop stop);

}  // namespace bakeoff::prove
