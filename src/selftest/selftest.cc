// A benchmark that finds what was planted, and nothing where nothing was planted, on the machine that it will
// be used on. The slowdown is real work, an extra step of every fiftieth, twentieth or tenth, because a sleep
// would leave the processor cool and its caches alone. The liar leaves out the barrier at the end of a burst;
// an honest worker of the same framework runs beside it, as a check that accuses everybody would pass
// otherwise. Everything goes through recipes and the code of `bakeoff run`: a path of its own would test
// itself.

#include "selftest/selftest.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "selftest/selftest_scripts.h"

namespace bakeoff {
namespace {

constexpr int kEvery[] = {50, 20, 10};  // 2%, 5%, 10%
constexpr double kPlantedShare = 0.6;   // of the time, at most
constexpr std::string_view kBursts = "bursts = 6\nburst_seconds = 0.5\n";
constexpr std::string_view kShortBursts = "bursts = 4\nburst_seconds = 0.25\n";

// A contender of the self-test: the emitted script and what is done to it.
struct Variant {
  std::string name;
  std::string source;
};

// As a recipe says it.
std::string contender_keys(const SelfTestContender& contender) {
  std::string keys = fmt::format("framework = \"{}\"", contender.framework->name);
  for (const auto& [setting, value] : contender.named) keys += fmt::format(", {} = \"{}\"", setting, value);
  return keys;
}

std::string recipe_text(const SelfTestContender& contender, const std::vector<Variant>& variants,
                        std::string_view bursts = kBursts) {
  std::string rows;
  for (const Variant& v : variants)
    rows += fmt::format("  {{ {}, script = \"{}{}\" }},\n", contender_keys(contender), v.name,
                        contender.framework->extension);
  if (variants.empty()) rows = fmt::format("  {{ {} }},\n", contender_keys(contender));
  return fmt::format(
      "name = \"selftest\"\nworkload = \"selftest.ir\"\nbatch = 128\nmargin = {}\nalpha = {}\n"
      "contenders = [\n{}]\n"
      "[data]\nsamples = 1024\n[optimizer]\nkind = \"sgd\"\nlr = 0.01\n"
      "[race]\nthreads = 1\nwarmup_steps = 40\n{}allocator = \"tuned\"\n"
      "stage_seconds = 120\n",
      kSelfTestMargin, kSelfTestAlpha, rows, bursts);
}

Result<recipe::Recipe> load_recipe(const fs::path& folder, const std::string& file, const std::string& text) {
  CHECK_OK(write_file(folder / file, text));
  return recipe::load(folder / file);
}

// The script as it is emitted for every contender, and its layout; empty if it has none.
struct Emitted {
  std::string source;
  std::string layout;
};
Result<Emitted> emitted_by(const fs::path& folder, const SelfTestContender& contender,
                           const Progress& progress) {
  CHECK_OK(write_file(folder / "selftest.ir", selftest_workload()));
  TRY(const auto recipe, load_recipe(folder, "emit_" + contender.name + ".toml", recipe_text(contender, {})));
  const fs::path to = folder / ("emitted_" + contender.name);
  CHECK_OK(write_scripts(recipe, to, progress));
  const fs::path script = to / recipe.contenders[0].file;
  Emitted emitted;
  TRY(emitted.source, read_file(script));
  const fs::path layout = fs::path(script).replace_extension(".layout.json");
  if (fs::exists(layout)) {
    TRY(emitted.layout, read_file(layout));
  }
  return emitted;
}

// A plan of these variants, in its own run directory.
Result<Plan> plan_of(const fs::path& folder, const std::string& name, const SelfTestContender& contender,
                     const std::vector<Variant>& variants, const std::string& layout,
                     const Interpreters& interpreters, const Progress& progress,
                     std::string_view bursts = kBursts) {
  for (const Variant& v : variants) {
    CHECK_OK(write_file(folder / (v.name + contender.framework->extension), v.source));
    if (!layout.empty()) CHECK_OK(write_file(folder / (v.name + ".layout.json"), layout));
  }
  TRY(const auto recipe, load_recipe(folder, name + ".toml", recipe_text(contender, variants, bursts)));
  TRY(Plan plan, make_plan(recipe, folder / name, interpreters, progress));
  for (const Lane& lane : plan.lanes) {
    if (lane.failure) return Error{.message = contender.name + ": " + lane.failure->reason};
  }
  return plan;
}

std::string outcome_of(const Trial& trial) {
  if (trial.invalid) return *trial.invalid;
  return trial.failure ? trial.failure->text() : "";
}

bool is_installed(const SelfTestContender& contender, const Interpreters& interpreters) {
  const auto found = interpreters.find(contender.environment);
  return found != interpreters.end() && found->second.why_not.empty();
}

// One heat of an honest contender and of two that do not wait.
Status try_barriers(const SelfTestContender& contender, const fs::path& folder,
                    const Interpreters& interpreters, const Progress& progress, const Watch& watch,
                    SelfTestEvidence& evidence, std::vector<Trial>& trials) {
  const std::string& name = contender.name;
  const emit::Faults& faults = contender.framework->faults;
  TRY(const Emitted emitted, emitted_by(folder, contender, progress));
  const std::string without = emitted.source + faults.no_barrier;
  const std::vector<Variant> variants = {{name + "_honest", emitted.source},
                                         {name + "_read_late", without},
                                         {name + "_never_read", without + faults.unread_loss}};
  TRY(const Plan plan,
      plan_of(folder, "barrier_" + name, contender, variants, emitted.layout, interpreters, progress));
  const auto heat =
      run_heat(plan, {.number = 1'000'000, .members = {0, 1, 2}, .at_once = 2}, {}, watch, {.stage = "race"})
          .trials;
  if (proc::interrupted()) return Done{};
  const char* const what[] = {" as emitted", ", waited for after the clock was read", ", never waited for"};
  for (size_t i = 0; i < heat.size(); ++i)
    evidence.barriers.push_back({name + what[i], i > 0, outcome_of(heat[i])});
  trials.insert(trials.end(), heat.begin(), heat.end());
  return Done{};
}

// With every framework whose barrier can be taken away.
Status try_all_barriers(const fs::path& folder, const Interpreters& interpreters, const Progress& progress,
                        const Watch& watch, SelfTestEvidence& evidence, std::vector<Trial>& trials) {
  std::vector<std::string> absent;
  for (const SelfTestContender& contender : selftest_contenders()) {
    if (contender.framework->faults.no_barrier.empty()) continue;
    if (!is_installed(contender, interpreters)) {
      absent.push_back(contender.name);
      continue;
    }
    CHECK_OK(try_barriers(contender, folder, interpreters, progress, watch, evidence, trials));
  }
  if (evidence.barriers.empty())
    evidence.no_barriers = fmt::format("{}, which dispatches asynchronously on a CPU too, is not installed",
                                       join(absent, " or "));
  return Done{};
}

Result<const SelfTestContender*> choose(const std::string& wanted, const Interpreters& interpreters) {
  for (const SelfTestContender& contender : selftest_contenders()) {
    if (!wanted.empty() && wanted != contender.name) continue;
    if (is_installed(contender, interpreters)) return &contender;
    if (wanted.empty()) continue;
    return Error{.message = fmt::format("there is no environment for {}", wanted),
                 .remedy = "create it: bakeoff env create " + contender.environment};
  }
  return Error{.message = "no framework is installed that can be raced against itself",
               .remedy = "create one: bakeoff env create " + selftest_contenders().front().environment};
}

// Blocks of the self-test: member 0 is the reference, member 1 is identical, the others are planted.
class SelfTestRace {
 public:
  SelfTestRace(const Plan& plan, const SelfTestOptions& options, const TimeBudget& time, const Watch& watch,
               SelfTestEvidence& evidence)
      : plan_(plan), options_(options), time_(time), watch_(watch), evidence_(evidence) {}

