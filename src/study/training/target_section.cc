#include "study/training/target_section.h"

#include <fmt/format.h>

#include "plan/rows.h"
#include "study/section_rows.h"
#include "study/training/learning_curves.h"
#include "study/training/target.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

constexpr const char* kConvergence[] = {"not compared", "within chance", "worse"};

std::string three_digits(double value) { return significant(value, 3); }

Json over_seeds(const std::optional<OverSeeds>& e) {
  return e ? estimate({e->value, e->interval.low, e->interval.high}) : Json(nullptr);
}

bool compared(const TargetRow& row) { return row.convergence != Convergence::kNotCompared; }

Cell against_the_referee(const TargetRow& row) {
  if (row.is_referee()) return {"float64, what the others are held against"};
  if (!compared(row)) return {};
  return {.text = fmt::format("{}: {} × its steps, p = {:.2g}",
                              kConvergence[static_cast<int>(row.convergence)], ratio(row.ratio), row.p),
          .ink = row.convergence == Convergence::kWorse ? Ink::kBad : Ink::kGood};
}

const std::vector<Quantity<TargetRow>> kQuantities = {
    contender_quantity<TargetRow>(),
    {{.key = "seeds"}, [](const TargetRow& r) { return Json(r.seeds); }},
    {{.key = "reached",
      .title = "reached",
      .meaning = "Trainings that reached the target, of those that did not fail.",
      .priority = 1,
      .left = true},
     [](const TargetRow& r) { return Json(r.reached); },
     [](const TargetRow& r) {
       return r.seeds > 0 ? Cell{fmt::format("{} of {}", r.reached, r.seeds)} : Cell{};
     }},
    {{.key = "steps",
      .csv = {{"steps", "/value"}},
      .title = "steps",
      .meaning = "Training steps to the target: geometric mean over the seeds, with its interval.",
      .range_title = "interval",
      .range_priority = 5},
     [](const TargetRow& r) { return over_seeds(r.steps); },
     three_digits},
    {{.key = "epochs",
      .csv = {{"epochs", "/value"}},
      .title = "epochs",
      .meaning = "Epochs to the target: the steps over those of an epoch.",
      .priority = 4},
     [](const TargetRow& r) { return over_seeds(r.epochs); },
     [](const TargetRow& r) { return r.epochs ? Cell{three_digits(r.epochs->value)} : Cell{}; }},
    {{.key = "seconds",
      .csv = {{"seconds", "/value"}},
      .title = "seconds",
      .meaning = "Seconds of training to the target, the first step with its compilation included.",
      .range_title = "interval",
      .range_priority = 3},
     [](const TargetRow& r) { return over_seeds(r.seconds); },
     three_digits},
    {{.key = "start_up_s",
      .in_csv = false,
      .title = "start-up",
      .meaning =
          "Time to start the process, import the framework and build the model; training comes on top.",
      .priority = 6},
     [](const TargetRow& r) { return r.is_referee() ? Json(nullptr) : number(r.start_up_s); },
     [](const TargetRow& r) { return r.start_up_s > 0 ? Cell{duration(1e3 * r.start_up_s)} : Cell{}; }},
    {{.key = "last_loss", .in_csv = false}, [](const TargetRow& r) { return number(r.best_loss); }},
    {{.key = "last_accuracy", .in_csv = false}, [](const TargetRow& r) { return number(r.best_accuracy); }},
    {{.key = "convergence",
      .in_csv = false,
      .title = "against the referee",
      .meaning = "Steps, seed by seed, over those of the referee's own training in float64.",
      .priority = 2,
      .left = true},
     [](const TargetRow& r) { return Json(kConvergence[static_cast<int>(r.convergence)]); },
     against_the_referee},
    {{.key = "p", .csv = {{"p_of_worse", ""}}},
     [](const TargetRow& r) { return compared(r) ? number(r.p) : Json(nullptr); }},
    {{.key = "steps_over_referee", .in_csv = false},
     [](const TargetRow& r) { return compared(r) ? number(r.ratio) : Json(nullptr); }},
    {{.key = "note", .in_csv = false}, [](const TargetRow& r) { return Json(r.note); }},
};

std::string legend(double alpha) {
  return fmt::format(
      "Geometric means over seeds: other initial weights and another order of the rows for each, the same "
      "for all contenders; intervals hold with {} each. Seconds are of training, compilation included, looks "
      "at the held-out rows left out; start-up comes on top. The referee judges all of them in float64. "
      "Against the referee: steps seed by seed over those of its own training; worse is said where chance "
      "explains it with {} at most, over all contenders together.",
      percent(1 - alpha), percent(alpha));
}

StudySection target_section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<TargetTrial>());
  const recipe::Recipe& recipe = context.recipe;
  const int64_t rows = trained_rows(recipe, context.manifest.data_rows, recipe.target.rows);
  const auto found =
      target_rows(trials, context.ids(), recipe.target, rows, recipe.training.batch, recipe.alpha);
  if (found.empty()) return std::optional<Section>();
  Section section = target_section(found, target_text(recipe.target), recipe.alpha);
  section.pictures = target_curves(trials);
  section.remarks = target_notes(trials, recipe);
  return std::optional(std::move(section));
}

}  // namespace

Study target_study() {
  return {.name = "target",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.target.wanted(); },
          .run = train_to_target,
          .section = target_section_of_run};
}

Section target_section(const std::vector<TargetRow>& rows, const std::string& text, double alpha) {
  Section section = section_of(kQuantities, rows);
  section.key = "target";
  section.label = "Target";
  section.title = "Training to " + text;
  section.legend = legend(alpha);
  section.json = {{"target", text}, {"rows", json_rows(kQuantities, rows)}};
  add_csv(section, kQuantities, rows, "target_");
  return section;
}

}  // namespace bakeoff
