#pragma once

// Which of many versions made the steps slower. Each probe is a race of one version against the good end, never a
// comparison with stored times; what a search has seen is kept, so that it can be continued.

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/time_budget.h"
#include "regression/gate_race.h"
#include "regression/outcome.h"
#include "stats/bisection.h"

namespace bakeoff::regression {

// Both ends and all between: 0 is the good one, the last is the bad one.
using Versions = std::vector<SideInfo>;

// The two versions, checked out, built and ready to race.
using MakePair = std::function<Result<std::unique_ptr<Pairing>>(size_t base, size_t head)>;

// One probe as it is kept.
struct ProbeRecord {
  size_t position = 0;
  std::string version = {};                   // its name, for people and as a check
  std::optional<stats::ProbeSeen> seen = {};  // absent: skipped
  size_t heats = 0;
  std::string reason = {};  // why it was skipped
  bool operator==(const ProbeRecord&) const = default;
};

struct BisectOutcome {
  Versions versions = {};
  Settings settings = {};        // the budget is that of the whole search
  std::string contender = {};    // which one is searched for
  std::optional<Row> ends = {};  // good against bad
  std::vector<ProbeRecord> probes = {};
  stats::Bisection::Range found = {};
  std::optional<Row> confirmed = {};  // what was found against the last version before it that runs
  size_t parent = 0;                  // which one that is
  std::string stopped = {};           // why the search did not come to its end; empty: it did
  double seconds = 0;
  bool interrupted = false;
};

enum class BisectVerdict { kFound, kNothingToFind, kUndecided };
BisectVerdict verdict(const BisectOutcome& outcome);
int exit_code(const BisectOutcome& outcome);  // 0 found, 1 nothing to find, 3 undecided, 130 interrupted

std::string to_text(const BisectOutcome& outcome, int width);
std::string to_json(const BisectOutcome& outcome);

// Where a search is kept: DIR/bisect.jsonl, a header of the caller's and one line for each finding.
class BisectFile {
 public:
  static Result<BisectFile> create(const std::filesystem::path& folder, const nlohmann::json& header);
  static Result<BisectFile> open(const std::filesystem::path& folder);
  const nlohmann::json& header() const { return header_; }
  // What is known already.
  std::optional<double> shift = {};  // log(bad / good)
  std::string contender = {};        // of which
  std::vector<ProbeRecord> probes = {};
  Status keep_shift(double value, const std::string& of);
  Status keep(const ProbeRecord& probe);

 private:
  Status append(const nlohmann::json& line) const;
  std::filesystem::path file_ = {};
  nlohmann::json header_ = {};
};

// Fills `outcome`, which has versions, settings and contender. The contender is the one that regressed most between
// the ends where none is named. `time`: of the command, which the search ends with.
Status bisect(BisectOutcome& outcome, BisectFile& file, const MakePair& make, const Progress& progress,
              const TimeBudget& time);

}  // namespace bakeoff::regression
