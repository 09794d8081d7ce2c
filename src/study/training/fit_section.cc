// Whole trainings with several seeds. A row shows the median and the range of the seeds that ended well,
// since three to five trainings carry no interval worth printing; where none ended well it shows no time.
// Losses and accuracies stand beside the seconds: a training that was quicker because it learned less is no
// quicker training.

#include "study/training/fit_section.h"

#include <fmt/format.h>

#include "plan/rows.h"
#include "study/section_rows.h"
#include "study/training/fit.h"
#include "study/training/learning_curves.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

// Losses may be small: three digits at any size.
std::string three(double value) { return value < 1 ? fmt::format("{:.3g}", value) : significant(value, 3); }

// Accuracies lie close together: two decimals.
std::string share(double value) { return fmt::format("{:.2f}%", 100 * value); }

std::string seconds_text(double seconds) { return duration(1e3 * seconds); }

std::string times(double ratio) { return fmt::format("{:.2f} ×", ratio); }

// null where no training ended well.
Json if_trained(const FitRow& row, Json value) { return row.seeds > 0 ? std::move(value) : Json(nullptr); }

Json over_seeds(const std::optional<SeedRange>& range) {
  if (!range) return nullptr;
  return {{"value", number(range->median)}, {"least", number(range->least)}, {"most", number(range->most)}};
}

Cell over_seeds(const std::optional<SeedRange>& range, std::string (*show)(double)) {
  if (!range) return {};
  if (range->least == range->most) return {show(range->median)};
  return {fmt::format("{} ({} to {})", show(range->median), show(range->least), show(range->most))};
}

std::optional<SeedRange> seconds_of(const FitRow& row) {
  return row.seeds > 0 ? std::optional(row.seconds) : std::nullopt;
}

Json wait_share(const FitRow& row) {
  if (!row.wait_s || row.seeds == 0 || !(row.seconds.median > 0)) return nullptr;
  return number(*row.wait_s / row.seconds.median);
}
std::string one_decimal(double share) { return fmt::format("{:.1f}%", 100 * share); }

Cell loss_cell(const FitRow& row) {
  Cell cell = over_seeds(row.loss, three);
  if (row.outlier) cell.ink = Ink::kBad;
  return cell;
}

const std::vector<Quantity<FitRow>> kTime = {
    contender_quantity<FitRow>(),
    {{.key = "seeds"}, [](const FitRow& r) { return Json(r.seeds); }},
    {{.key = "seconds",
      .csv = {{"seconds", "/value"}},
      .title = "seconds",
      .meaning = "Seconds of training, the first step with its compilation included."},
     [](const FitRow& r) { return over_seeds(seconds_of(r)); },
     [](const FitRow& r) { return over_seeds(seconds_of(r), three); }},
    {{.key = "epochs",
      .csv = {{"epochs_trained", "/value"}},
      .title = "epochs",
      .meaning = "Epochs trained, where a training may end early (fit.patience).",
      .priority = 2},
     [](const FitRow& r) { return over_seeds(r.epochs); },
     [](const FitRow& r) { return over_seeds(r.epochs, [](double n) { return fmt::format("{:.0f}", n); }); }},
    {{.key = "seconds_per_epoch",
      .title = "an epoch",
      .meaning = "Seconds of the median epoch.",
      .priority = 4},
     [](const FitRow& r) { return if_trained(r, number(r.epoch_s)); },
     three},
    {{.key = "wait_seconds"}, [](const FitRow& r) { return number(r.wait_s); }},
    {{.key = "wait_share",
      .in_csv = false,
      .title = "wait",
      .meaning = "Share of the seconds in which the training loop had no batch.",
      .priority = 3,
      .ink = Ink::kDim},
     wait_share,
     one_decimal},
    {{.key = "seconds_over_steps",
      .in_csv = false,
      .title = "over steps",
      .meaning = "Seconds of training over what the race's step time makes of as many steps.",
      .priority = 5,
      .ink = Ink::kDim},
     [](const FitRow& r) { return number(r.over_steps); },
     times},
    {{.key = "start_up_s",
      .csv = {{"start_up_seconds", ""}},
      .title = "start-up",
      .meaning =
          "Time to start the process, import the framework and build the model; training comes on top.",
      .priority = 6},
     [](const FitRow& r) { return if_trained(r, number(r.start_up_s)); },
     seconds_text},
};

