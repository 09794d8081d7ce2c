#include "study/scaling/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "emit/devices.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "sample/machine_limits.h"
#include "study/ledger.h"
#include "study/scaling/scaling_trial.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

// The processors and threads of one of several devices.
void give_share(WorkerSpec& worker, int64_t devices) {
  if (worker.cpus.empty()) worker.cpus = sample::allowed_cpus();
  worker.cpus.resize(std::max<size_t>(1, worker.cpus.size() / static_cast<size_t>(devices)));
  set_threads(std::max(1, worker.threads / static_cast<int>(devices)), worker);
}

struct Way {
  std::optional<Trial> ScalingTrial::*record;
  Lane lane;
};

// The contender's own lane and what it is held against. A script of the user's own has its batch and its number of
// devices written into it: it is held against itself without communication.
std::vector<Way> ways_of(const Plan& plan, size_t index, int64_t devices, const Progress& progress) {
  const Sizes own{plan.recipe.training.batch, plan.recipe.training.generation.prompt};
  Lane one = lane_at(plan, index, {.sizes = own, .one_device = true, .tag = "one_device"}, progress);
  give_share(one.entry.worker, devices);
  Lane weak = lane_at(plan, index, {.sizes = {own.batch * devices, own.prompt}}, progress);
  Lane silent = lane_at(plan, index, {.sizes = own, .tag = "silent"}, progress);
  silent.entry.worker.environment[kCommunication] = kCommunicationOff;
  return {{&ScalingTrial::one, std::move(one)},
          {&ScalingTrial::strong, plan.lanes[index]},
          {&ScalingTrial::weak, std::move(weak)},
          {&ScalingTrial::silent, std::move(silent)}};
}

// What the bursts say is kept; single steps are not shown.
Trial slim(Trial trial) {
  trial.step_ns.clear();
  trial.warmup_step_ns.clear();
  return trial;
}

// One heat of all ways that can be started. A member that fails leaves it with its reason, the others go on.
ScalingTrial heat_of(const Afterwards& race, std::vector<Way>& ways, ScalingTrial record, Happening now) {
  Plan at = race.plan;
  at.lanes.clear();
  HeatOrder order{.number = record.heat};
  std::vector<std::optional<Trial> ScalingTrial::*> members;
  for (const Way& way : ways) {
    if (way.lane.failure) {
      record.*way.record =
          Trial{.contender = record.contender, .heat = record.heat, .failure = way.lane.failure};
      continue;
    }
    order.members.push_back(at.lanes.size());
    order.timed.insert(at.lanes.size());
    at.lanes.push_back(way.lane);
    members.push_back(way.record);
  }
  HeatResult result = run_heat(at, order, race.sensed, race.watch, std::move(now));
  for (size_t i = 0; i < std::min(members.size(), result.trials.size()); ++i)
    record.*members[i] = slim(std::move(result.trials[i]));
  return record;
}

}  // namespace

Status measure_scaling(const Afterwards& race) {
  const Plan& plan = race.plan;
  if (!plan.recipe.scaling.wanted) return Done{};
  TRY(auto done, Ledger<ScalingTrial>::open(plan.directory));
  const int64_t begin = monotonic_clock().now_ns();
  for (const size_t index : lanes_of(race)) {
    const ContenderStart& entry = plan.lanes[index].entry;
    const std::string& id = entry.contender.id;
    const int64_t devices = emit::devices_of(entry.contender.settings);
    if (devices == 1) continue;
    std::vector<Way> ways;
    for (int heat = 1; heat <= plan.recipe.scaling.heats; ++heat) {
      if (done.settled(id, [&](const ScalingTrial& t) { return t.heat == heat; })) continue;
      if (race.over()) return Done{};
      Happening now{.stage = "scaling",
                    .detail = fmt::format("heat {} of {} of {}", heat, plan.recipe.scaling.heats, id),
                    .elapsed_s = seconds_since(begin),
                    .contenders = static_cast<int>(plan.lanes.size())};
      race.watch(now);
      if (ways.empty()) ways = ways_of(plan, index, devices, race.progress);
      ScalingTrial record = heat_of(
          race, ways,
          {.contender = id, .heat = heat, .devices = devices, .batch = plan.recipe.training.batch}, now);
      if (proc::interrupted()) return Done{};
      CHECK_OK(done.add(std::move(record)));
    }
  }
  return Done{};
}

}  // namespace bakeoff
