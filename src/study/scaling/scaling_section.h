#pragma once

// What the heats of scaling.h show, and the table of it. Pure functions of the records, but for the link's rate.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/scaling/scaling_trial.h"
#include "study/study.h"
#include "table/numbers.h"

namespace bakeoff {

Study scaling_study();

// Intervals hold the mean of the heats with 95% (Student's t, of logarithms); unbounded below two heats.
struct ScalingRow {
  std::string contender = {};
  int64_t devices = 1, batch = 0;
  int heats = 0;                         // in which it was timed on all devices
  std::optional<double> step_ms = {};    // of all devices that share the batch: geometric mean of the heats
  std::optional<Estimate> strong = {};   // efficiency: how many times as fast as one device, over `devices`
  std::optional<Estimate> weak = {};     // the same of rows a second, where each device has the whole batch
  std::optional<double> silent_ms = {};  // a step without communication
  std::optional<Estimate> communication = {};  // the share of the step that is gone without it; at least 0
  std::optional<double> sent_bytes = {};       // that each device has to send in a step, at least
  std::optional<double> link_ms = {};          // for which the link needs at least this long
  std::string note = {};
  bool operator==(const ScalingRow&) const = default;
};

// Bytes that each of `devices` sends in a step at least: gradients of `parameters` numbers of `dtype` are added up by
// devices that each keep a part, and what they keep is handed to all: 2 (n - 1) / n times the gradients (Patarasuk and
// Yuan, Bandwidth optimal all-reduce algorithms, 2009). Nothing where the dtype is not known.
std::optional<double> least_sent(int64_t parameters, const std::string& dtype, int64_t devices);

// Rows in the order of `contenders`; those without any record are left out. `parameters`: trained numbers; `link`: bytes
// per second from one process to another, 0: not known.
std::vector<ScalingRow> scaling_rows(const std::vector<ScalingTrial>& trials,
                                     const std::vector<std::string>& contenders, int64_t parameters,
                                     double link);

table::Section scaling_section(const std::vector<ScalingRow>& rows);

}  // namespace bakeoff
