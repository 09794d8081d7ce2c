#pragma once

// What tools that draw experiments take of a run: for every contender its settings, and numbers over heats, steps and
// epochs. Pure.
//
//   race/seconds_per_step   over the heats: one fresh process each
//   race/samples_per_second over the heats
//   race/first_step_seconds over the heats: compilation included
//   parity/loss             over the steps of the gate, in float32; parity/referee_loss beside it
//   fit/seed1/loss          over the steps of a whole training; fit/seed1/held_out_loss over its epochs

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "exports/recorded.h"

namespace bakeoff::exports {

struct Point {
  int64_t step = 0;   // of `Series::over`, from 1 on
  double wall_s = 0;  // since 1970, in UTC: when it was measured, by the record that holds it
  double value = 0;   // finite
  bool operator==(const Point&) const = default;
};

struct Series {
  std::string tag = {};
  std::string over = {};  // "heat", "step", "epoch"
  std::vector<Point> points = {};
  bool operator==(const Series&) const = default;
};

struct Tracked {
  std::string contender = {};
  bool failed = false;                               // it is not ranked
  std::string reason = {};                           // why it is not
  std::map<std::string, std::string> settings = {};  // framework, its version, every setting
  std::map<std::string, double> numbers = {};        // what the run came to: "ms_per_step", "ratio", ...
  std::vector<Series> series = {};
};

struct Experiment {
  std::string name = {};  // of the recipe
  std::string run = {};   // folder
  double started_s = 0;   // since 1970; 0: not known
  std::string verdict = {};
  std::vector<Tracked> contenders = {};  // ranked ones first
};

Experiment experiment_of(const Recorded& run);

// For the clients of W&B and MLflow (python/bakeoff/_trackers.py): the same names as above.
nlohmann::ordered_json to_json(const Experiment& experiment);

// "2026-11-21T08:00:00Z" as seconds since 1970; 0 where it is no such text.
double seconds_since_1970(const std::string& utc);

}  // namespace bakeoff::exports
