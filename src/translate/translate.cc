#include "translate/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "parity/gate.h"
#include "plan/plan.h"
#include "proc/interrupt.h"
#include "translate/folder.h"

namespace bakeoff {
namespace {

constexpr const char* kRecord = "translation.json";

Error interrupted() { return {.message = "interrupted; nothing was written"}; }

// Absolute, without a slash at the end.
fs::path whole(const fs::path& path) {
  const fs::path normal = fs::absolute(path).lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// The nearest folder above that exists.
fs::path existing_parent(const fs::path& path) {
  fs::path parent = whole(path).parent_path();
  while (!fs::exists(parent) && parent.has_relative_path()) parent = parent.parent_path();
  return parent;
}

// What the gate needs of a recipe, without what belongs to a race.
recipe::Recipe without_studies(recipe::Recipe recipe) {
  recipe.latency = {};
  recipe.search = {};
  recipe.largest_batch = {};
  recipe.target = {};
  recipe.fit = {};
  recipe.published = {};
  return recipe;
}

std::string difference(const Parity& parity) {
  std::string text = fmt::format("differs, first at {} by {:.1e}", parity.diverges_at, parity.divergence);
  if (!parity.explanation.empty()) text += ": " + parity.explanation;
  return text;
}

class Translating {
 public:
  Translating(const TranslationJob& job, const Progress& progress, const Watch& watch)
      : job_(job), progress_(progress), watch_(watch) {
    for (const TranslationTarget& target : job.targets)
      rows_.push_back({.name = target.name, .title = target.framework->title});
  }

  Result<Translation> run() {
    TRY(const TemporaryFolder scratch, TemporaryFolder::make("translate"));
    TRY(const TemporaryFolder staging, TemporaryFolder::in(existing_parent(job_.out), ".translation_"));
    for (const ir::Scenario scenario : {ir::Scenario::kTrain, ir::Scenario::kPredict})
      CHECK_OK(prove(scenario, scratch.path() / ir::name(scenario)));
    const fs::path made = staging.path() / "made";
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].reason.empty()) CHECK_OK(write(i, made, scratch.path() / fmt::format("example_{}", i)));
    }
    Translation translation{
        .model = job_.source.title, .proof = job_.source.proof, .rows = rows_, .notes = job_.source.notes};
    const bool any =
        std::any_of(rows_.begin(), rows_.end(), [](const Translated& row) { return row.written(); });
    if (!any) return translation;
    translation.out = job_.out;
    CHECK_OK(write_file(made / "README.md", translation_readme(translation)));
    CHECK_OK(write_file(made / kRecord, to_json(translation)));
    CHECK_OK(put_in_place(made, staging.path() / "old"));
    return translation;
  }

 private:
  // Frameworks that train are proven to train alike, the others to predict alike.
  Status prove(ir::Scenario scenario, const fs::path& folder) {
    recipe::Recipe recipe = without_studies(job_.source.recipe);
    recipe.training.scenario = scenario;
    recipe.contenders.clear();
    std::vector<size_t> rows;
    for (size_t i = 0; i < job_.targets.size(); ++i) {
      const TranslationTarget& target = job_.targets[i];
      const bool trains = emit::can(*target.framework, ir::Scenario::kTrain);
      if (trains != (scenario == ir::Scenario::kTrain)) continue;
      recipe.contenders.push_back(recipe::emitted_contender(scenario, *target.framework, target.settings));
      rows.push_back(i);
    }
    if (rows.empty()) return Done{};
    TRY(Plan plan, make_plan(recipe, folder, job_.interpreters, progress_));
    TRY(const std::vector<Parity> parities, gate_all(plan, {}, watch_, bakeoff_home() / "proofs"));
    if (proc::interrupted()) return interrupted();
    for (size_t at = 0; at < rows.size(); ++at) {
      Translated& row = rows_[rows[at]];
      const std::optional<Failure>& failure = plan.lanes[at].failure;
      if (failure) {
        row.reason = failure->text();
        row.log = failure->log_tail;
      } else {
        take(parities, recipe.contenders[at].id, row);
      }
    }
    if (expected_.data.empty()) {
      const fs::path scripts = plan.directory.scripts();
      TRY(expected_, expected_output(recipe, scripts / "data.safetensors", scripts / "weights.safetensors"));
    }
    return Done{};
  }

