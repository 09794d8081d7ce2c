#include "evidence/host_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace bakeoff {
namespace {

using sample::HostChange;
using sample::Reading;

constexpr double kSlept = 0.1;  // /proc/uptime counts hundredths

struct Named {
  const char* name;
  Reading HostChange::*reading;
};
constexpr Named kNamed[] = {
    {"steal", &HostChange::steal},
    {"others", &HostChange::others},
    {"throttled", &HostChange::throttled},
    {"cpu pressure", &HostChange::cpu_pressure},
    {"memory pressure", &HostChange::memory_pressure},
    {"io pressure", &HostChange::io_pressure},
    {"run queue", &HostChange::run_queue},
    {"load", &HostChange::load},
    {"clock change", &HostChange::clock_change},
    {"slept", &HostChange::slept_s},
};

struct Rule {
  Reading HostChange::*reading;
  double recipe::HostRule::*most;
  const char* words;  // with the share and the limit
};
constexpr Rule kRules[] = {
    {&HostChange::steal, &recipe::HostRule::max_steal,
     "the hypervisor took {:.0f}% of the processors' time (limit {:g}%)"},
    {&HostChange::throttled, &recipe::HostRule::max_steal,
     "a CPU quota took {:.0f}% of the processors' time (limit {:g}%)"},
    {&HostChange::others, &recipe::HostRule::max_others,
     "other processes used {:.0f}% of the processors' time (limit {:g}%)"},
    {&HostChange::memory_pressure, &recipe::HostRule::max_pressure,
     "tasks waited for memory for {:.0f}% of the time (limit {:g}%)"},
    {&HostChange::io_pressure, &recipe::HostRule::max_pressure,
     "tasks waited for a disk for {:.0f}% of the time (limit {:g}%)"},
    {&HostChange::clock_change, &recipe::HostRule::max_clock_change,
     "the processor's speed changed by {:.0f}% (limit {:g}%)"},
};

// The kind of a disturbance, without its figures: disturbances of one kind are counted together.
std::string kind_of(const std::string& busy) {
  std::string kind;
  for (const char c : busy.substr(0, busy.find(" (limit"))) {
    if (c < '0' || c > '9') kind += c;
  }
  return kind;
}

// One trial represents each heat: the one with the most rounds.
std::map<int, const Trial*> one_a_heat(const std::vector<Trial>& trials) {
  std::map<int, const Trial*> chosen;
  for (const Trial& trial : trials) {
    const Trial*& mine = chosen[trial.heat];
    if (mine == nullptr || trial.rounds.size() > mine->rounds.size()) mine = &trial;
  }
  return chosen;
}

}  // namespace

std::string disturbance(const HostChange& change, const recipe::HostRule& rule) {
  if (change.wall_s < 0) return fmt::format("the clock went back by {:.3f} s", -change.wall_s);
  if (change.slept_s && *change.slept_s > kSlept)
    return fmt::format("the machine was suspended for {:.1f} s", *change.slept_s);
  for (const Rule& one : kRules) {
    const Reading& seen = change.*one.reading;
    const double most = rule.*one.most;
    // Short rounds are not judged by shares of time.
    if (!seen || *seen <= most || change.wall_s < sample::kLeastWall) continue;
    return fmt::format(fmt::runtime(one.words), 100 * *seen, 100 * most);
  }
  return "";
}

bool was_judged(const HostRound& round) { return round.seen.contains("others") || !round.busy.empty(); }

HostRound host_round(const sample::HostSnapshot& before, const sample::HostSnapshot& after, double own_cpu_s,
                     const recipe::HostRule& rule, double idle_s) {
  HostChange change = sample::change(before, after, own_cpu_s);
  if (change.throttled && idle_s > 0 && idle_s < change.wall_s)
    change.throttled = *change.throttled * change.wall_s / (change.wall_s - idle_s);
  HostRound round{.wall_ns = after.ns - before.ns, .busy = disturbance(change, rule)};
  for (const Named& one : kNamed) {
    const Reading& reading = change.*one.reading;
    if (reading)
      round.seen[one.name] = *reading;
    else
      round.absent[one.name] = reading.reason();
  }
  if (change.cgroup_peak_bytes) round.seen["cgroup memory peak"] = *change.cgroup_peak_bytes;
  if (change.cgroup_limit_bytes) round.seen["cgroup memory limit"] = *change.cgroup_limit_bytes;
  if (after.clock_ghz) round.seen["clock GHz"] = *after.clock_ghz;
  return round;
}

std::string disturbed_text(const std::vector<HostRound>& rounds, const std::string& what) {
  size_t busy = 0;
  const HostRound* example = nullptr;
  for (const HostRound& round : rounds) {
    if (round.busy.empty()) continue;
    ++busy;
    example = &round;
  }
  if (busy == 0) return "";
  return fmt::format("{} of {} {} were disturbed: {}", busy, rounds.size(), what, example->busy);
}

HostTally tally(const std::vector<Trial>& trials) {
  HostTally all;
  std::map<std::string, int> kinds;
  std::map<std::string, std::string> example;
  std::map<std::string, std::string> absent;
  std::set<std::string> present;
  for (const auto& [heat, trial] : one_a_heat(trials)) {
    int64_t stretch = 0;
    for (const HostRound& round : trial->rounds) {
      if (round.stretch > 0 && round.stretch == stretch) continue;
      stretch = round.stretch;
      for (const auto& [name, reason] : round.absent) absent[name] = reason;
      for (const auto& [name, value] : round.seen) present.insert(name);
      if (!round.busy.empty()) {
        ++kinds[kind_of(round.busy)];
        example[kind_of(round.busy)] = round.busy;
      }
      if (round.rerun) {
        ++all.reruns;
        continue;
      }
      ++all.rounds;
      all.judged += was_judged(round);
      all.busy += !round.busy.empty();
    }
  }
  const auto most = std::max_element(kinds.begin(), kinds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != kinds.end()) all.worst = example[most->first];
  for (const auto& [name, reason] : absent) {
    if (!present.contains(name)) all.absent.push_back(name + ": " + reason);
  }
  return all;
}

std::optional<std::string> HostTally::refusal(const recipe::HostRule& rule) const {
  if (rule.max_busy >= 1) return std::nullopt;
  if (judged < kLeastJudged) {
    return fmt::format(
        "unknown whether this host was quiet: {} of {} rounds could be judged, at least {} are needed{}",
        judged, rounds, kLeastJudged, absent.empty() ? "" : " (" + absent.front() + ")");
  }
  if (!busy_throughout(rule)) return std::nullopt;
  return fmt::format("this host was busy throughout: {} of {} rounds were disturbed, for example {}", busy,
                     judged, worst);
}

}  // namespace bakeoff
