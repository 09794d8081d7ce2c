// A run directory must be enough to repeat and to resume a run, so a plan is made in two halves. write_all()
// and plan_in() put everything that a race depends on into the folder: recipe, workload, data, weights,
// scripts, their hashes, controls. assemble() makes lanes from that folder and from what this machine has
// now. reopen_plan() writes none of these files again: it checks them, looks for environments and compilers
// again, because they may have been installed since, and calls assemble().
//
// A contender that cannot start (no environment, no compiler, an op that its framework lacks) is a lane with
// a failure, not an error of the plan. An error of the plan removes what it has written, so that the next
// attempt finds the folder as it was.

#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/clock.h"
#include "base/files.h"
#include "base/sha256_file.h"
#include "base/version.h"
#include "data/data.h"
#include "data/shuffle.h"
#include "emit/all/frameworks.h"
#include "emit/devices.h"
#include "environments/runner_files.h"
#include "evidence/promise.h"
#include "ir/text.h"
#include "machine/host.h"
#include "plan/data_digests.h"
#include "plan/devices.h"
#include "plan/fairness.h"
#include "plan/plan_scripts.h"
#include "plan/recorded_recipe.h"
#include "plan/rows.h"
#include "plan/weights.h"
#include "recipe/published_table.h"
#include "records/controls.h"
#include "records/machine_report.h"
#include "tensor/safetensors.h"
#include "worker/compiled_contender.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

constexpr const char* kData = "data.safetensors";
constexpr const char* kWeights = "weights.safetensors";

// Removes what a failed attempt has put into a folder. A folder that was not empty before is left alone.
class FolderRollback {
 public:
  explicit FolderRollback(const fs::path& folder) : top_(fs::absolute(folder)) {
    std::error_code code;
    while (!fs::exists(top_.parent_path(), code) && top_.has_relative_path()) top_ = top_.parent_path();
    absent_ = !fs::exists(top_, code);
    empty_ = !absent_ && fs::is_directory(top_, code) && fs::is_empty(top_, code);
  }
  void restore() const {
    std::error_code ignored;
    if (absent_) fs::remove_all(top_, ignored);
    if (!empty_) return;
    for (const auto& entry : fs::directory_iterator(top_, ignored)) fs::remove_all(entry.path(), ignored);
  }

 private:
  fs::path top_;  // the uppermost folder that has to be made
  bool absent_ = false, empty_ = false;
};

struct Written {
  int64_t rows = 0;
  std::string data_sha256;
  std::string data_description;
  Texts source_sha256;
  std::string weights_sha256;
  std::vector<std::optional<Failure>> failures;  // by contender
};

Result<Written> write_all(const recipe::Recipe& recipe, const fs::path& folder, const Progress& progress,
                          bool twins) {
  Written written;
  CHECK_OK(check_shares(recipe));
  CHECK_OK(make_folder(folder));
  TRY(const DataSpec spec, data_spec(recipe));
  TRY(DataSet data, prepare(spec, recipe.workload, bakeoff_home() / "data", progress));
  written.source_sha256 = std::move(data.sources);
  written.rows = data.rows;
  written.data_sha256 = data.sha256;
  written.data_description = data.description;
  CHECK_OK(check_rows(recipe, data.rows));
  CHECK_OK(check_target(recipe, data.rows));
  CHECK_OK(check_fit(recipe, data.rows));
  std::error_code ignored;
  fs::remove(folder / kData, ignored);
  if (recipe.data.shuffle) {
    CHECK_OK(write_shuffled(data.file, folder / kData, recipe.training.seed));
    TRY(written.data_sha256, sha256_file(folder / kData));
    written.data_description += fmt::format(", shuffled with seed {}", recipe.training.seed);
  } else {
    CHECK_OK(link_or_copy(data.file, folder / kData));
  }
  CHECK_OK(write_initial_weights(recipe.workload, recipe.training.seed, recipe.weights, folder / kWeights,
                                 recipe.training.predicts()));
  TRY(written.weights_sha256, sha256_file(folder / kWeights));
  for (const recipe::Contender& contender : recipe.contenders) {
    TRY(auto failure, write_script(recipe, contender, folder));
    if (twins && !failure) {
      TRY(failure, write_twin(recipe, contender, folder));
    }
    written.failures.push_back(std::move(failure));
  }
  return written;
}

Contender record_of(const recipe::Contender& c, const Controls& shared) {
  return {.id = c.id,
          .framework = c.framework,
          .environment = c.environment,
          .settings = c.settings,
          .script = c.file,
          .own_script = c.script.string(),
          .controls = to_texts(controls_from(c.controls, shared)),
          .stated = c.controls};
}

