// How many rows of data a run needs is the largest need of its contenders: a script that runs several steps
// in a call takes as many batches at once, and one with fewer rows would have to repeat some or to stop, each
// framework in its own way. So it is an error before anything is started, and the message names the setting
// to lower. A recipe's batch alone must fit, too.

#include "plan/rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "ir/op_table.h"

namespace bakeoff {
namespace {

// The setting that says how many steps a call does.
std::string call_setting(const recipe::Contender& contender) {
  for (const emit::Setting& setting : emit::find_framework(contender.framework)->settings) {
    if (setting.steps_per_call) return setting.name;
  }
  return "";
}

Status check_batch(const recipe::Recipe& recipe, int64_t rows) {
  if (rows >= recipe.training.batch) return Done{};
  return Error{
      .message = fmt::format("a batch of {} rows, but the data has only {}", recipe.training.batch, rows),
      .where = recipe::where(recipe, "", "batch"),
      .remedy = fmt::format("set batch to at most {}", rows)};
}

constexpr int64_t kTestPictures = 10'000;

}  // namespace

int64_t least_batches(const recipe::Recipe& recipe, const recipe::Contender& contender) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  if (framework == nullptr || framework->least_batches == nullptr || !contender.script.empty()) return 1;
  return framework->least_batches({recipe.workload, recipe.training, contender.settings, contender.file});
}

int64_t least_rows(const recipe::Recipe& recipe) {
  int64_t batches = 1;
  for (const recipe::Contender& c : recipe.contenders) batches = std::max(batches, least_batches(recipe, c));
  return batches * recipe.training.batch;
}

Status check_rows(const recipe::Recipe& recipe, int64_t rows) {
  CHECK_OK(check_batch(recipe, rows));
  for (const recipe::Contender& contender : recipe.contenders) {
    const int64_t batches = least_batches(recipe, contender), batch = recipe.training.batch;
    if (rows / batch >= batches) continue;
    const std::string setting = call_setting(contender);
    return Error{.message = fmt::format("{}: a call takes {} batches of {} rows, but the data has only {}",
                                        contender.id, batches, batch, rows),
                 .where = recipe::where(recipe, contender, setting),
                 .remedy = fmt::format("set {} to at most {}, or bring more data", setting, rows / batch)};
  }
  return Done{};
}

Result<DataSpec> data_spec(const recipe::Recipe& recipe) {
  const recipe::Data& data = recipe.data;
  TRY(const DataKind kind, data_kind(data.kind));
  return DataSpec{.kind = kind,
                  .path = data.path,
                  .samples = data.samples,
                  .seed = recipe.training.seed,
                  .inputs = data.inputs,
                  .categories = data.categories,
                  .delimiter = data.delimiter[0],
                  .resize = data.resize,
                  .expansion = data.expansion};
}

bool has_test_split(const recipe::Recipe& recipe) {
  return recipe.data.kind == "mnist" || recipe.data.kind == "text";
}

Result<DataSet> test_split(const recipe::Recipe& recipe, const Progress& progress) {
  TRY(DataSpec spec, data_spec(recipe));
  spec.split = "test";
  return prepare(spec, recipe.workload, bakeoff_home() / "data", progress);
}

Result<int64_t> rows_to_hold_out(const recipe::Recipe& recipe, int64_t rows) {
  if (recipe.data.kind == "mnist") return kTestPictures;
  if (!has_test_split(recipe)) return std::max<int64_t>(rows - least_rows(recipe), 0);
  TRY(const DataSet test, test_split(recipe, [](const std::string&) {}));
  return test.rows;
}

bool has_classes(const ir::Workload& workload) {
  const ir::Node& loss = workload.first_loss();
  if (loss.op != ir::Op::kSoftmaxCrossEntropy || loss.inputs.size() < 2) return false;
  return workload.is_input(loss.inputs[1]);
}

Status check_target(const recipe::Recipe& recipe, int64_t rows) {
  const recipe::Target& target = recipe.target;
  if (target.accuracy && !has_classes(recipe.workload)) {
    return Error{
        .message = fmt::format("workload '{}' has no classes, so it has no accuracy", recipe.workload.name),
        .where = recipe::where(recipe, "target", "accuracy"),
        .remedy = "state target.loss instead"};
  }
  if (!target.wanted()) return Done{};
  TRY(const int64_t available, rows_to_hold_out(recipe, rows));
  if (target.rows <= available) return Done{};
  return Error{
      .message = fmt::format("{} rows are to be held out, but only {} can be", target.rows, available),
      .where = recipe::where(recipe, "target", "rows"),
      .remedy = "set target.rows to fewer, or bring more data"};
}

std::string target_text(const recipe::Target& target) {
  const std::string what = target.accuracy ? fmt::format("an accuracy of {:g}%", 100 * *target.accuracy)
                                           : fmt::format("a loss of {:g}", *target.loss);
  return fmt::format("{} on {} rows that are not trained on", what, target.rows);
}

int64_t held_rows(const recipe::Recipe& recipe) {
  if (recipe.fit.rows) return *recipe.fit.rows;
  return recipe.data.kind == "mnist" ? rows_to_hold_out(recipe, 0).value() : 0;
}

int64_t trained_rows(const recipe::Recipe& recipe, int64_t rows, int64_t held) {
  return has_test_split(recipe) ? rows : std::max<int64_t>(rows - held, 0);
}

int64_t trained_sample(const recipe::Recipe& recipe, int64_t rows) {
  const int64_t held = held_rows(recipe);
  return std::min(rows, held > 0 ? held : kTrainedSample);
}

Status check_fit(const recipe::Recipe& recipe, int64_t rows) {
  if (!recipe.fit.wanted()) return Done{};
  TRY(const int64_t available, rows_to_hold_out(recipe, rows));
  if (held_rows(recipe) <= available) return Done{};
  return Error{
      .message = fmt::format("{} rows are to be held out, but only {} can be", held_rows(recipe), available),
      .where = recipe::where(recipe, "fit", "rows"),
      .remedy = "set fit.rows to fewer, or bring more data"};
}

std::string fit_text(const recipe::Recipe& recipe, int64_t rows) {
  const recipe::Fit& fit = recipe.fit;
  const std::string text =
      fmt::format("{} epoch{} of {} rows", fit.epochs, fit.epochs == 1 ? "" : "s", grouped(rows));
  if (fit.patience == 0) return text;
  return fmt::format("at most {}, until the held-out loss has not fallen for {} epoch{}", text, fit.patience,
                     fit.patience == 1 ? "" : "s");
}

}  // namespace bakeoff
