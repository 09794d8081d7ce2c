#include <fmt/format.h>

#include "base/files.h"
#include "base/nearest.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/recipe_options.h"
#include "data/data.h"
#include "data/image_sets.h"
#include "ir/cost.h"
#include "ir/op_table.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "plan/plan.h"
#include "recipe/recipe.h"
#include "recipe/schema.h"
#include "recipe/shipped.h"
#include "zoo/zoo.h"

namespace bakeoff::cli {
namespace {

constexpr int kWorkloadColumn = 20, kOpColumn = 23;  // of what is said of them

Result<ir::Workload> find_workload(const std::string& what) {
  if (what.ends_with(".toml")) {
    TRY(const auto recipe, chosen_recipe(what));
    return recipe.workload;
  }
  if (what.ends_with(".ir")) {
    TRY(const std::string text, read_file(what));
    return ir::parse(text, what);
  }
  auto shipped = zoo::build(what);
  if (!shipped && recipe::find_shipped(what) != nullptr) {
    TRY(const auto recipe, chosen_recipe(what));
    return recipe.workload;
  }
  return shipped;
}

}  // namespace

int emit(const EmitOptions& options) {
  const auto recipe = chosen_recipe(options.recipe, options.changes);
  if (!recipe) return fail(recipe.error());
  ConsoleProgress progress;
  if (const auto done = write_scripts(*recipe, options.out, progress.lines()); !done)
    return fail(done.error());
  fs::path first;
  for (const auto& contender : recipe->contenders) {
    print((options.out / contender.file).string() + "\n");
    if (const fs::path file = contender.file; first.empty() && file.extension() == ".py") first = file;
  }
  if (!first.empty())
    progress.lines()(fmt::format("each runs alone: bakeoff exec {}", (options.out / first).string()));
  return 0;
}

int show(const ShowOptions& options) {
  const auto workload = find_workload(options.what);
  if (!workload) return fail(workload.error());
  print(ir::dump(*workload));
  const auto types = *ir::infer(*workload);
  print("\nvalues\n");
  for (ir::ValueId id = 0; id < workload->value_count(); ++id) {
    print(
        fmt::format("  {:<20} {}\n", workload->value_name(id), ir::to_text(types[static_cast<size_t>(id)])));
  }
  const auto cost = *ir::step_cost(*workload, {}, 1);
  print(fmt::format(
      "\n{} trained parameters\nfor each row of a batch: {:.4g} MFLOP forward, {:.4g} MFLOP backward\n",
      workload->parameter_count(), static_cast<double>(cost.flops_forward) / 1e6,
      static_cast<double>(cost.flops_backward) / 1e6));
  const auto kinds = *ir::cost_by_op(*workload, 1);
  for (const ir::OpCost& kind : kinds) {
    if (kind.cost.flops() == 0) continue;
    print(fmt::format("  {:<20} {} FLOP forward, {} FLOP backward\n", ir::info(kind.op).name,
                      kind.cost.flops_forward, kind.cost.flops_backward));
  }
  return 0;
}

int ops(const OpsOptions& options) {
  if (options.workloads) {
    for (const auto& entry : zoo::entries()) print(two_columns(entry.name, kWorkloadColumn, entry.doc));
  } else if (options.markdown) {
    print(ir::ops_markdown());
  } else {
    for (const auto& row : ir::op_table()) print(two_columns(row.name, kOpColumn, row.doc));
  }
  return 0;
}

int recipe(const RecipeOptions& options) {
  if (options.schema) print(recipe::json_schema());
  if (options.markdown) print(recipe::markdown());
  if (options.recipe.empty()) {
    if (options.schema || options.markdown) return 0;
    return fail(
        {.message = "name a recipe to check, or ask for --schema",
         .remedy =
             "for example `bakeoff recipe mnist_cnn`; `bakeoff recipes` lists those inside this program"});
  }
  const auto checked = chosen_recipe(options.recipe, options.changes);
  if (!checked) return fail(checked.error());
  print(fmt::format("{}: {}, {} contenders, {} track\n", checked->file.string(), checked->workload.name,
                    checked->contenders.size(), ir::name(checked->training.track)));
  for (const auto& contender : checked->contenders) print("  " + contender.id + "\n");
  return 0;
}

int data(const DataOptions& options) {
  ConsoleProgress progress;
  const fs::path cache = bakeoff_home() / "data";
  for (const ImageSet* set : image_sets()) {
    if (set->name != options.name) continue;
    if (const auto done = prepare_images(*set, cache, progress.lines()); !done) return fail(done.error());
    print(split_file(cache, *set, "train").string() + "\n");
  }
  return 0;
}

}  // namespace bakeoff::cli
