#pragma once

// A suite carried out: what is to be raced, the races one after another, and the table of what they came to.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"
#include "run/races.h"
#include "suite/suite_record.h"
#include "suite/suite_table.h"
#include "summary/summary.h"

namespace bakeoff::suite {

// What the command line asks for.
struct Request {
  std::vector<std::filesystem::path> what = {};  // recipes, or one suite file
  double minutes = 0;                            // of all races together; 0: as the suite or the recipes say
  std::string baseline = {};                     // id of a contender, in place of the suite's
};

// Adds an entry, by `name`, else by the recipe's own. One whose recipe cannot be read has its reason from the start; the
// error is returned too.
Result<recipe::Recipe> add_entry(Record& record, const std::filesystem::path& recipe,
                                 const std::string& name = "", const std::string& with = "");
// The record of a new suite. A recipe that cannot be read has its reason from the start; it is an error if none can be
// read, or if no recipe has the baseline.
Result<Record> new_record(const Request& request);
// That of a suite that was stopped. What failed is tried again; other minutes replace the suite's, from now on.
Result<Record> resumed_record(const std::filesystem::path& folder, double minutes);

struct SuiteSession {
  Record record;
  std::filesystem::path folder;
  std::string profile;  // as of run::take_profile()
  run::Surroundings with;
  std::unique_ptr<run::Races> races = {};  // null: this machine
  // Told of each race that came to its end, with the folder of its run.
  std::function<Status(const Summary&, const std::filesystem::path&)> ended = {};
};

// Races what has not come to its end. A recipe that fails does not end the others.
Status race_all(SuiteSession& session);
// Seconds that the budgets of what is still to be raced allow; nullopt where one has no limit.
std::optional<double> longest_s(const SuiteSession& session);

// What became of each recipe, by the records in the suite's folder.
std::vector<Input> inputs_of_folder(const Record& record, const std::filesystem::path& folder);
// The table of the runs in the suite's folder, offline. `baseline`: in place of the record's, if not empty.
Result<Table> table_of_folder(const Record& record, const std::filesystem::path& folder,
                              const std::string& baseline);
// Error: no contender has this id.
Status check_baseline(const std::string& baseline, std::vector<std::string> contenders);

// A recipe of a suite, as every command finds recipes, with what the suite replaces, and over it what the entry does.
Result<recipe::Recipe> recipe_of_suite(const std::filesystem::path& file, const std::string& every,
                                       const std::string& with = "");

}  // namespace bakeoff::suite
