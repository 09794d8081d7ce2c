#pragma once

// What is asked of an explanation, and what one says: plain values.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "explain/rules.h"
#include "explain/subject.h"
#include "table/numbers.h"

namespace bakeoff::explain {

constexpr double kMargin = 0.02;  // a smaller gain or gap counts as 0

struct ExplainJob {
  std::vector<Subject> subjects =
      {};                             // one, or the slower one and the faster one; only name, source and spec
  std::filesystem::path folder = {};  // for logs and records; it exists
  double seconds = 150;               // of all runs together, about
  double alpha = 0.01;                // probability that any statement is wrong
  int processors = 1;
  bool tuning = false;  // try what may make a script faster, whether or not it is suspect
};

enum class Finding {
  kConfirmed,
  kBooked,  // no run confirms it, and the observed run spent much of its time on it
  kNoGain,
  kOpen,
  kFailed,
  kCovered,  // confirmed, and so is a more special cause, or one with the same switch, that explains most of it
  kShared,  // both scripts have it, and the gap is explained without it: it was not tried
};

struct Cause {
  Suspect suspect = {};
  Finding finding = Finding::kOpen;
  // By which factor steps of the script become shorter with the switch thrown: > 1 is a gain.
  std::optional<Estimate> first = {};     // of the first heat alone
  std::optional<Estimate> measured = {};  // of all later heats, which say whether it is confirmed
  bool shared = false;                    // the second script is suspect of the same
  std::optional<Estimate> beyond = {};    // shared: by which factor more than the second script gains
  bool on_top = false;                    // measured with the switches of all causes above thrown, too
  std::optional<Estimate> without = {};   // what all causes together lose if this one is left out
  double later_s = 0;                     // by which its first steps end later with the switch thrown, s
  std::optional<double> losses = {};      // largest relative change of the losses of its first steps
  std::string reason = {};                // kFailed
  bool named() const { return finding == Finding::kConfirmed || finding == Finding::kBooked; }
  // By which factor its steps become shorter: measured, or what is booked.
  double size() const {
    if (finding == Finding::kBooked) return 1 / std::max(0.001, 1 - *suspect.suspicion.booked);
    return of_gap().value;
  }
  // Its part of the gap; only of what is measured.
  const Estimate& of_gap() const { return beyond ? *beyond : *measured; }
};

struct WorkDifference {
  std::string what = {};  // "samples of a step"
  std::string first = {}, second = {};
  bool operator==(const WorkDifference&) const = default;
};

struct Explanation {
  std::vector<Subject> subjects = {};
  std::vector<WorkDifference> work = {};
  std::vector<WorkDifference> environment = {};
  std::optional<Estimate> gap = {};  // time of a sample, first against second
  bool equal = false;                // there is no gap, or none that is worth a cause
  bool early = false;                // the gap is in the first steps alone, which heats do not compare
  // Whether the gap is certain; one that is only seen is told, and what is booked to it.
  bool gap_is_certain() const { return gap && gap->low > 1 + kMargin; }
  std::vector<Remark> remarks = {};
  std::vector<Cause> causes = {};         // all suspects: the confirmed ones first, by gain
  std::optional<Estimate> together = {};  // gain of all confirmed ones together
  // Gain of a copy of the script with the lines that the answer prints, or why it gave none; neither: it was not tried.
  std::optional<Estimate> applied = {};
  std::string applied_failure = {};
  std::optional<Estimate> residual = {};  // gap that is left then
  std::optional<double> losses = {};      // the same between two runs of the script as it is
  // Largest share of the processors' time that others took in a heat; 0 where it could not be read.
  double others = 0;
  int heats = 0;
  double seconds = 0;
  std::vector<std::string> notes = {};
  bool tuned = false;  // ExplainJob::tuning
  // Whether a cause that is named says the same: a special one of it, its general one, another special one of that, or
  // one with the same switch.
  bool told(const Cause& cause) const {
    const std::string key = cause.suspect.rule->key, within = cause.suspect.rule->within;
    return std::ranges::any_of(causes, [&](const Cause& other) {
      const Rule& its = *other.suspect.rule;
      return &other != &cause && other.named() &&
             (cause.suspect.same_switch(other.suspect) || key == its.within || within == its.key ||
              (!within.empty() && within == its.within));
    });
  }
  bool has_booked() const { return std::ranges::count(causes, Finding::kBooked, &Cause::finding) > 0; }
  size_t named() const { return static_cast<size_t>(std::ranges::count_if(causes, &Cause::named)); }
};

}  // namespace bakeoff::explain