// Why there is no interpreter for a contender; empty if there is one.
std::string missing(const Contender& contender, const Interpreters& interpreters) {
  const auto found = interpreters.find(contender.environment);
  return found != interpreters.end()
             ? found->second.why_not
             : fmt::format("there is no environment '{}'; `bakeoff env list` shows all",
                           contender.environment);
}

// Workers compiled for the contenders that are programs, by contender; empty for the others. An error is the
// contender's failure.
std::vector<fs::path> compile_programs(Manifest& manifest, const fs::path& scripts,
                                       const Interpreters& interpreters, const Progress& progress) {
  std::vector<fs::path> programs(manifest.contenders.size());
  for (size_t i = 0; i < manifest.contenders.size(); ++i) {
    Contender& contender = manifest.contenders[i];
    const bool program = emit::find_framework(contender.framework)->extension == ".cc";
    if (!program || !manifest.not_started[i].reason.empty() || !missing(contender, interpreters).empty())
      continue;
    const Compiled compiled = compile_contender({.sources = with_twin(scripts / contender.script),
                                                 .python = interpreters.at(contender.environment).python,
                                                 .home = bakeoff_home()},
                                                progress);
    programs[i] = compiled.program;
    contender.compiler = compiled.compiler;
    contender.compile_ns = compiled.ns;
    if (compiled.failure) manifest.not_started[i] = *compiled.failure;
  }
  return programs;
}

// How a compiled worker is started; empty for those of Python.
std::vector<std::string> command_of(const fs::path& program) {
  return program.empty() ? std::vector<std::string>() : std::vector{program.string()};
}

// Empty where there is no such file: a contender that could not be emitted.
std::string text_of(const fs::path& file) {
  const auto text = read_file(file);
  return text ? *text : "";
}

void add_twin(ContenderStart& entry) {
  const fs::path twin = twin_of_script(entry.script);
  if (!fs::exists(twin)) return;
  entry.twin_script = twin;
  if (const fs::path layout = layout_of(twin); fs::exists(layout)) entry.twin_layout = layout;
  entry.twin_options = emit::float32_twin(entry.contender.settings);
}

int64_t steps_per_call(const Contender& contender) {
  return emit::steps_per_call(*emit::find_framework(contender.framework), contender.settings);
}

// Steps after which all contenders have made whole calls; those of very long calls do not count.
int64_t whole_calls(const Manifest& manifest) {
  int64_t all = 1;
  for (const Contender& contender : manifest.contenders)
    if (const int64_t steps = std::lcm(all, steps_per_call(contender)); steps <= kMostPerCall) all = steps;
  return all;
}

// A number of rows that divides by the devices of every contender.
int64_t shared_devices(const Manifest& manifest) {
  int64_t all = 1;
  for (const Contender& contender : manifest.contenders)
    all = std::lcm(all, emit::devices_of(contender.settings));
  return all;
}

