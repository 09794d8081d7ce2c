// Calibration asks how far two processes of the same differ, so its plan has the same lane twice, and one
// small network whose steps touch what hosts disturb: allocator, caches, threads. Blocks are short since most
// of what differs is drawn when a process starts. Where no framework is installed a kernel inside this
// program plays the worker, by the same protocol.

#include "calibrate/calibrate_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/nearest.h"
#include "calibrate/profile.h"
#include "emit/all/frameworks.h"
#include "plan/lane.h"
#include "race/race.h"
#include "recipe/recipe.h"
#include "records/controls.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

constexpr const char* kKernel = "kernel";

// Batch and bursts are small, so that a block takes few seconds: most of it is starting the two processes,
// and those are what differs.
constexpr const char* kRecipe = R"(name = "calibrate"
workload = "mnist_cnn"
batch = 128
contenders = [{{ framework = "{}" }}]
[data]
samples = 512
[optimizer]
kind = "rmsprop"
lr = 1e-4
[race]
warmup_steps = 2
bursts = {}
burst_seconds = {}
stage_seconds = 120
)";

// Two lanes of the same: "torch" and "torch again".
void double_lane(Plan& plan) {
  plan.lanes.push_back(plan.lanes.front());
  plan.manifest.contenders.push_back(plan.manifest.contenders.front());
  plan.manifest.not_started.emplace_back();
  plan.lanes[1].entry.contender.id += " again";
  plan.manifest.contenders[1].id += " again";
}

Result<Plan> framework_plan(const std::string& framework, const fs::path& folder,
                            const Interpreters& interpreters, const Progress& progress) {
  TRY(const recipe::Recipe recipe,
      recipe::parse(fmt::format(fmt::runtime(kRecipe), framework, kCalibrationBursts, kCalibrationBurst),
                    "calibrate.toml"));
  TRY(Plan plan, make_plan(recipe, folder, interpreters, progress));
  if (plan.lanes[0].failure) {
    return Error{
        .message = fmt::format("cannot calibrate with {}: {}", framework, plan.lanes[0].failure->reason),
        .remedy = "bakeoff env create, or name another --framework"};
  }
  double_lane(plan);
  return plan;
}

Result<Plan> kernel_plan(const fs::path& folder) {
  TRY(RunDirectory directory, RunDirectory::create(folder));
  Plan plan{.recipe = {}, .directory = std::move(directory)};
  plan.recipe.race.warmup_steps = 3;
  plan.recipe.race.bursts = kCalibrationBursts;
  plan.recipe.race.burst_seconds = kCalibrationBurst;
  const Contender contender{.id = kKernel, .framework = kKernel, .environment = kKernel, .script = "kernel"};
  plan.manifest.contenders.push_back(contender);
  plan.manifest.not_started.emplace_back();
  Lane lane;
  lane.entry.contender = contender;
  lane.entry.script = plan.directory.scripts() / contender.script;
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  if (code) return Error{.message = "cannot find this program: " + code.message()};
  lane.entry.worker = {
      .command = {self.string(), "calibrate", "--serve-kernel"}, .framework = kKernel, .stage_seconds = 60};
  plan.lanes.push_back(std::move(lane));
  double_lane(plan);
  return plan;
}

// It trains, in an interpreter: what is compiled first would be no quicker than the others to look at.
bool calibrates(const emit::Framework& framework) {
  return emit::can(framework, ir::Scenario::kTrain) &&
         !framework.environment(emit::defaults_of(framework)).empty();
}

Result<std::string> choose(const std::string& asked, const Interpreters& interpreters) {
  const std::vector<std::string> ready = ready_frameworks(interpreters);
  if (asked.empty()) return ready.empty() ? kKernel : ready.front();
  if (asked == kKernel) return asked;
  const emit::Framework* framework = emit::find_framework(asked);
  if (framework == nullptr || !calibrates(*framework)) {
    std::vector<std::string> names = {kKernel};
    for (const emit::Framework* f : emit::frameworks()) {
      if (calibrates(*f)) names.push_back(f->name);
    }
    return Error{.message = fmt::format("no framework '{}' that trains", asked),
                 .remedy = suggest(asked, names)};
  }
  if (std::find(ready.begin(), ready.end(), asked) != ready.end()) return asked;
  std::string why = "its environment is not ready";
  const auto found = interpreters.find(framework->environment(emit::defaults_of(*framework)));
  if (found != interpreters.end()) why = found->second.why_not;
  return Error{.message = fmt::format("cannot calibrate with {}: {}", asked, why),
               .remedy = "leave --framework out to take what there is"};
}

}  // namespace

struct CalibrationWork::Folder {
  fs::path path;
  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

CalibrationWork::~CalibrationWork() = default;

std::vector<std::string> ready_frameworks(const Interpreters& interpreters) {
  std::vector<std::string> ready;
  for (const emit::Framework* framework : emit::frameworks()) {
    if (!calibrates(*framework)) continue;
    const auto found = interpreters.find(framework->environment(emit::defaults_of(*framework)));
    if (found != interpreters.end() && found->second.why_not.empty()) ready.push_back(framework->name);
  }
  return ready;
}

Result<CalibrationWork> CalibrationWork::create(const std::string& framework, const fs::path& home,
                                                const Interpreters& interpreters, const Progress& progress) {
  CalibrationWork work;
  TRY(work.framework_, choose(framework, interpreters));
  CHECK_OK(make_folder(home));
  std::string folder = (home / "calibrate-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr)
    return Error{.message = fmt::format("cannot make a folder in '{}'", home.string())};
  work.folder_ = std::make_shared<Folder>();
  work.folder_->path = folder;
  const fs::path run = fs::path(folder) / "run";
  TRY(work.plan_, work.framework_ == kKernel ? kernel_plan(run)
                                             : framework_plan(work.framework_, run, interpreters, progress));
  work.bare_ = work.plan_->lanes[0].entry.worker;
  work.bare_.environment = work.plan_->manifest.worker_environment;
  return work;
}

std::string CalibrationWork::description() const {
  return framework_ == kKernel ? "built-in C++ kernel" : "mnist_cnn, batch 128, drawn data";
}

Result<std::vector<Trial>> CalibrationWork::run(const Controls& controls, int block, const Machine& machine,
                                                const Watch& watch, const Happening& happening) {
  WorkerSpec spec = bare_;
  CHECK_OK(apply(controls, machine, spec));
  for (Lane& lane : plan_->lanes) lane.entry.worker = spec;
  plan_->recipe.race.cooldown_seconds = controls.cooldown_s;
  // The parts of a block are no news of the calibration.
  const Watch quiet = [&](const Happening& now) {
    Happening shown = happening;
    shown.elapsed_s = now.elapsed_s;
    shown.left_s = now.left_s;
    watch(shown);
  };
  const size_t at_once = machine.cpus.size() > 1 ? 2 : 1;  // as in a race after its first heat
  std::vector<Trial> trials =
      run_heat(*plan_, {.number = block, .members = {0, 1}, .at_once = at_once}, {}, quiet, happening).trials;
  for (const Trial& trial : trials) {
    if (trial.failure) {
      return Error{.message = fmt::format("{} failed in stage {}: {}", trial.contender,
                                          name(trial.failure->stage), trial.failure->reason),
                   .remedy = trial.failure->log_tail};
    }
    if (trial.invalid) return Error{.message = fmt::format("{}: {}", trial.contender, *trial.invalid)};
  }
  return trials;
}

}  // namespace bakeoff
