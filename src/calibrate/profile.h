#pragma once

// What `bakeoff calibrate` found out about a machine: how far identical contenders are apart under each
// control (records/controls.h), which controls bring them closer, and what a race therefore takes. One JSON file,
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
  Controls controls = {};      // all of them, not only what the name says
  std::vector<double> d = {};  // log ratio of the two workers, a value a block
  std::string against = {};    // name of what it was held against; empty: nothing
  double p = 1;                // p_narrower of stats/spread.h
  bool kept = false;
  std::string why = {};  // in words: kept, not kept, not tried
  stats::Spread spread() const { return stats::spread_about_zero(d); }
  bool operator==(const Measured&) const = default;
};

struct Profile {
  int version = kProfileVersion;
  std::string bakeoff_version = {};
  std::string measured = {};  // UTC
  Host host = {};
  std::string framework = {};  // "torch"; "kernel": the built-in one
  std::string work = {};       // "mnist_cnn, batch 128"
  double minutes = 0;          // that it took
  bool complete = false;       // false: interrupted
  std::vector<Measured> entries = {};
  Controls kept = {};  // what `run` sets where a recipe says nothing; its thread count is never taken over
  // Of the kept controls, standard deviations as fractions (evidence/variance.h).
  std::optional<double> processes_sd = {}, bursts_sd = {}, steps_sd = {};
  std::optional<int64_t> cheapest_bursts = {};
  double start_s = 0, burst_s = 0;  // one worker's start up to the bursts, one burst
  bool operator==(const Profile&) const = default;
};

std::string to_json(const Profile& profile);
// Errors name `file` and what is wrong; the remedy is to calibrate again.
Result<Profile> profile_from_json(std::string_view text, const std::string& file);

std::filesystem::path profile_file(const std::filesystem::path& home);
// A file that is there, whole, of this machine and of this kernel. Errors name file and remedy.
Result<Profile> load_profile(const std::filesystem::path& file, const Host& here);

// Takes over, in the equalised track, the kept controls that the recipe's [race] does not state, and in both
// tracks the number of bursts that costs least. Gives what was taken, for the record: empty values left out.
Texts take_over(const Profile& profile, recipe::Recipe& recipe);

// One worker's bursts of a block of calibration.
inline constexpr int64_t kCalibrationBursts = 8;
inline constexpr double kCalibrationBurst = 0.2;  // seconds

// The noise that a race on this machine may be promised not to exceed (race.noise_ceiling): twice the
// upper 95% bound of the spread of identical workers under the recipe's controls, 5% at least, and more by
// the square root of how much shorter the race's blocks are than those of calibration. Nothing where the
// profile has no measurement under exactly these controls, or where the built-in kernel stood in for a
// framework: what starting a framework again changes was not measured then.
std::optional<double> promised_ceiling(const Profile& profile, const recipe::Recipe& recipe, size_t allowed);

// What the profile says about a race before it starts.
struct Prediction {
  double sd = 0;              // of d between identical contenders, one heat
  std::string under = {};     // the measurement that sd is from
  int64_t heats_needed = 0;   // to decide a gap of the recipe's margin
  double minutes_needed = 0;  // for them; about
  int64_t heats_held = 0;     // by the budget; about
  int64_t least_heats = 0;    // below which nothing can be decided
  double margin_held = 0;     // the gap that heats_held decide; 0: none
  bool enough() const { return heats_held >= heats_needed; }
  std::string text = {};  // all of it in words
};
// Nothing where the profile has no measurement with the recipe's thread count.
std::optional<Prediction> predict(const Profile& profile, const recipe::Recipe& recipe, size_t allowed);

// An error where by the prediction not even the widest gap can be decided within the budget.
Status check_prediction(const Prediction& prediction, const recipe::Recipe& recipe);

}  // namespace bakeoff