// The plan that follows from recipe, manifest, compiled programs and folder.
Result<Plan> assemble(recipe::Recipe recipe, RunDirectory directory, Manifest manifest,
                      const std::vector<fs::path>& programs, const Interpreters& interpreters, int64_t rows) {
  TRY(const fs::path runner, unpack_runner(bakeoff_home()));
  const Machine machine = this_machine();
  const Controls shared = controls_from(manifest.controls, control_set(recipe, {}, machine.cpus.size()));
  recipe.race.cooldown_seconds = shared.cooldown_s;
  take_recorded(manifest, recipe);
  const int64_t per_call = whole_calls(manifest);
  GateJob gate{.workload = recipe.workload,
               .training = recipe.training,
               .data = directory.scripts() / kData,
               .rows = rows,
               .weights = recipe.weights.empty() ? fs::path() : directory.scripts() / kWeights,
               .steps = (recipe.race.parity_steps + per_call - 1) / per_call * per_call,
               .per_call = per_call,
               .devices = shared_devices(manifest),
               .folder = directory.path() / "gate"};
  CHECK_OK(make_folder(gate.folder));
  Plan plan{std::move(recipe), std::move(directory), std::move(manifest), std::move(gate), {}};
  for (size_t i = 0; i < plan.manifest.contenders.size(); ++i) {
    const Contender& contender = plan.manifest.contenders[i];
    Lane lane;
    lane.entry.contender = contender;
    lane.entry.script = plan.directory.scripts() / contender.script;
    lane.entry.script_text = text_of(lane.entry.script);
    lane.entry.layout = layout_of(lane.entry.script);
    if (!fs::exists(lane.entry.layout)) lane.entry.layout.clear();
    add_twin(lane.entry);
    lane.entry.steps_per_call = steps_per_call(contender);
    lane.entry.unbiased_running_var =
        emit::find_framework(contender.framework)->unbiased_running_var(contender.settings);
    if (!plan.manifest.not_started[i].reason.empty()) {
      lane.failure = plan.manifest.not_started[i];
    } else if (const std::string why = missing(contender, interpreters); !why.empty()) {
      lane.failure = Failure{Stage::kEnvironment, why, {}};
    } else {
      lane.identity = interpreters.at(contender.environment).identity;
      lane.entry.worker = {.command = command_of(programs[i]),
                           .python = interpreters.at(contender.environment).python,
                           .runner = runner,
                           .framework = contender.framework,
                           .options = contender.settings,
                           .environment = plan.manifest.worker_environment,
                           .stage_seconds = plan.recipe.race.stage_seconds};
      if (lane.entry.contender.settings.contains("tf32") &&
          lane.entry.contender.settings.at("tf32") == "true")
        lane.entry.worker.environment.erase("NVIDIA_TF32_OVERRIDE");
      const Controls controls = controls_from(contender.controls, shared);
      Status applied = Done{};
      if (!plan.recipe.race.proofs_alone) applied = check_devices(contender.settings, controls, machine);
      if (applied) applied = apply(controls, machine, lane.entry.worker);
      if (!applied) lane.failure = Failure{Stage::kControls, applied.error().line(), {}};
    }
    plan.lanes.push_back(std::move(lane));
  }
  return plan;
}

}  // namespace

fs::path initial_weights(const Plan& plan) { return plan.directory.scripts() / kWeights; }

Build build_of(const Plan& plan, const ContenderStart& entry) {
  const bool as_is = plan.recipe.training.track == ir::Track::kAsIs;
  const fs::path weights = entry.weights.empty() ? initial_weights(plan) : entry.weights;
  return {.script = entry.script,
          .weights = as_is ? fs::path() : weights,
          .data = entry.data.empty() ? plan.gate.data : entry.data,
          .layout = entry.layout,
          .scenario = plan.recipe.training.scenario};
}

Texts worker_environment(const recipe::Recipe& recipe) {
  Texts all = {{"PYTHONHASHSEED", "0"}};
  for (const emit::Framework* framework : emit::frameworks())
    all.insert(framework->worker_variables.begin(), framework->worker_variables.end());
  if (recipe.training.track == ir::Track::kEqualised) all["NVIDIA_TF32_OVERRIDE"] = "0";
  if (recipe.race.nvtx) all["BAKEOFF_NVTX"] = "libnvToolsExt.so.1";
  return all;
}

Status write_scripts(const recipe::Recipe& recipe, const fs::path& folder, const Progress& progress) {
  const FolderRollback before(folder);
  const auto written = write_all(recipe, folder, progress, /*twins=*/false);
  if (!written) {
    before.restore();
    return written.error();
  }
  for (size_t i = 0; i < written->failures.size(); ++i) {
    if (written->failures[i])
      return Error{.message = recipe.contenders[i].id + ": " + written->failures[i]->reason};
  }
  return Done{};
}

