#pragma once

// One explanation in the making: which suspects are tried, in which heats, and what these say of them.

#include <map>
#include <string>
#include <vector>

#include "base/progress.h"
#include "explain/explanation.h"
#include "explain/heats.h"
#include "stats/burst_plan.h"

namespace bakeoff::explain {

constexpr double kBusy = 0.1;  // other work's share of the processors: a larger one is said

// Differences of two lanes over heats, log scale.
class Differences {
 public:
  // `processes`: whose restarts add noise to one difference.
  explicit Differences(int processes = 2) : processes_(processes) {}
  // `quiet`: hardly anything else ran beside them.
  void add(const LaneHeat& slower, const LaneHeat& faster, bool quiet = false);
  bool empty() const { return heats_.empty(); }
  size_t heats() const { return heats_.size(); }
  std::optional<Estimate> factor(double alpha) const;

 private:
  int processes_;
  std::vector<stats::PastHeat> heats_ = {};
  double least_ = 0, most_ = 0;  // of one round
  bool quiet_ = true;            // in all heats
  bool apart_ = true;            // all bursts are of processes of their own
  double wild_ = 0;              // error that a burst rarely exceeds, log scale
};

// Judges a cause that the first heat alone confirmed by later heats. If their interval confirms it, the cause
// takes it; if they do not see the gain again, the cause is open; if they say too little, nothing changes.
void measure_again(Cause& cause, const Estimate& later);

// The gap of two lanes in each round: bursts of one less those of the other.
LaneHeat gap_of(const LaneHeat& slower, const LaneHeat& faster);

class Inquiry {
 public:
  // `begin_ns`: when the job's seconds began, on the monotonic clock.
  Inquiry(const ExplainJob& job, Explanation& out, int64_t begin_ns, const Progress& progress);

  // All passes, one after another: suspects alone, those that greater causes hide, those that both scripts have,
  // and what is confirmed together.
  void run();

 private:
  // Heats of one kind: suspects are tried on top of these switches.
  struct Pass {
    Switches base = Switches::object();
    std::map<size_t, Differences> gains = {};   // by cause
    std::map<size_t, Differences> beyond = {};  // the same, less what the second script gains
    Differences left = Differences();           // gap between what is tried and the second script
  };

  void find_causes();
  bool only_observed();
  double processes_s() const;  // of the fewest rounds of both scripts, where each needs fresh processes
  bool time_for_processes() const;
  void confirm();
  void confirm_hidden();
  void confirm_shared();
  void combine();
  bool tells_more(const Cause& special) const;
  bool waits_at(int64_t line) const;
  void book();
  // Changes lines of the first script for a lane, in the copy of its folder. False: it does not run in a copy.
  bool put_lines(Lane& lane, const Changes& changes) const;
  // The script with the lines of these causes changed as the answer prints it; nothing where it prints none.
  std::optional<Lane> changed_copy(const std::vector<Cause*>& causes) const;

  double seconds() const;
  bool quiet() const { return out_.others < kBusy; }
  // Whether each burst is of a process of its own.
  bool apart() const { return out_.subjects[0].whole || ends_after_ > 0; }
  bool pair() const { return out_.subjects.size() > 1; }
  double alpha() const { return job_.alpha / static_cast<double>(2 + 3 * out_.causes.size()); }
  Lane lane(size_t subject, const std::string& name, Switches switches) const;
  // `with_second`: lanes are the first script, the second, and lanes with one switch each; the heat ends as soon
  // as they say enough. Empty: the heat found that first steps of fresh processes must be compared.
  std::vector<LaneHeat> heat(const std::vector<Lane>& lanes, bool with_second = false);
  // Compares first steps of fresh processes from now on, because a script ends after `ends_after` steps.
  void compare_first_steps(int64_t ends_after);
  void compare_growing_steps();
  // The number of first steps of a fresh process that are compared.
  int64_t fresh_steps(double step_s) const;
  // Rounds of a heat of these lanes, and how long a burst of each is.
  HeatOptions planned(const std::vector<Lane>& lanes) const;
  // Tells the user if even the fewest rounds of a heat take longer than the time asked for.
  void tell_if_late(const std::vector<Lane>& lanes, const HeatOptions& options) const;
  // Whether every lane with a switch either explains much of a glaring gap, or next to nothing.
  bool says_enough(const std::vector<LaneHeat>& lanes) const;
  std::vector<size_t> open(bool shared) const;
  size_t most_tried(const std::vector<Lane>& lanes, double share) const;
  // It has to end within `share` of the time.
  bool one_heat(Pass& pass, int number, double share);
  bool shared_heat(Pass& pass);
  void tell_kept_compilations(const LaneHeat& plain);
  bool fails(Cause& cause, const LaneHeat& changed) const;
  void weigh(Pass& pass, size_t at, int number, const LaneHeat& base, const LaneHeat& changed);
  void take_as_confirmed(Cause& cause) const;  // by `measured`, and says so
  void judge(Cause& cause, const Differences& gains) const;
  // Whether a heat of `lanes` lanes, each as long as in the last heat, ends within this share of the time.
  bool time_for_heat(size_t lanes, double share) const;
  bool gap_is_explained(const std::vector<Cause*>& confirmed) const;
  std::vector<Cause*> remaining();
  // Share of the gap, log scale, that named causes make up; 0 without causes.
  double explained(bool places, bool waits) const;

  const ExplainJob& job_;
  Explanation& out_;
  const Progress& progress_;
  int64_t begin_ns_;
  double lane_s_ = 0;  // of a lane in the last heat
  int64_t steps_at_most_ =
      0;  // fewest steps that a lane made before its end, where they are enough for short bursts; 0: not known
  int64_t ends_after_ =
      0;  // fewest steps that a lane made before its end, too few for bursts; 0: all made enough
  // First steps of fresh processes that are compared, where the first script's become longer; 0: they do not.
  int64_t growing_steps_ = 0;
  Differences gap_ = Differences();
  std::optional<double> seen_once_ = {};   // gap of whole runs that were observed once, without their starts
  std::vector<double> plain_losses_ = {};  // of the last run without switches
};

}  // namespace bakeoff::explain
