#pragma once

// Two training scripts, unmodified, as base and head. Their steps are seen as `bakeoff explain` sees them; of scripts
// without such steps, or with too few, whole runs are compared, from the start of Python to the script's end; of scripts
// that end soon the first steps of fresh processes, as many in both.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "explain/heats.h"
#include "explain/subject.h"
#include "regression/gate_race.h"

namespace bakeoff::regression {

struct ScriptSide {
  std::string what = {};  // "base", "head", or a version: for messages
  explain::Subject subject = {};
};

class ScriptPair : public Pairing {
 public:
  // Observes both, but one that was observed before. `folder` for logs. `whole`: compare whole runs in any case.
  // `budget_s`: of all that follows.
  static Result<std::unique_ptr<ScriptPair>> make(ScriptSide base, ScriptSide head,
                                                  const std::filesystem::path& folder, bool whole,
                                                  double budget_s, const Progress& progress);

  std::vector<Row> rows() const override;
  Result<std::vector<PairHeats>> heat(const std::vector<size_t>& open, int64_t rounds,
                                      double left_s) override;
  double round_s(const std::vector<size_t>& open) const override;
  bool whole_runs() const override { return whole_ || fresh_steps_ > 0; }

  std::string per() const override;
  std::vector<std::string> notes() const override;  // other work, other versions, others' load
  std::string file = {};                            // of the row
  // As it was observed, for another pair: it is not observed again.
  const ScriptSide& base() const { return sides_[0]; }

 private:
  ScriptPair() = default;
  bool starts_anew(const explain::Heat& heat);
  ScriptSide sides_[2];
  std::filesystem::path folder_ = {};
  bool whole_ = false;
  int64_t fresh_steps_ = 0;  // explain::HeatOptions::fresh_steps
  int64_t ends_after_ = 0;   // steps of a run, where they are too few for bursts of one process
  double others_ = 0;
  uint64_t seed_ = 1;
};

}  // namespace bakeoff::regression