namespace {

// The controls of [race], as far as this machine grants them. Errors name the recipe's line.
Result<Controls> shared_controls(const recipe::Recipe& recipe, const Machine& machine,
                                 std::vector<std::string>& notes) {
  const Controls wanted = control_set(recipe, {}, machine.cpus.size());
  const auto placed = [&](Error error, const char* key) {
    error.where = recipe::where(recipe, "race", key);
    return error;
  };
  if (wanted.allocator != "default" && wanted.allocator != "tuned") {
    if (const auto library = allocator_library(wanted.allocator, machine.root); !library)
      return placed(library.error(), "allocator");
  }
  auto given = granted(wanted, recipe.race.stated, machine, notes);
  if (!given) return placed(given.error(), "pin");
  return given;
}

// Reads the table before the race, so that a mistake in it is found early.
Status check_published(const recipe::Recipe& recipe) {
  if (recipe.published.file.empty()) return Done{};
  TRY(const recipe::Published table,
      recipe::parse_published(recipe.published.text, recipe.published.file.string()));
  for (const recipe::PublishedRow& row : table.rows) {
    const bool raced = std::any_of(recipe.contenders.begin(), recipe.contenders.end(),
                                   [&](const recipe::Contender& c) { return c.id == row.contender; });
    if (!raced) continue;
    return Done{};
  }
  return Error{.message = "no row of the published table names a contender of this recipe",
               .where = recipe::where(recipe, "published", "file"),
               .remedy = "its column 'contender' holds ids as `bakeoff run` shows them"};
}

Result<Plan> plan_in(const recipe::Recipe& recipe, const fs::path& folder, const Interpreters& interpreters,
                     const Progress& progress, const Texts& calibration) {
  CHECK_OK(check_published(recipe));
  std::vector<std::string> notes;
  TRY(const Controls shared, shared_controls(recipe, this_machine(), notes));
  CHECK_OK(check_shares(recipe));
  if (!recipe.race.proofs_alone) CHECK_OK(check_devices(recipe, shared, this_machine()));
  TRY(RunDirectory directory, RunDirectory::create(folder));
  CHECK_OK(directory.lock());
  TRY(const Written written, write_all(recipe, directory.scripts(), progress, /*twins=*/true));
  Manifest manifest{.bakeoff_version = kVersion,
                    .started = utc_now(),
                    .recipe_name = recipe.name,
                    .recipe_file = (recipe.shipped ? recipe.file : fs::absolute(recipe.file)).string(),
                    .recipe_text = recipe.text,
                    .workload_text = ir::dump(recipe.workload),
                    .published_text = recipe.published.text,
                    .weights_sha256 = written.weights_sha256,
                    .data_sha256 = written.data_sha256,
                    .source_sha256 = written.source_sha256,
                    .data_description = written.data_description,
                    .data_rows = written.rows,
                    .host = read_host(),
                    .contenders = {},
                    .not_started = {},
                    .referee_losses = {},
                    .fairness = {},
                    .worker_environment = worker_environment(recipe),
                    .controls = to_texts(shared),
                    .calibration = calibration,
                    .notes = std::move(notes),
                    .baseline = recipe.baseline};
  manifest.controls["noise_ceiling"] = fmt::format("{:.3f}", recipe.race.noise_ceiling);
  for (const emit::Framework* framework : emit::frameworks()) {
    const emit::CompilerCache& cache = framework->cache;
    if (!cache.variable.empty())
      manifest.worker_environment[cache.variable] = (directory.path() / "cache" / cache.folder).string();
  }
  for (size_t i = 0; i < recipe.contenders.size(); ++i) {
    manifest.contenders.push_back(record_of(recipe.contenders[i], shared));
    manifest.not_started.push_back(written.failures[i].value_or(Failure{}));
    if (const std::string why = missing(manifest.contenders[i], interpreters);
        !written.failures[i] && !why.empty()) {
      manifest.not_started[i] = {Stage::kEnvironment, why, {}};
    }
  }
  const auto programs = compile_programs(manifest, directory.scripts(), interpreters, progress);
  manifest.fairness = fairness_diff(recipe.workload, recipe.training, manifest.contenders);
  CHECK_OK(directory.write(manifest));
  CHECK_OK(keep_machine(bakeoff_home(), manifest.host, directory.path()));
  return assemble(recipe, directory, manifest, programs, interpreters, written.rows);
}

}  // namespace

Result<Plan> make_plan(const recipe::Recipe& recipe, const fs::path& folder, const Interpreters& interpreters,
                       const Progress& progress, const Texts& calibration) {
  const FolderRollback before(folder);
  auto plan = plan_in(recipe, folder, interpreters, progress, calibration);
  if (!plan) before.restore();
  return plan;
}