  // Blocks until time is up.
  Status run(std::vector<Trial>& trials) {
    for (int heat = 1; !proc::interrupted() && time_.left_s() > last_s_ / 2; ++heat) {
      const std::vector<size_t> members = next_members();
      const int64_t begin = monotonic_clock().now_ns();
      const std::vector<Trial> fresh =
          run_heat(plan_, {.number = heat, .members = members, .at_once = 2}, {}, watch_,
                   {.stage = "race",
                    .heat = heat,
                    .elapsed_s = time_.spent_s(),
                    .left_s = time_.left_s(),
                    .contenders = static_cast<int>(plan_.lanes.size())})
              .trials;
      last_s_ = seconds_since(begin);
      if (proc::interrupted()) break;
      CHECK_OK(take(members, fresh));
      trials.insert(trials.end(), fresh.begin(), fresh.end());
    }
    return Done{};
  }

 private:
  std::vector<size_t> next_members() const {
    std::vector<size_t> members = {0, 1};
    if (time_.left_s() < (1 - kPlantedShare) * time_.seconds()) return members;
    for (size_t i = 0; i < evidence_.planted.size(); ++i) {
      if (!pairs_to_decide(evidence_.planted[i].d, kSelfTestAlpha)) members.push_back(2 + i);
    }
    return members;
  }

