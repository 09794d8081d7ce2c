// Does a contender run as fast among others as it runs alone?
//
//   alternation RECIPE ENVIRONMENTS FOLDER BURSTS
//
// For each of torch, tensorflow and jax (its first contender in the recipe): alone, BURSTS bursts back to
// back; then the two others are started and all three alternate exactly as in a heat of a race, each frozen
// while it does not run; then alone again, the others ended. One process throughout, so that neither drift
// nor luck of the start counts. Prints "<name>: <ratio of ms/step, among others to alone>" for each.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <vector>

#include "plan/lane.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "recipe/recipe.h"
#include "stats/trimmed.h"
#include "worker/worker.h"

namespace bakeoff {
namespace {

constexpr const char* kSubjects[] = {"torch", "tensorflow", "jax"};

struct Subject {
  const ContenderStart* entry = nullptr;
  std::unique_ptr<Worker> worker = {};
  int64_t steps = 2;
};

Error failed(const Subject& subject) {
  const Failure& failure = *subject.worker->failure();
  return {.message =
              fmt::format("{}: {}\n{}", subject.entry->contender.id, failure.reason, failure.log_tail)};
}

// Up to the end of the warm-up.
Status start(const Plan& plan, Subject& subject) {
  WorkerSpec spec = subject.entry->worker;
  const std::string name = subject.entry->contender.environment;
  spec.log_file = plan.directory.path() / (name + ".log");
  spec.ring_file = plan.directory.path() / (name + ".ring");
  std::filesystem::remove(spec.ring_file);
  subject.worker = Worker::start(spec);
  Texts effective;
  subject.worker->import();
  subject.worker->build({.script = subject.entry->script,
                         .weights = plan.directory.scripts() / "weights.safetensors",
                         .data = plan.gate.data,
                         .layout = subject.entry->layout},
                        effective);
  subject.worker->run(1);
  if (const auto warm = subject.worker->run(plan.recipe.race.warmup_steps)) {
    const double step_s = warm->burst.ms_per_step() / 1e3;
    subject.steps = std::max<int64_t>(2, std::llround(plan.recipe.race.burst_seconds / step_s));
    return Done{};
  }
  return failed(subject);
}

Status burst(Subject& subject, std::vector<double>& ms) {
  const auto ran = subject.worker->run(subject.steps);
  if (!ran) return failed(subject);
  ms.push_back(ran->burst.ms_per_step());
  return Done{};
}

// All of them in turn, `subjects[0]` is measured.
Status alternate(std::vector<Subject>& subjects, int bursts, std::vector<double>& ms) {
  std::vector<double> ignored;
  for (Subject& subject : subjects) subject.worker->freeze();
  for (int n = 0; n < bursts; ++n) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      subjects[i].worker->thaw();
      CHECK_OK(burst(subjects[i], i == 0 ? ms : ignored));
      subjects[i].worker->freeze();
    }
  }
  subjects[0].worker->thaw();
  return Done{};
}

Result<double> measure(const Plan& plan, std::vector<Subject> subjects, int bursts) {
  std::vector<double> alone, among;
  CHECK_OK(start(plan, subjects[0]));
  for (int n = 0; n < bursts; ++n) CHECK_OK(burst(subjects[0], alone));
  for (size_t i = 1; i < subjects.size(); ++i) CHECK_OK(start(plan, subjects[i]));
  CHECK_OK(alternate(subjects, bursts, among));
  for (size_t i = 1; i < subjects.size(); ++i) subjects[i].worker->close();
  for (int n = 0; n < bursts; ++n) CHECK_OK(burst(subjects[0], alone));
  subjects[0].worker->close();
  TRY(const double with_others, stats::log_trimmed_mean(among));
  TRY(const double by_itself, stats::log_trimmed_mean(alone));
  return std::exp(with_others - by_itself);
}

Status run(const std::string& recipe_file, const std::filesystem::path& environments,
           const std::filesystem::path& folder, int bursts) {
  TRY(const recipe::Recipe recipe, recipe::load(recipe_file));
  Interpreters interpreters;
  for (const char* name : kSubjects) interpreters[name] = {environments / name / "bin" / "python", {}};
  TRY(const Plan plan, make_plan(recipe, folder, interpreters, {}));
  for (size_t first = 0; first < std::size(kSubjects); ++first) {
    std::vector<Subject> subjects;
    for (size_t i = 0; i < std::size(kSubjects); ++i) {
      const std::string framework = kSubjects[(first + i) % std::size(kSubjects)];
      const auto lane = std::find_if(plan.lanes.begin(), plan.lanes.end(), [&](const Lane& l) {
        return l.entry.contender.framework == framework && !l.failure;
      });
      if (lane == plan.lanes.end()) return Error{.message = "the recipe has no contender of " + framework};
      subjects.push_back({.entry = &lane->entry});
    }
    TRY(const double ratio, measure(plan, std::move(subjects), bursts));
    std::cout << fmt::format("alternation, {} among others / alone: {:.4f}", kSubjects[first], ratio)
              << std::endl;
  }
  return Done{};
}

}  // namespace
}  // namespace bakeoff

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: alternation RECIPE ENVIRONMENTS FOLDER BURSTS\n";
    return 2;
  }
  const auto status = bakeoff::run(argv[1], argv[2], argv[3], std::atoi(argv[4]));
  if (!status) std::cerr << status.error().text() << "\n";
  return status ? 0 : 1;
}
