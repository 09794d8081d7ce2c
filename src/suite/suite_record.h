#pragma once

// What a suite keeps: suite.json in its folder, beside one run directory for each recipe.
//
//   runs/quick-20261124-101500/
//     suite.json         which recipes, what became of each
//     01-mlp_small/      a run directory, as `bakeoff run` makes it
//     02-digits_cnn/
//     report.html
//
// Everything else that a suite shows follows from the run directories.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bakeoff::suite {

// kWaiting: its turn did not come. kRunning: it was begun and did not come to its end. kEnded: the race came to its
// end, decided or not. kFailed: it could not be raced, for the reason `failure`.
enum class EntryState { kWaiting, kRunning, kEnded, kFailed };

struct Entry {
  std::string name = {};    // of the recipe, as the table shows it
  std::string recipe = {};  // its file
  std::string folder = {};  // of its run, below the suite's; a plain name
  EntryState state = EntryState::kWaiting;
  std::string failure = {};
  double seconds = 0;     // spent on it so far
  std::string with = {};  // TOML that replaces keys of this recipe, over those of the record's `every`
  bool open() const { return state == EntryState::kWaiting || state == EntryState::kRunning; }
  bool operator==(const Entry&) const = default;
};

// The name of a suite that is no file: recipes on the command line.
inline constexpr const char* kNamedByRecipes = "suite";

struct Record {
  int version = 1;
  std::string name = {};
  std::string file = {};  // of the suite; empty: recipes were named on the command line
  std::string started = {};
  double minutes = 0;  // of all races together; 0: each recipe's own budget
  std::string baseline = {};
  std::string every = {};  // TOML that replaces keys of every recipe
  std::vector<Entry> entries = {};
  std::string study =
      {};  // the published study that the suite replays, as TOML (suite/reproduction.h); empty: none
  bool operator==(const Record&) const = default;
};

std::string to_json(const Record& record);
// Errors name the file. A folder that is no plain name is one: no record leads out of its directory.
Result<Record> record_from_json(std::string_view text, const std::string& file);

Status write(const Record& record, const std::filesystem::path& folder);
Result<Record> read(const std::filesystem::path& folder);

// Error: more recipes than one command races.
Status check_count(size_t recipes, const std::string& file);

// "01-mlp_small": plain names, unique by their number.
std::string folder_name(size_t index, const std::string& recipe);

// Minutes for the next race: what is left of the total, divided among the races that are still to run. Time that
// earlier ones did not need falls to later ones. `least`: no share is smaller.
double share(const Record& record, double least = 0.1);

}  // namespace bakeoff::suite