  static void take(const std::vector<Parity>& parities, const std::string& id, Translated& row) {
    const auto found = std::find_if(parities.begin(), parities.end(),
                                    [&](const Parity& parity) { return parity.contender == id; });
    if (found == parities.end()) {
      row.reason = "it was not proven";
      return;
    }
    row.parity = *found;
    if (found->failure) {
      row.reason = found->failure->text();
      row.log = found->failure->log_tail;
    } else if (!found->passed()) {
      row.reason = difference(*found);
    }
  }

  // A proven framework's folder; removed again if its example fails.
  Status write(size_t i, const fs::path& made, const fs::path& scratch) {
    const TranslationTarget& target = job_.targets[i];
    Translated& row = rows_[i];
    const fs::path folder = made / target.folder();
    progress_(fmt::format("{} is written, and runs alone", row.name));
    TRY(const emit::Example example, write_translated(job_, target, row, expected_, folder));
    CHECK_OK(make_folder(scratch));
    const auto said = run_example(folder, example, *target.framework,
                                  job_.interpreters.at(target.framework->environment(target.settings)).python,
                                  job_.source.recipe.race.stage_seconds, scratch);
    if (proc::interrupted()) return interrupted();
    if (said) {
      row.folder = target.folder();
      row.example = *said;
      return Done{};
    }
    const std::string& why = said.error().message;
    const size_t end = std::min(why.find('\n'), why.size());
    row.reason = fmt::format("its {} fails alone: {}", example.file, why.substr(0, end));
    row.log = why.substr(std::min(end + 1, why.size()));
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    return Done{};
  }

  // What was there before goes when the new translation is in its place.
  Status put_in_place(const fs::path& made, const fs::path& old) const {
    CHECK_OK(check_translation_folder(job_.out, job_.force));
    const fs::path out = whole(job_.out);
    CHECK_OK(make_folder(out.parent_path()));
    std::error_code code;
    if (fs::exists(out) && fs::is_empty(out)) {  // perhaps where the user's shell is
      for (const auto& entry : fs::directory_iterator(made))
        if (!code) fs::rename(entry.path(), out / entry.path().filename(), code);
    } else {
      const bool replaces = fs::exists(out);
      if (replaces) fs::rename(out, old, code);
      if (!code) fs::rename(made, out, code);
      std::error_code ignored;
      if (code && replaces && !fs::exists(out)) fs::rename(old, out, ignored);
    }
    if (!code) return Done{};
    return Error{.message = fmt::format("cannot write '{}': {}", job_.out.string(), code.message())};
  }

  const TranslationJob& job_;
  const Progress& progress_;
  const Watch& watch_;
  std::vector<Translated> rows_;
  tensor::Tensor expected_;
};

}  // namespace

Status check_translation_folder(const fs::path& out, bool force) {
  std::error_code code;
  if (!fs::exists(out, code) || (fs::is_directory(out, code) && fs::is_empty(out, code))) return Done{};
  if (!fs::exists(out / kRecord)) {
    return Error{.message = fmt::format("'{}' exists and is no translation", out.string()),
                 .remedy = "name another folder with --out"};
  }
  if (force) return Done{};
  return Error{.message = fmt::format("'{}' exists", out.string()),
               .remedy = "--force replaces it, --out names another folder"};
}

Result<Translation> translate(const TranslationJob& job, const Progress& progress, const Watch& watch) {
  CHECK_OK(check_translation_folder(job.out, job.force));
  return Translating(job, progress, watch).run();
}

}  // namespace bakeoff