const std::vector<Quantity<FitRow>> kWorth = {
    {{.key = "loss",
      .csv = {{"loss", "/value"}},
      .title = "loss",
      .meaning = "Loss of rows that were trained on, as the referee predicts them in float64.",
      .priority = 1},
     [](const FitRow& r) { return over_seeds(r.loss); },
     loss_cell},
    {{.key = "held_out_loss",
      .csv = {{"held_out_loss", "/value"}},
      .title = "held-out loss",
      .meaning = "Loss of rows that were not trained on, as the referee predicts them in float64.",
      .priority = 7},
     [](const FitRow& r) { return over_seeds(r.held_loss); },
     [](const FitRow& r) { return over_seeds(r.held_loss, three); }},
    {{.key = "accuracy",
      .csv = {{"accuracy", "/value"}},
      .title = "accuracy",
      .meaning = "Share of right predictions, of the rows held out or else of rows that were trained on."},
     [](const FitRow& r) { return over_seeds(r.accuracy); },
     [](const FitRow& r) { return over_seeds(r.accuracy, share); }},
    {{.key = "far_from_group", .in_csv = false}, [](const FitRow& r) { return Json(r.outlier); }},
    {{.key = "note", .in_csv = false}, [](const FitRow& r) { return Json(r.note); }},
};

const std::vector<Quantity<FitRow>>& quantities() {
  static const std::vector<Quantity<FitRow>> all = [] {
    std::vector<Quantity<FitRow>> both = kTime;
    both.insert(both.end(), kWorth.begin(), kWorth.end());
    return both;
  }();
  return all;
}

std::string legend(const FitFacts& f) {
  const std::string seeds = f.seeds > 1
                                ? fmt::format("Medians over {} seeds, with least and greatest", f.seeds)
                                : "One training each";
  const std::string held =
      f.held > 0 ? fmt::format(", held-out loss and accuracy of {} rows that were not trained on",
                               count(static_cast<double>(f.held)))
                 : ", accuracy of the same rows";
  return fmt::format(
      "{}, in a process of its own; no error rate is claimed. Seconds are of training, the first step with "
      "its compilation included; start-up comes on top. Wait: share of them in which the loop had no batch. "
      "Over steps: seconds over what the race's step time makes of them. Afterwards the referee predicts in "
      "float64: loss is that of {} rows that were trained on{}. Within a precision losses {} apart may be "
      "chance; more is noted.",
      seeds, count(static_cast<double>(f.trained)), held, percent(f.tolerance));
}

struct FitTable {
  std::vector<FitRow> rows = {};
  FitFacts facts = {};
};

Result<FitTable> read_fits(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<FitTrial>());
  const recipe::Recipe& recipe = context.recipe;
  const bool as_is = recipe.training.track == ir::Track::kAsIs;
  const int64_t held = held_rows(recipe);
  const int64_t rows = trained_rows(recipe, context.manifest.data_rows, held);
  const auto& losses = context.manifest.referee_losses;
  return FitTable{.rows = fit_rows(trials, context.contenders, recipe.fit,
                                   {.rows = rows,
                                    .batch = recipe.training.batch,
                                    .untrained_loss = losses.empty() ? 0 : losses.front(),
                                    .as_is = as_is}),
                  .facts = {.text = fit_text(recipe, rows),
                            .epochs = recipe.fit.epochs,
                            .seeds = recipe.fit.seeds,
                            .held = held,
                            .trained = trained_sample(recipe, rows),
                            .tolerance = as_is ? kLossToleranceAsIs : kLossTolerance}};
}

StudySection section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const FitTable fits, read_fits(directory, context));
  if (fits.rows.empty()) return std::optional<Section>();
  Section section = fit_section(fits.rows, fits.facts);
  TRY(const auto trials, directory.read<FitTrial>());
  section.pictures = fit_curves(trials);
  return std::optional(std::move(section));
}

}  // namespace

Study fit_study() {
  return {.name = "fit",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.fit.wanted(); },
          .run = fit,
          .section = section_of_run};
}

Section fit_section(const std::vector<FitRow>& rows, const FitFacts& facts) {
  Section section = section_of(quantities(), rows);
  section.key = "fit";
  section.label = "Whole training";
  section.title = "Whole training: " + facts.text;
  section.legend = legend(facts);
  section.json = {{"what", facts.text},
                  {"epochs", facts.epochs},
                  {"held_out_rows", facts.held},
                  {"trained_rows", facts.trained},
                  {"loss_tolerance", number(facts.tolerance)},
                  {"rows", json_rows(quantities(), rows)}};
  for (const FitRow& row : rows) {
    const bool trained = row.seeds > 0;
    Fields fields = {{"fit_epochs", trained ? std::to_string(facts.epochs) : ""}};
    for (auto& field : fields_of(quantities(), trained ? &row : nullptr, "fit_"))
      fields.push_back(std::move(field));
    add_fields(section, row.contender, fields);
  }
  return section;
}

Result<std::vector<std::pair<std::string, double>>> fit_seconds(const RunDirectory& directory,
                                                                const StudyContext& context) {
  TRY(const FitTable fits, read_fits(directory, context));
  std::vector<std::pair<std::string, double>> seconds;
  for (const FitRow& row : fits.rows) {
    if (row.seeds > 0) seconds.emplace_back(row.contender, row.seconds.median);
  }
  return seconds;
}

}  // namespace bakeoff
