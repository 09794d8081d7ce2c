#pragma once

// What `bakeoff calibrate` measured on a machine: how far identical contenders differ under each control
// (records/controls.h), which controls reduce that, and what a race therefore uses. One JSON file,
// $BAKEOFF_HOME/profile.json, that `bakeoff run` reads.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "recipe/recipe.h"
#include "records/controls.h"
#include "records/trial.h"
#include "stats/spread.h"

namespace bakeoff {

inline constexpr int kProfileVersion = 1;

// Identical workers under one set of controls.
struct Measured {
  std::string name = {};       // "tuned allocator"
  Controls controls = {};      // all controls in effect, not only the one in `name`
  std::vector<double> d = {};  // log ratio of the two workers, one value for each block
  std::string against = {};    // name of the measurement that it was compared with; empty: none
  double p = 1;                // p_narrower of stats/spread.h
  bool kept = false;
  std::string why = {};  // the decision in words: kept, not kept, not tried
  stats::Spread spread() const { return stats::spread_about_zero(d); }
  bool operator==(const Measured&) const = default;
};

struct Profile {
  int version = kProfileVersion;
  std::string bakeoff_version = {};
  std::string measured = {};  // UTC
  Host host = {};
  std::string framework = {};  // "torch"; "kernel": the built-in worker
  std::string work = {};       // "mnist_cnn, batch 128"
  double minutes = 0;          // duration of the calibration
  bool complete = false;       // false: interrupted
  std::vector<Measured> entries = {};
  Controls kept = {};  // what `run` sets if a recipe states nothing; never its thread count
  // With the kept controls: standard deviations as fractions (evidence/variance.h).
  std::optional<double> processes_sd = {}, bursts_sd = {}, steps_sd = {};
  std::optional<int64_t> cheapest_bursts = {};
  double start_s = 0, burst_s = 0;  // duration of one worker's start up to its bursts, and of one burst
  bool operator==(const Profile&) const = default;
};

std::string to_json(const Profile& profile);
// Errors name `file` and what is wrong; the remedy is to calibrate again.
Result<Profile> profile_from_json(std::string_view text, const std::string& file);

std::filesystem::path profile_file(const std::filesystem::path& home);
// Loads a complete profile of this machine and this kernel. Errors name file and remedy.
Result<Profile> load_profile(const std::filesystem::path& file, const Host& here);

// Applies the profile to a recipe: in the equalised track, the kept controls that the recipe's [race] does
// not state; in both tracks, the number of bursts that costs least. Returns what was applied, for the
// record, without empty values.
Texts take_over(const Profile& profile, recipe::Recipe& recipe);

// Bursts of one worker in a block of calibration, and their duration.
inline constexpr int64_t kCalibrationBursts = 8;
inline constexpr double kCalibrationBurst = 0.2;  // seconds

// The noise ceiling (race.noise_ceiling) that the profile promises for a race: twice the upper 95% bound of
// the spread of identical workers under the recipe's controls, bursts included, at least 2%. What the race's
// own bursts vary by is added to it there. Nothing if the profile has no measurement under exactly these
// controls, or if the built-in kernel was used: then the effect of restarting a framework was not measured.
std::optional<double> promised_ceiling(const Profile& profile, const recipe::Recipe& recipe, size_t allowed);

// What the profile predicts about a race before it starts. Heats and minutes are approximate.
struct Prediction {
  double sd = 0;              // standard deviation of d between identical contenders in one heat
  std::string under = {};     // name of the measurement that sd comes from
  int64_t heats_needed = 0;   // heats that decide a gap of the recipe's margin
  double minutes_needed = 0;  // duration of these heats
  int64_t heats_held = 0;     // heats that fit into the budget
  int64_t least_heats = 0;    // with fewer heats nothing can be decided
  double margin_held = 0;     // smallest gap that heats_held can decide; 0: none
  bool enough() const { return heats_held >= heats_needed; }
  std::string text = {};  // the prediction in words
};
// Nothing if the profile has no measurement with the recipe's thread count.
std::optional<Prediction> predict(const Profile& profile, const recipe::Recipe& recipe, size_t allowed);

// Error: the prediction says that not even the widest gap can be decided within the budget.
Status check_prediction(const Prediction& prediction, const recipe::Recipe& recipe);

}  // namespace bakeoff
