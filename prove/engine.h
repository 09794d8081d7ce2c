#pragma once

// What turns blocks into an interval of d = log(a / b): Bakeoff's, and the mutants that stand in its place.

#include <memory>
#include <optional>

#include "prove/blocks.h"
#include "stats/interval.h"
#include "stats/verdict.h"

namespace bakeoff::prove {

inline constexpr double kAlpha = 0.01;
inline constexpr double kMargin = 0.02;

enum class Engine {
  kRaced,   // as in a race: the t e-process, and the sign-flip backup once the pair's data show a sign
  kTest,    // the t e-process alone
  kBackup,  // the t e-process and always the sign-flip backup
};

class Judge {
 public:
  virtual ~Judge() = default;
  virtual void add(const Block& block) = 0;
  virtual stats::Interval interval() const = 0;
  // A heat of the confirmation: no evidence, but it may show a sign.
  virtual void watch(const Block&) {}
  // The data have shown a sign (stats/signs.h).
  virtual bool warned() const { return false; }
};
// resolution: see stats/e_process.h. `mutant`: of those in the place of the judge; others change nothing.
std::unique_ptr<Judge> make_judge(Engine engine, double resolution = 0, Mutant mutant = Mutant::kNone);

struct Outcome {
  stats::Verdict verdict = stats::Verdict::kUndecided;
  int pairs = 0;
  bool covered = true;  // the true d, at every look
  bool warned = false;
};
using Stop = bool (*)(stats::Verdict);
bool decided(stats::Verdict verdict);
bool names_a_winner(stats::Verdict verdict);
bool says_same(stats::Verdict verdict);

// Looks after every pair, until `stop` or `most` pairs; then, as raced, up to kConfirmations fresh ones that
// may show a sign, upon which the race goes on if the verdict does not stand.
inline constexpr int kConfirmations = 3;
Outcome race(const Source& source, double truth, Engine engine, double resolution, int most, Stop stop,
             Mutant mutant = Mutant::kNone);

}  // namespace bakeoff::prove