Result<Plan> reopen_plan(const fs::path& folder, const Interpreters& interpreters, Reopen how) {
  TRY(RunDirectory directory, RunDirectory::open(folder));
  if (how == Reopen::kContinue) CHECK_OK(directory.lock());
  TRY(Manifest manifest, directory.manifest());
  for (const Contender& contender : manifest.contenders) {
    if (emit::find_framework(contender.framework) != nullptr) continue;
    return Error{.message = fmt::format("contender '{}' has the unknown framework '{}'", contender.id,
                                        contender.framework),
                 .where = (folder / "run.json").string(),
                 .remedy = "the run directory is damaged: start a new run"};
  }
  if (const std::string other = other_machine(manifest.host, read_host());
      !other.empty() && manifest.calibration.erase(kTakenCeiling) > 0) {
    manifest.notes.push_back(
        "Resumed on another machine: the profile's promise of low noise does not apply and is dropped (the "
        "profile is " +
        other + ").");
  }
  TRY(recipe::Recipe recipe, recorded_recipe(manifest, folder / "run.json"));
  const auto data = tensor::SafetensorsFile::open(directory.scripts() / kData);
  if (!data)
    return Error{.message = data.error().message,
                 .where = data.error().where,
                 .remedy = "a run goes on with the data in its folder: start a new run"};
  const auto* entry = data->find(recipe.workload.inputs[0].name);
  if (entry == nullptr || entry->shape.empty()) {
    return Error{.message = fmt::format("'{}' lacks input '{}'", (directory.scripts() / kData).string(),
                                        recipe.workload.inputs[0].name),
                 .remedy = "the run directory is damaged: start a new run"};
  }
  CHECK_OK(check_unchanged(recipe, manifest, directory.scripts() / kData));
  for (size_t i = 0; i < manifest.contenders.size(); ++i) {  // an environment may have been made since
    Failure& failure = manifest.not_started[i];
    if (failure.stage == Stage::kEnvironment && missing(manifest.contenders[i], interpreters).empty())
      failure = {};
    if (failure.stage == Stage::kCompile) failure = {};  // a compiler may have been installed
  }
  const auto programs =
      compile_programs(manifest, directory.scripts(), interpreters, [](const std::string&) {});
  if (how == Reopen::kContinue) CHECK_OK(directory.write(manifest));
  return assemble(std::move(recipe), directory, manifest, programs, interpreters, entry->shape[0]);
}

Lane lane_at_batch(const Plan& plan, size_t lane, int64_t batch, const Progress& progress) {
  return lane_at(plan, lane, {.sizes = {batch, plan.recipe.training.generation.prompt}}, progress);
}

Lane lane_at(const Plan& plan, size_t index, const Variation& how, const Progress& progress) {
  Lane lane = plan.lanes[index];
  const ir::Training& own = plan.recipe.training;
  const Sizes& sizes = how.sizes;
  if (lane.failure || (how.tag.empty() && sizes == Sizes{own.batch, own.generation.prompt})) return lane;
  recipe::Recipe recipe = plan.recipe;
  recipe.training.batch = sizes.batch;
  recipe.training.generation.prompt = sizes.prompt;
  recipe::Contender contender = recipe.contenders[index];
  if (!contender.script.empty()) {
    if (how.one_device || sizes != Sizes{own.batch, own.generation.prompt}) {
      lane.failure = Failure{Stage::kEmit,
                             how.one_device ? "the devices of a script of your own are its own"
                                            : "the batch of a script of your own is its own",
                             {}};
      return lane;
    }
    lane.entry.script.replace_filename(lane.entry.script.stem().string() + "_" + how.tag +
                                       lane.entry.script.extension().string());
    if (const Status copied = write_file(lane.entry.script, lane.entry.script_text); !copied)
      lane.failure = Failure{Stage::kEmit, copied.error().text(), {}};
    return lane;
  }
  if (how.one_device) {
    contender.settings = emit::on_one_device(std::move(contender.settings));
    lane.entry.contender.settings = lane.entry.worker.options = contender.settings;
  }
  recipe.contenders = {contender};
  for (const Status& fits : {check_shares(recipe), check_rows(recipe, plan.gate.rows)}) {
    if (plan.gate.rows == 0 || fits) continue;
    lane.failure = Failure{Stage::kBuild, fits.error().message, {}};
    return lane;
  }
  const fs::path file = contender.file;
  std::string name = file.stem().string();
  if (sizes.batch != own.batch) name += fmt::format("_batch{}", sizes.batch);
  if (sizes.prompt != own.generation.prompt) name += fmt::format("_prompt{}", sizes.prompt);
  if (!how.tag.empty()) name += "_" + how.tag;
  contender.file = name + file.extension().string();
  const auto written = write_script(recipe, contender, plan.directory.scripts());
  if (!written || *written) {
    lane.failure = written ? **written : Failure{Stage::kEmit, written.error().text(), {}};
    return lane;
  }
  lane.entry.script = plan.directory.scripts() / contender.file;
  lane.entry.script_text = text_of(lane.entry.script);
  lane.entry.layout = layout_of(lane.entry.script);
  if (!fs::exists(lane.entry.layout)) lane.entry.layout.clear();
  if (lane.entry.worker.command.empty()) return lane;
  const Compiled compiled = compile_contender(
      {.sources = {lane.entry.script}, .python = lane.entry.worker.python, .home = bakeoff_home()}, progress);
  lane.failure = compiled.failure;
  lane.entry.worker.command = command_of(compiled.program);
  return lane;
}

}  // namespace bakeoff