  Status take(const std::vector<size_t>& members, const std::vector<Trial>& fresh) {
    for (const Trial& trial : fresh) {
      if (const std::string fault = outcome_of(trial); !fault.empty())
        return Error{.message = fmt::format("{} cannot be raced: {}", trial.contender, fault)};
    }
    const auto reference = heat_value(fresh[0]);
    if (!reference) return Done{};
    for (size_t m = 1; m < fresh.size(); ++m) {
      const auto value = heat_value(fresh[m]);
      if (!value) continue;
      (members[m] == 1 ? evidence_.identical : evidence_.planted[members[m] - 2].d)
          .push_back(*value - *reference);
    }
    if (options_.record.empty()) return Done{};
    return append_line(options_.record, block_line(fresh[0], fresh[1]));
  }

  const Plan& plan_;
  const SelfTestOptions& options_;
  TimeBudget time_;
  const Watch& watch_;
  SelfTestEvidence& evidence_;
  double last_s_ = 0;
};

}  // namespace

SelfTestNames selftest_names() {
  SelfTestNames names;
  for (const SelfTestContender& contender : selftest_contenders()) {
    names.all.push_back(contender.name);
    names.plantable += contender.has_own_loop() ? 1 : 0;
  }
  return names;
}

std::string block_line(const Trial& a, const Trial& b) {
  nlohmann::ordered_json line;
  for (const auto& [key, trial] : {std::pair{"a", &a}, {"b", &b}}) {
    line[key] = nlohmann::ordered_json::array();
    for (const int64_t ns : trial->step_ns) line[key].push_back(static_cast<double>(ns) / 1e6);
    if (!trial->step_ns.empty()) continue;
    for (const Burst& burst : trial->bursts) line[key].push_back(burst.ms_per_step());
  }
  for (const auto& [key, trial] : {std::pair{"a_bursts", &a}, {"b_bursts", &b}}) {
    line[key] = nlohmann::ordered_json::array();
    for (size_t i = static_cast<size_t>(trial->warmup_bursts); i < trial->bursts.size(); ++i)
      line[key].push_back(trial->bursts[i].ms_per_step());
  }
  return dump(line);
}

Result<SelfTestEvidence> selftest(const SelfTestOptions& options, const Interpreters& interpreters,
                                  const Progress& progress, const Watch& watch) {
  const TimeBudget time(60 * options.minutes);
  SelfTestEvidence evidence;
  TRY(const SelfTestContender* contender, choose(options.framework, interpreters));
  evidence.framework = contender->name;
  CHECK_OK(make_folder(options.folder));
  std::vector<Trial> trials;
  if (options.identical_only)
    evidence.no_barriers = "nothing but identical contenders was asked for";
  else
    CHECK_OK(try_all_barriers(options.folder, interpreters, progress, watch, evidence, trials));
  TRY(const Emitted emitted, emitted_by(options.folder, *contender, progress));
  std::vector<Variant> variants = {{"reference", emitted.source}, {"twin", emitted.source}};
  for (const int every : kEvery) {
    if (options.identical_only || !contender->has_own_loop()) break;
    variants.push_back({fmt::format("planted_{}", every),
                        emitted.source + contender->framework->faults.repeated_steps(every)});
    evidence.planted.push_back({.every = every});
  }
  TRY(const Plan plan, plan_of(options.folder, "duel", *contender, variants, emitted.layout, interpreters,
                               progress, options.identical_only ? kShortBursts : kBursts));
  CHECK_OK(SelfTestRace(plan, options, time, watch, evidence).run(trials));
  evidence.host = tally(trials);
  return evidence;
}

}  // namespace bakeoff
