#include "study/latency/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "base/clock.h"
#include "base/files.h"
#include "evidence/heats.h"
#include "evidence/invariants.h"
#include "plan/lane.h"
#include "proc/interrupt.h"
#include "race/watched.h"
#include "records/controls.h"
#include "study/latency/latency_trial.h"
#include "study/ledger.h"
#include "tensor/rng.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

// Longer than its arrivals take, and it is cut off: the queue grows.
constexpr double kPatience = 1.25;
constexpr double kPatienceSeconds = 1;
// Of a shorter burst a good part may be what comes after a pause: cold caches, threads that wake, others.
constexpr int64_t kTellingBurst = 100'000'000;  // ns

}  // namespace

double fastest_step_ms(const std::vector<Trial>& trials, const std::string& contender) {
  double fastest = 0;
  for (const Trial& trial : trials) {
    if (trial.contender != contender || !heat_value(trial) || !had_the_processors(trial)) continue;
    for (const Burst& burst : trial.bursts) {
      if (burst.ns < kTellingBurst) continue;
      fastest = fastest > 0 ? std::min(fastest, burst.ms_per_step()) : burst.ms_per_step();
    }
  }
  return fastest;
}

namespace {

// Arrivals as the worker reads them.
Status write_arrivals(const fs::path& file, const std::vector<int64_t>& arrivals) {
  const auto* bytes = reinterpret_cast<const char*>(arrivals.data());
  return write_file(file, std::string_view(bytes, arrivals.size() * sizeof(int64_t)));
}

// One process, in every mode that is not recorded yet.
class ServingProcess {
 public:
  ServingProcess(const Plan& plan, const Sensed& sensed, const ContenderStart& entry, int round,
                 double step_ms)
      : plan_(plan),
        sensed_(sensed),
        latency_(plan.recipe.latency),
        entry_(entry),
        round_(round),
        step_ms_(step_ms) {}

  // Records in the order of `rates`; fewer after Ctrl-C, or where there is no time for all.
  std::vector<LatencyTrial> serve(const std::vector<double>& rates, const std::function<bool()>& over) {
    start();
    std::vector<LatencyTrial> trials;
    for (const double rate : rates) {
      if (over()) break;
      LatencyTrial trial{.contender = entry_.contender.id,
                         .round = round_,
                         .rate = rate,
                         .started = utc_now(),
                         .step_ms = step_ms_,
                         .effective = effective_};
      if (worker_->ok()) measure(trial);
      if (!worker_->ok()) trial.failure = worker_->failure();
      if (proc::interrupted()) break;
      trials.push_back(std::move(trial));
    }
    worker_->close();
    return trials;
  }

 private:
  fs::path file(const char* what) const {
    return plan_.directory.logs() /
           fmt::format("{}.latency{}.{}", entry_.script.stem().string(), round_, what);
  }

  void start() {
    WorkerSpec spec = entry_.worker;
    spec.log_file = file("log");
    worker_ = Worker::start(spec);
    if (const auto imported = worker_->import()) effective_ = imported->effective;
    effective_.merge(observe(worker_->pid()));
    worker_->build(build_of(plan_, entry_), effective_);
    worker_->run(1, Stage::kFirstStep);
    worker_->run(std::max<int64_t>(1, plan_.recipe.race.warmup_steps), Stage::kWarmUp);
    // The first requests after a burst are no requests like others.
    serve_once({}, std::max<int64_t>(1, latency_.requests / 20), latency_.seconds / 10);
  }

  std::optional<Served> serve_once(const fs::path& arrivals, int64_t requests, double limit_s) {
    auto served = worker_->serve(arrivals, requests, limit_s, file("times"));
    std::error_code ignored;
    fs::remove(file("times"), ignored);
    return served;
  }

