#include "study/batches/batch_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/clock.h"
#include "evidence/machine_use.h"
#include "machine/host.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "records/machine_report.h"
#include "sample/machine_limits.h"
#include "stats/trimmed.h"
#include "study/ledger.h"
#include "tensor/rng.h"

namespace bakeoff {
namespace {

constexpr int kPatience = 2;     // doublings in a row that do not pay
constexpr double kSpared = 0.9;  // of the available memory is what a step may take

}  // namespace

std::optional<int64_t> next_batch(const SearchRow& so_far, const recipe::Search& asked, double margin) {
  if (so_far.points.empty()) return asked.least;
  const BatchPoint& last = so_far.points.back();
  if (!last.failure.empty() || last.batch * 2 > asked.most) return std::nullopt;
  double best = 0;
  int in_vain = 0;
  for (const BatchPoint& point : so_far.points) {
    in_vain = point.samples_per_s > (1 + margin) * best ? 0 : in_vain + 1;
    best = std::max(best, point.samples_per_s);
  }
  if (in_vain >= kPatience) return std::nullopt;
  return last.batch * 2;
}

std::string too_large(const SearchRow& so_far, int64_t batch, int64_t available) {
  const size_t n = so_far.points.size();
  if (n < 2 || available <= 0) return "";
  const BatchPoint &before = so_far.points[n - 2], &last = so_far.points[n - 1];
  const double a_row = static_cast<double>(last.peak_rss_bytes - before.peak_rss_bytes) /
                       static_cast<double>(last.batch - before.batch);
  const double wanted = static_cast<double>(last.peak_rss_bytes) +
                        std::max(0.0, a_row) * static_cast<double>(batch - last.batch);
  if (wanted <= kSpared * static_cast<double>(available)) return "";
  constexpr double kGiB = 1 << 30;
  return fmt::format("not tried: it would take about {:.1f} GiB of memory, {:.1f} GiB are available",
                     wanted / kGiB, static_cast<double>(available) / kGiB);
}

namespace {

class BatchSearch {
 public:
  BatchSearch(const Afterwards& race, const LaneAt& lane_at, Ledger<BatchTrial> done)
      : race_(race),
        plan_(race.plan),
        asked_(plan_.recipe.search),
        lane_at_(lane_at),
        done_(std::move(done)) {
    std::string ignored;  // why limits are not used: the report says it
    machine_ = machine_of_run(plan_.directory.path(), plan_.manifest.host, ignored);
  }

  Status run() {
    const std::vector<size_t> lanes = lanes_of(race_);
    for (int process = 1; process <= asked_.processes; ++process) {
      tensor::Rng rng(plan_.recipe.training.seed * 1000003 + static_cast<uint64_t>(process), "batches");
      if (process == 1 && asked_.doubles()) {
        for (const size_t lane : lanes) CHECK_OK(double_up(lane));
        continue;
      }
      std::vector<std::pair<size_t, int64_t>> pairs;
      for (const size_t lane : lanes) {
        for (const int64_t batch : batches_of(lane)) pairs.emplace_back(lane, batch);
      }
      tensor::shuffle(pairs, rng);
      for (const auto& [lane, batch] : pairs) CHECK_OK(measure(lane, batch, process));
    }
    return Done{};
  }

 private:
  const std::string& id(size_t lane) const { return plan_.manifest.contenders[lane].id; }

  SearchRow row(size_t lane) const {
    const auto rows = search_rows(done_.all(), {id(lane)}, asked_, plan_.recipe.margin);
    return rows.empty() ? SearchRow{.contender = id(lane)} : rows.front();
  }

  std::vector<int64_t> batches_of(size_t lane) const {
    std::vector<int64_t> batches = asked_.batches;
    if (asked_.doubles()) {
      for (const BatchPoint& point : row(lane).points) batches.push_back(point.batch);
    }
    return batches;
  }

  Status double_up(size_t lane) {
    while (!race_.over()) {
      const SearchRow so_far = row(lane);
      const auto batch = next_batch(so_far, asked_, plan_.recipe.margin);
      if (!batch || (plan_.gate.rows > 0 && *batch > plan_.gate.rows)) break;
      if (std::string why = too_large(so_far, *batch, sample::available_memory_bytes()); !why.empty()) {
        CHECK_OK(add(
            {*batch,
             {.contender = id(lane), .heat = 1, .failure = Failure{Stage::kMemory, std::move(why), {}}}}));
        break;
      }
      CHECK_OK(measure(lane, *batch, 1));
    }
    return Done{};
  }

  // What failed at one batch is tried at others all the same.
  bool known(size_t lane, int64_t batch, int process) const {
    return done_.settled_among(
        [&](const BatchTrial& t) { return t.trial.contender == id(lane) && t.batch == batch; },
        [&](const BatchTrial& t) { return t.trial.heat == process; });
  }

  Status measure(size_t lane, int64_t batch, int process) {
    if (known(lane, batch, process) || race_.over()) return Done{};
    Happening now{.stage = "batch size",
                  .detail = fmt::format("{} at batch {}", id(lane), batch),
                  .elapsed_s = seconds_since(begin_),
                  .contenders = static_cast<int>(plan_.lanes.size())};
    race_.watch(now);
    if (plan_.gate.rows > 0 && batch > plan_.gate.rows) {
      const std::string why = fmt::format("the data has {} rows", plan_.gate.rows);
      return add(
          {batch, {.contender = id(lane), .heat = process, .failure = Failure{Stage::kBuild, why, {}}}});
    }
    Plan at = plan_;
    at.recipe.training.batch = batch;
    at.lanes = {lane_at_(lane, batch)};
    if (at.lanes[0].failure)
      return add({batch, {.contender = id(lane), .heat = process, .failure = at.lanes[0].failure}});
    const auto told = [&](const Happening& inside) {
      now.detail = fmt::format("{} at batch {}", inside.detail, batch);
      now.elapsed_s = seconds_since(begin_);
      race_.watch(now);
    };
    HeatResult result =
        run_heat(at, {.number = process, .members = {0}, .timed = {0}}, race_.sensed, told, now);
    if (proc::interrupted()) return Done{};
    const TrialBounds bounds = trial_bounds(
        plan_.manifest.contenders[lane], nullptr, plan_.recipe.workload, at.recipe.training,
        plan_.manifest.host.cpus, machine_ && machine_->disturbed.empty() ? &machine_->limits : nullptr);
    std::vector<Trial> trials = mark_broken(std::move(result.trials), {{id(lane), bounds}});
    return add({batch, std::move(trials.front())});
  }

  Status add(BatchTrial trial) {
    // The bursts say all that is shown of it.
    trial.trial.step_ns.clear();
    trial.trial.warmup_step_ns.clear();
    return done_.add(std::move(trial));
  }

  const Afterwards& race_;
  const Plan& plan_;
  const recipe::Search& asked_;
  const LaneAt& lane_at_;
  Ledger<BatchTrial> done_;
  std::optional<MachineReport> machine_;
  int64_t begin_ = monotonic_clock().now_ns();
};

}  // namespace

LaneAt emitted_lanes(const Plan& plan, const Progress& progress) {
  return [&plan, progress](size_t lane, int64_t batch) { return lane_at_batch(plan, lane, batch, progress); };
}

Status search_batches(const Afterwards& race, const LaneAt& lane_at) {
  if (!race.plan.recipe.search.wanted) return Done{};
  TRY(auto done, Ledger<BatchTrial>::open(race.plan.directory));
  return BatchSearch(race, lane_at, std::move(done)).run();
}

}  // namespace bakeoff
