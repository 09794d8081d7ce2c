#include "suite/suite_run.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "recipe/recipe.h"
#include "run/budget_error.h"
#include "run/taken_profile.h"
#include "summary/summarise.h"

namespace bakeoff::suite {
namespace {

namespace fs = std::filesystem;

// What a killed process left before its run began holds no record.
void clear_half_made(const fs::path& run) {
  std::error_code ignored;
  if (fs::exists(run, ignored) && !fs::exists(run / "run.json", ignored)) fs::remove_all(run, ignored);
}

Result<Summary> race_entry(const SuiteSession& session, const Entry& entry) {
  TRY(recipe::Recipe recipe, recipe_of_suite(entry.recipe, session.record.every, entry.with));
  if (session.record.minutes > 0) {
    recipe.budget.minutes = suite::share(session.record);
    recipe.budget.includes_studies = true;
  }
  const auto of_share = [&](const Error& error) {
    if (session.record.minutes <= 0) return error;
    return run::of_budget(error, recipe, {"minutes"}, "its share of the suite's time");
  };
  if (const Status enough = check_budget(recipe); !enough) return of_share(enough.error());
  if (recipe::check_baseline(recipe, session.record.baseline)) recipe.baseline = session.record.baseline;
  const fs::path folder = session.folder / entry.folder;
  clear_half_made(folder);
  if (session.races) return session.races->race(recipe, folder);
  const auto calibration = run::take_profile(session.profile, recipe, session.with.tell.line);
  if (!calibration) return of_share(calibration.error());
  return run::RealRaces(session.with, *calibration).race(recipe, folder);
}

Input input_of(const Entry& entry, const fs::path& folder) {
  Input input{.name = entry.name, .recipe = entry.recipe, .folder = entry.folder, .failure = entry.failure};
  std::error_code ignored;
  if (!fs::exists(folder / entry.folder / "run.json", ignored)) {
    if (input.failure.empty())
      input.failure = entry.state == EntryState::kWaiting
                          ? "was not raced: the suite was stopped before its turn"
                          : "was not raced: the suite was stopped while it was prepared";
    return input;
  }
  const auto directory = RunDirectory::open(folder / entry.folder);
  auto summary = directory ? summarise(*directory) : Result<Summary>(directory.error());
  if (!summary) {
    input.failure = summary.error().line();
    return input;
  }
  summary->interrupted = entry.state == EntryState::kRunning;
  input.summary = std::move(*summary);
  return input;
}

}  // namespace

Result<recipe::Recipe> recipe_of_suite(const fs::path& file, const std::string& every,
                                       const std::string& with) {
  TRY(const recipe::Recipe recipe, recipe::load(file));
  TRY(const recipe::Recipe raced, recipe::with_every(recipe, every));
  return recipe::with_every(raced, with, "the row's [row.with]");
}

std::optional<double> longest_s(const SuiteSession& session) {
  double sum = 0;
  for (const Entry& entry : session.record.entries) {
    if (!entry.open()) continue;
    const auto recipe = recipe_of_suite(entry.recipe, session.record.every, entry.with);
    if (!recipe) continue;
    if (session.record.minutes <= 0 && recipe->budget.unlimited_time()) return std::nullopt;
    sum += 60 * (session.record.minutes > 0 ? suite::share(session.record) : recipe->budget.minutes);
  }
  return sum;
}

Status race_all(SuiteSession& session) {
  const size_t all = session.record.entries.size();
  // Each moment of the command is some recipe's: also that in which the race before was reported.
  int64_t booked_ns = session.with.begin_ns;
  const auto book = [&](Entry& entry) {
    const int64_t now_ns = monotonic_clock().now_ns();
    entry.seconds += 1e-9 * static_cast<double>(now_ns - std::exchange(booked_ns, now_ns));
  };
  for (size_t i = 0; i < all && !proc::interrupted(); ++i) {
    Entry& entry = session.record.entries[i];
    if (entry.state == EntryState::kFailed)
      session.with.tell.line(
          fmt::format("recipe {} of {}: {} cannot be raced: {}", i + 1, all, entry.name, entry.failure));
    if (!entry.open()) continue;
    entry.state = EntryState::kRunning;
    book(entry);
    CHECK_OK(write(session.record, session.folder));
    session.with.tell.line(fmt::format("recipe {} of {}: {}, in {}", i + 1, all, entry.name,
                                       (session.folder / entry.folder).string()));
    const auto summary = race_entry(session, entry);
    book(entry);
    if (!proc::interrupted()) {
      entry.state = summary ? EntryState::kEnded : EntryState::kFailed;
      if (!summary) entry.failure = summary.error().line();
      if (!summary) session.with.tell.line(fmt::format("{}: {}", entry.name, entry.failure));
    }
    CHECK_OK(write(session.record, session.folder));
    if (summary) CHECK_OK(session.ended(*summary, session.folder / entry.folder));
  }
  return Done{};
}

std::vector<Input> inputs_of_folder(const Record& record, const fs::path& folder) {
  std::vector<Input> inputs;
  for (const Entry& entry : record.entries) inputs.push_back(input_of(entry, folder));
  return inputs;
}

Result<Table> table_of_folder(const Record& record, const fs::path& folder, const std::string& baseline) {
  const std::vector<Input> inputs = inputs_of_folder(record, folder);
  const Table table = table_of(record.name, inputs, baseline.empty() ? record.baseline : baseline);
  if (!baseline.empty()) CHECK_OK(check_baseline(baseline, table.contenders));
  return table;
}

Result<Record> resumed_record(const fs::path& folder, double minutes) {
  TRY(Record record, read(folder));
  if (minutes > 0) {
    record.minutes = minutes;
    for (Entry& entry : record.entries) entry.seconds = 0;
  }
  for (Entry& entry : record.entries) {
    if (entry.state != EntryState::kFailed) continue;
    entry.state = EntryState::kWaiting;
    entry.failure.clear();
  }
  return record;
}

}  // namespace bakeoff::suite
