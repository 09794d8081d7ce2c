#include <fmt/format.h>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/output.h"
#include "cli/recipe_options.h"
#include "cli/surroundings.h"
#include "evidence/precision.h"
#include "parity/proof_variants.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"
#include "table/numbers.h"

namespace bakeoff::cli {

struct ParityOptions {
  fs::path recipe = {};
  RecipeChanges changes = {};
  fs::path out = {};  // empty: a temporary folder
};

namespace {

// A precision variant is not the same: its float32 twin is.
std::string agreement(const Parity& parity) {
  if (const auto logits = logit_distance(parity))
    return fmt::format("its float32 counterpart is equal; from it the logits differ by {:.1e}", *logits);
  const auto loss = loss_distance(parity), gradients = gradient_distance(parity);
  if (!loss || !gradients) return "same";
  return fmt::format(
      "its float32 counterpart is equal; from it the loss differs by {:.1e}, the gradients by {:.1e}", *loss,
      *gradients);
}

std::string text_of(const Parity& parity) {
  std::string text = fmt::format("{}: {}\n", parity.contender,
                                 parity.failure    ? "FAILED in stage " + parity.failure->text()
                                 : parity.passed() ? agreement(parity)
                                                   : "DIFFERS, first at " + parity.diverges_at);
  if (!parity.explanation.empty()) text += "  " + parity.explanation + "\n";
  for (const ParityCheck& check : parity.checks) {
    text +=
        fmt::format("  {} {:<24} worst {:<28} {:.1e}  (tolerance {:.0e})\n", check.passed ? "ok  " : "DIFF",
                    check.what, check.tensor, check.error, check.tolerance);
  }
  if (parity.failure && !parity.failure->log_tail.empty()) text += parity.failure->log_tail + "\n";
  return text;
}

int parity(const ParityOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  auto recipe = chosen_recipe(options.recipe, options.changes);
  if (!recipe) return fail(recipe.error());
  recipe->race.proofs_alone = true;
  const auto temporary = TemporaryFolder::make("parity");
  if (!temporary) return fail(temporary.error());
  const fs::path folder = options.out.empty() ? temporary->path() : options.out;
  const auto proven = [&]() -> Result<std::vector<Parity>> {
    ConsoleProgress progress;
    TRY(run::Surroundings with, surroundings(config, progress));
    with.proofs.clear();
    if (const std::string how = environments_to_make(*recipe, with.interpreters); !how.empty())
      with.tell.line(how);
    TRY(run::Session session, run::Session::make(*recipe, folder, with));
    session.limit({.minutes = recipe::Budget::kNoLimit});
    const size_t count = session.plan().lanes.size();
    with.tell.line(fmt::format("{}: about {} on two quiet processors",
                               table::counted(static_cast<int64_t>(count), "contender"),
                               table::duration(1e3 * kProofSeconds * static_cast<double>(count))));
    CHECK_OK(session.prove());
    std::vector<Parity> all = session.parities();
    for (const Lane& lane : session.plan().lanes) {
      if (lane.failure) all.push_back({.contender = lane.entry.contender.id, .failure = lane.failure});
    }
    return all;
  }();
  if (!proven) return fail(proven.error());
  bool same = true;
  for (const Parity& one : *proven) {
    print(text_of(one));
    same = same && one.passed();
  }
  if (proc::interrupted()) return kInterrupted;
  return same ? 0 : 1;
}

Action add_parity(CLI::App& sub) {
  const auto options = std::make_shared<ParityOptions>();
  sub.add_option("recipe", options->recipe, kRecipeDoc)->required();
  add_recipe_options(sub, options->changes);
  sub.add_option("--out", options->out, "keep scripts, logs and records here");
  return [options](const Invocation& line) { return parity(*options, line.config); };
}

}  // namespace

const Command kParity = {"parity", "Run only the parity gate: do all contenders compute the same?",
                         "bakeoff parity mnist_cnn", add_parity};

}  // namespace bakeoff::cli
