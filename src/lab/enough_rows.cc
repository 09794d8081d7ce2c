#include "lab/enough_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "emit/all/frameworks.h"

namespace bakeoff::lab {
namespace {

constexpr const char* kSetting = "steps_per_call";

Status check_batch(const recipe::Recipe& recipe, int64_t rows) {
  if (rows >= recipe.training.batch) return Done{};
  return Error{
      .message = fmt::format("a batch of {} rows, but the data has only {}", recipe.training.batch, rows),
      .where = recipe::where(recipe, "", "batch"),
      .remedy = fmt::format("set batch to at most {}", rows)};
}

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
    return Error{.message = fmt::format("{}: a call takes {} batches of {} rows, but the data has only {}",
                                        contender.id, batches, batch, rows),
                 .where = recipe::where(recipe, contender, kSetting),
                 .remedy = fmt::format("set {} to at most {}, or bring more data", kSetting, rows / batch)};
  }
  return Done{};
}

}  // namespace bakeoff::lab
