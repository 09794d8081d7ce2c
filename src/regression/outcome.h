#pragma once

// What a gate found: plain values, and their JSON.

#include <optional>
#include <string>
#include <vector>

#include "regression/metric.h"
#include "stats/regression.h"
#include "table/numbers.h"

namespace bakeoff::regression {

// One of the two versions.
struct SideInfo {
  std::string name = {};    // as the user named it: "main", "old.py"
  std::string detail = {};  // "1a2b3c4 Faster loader"; empty: nothing more is known
  bool operator==(const SideInfo&) const = default;
};

// One contender in both versions.
struct Row {
  std::string contender = {};  // its id
  std::string name = {};       // in sentences: "Keras on TensorFlow (jit_compile)"; a script's is its file
  std::string file = {};       // for annotations; relative to the repository, where it lies in one
  stats::Change change = stats::Change::kUndecided;
  stats::NextStep::What end = stats::NextStep::What::kRunHeat;
  stats::GateOutlook outlook = {};
  Estimate ratio = {};              // head / base; infinite ends are not known
  double base_ms = 0, head_ms = 0;  // median over the heats; with a metric its figures
  size_t heats = 0;
  double noise = 0;  // standard deviation of log(head / base) from heat to heat
  double alpha = 0;  // of this row
};

struct Settings {
  double margin = 0.02;
  double alpha = 0.01;  // of all rows together
  double budget_s = 600;
};

struct Outcome {
  SideInfo base = {}, head = {};
  std::string target = {};            // "train.py"
  std::string per = {};               // what a time is of: "sample", "step", "run"
  std::optional<Metric> metric = {};  // what is compared in place of times
  Settings settings = {};
  std::vector<Row> rows = {};
  std::vector<std::string> notes = {};  // what differs beside the time, what disturbed
  double seconds = 0;                   // of the race
  bool interrupted = false;
};

enum class Verdict { kNone, kRegression, kUndecided };
// A regression of one contender is one of all; undecided if any of the others is.
Verdict verdict(const Outcome& outcome);
// 0 no regression, 1 regression, 3 undecided, 130 interrupted.
int exit_code(const Outcome& outcome);

std::string to_json(const Outcome& outcome);

// "REGRESSION: torch takes 1.052 times as long (at least 1.031)."
std::string sentence(const Row& row, const Outcome& outcome);
// "12.3 ms"; with a metric the figure alone.
std::string shown(double ms, const Outcome& outcome);
// Why an undecided row is so, and what decides it.
std::string what_decides(const Row& row, const Outcome& outcome);

}  // namespace bakeoff::regression
