#pragma once

// Two recipes, or one in two environments, as base and head: every contender that both have, proven against its own
// recipe's referee, races against its other version in the heats of one race.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "base/time_budget.h"
#include "plan/plan.h"
#include "records/watch.h"
#include "regression/gate_race.h"

namespace bakeoff::regression {

struct RecipeSide {
  std::string what = {};  // "base", "head", or a version: for messages
  recipe::Recipe recipe = {};
  Interpreters interpreters = {};
};

class RecipePair : public Pairing {
 public:
  // Prepares and proves both in folders of `folder`; contenders for whose proofs `time` is too short are left out, with
  // a note. Errors name the contender that one version cannot run or prove.
  static Result<std::unique_ptr<RecipePair>> make(const RecipeSide& base, const RecipeSide& head,
                                                  const std::filesystem::path& folder,
                                                  const std::filesystem::path& proofs,
                                                  const Progress& progress, const Watch& watch,
                                                  const TimeBudget& time);

  std::vector<Row> rows() const override;
  Result<std::vector<PairHeats>> heat(const std::vector<size_t>& open, int64_t rounds,
                                      double left_s) override;
  double round_s(const std::vector<size_t>& open) const override;
  std::string per() const override { return "step"; }
  std::vector<std::string> notes() const override { return notes_; }
  std::string file = {};  // of the rows

 private:
  explicit RecipePair(Plan plan) : plan_(std::move(plan)) {}
  Result<std::vector<PairHeats>> part(const std::vector<size_t>& open, int64_t rounds, double left_s);

  Plan plan_;  // of head, whose lanes are those of both versions: base and head of each contender in turn
  std::vector<Row> contenders_ = {};  // without their file
  std::vector<std::string> notes_ = {};
  Watch watch_ = {};
  double round_s_ = 0.6;  // of one contender, as the last heat had it
  int number_ = 0;        // of the last heat
};

}  // namespace bakeoff::regression
