#include "study/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "proc/interrupt.h"
#include "race/watched.h"
#include "study/generation/generation_trial.h"
#include "study/ledger.h"
#include "tensor/rng.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

constexpr double kLongest = 300;  // seconds for the answers of one process

GenerationTrial answers_of(const Afterwards& race, const ContenderStart& entry, int round) {
  const Plan& plan = race.plan;
  const ir::Training& training = plan.recipe.training;
  GenerationTrial trial{.contender = entry.contender.id,
                        .round = round,
                        .started = utc_now(),
                        .batch = training.batch,
                        .prompt = training.generation.prompt,
                        .words = training.generation.words};
  const auto file = [&](const char* what) {
    return plan.directory.logs() / fmt::format("{}.words{}.{}", entry.script.stem().string(), round, what);
  };
  WorkerSpec spec = entry.worker;
  spec.log_file = file("log");
  Texts effective;
  const std::unique_ptr<Worker> worker = Worker::start(spec);
  worker->import();
  worker->build(build_of(plan, entry), effective);
  worker->run(std::max<int64_t>(2, plan.recipe.race.warmup_steps), Stage::kWarmUp);
  std::optional<Served> served;
  if (worker->ok()) {
    trial.host = watched(plan.recipe.race.host, race.sensed, entry.worker.cpus, worker->pid(), [&] {
      served = worker->serve({}, plan.recipe.generate.answers * trial.words, kLongest, file("times"));
    });
  }
  if (!worker->ok()) trial.failure = worker->failure();
  if (served) trial.start_ns = std::move(served->start_ns), trial.end_ns = std::move(served->end_ns);
  std::error_code ignored;
  std::filesystem::remove(file("times"), ignored);
  worker->close();
  return trial;
}

}  // namespace

Status measure_generation(const Afterwards& race) {
  const Plan& plan = race.plan;
  if (!plan.recipe.training.generates()) return Done{};
  TRY(auto done, Ledger<GenerationTrial>::open(plan.directory));
  const std::vector<size_t> lanes = lanes_of(race);
  const int64_t begin = monotonic_clock().now_ns(), processes = plan.recipe.generate.processes;
  Happening now{.stage = "generation",
                .total = static_cast<int>(lanes.size()) * static_cast<int>(processes),
                .contenders = static_cast<int>(plan.lanes.size())};
  for (int round = 1; round <= processes; ++round) {
    tensor::Rng rng(plan.recipe.training.seed * 1000003 + static_cast<uint64_t>(round), "generation");
    std::vector<size_t> order = lanes;
    tensor::shuffle(order, rng);
    for (const size_t lane : order) {
      const ContenderStart& entry = plan.lanes[lane].entry;
      const std::string& id = entry.contender.id;
      now.detail = fmt::format("process {} of {} of {}", round, processes, id);
      now.elapsed_s = seconds_since(begin);
      race.watch(now);
      ++now.done;
      if (done.settled(id, [&](const GenerationTrial& t) { return t.round == round; })) continue;
      if (race.over()) return Done{};
      GenerationTrial trial = answers_of(race, entry, round);
      if (proc::interrupted()) return Done{};
      CHECK_OK(done.add(std::move(trial)));
    }
  }
  return Done{};
}

}  // namespace bakeoff
