#include "study/batches/largest_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "machine/host.h"
#include "plan/lane.h"
#include "proc/exit.h"
#include "proc/interrupt.h"
#include "race/sensing.h"
#include "sample/machine_limits.h"
#include "study/ledger.h"
#include "worker/worker.h"

namespace bakeoff {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kLeastReserve = 512 * kMiB;
constexpr int64_t kReservePart = 10;
constexpr int64_t kSteps = 2;  // beyond the first: by then an optimizer has all of its state

bool on_gpu(const Parity& proof) {
  const auto device = proof.effective.find("device");
  return device != proof.effective.end() && !device->second.starts_with("cpu");
}

class LargestSearch {
 public:
  LargestSearch(const Afterwards& race, const LaneAt& lane_at, Ledger<LargestTrial> done,
                Result<int64_t> limit)
      : race_(race), plan_(race.plan), lane_at_(lane_at), done_(std::move(done)), limit_(std::move(limit)) {}

  Status run(size_t lane, bool gpu) {
    const int64_t rows = plan_.gate.rows;
    const int64_t most = plan_.recipe.largest_batch.most;
    const int64_t end = rows > 0 ? std::min(rows, most) : most;
    while (true) {
      std::vector<LargestTrial> own;
      std::copy_if(done_.all().begin(), done_.all().end(), std::back_inserter(own),
                   [&](const LargestTrial& t) { return t.contender == id(lane); });
      const auto batch = next_to_fit(own, plan_.recipe.training.batch, end);
      if (!batch || race_.over()) break;
      CHECK_OK(attempt(lane, *batch, gpu));
    }
    return Done{};
  }

 private:
  const std::string& id(size_t lane) const { return plan_.manifest.contenders[lane].id; }

  Status attempt(size_t lane, int64_t batch, bool gpu) {
    race_.watch({.stage = "largest batch",
                 .detail = fmt::format("{} at batch {}", id(lane), batch),
                 .elapsed_s = seconds_since(begin_),
                 .contenders = static_cast<int>(plan_.lanes.size())});
    LargestTrial trial{.contender = id(lane),
                       .batch = batch,
                       .started = utc_now(),
                       .limit_bytes = gpu || !limit_ ? 0 : *limit_,
                       .on_gpu = gpu};
    const Lane at = lane_at_(lane, batch);
    if (at.failure)
      trial.failure = at.failure;
    else if (!gpu && !limit_)
      trial.failure = Failure{Stage::kStart, limit_.error().message, {}};
    else
      take_steps(at.entry, trial);
    if (proc::interrupted()) return Done{};
    return done_.add(std::move(trial));
  }

  void take_steps(const ContenderStart& entry, LargestTrial& trial) const {
    WorkerSpec spec = entry.worker;
    spec.memory_limit_bytes = trial.limit_bytes;
    spec.log_file =
        plan_.directory.logs() / fmt::format("{}.fits{}.log", entry.script.stem().string(), trial.batch);
    const auto worker = Worker::start(spec);
    worker->import();
    Texts effective;
    worker->build(build_of(plan_, entry), effective);
    worker->run(1, Stage::kFirstStep);
    worker->run(kSteps);
    if (!worker->ok()) trial.failure = worker->failure();
    if (trial.on_gpu && worker->ok()) {
      const WorkerMemory memory = worker->memory();
      trial.peak_bytes = static_cast<int64_t>(memory.allocator_peak_bytes.value_or(0));
    }
    const proc::ResourceUsage usage = worker->close();
    if (trial.on_gpu) return;
    trial.peak_bytes = usage.max_rss_bytes;
    // Between two looks of the watch it may have had more, and given it back.
    if (!trial.failure && trial.limit_bytes > 0 && trial.peak_bytes > trial.limit_bytes)
      trial.failure =
          Failure{Stage::kRun,
                  fmt::format("it used {}, above its limit of {}", proc::bytes_text(trial.peak_bytes),
                              proc::bytes_text(trial.limit_bytes)),
                  {},
                  Cause::kLimit};
  }

  const Afterwards& race_;
  const Plan& plan_;
  const LaneAt& lane_at_;
  Ledger<LargestTrial> done_;
  Result<int64_t> limit_;
  int64_t begin_ = monotonic_clock().now_ns();
};

// One limit for all contenders, and for a run that goes on.
Result<int64_t> limit_of(const Afterwards& race, const std::vector<LargestTrial>& known) {
  for (const LargestTrial& trial : known) {
    if (trial.limit_bytes > 0) return trial.limit_bytes;
  }
  TRY(const int64_t most, memory_to_give(race.sensed.root));
  const int64_t asked = race.plan.recipe.largest_batch.memory_bytes;
  return asked > 0 ? std::min(asked, most) : most;
}

}  // namespace

Result<int64_t> memory_to_give(const std::filesystem::path& root) {
  const int64_t left = sample::available_memory_bytes(root);
  if (left <= 0) {
    return Error{.message = "how much memory is available is not known: /proc/meminfo has no MemAvailable",
                 .remedy = {}};
  }
  const int64_t given = left - std::max(left / kReservePart, kLeastReserve);
  if (given > 0) return given;
  return Error{.message = fmt::format("{} of memory are available, and {} of them stay free",
                                      proc::bytes_text(left), proc::bytes_text(kLeastReserve)),
               .remedy = {}};
}

Status search_largest(const Afterwards& race, const LaneAt& lane_at) {
  const Plan& plan = race.plan;
  if (!plan.recipe.largest_batch.wanted) return Done{};
  TRY(auto done, Ledger<LargestTrial>::open(plan.directory));
  const auto limit = limit_of(race, done.all());
  LargestSearch search(race, lane_at, std::move(done), limit);
  for (const size_t lane : lanes_of(race)) {
    const std::string& id = plan.manifest.contenders[lane].id;
    const bool gpu = std::any_of(race.parities.begin(), race.parities.end(),
                                 [&](const Parity& p) { return p.contender == id && on_gpu(p); });
    CHECK_OK(search.run(lane, gpu));
  }
  return Done{};
}

}  // namespace bakeoff
