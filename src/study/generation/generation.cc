#include "study/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

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

GenerationTrial answers_of(const Afterwards& race, const Lane& lane, const Sizes& sizes, int round) {
  const Plan& plan = race.plan;
  const ContenderStart& entry = lane.entry;
  GenerationTrial trial{.contender = entry.contender.id,
                        .round = round,
                        .started = utc_now(),
                        .batch = sizes.batch,
                        .prompt = sizes.prompt,
                        .words = plan.recipe.training.generation.words,
                        .failure = lane.failure};
  if (trial.failure) return trial;
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
  if (served) {
    trial.start_ns = std::move(served->start_ns), trial.end_ns = std::move(served->end_ns);
    trial.compilations = served->compilations;
  }
  std::error_code ignored;
  std::filesystem::remove(file("times"), ignored);
  worker->close();
  return trial;
}

}  // namespace

std::vector<Sizes> measured_sizes(const recipe::Recipe& recipe) {
  const Sizes own{recipe.training.batch, recipe.training.generation.prompt};
  std::set<int64_t> batches = {own.batch}, prompts = {own.prompt};
  batches.insert(recipe.generate.batches.begin(), recipe.generate.batches.end());
  prompts.insert(recipe.generate.prompts.begin(), recipe.generate.prompts.end());
  std::vector<Sizes> all = {own};
  for (const int64_t batch : batches) {
    for (const int64_t prompt : prompts) {
      if (Sizes{batch, prompt} != own) all.push_back({batch, prompt});
    }
  }
  return all;
}

Status measure_generation(const Afterwards& race) {
  const Plan& plan = race.plan;
  if (!plan.recipe.training.generates()) return Done{};
  TRY(auto done, Ledger<GenerationTrial>::open(plan.directory));
  const std::vector<size_t> lanes = lanes_of(race);
  const std::vector<Sizes> sizes = measured_sizes(plan.recipe);
  const int64_t begin = monotonic_clock().now_ns(), processes = plan.recipe.generate.processes;
  Happening now{.stage = "generation",
                .total = static_cast<int>(lanes.size() * sizes.size()) * static_cast<int>(processes),
                .contenders = static_cast<int>(plan.lanes.size())};
  for (const Sizes& at : sizes) {
    std::map<size_t, Lane> made;  // of `lanes`
    for (int round = 1; round <= processes; ++round) {
      tensor::Rng rng(plan.recipe.training.seed * 1000003 + static_cast<uint64_t>(round), "generation");
      std::vector<size_t> order = lanes;
      tensor::shuffle(order, rng);
      for (const size_t index : order) {
        const std::string& id = plan.lanes[index].entry.contender.id;
        now.detail = fmt::format("process {} of {} of {}, {} at a time, prompts of {}", round, processes, id,
                                 at.batch, at.prompt);
        now.elapsed_s = seconds_since(begin);
        race.watch(now);
        ++now.done;
        const auto same = [&](const GenerationTrial& t) {
          return t.round == round && t.batch == at.batch && t.prompt == at.prompt;
        };
        if (done.settled(id, same)) continue;
        if (race.over()) return Done{};
        if (!made.contains(index)) made.emplace(index, lane_at(plan, index, {.sizes = at}, race.progress));
        GenerationTrial trial = answers_of(race, made.at(index), at, round);
        if (proc::interrupted()) return Done{};
        CHECK_OK(done.add(std::move(trial)));
      }
    }
  }
  return Done{};
}

}  // namespace bakeoff
