// The commands that write or show sources: emit, show, ops, recipe. They touch no framework and start no
// process, so that they work on a machine where nothing is installed.

#include <fmt/format.h>

#include "base/files.h"
#include "base/nearest.h"
#include "base/texts.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/recipe_options.h"
#include "cli/usage.h"
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
#include "table/numbers.h"
#include "zoo/zoo.h"

namespace bakeoff::cli {
namespace {

struct EmitOptions {
  fs::path recipe = {};
  RecipeChanges changes = {};
  fs::path out = {};
};
struct OpsOptions {
  bool markdown = false;
  bool workloads = false;
};
struct RecipeOptions {
  fs::path recipe = {};  // checked if given
  RecipeChanges changes = {};
  bool schema = false;
  bool markdown = false;
};

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

int show(const std::string& what) {
  const auto workload = find_workload(what);
  if (!workload) return fail(workload.error());
  print(ir::dump(*workload));
  const auto cost = ir::step_cost(*workload, {}, 1);
  const auto kinds = ir::cost_by_op(*workload, 1);
  if (!cost || !kinds) return fail(cost ? kinds.error() : cost.error());
  const auto types = *ir::infer(*workload);
  print("\nvalues\n");
  for (ir::ValueId id = 0; id < workload->value_count(); ++id) {
    print(
        fmt::format("  {:<20} {}\n", workload->value_name(id), ir::to_text(types[static_cast<size_t>(id)])));
  }
  print(fmt::format(
      "\n{} trained parameters{}\nfor each row of a batch: {:.4g} MFLOP forward, {:.4g} MFLOP backward\n",
      workload->parameter_count(),
      workload->frozen_count() > 0 ? fmt::format(", {} frozen", workload->frozen_count()) : "",
      static_cast<double>(cost->flops_forward) / 1e6, static_cast<double>(cost->flops_backward) / 1e6));
  for (const ir::OpCost& kind : *kinds) {
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
  print(fmt::format("{}: {}, {}, {} track\n", checked->file.string(), checked->workload.name,
                    table::counted(std::ssize(checked->contenders), "contender"),
                    ir::name(checked->training.track)));
  for (const auto& contender : checked->contenders) print("  " + contender.id + "\n");
  return 0;
}

int fetch_data(const std::string& name) {
  ConsoleProgress progress;
  const fs::path cache = bakeoff_home() / "data";
  for (const ImageSet* set : image_sets()) {
    if (set->name != name) continue;
    if (const auto done = prepare_images(*set, cache, progress.lines()); !done) return fail(done.error());
    print(split_file(cache, *set, "train").string() + "\n");
  }
  return 0;
}

Action add_emit(CLI::App& sub) {
  const auto options = std::make_shared<EmitOptions>();
  sub.add_option("recipe", options->recipe, kRecipeDoc)->required();
  add_recipe_options(sub, options->changes);
  sub.add_option("--out", options->out, "folder")->required();
  return [options](const Invocation&) { return emit(*options); };
}

Action add_show(CLI::App& sub) {
  const auto what = std::make_shared<std::string>();
  sub.add_option("what", *what, "shipped workload, .ir file, or recipe")->required();
  return [what](const Invocation&) { return show(*what); };
}

Action add_ops(CLI::App& sub) {
  const auto options = std::make_shared<OpsOptions>();
  sub.add_flag("--markdown", options->markdown, "docs/ops.md");
  sub.add_flag("--workloads", options->workloads, "list workloads instead");
  return [options](const Invocation&) { return ops(*options); };
}

Action add_recipe(CLI::App& sub) {
  const auto options = std::make_shared<RecipeOptions>();
  sub.add_option("recipe", options->recipe, std::string(kRecipeDoc) + ", to check");
  add_recipe_options(sub, options->changes);
  sub.add_flag("--schema", options->schema, "JSON Schema");
  sub.add_flag("--markdown", options->markdown, "docs/recipe.md");
  return [options](const Invocation&) { return recipe(*options); };
}

Action add_data(CLI::App& sub) {
  const auto chosen = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const ImageSet* set : image_sets()) names.push_back(set->name);
  sub.add_option("name", *chosen, join(names, ", "))->required()->check(one_of(names));
  return [chosen](const Invocation&) { return fetch_data(*chosen); };
}

}  // namespace

const Command kEmit = {
    "emit", "Write the training scripts of a recipe, with data and weights; they run alone",
    "bakeoff emit mnist_cnn --out scripts && bakeoff exec scripts/train_torch.py", add_emit};
const Command kShow = {"show", "Show a workload: IR text, shapes, parameters, FLOPs and bytes of a step",
                       "bakeoff show mnist_cnn", add_show, Home::kUnused};
const Command kOps = {"ops", "List the ops of the IR, or the shipped workloads", "bakeoff ops --workloads",
                      add_ops, Home::kUnused};
const Command kRecipe = {"recipe", "Check a recipe, or print the schema of recipes",
                         "bakeoff recipe mnist_cnn", add_recipe, Home::kUnused};
const Command kData = {"data", "Download a data set and check it", "bakeoff data mnist", add_data};

}  // namespace bakeoff::cli