  void measure(LatencyTrial& trial) {
    int64_t requests = latency_.requests;
    double limit_s = latency_.seconds;
    fs::path arrivals;
    if (!trial.single_stream()) {
      requests = planned_requests(latency_, trial.rate);
      trial.arrival_ns = poisson_arrivals(trial.rate, requests, seed_of(trial));
      limit_s = kPatience * static_cast<double>(trial.arrival_ns.back()) / 1e9 + kPatienceSeconds;
      arrivals = file("arrivals");
      if (const auto written = write_arrivals(arrivals, trial.arrival_ns); !written) {
        trial.failure = Failure{Stage::kServe, written.error().text(), {}};
        return;
      }
    }
    std::optional<Served> served;
    trial.host = watched(plan_.recipe.race.host, sensed_, entry_.worker.cpus, worker_->pid(),
                         [&] { served = serve_once(arrivals, requests, limit_s); });
    std::error_code ignored;
    fs::remove(arrivals, ignored);
    if (!served) return;
    trial.start_ns = std::move(served->start_ns);
    trial.end_ns = std::move(served->end_ns);
    trial.ns = served->ns;
    trial.elapsed_ns = served->elapsed_ns;
  }

  // The same for every contender of a round.
  uint64_t seed_of(const LatencyTrial& trial) const {
    return tensor::mix(plan_.recipe.training.seed * 1000003 + static_cast<uint64_t>(round_)) ^
           tensor::hash(fmt::format("{}", trial.rate));
  }

  const Plan& plan_;
  const Sensed& sensed_;
  const recipe::Latency& latency_;
  const ContenderStart& entry_;
  const int round_;
  const double step_ms_;
  std::unique_ptr<Worker> worker_;
  Texts effective_;
};

// Single stream, and the recipe's rates, that a process is still to be asked at.
std::vector<double> rates_left(const Ledger<LatencyTrial>& done, const recipe::Latency& latency,
                               const std::string& contender, int round) {
  std::vector<double> rates = latency.arrivals_per_second;
  rates.insert(rates.begin(), 0);
  std::erase_if(rates, [&](double rate) {
    return done.settled(contender, [&](const LatencyTrial& t) { return t.round == round && t.rate == rate; });
  });
  return rates;
}

}  // namespace

std::vector<int64_t> poisson_arrivals(double per_s, int64_t requests, uint64_t seed) {
  tensor::Rng rng(seed, "arrivals");
  std::vector<int64_t> moments;
  double s = 0;
  for (int64_t i = 0; i < requests; ++i) {
    s -= std::log1p(-rng.uniform()) / per_s;
    moments.push_back(std::llround(s * 1e9));
  }
  return moments;
}

int64_t planned_requests(const recipe::Latency& latency, double per_s) {
  return std::min(latency.requests, static_cast<int64_t>(per_s * latency.seconds));
}

Status measure_latencies(const Afterwards& race) {
  const Plan& plan = race.plan;
  const recipe::Latency& latency = plan.recipe.latency;
  if (!latency.wanted()) return Done{};
  TRY(auto done, Ledger<LatencyTrial>::open(plan.directory));
  const std::vector<size_t> lanes = lanes_of(race);
  const int64_t begin = monotonic_clock().now_ns();
  Happening now{.stage = "latency",
                .total = static_cast<int>(lanes.size()) * static_cast<int>(latency.processes),
                .contenders = static_cast<int>(plan.lanes.size())};
  for (int round = 1; round <= latency.processes; ++round) {
    tensor::Rng rng(plan.recipe.training.seed * 1000003 + static_cast<uint64_t>(round), "latency");
    std::vector<size_t> order = lanes;
    tensor::shuffle(order, rng);
    for (const size_t lane : order) {
      const ContenderStart& entry = plan.lanes[lane].entry;
      const std::string& id = entry.contender.id;
      now.detail = fmt::format("process {} of {} of {}", round, latency.processes, id);
      now.elapsed_s = seconds_since(begin);
      race.watch(now);
      ++now.done;
      const std::vector<double> rates = rates_left(done, latency, id, round);
      if (rates.empty()) continue;
      if (race.over()) return Done{};
      for (LatencyTrial& trial :
           ServingProcess(plan, race.sensed, entry, round, fastest_step_ms(race.trials, id))
               .serve(rates, race.over))
        CHECK_OK(done.add(std::move(trial)));
    }
  }
  return Done{};
}

}  // namespace bakeoff
