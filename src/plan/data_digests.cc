#include "plan/data_digests.h"

#include <fmt/format.h>

#include "base/sha256_file.h"
#include "data/own_data.h"
#include "plan/rows.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

Error changed(const recipe::Recipe& recipe, const std::string& file, const std::string& how,
              const std::string& remedy) {
  const char* key = recipe.data.path.empty() ? "kind" : "path";
  return {.message = fmt::format("data.{}: '{}' {} since this run began", key, file, how),
          .where = recipe::where(recipe, "data", key),
          .remedy = remedy + ", or start a new run"};
}

}  // namespace

Status check_unchanged(const recipe::Recipe& recipe, const Manifest& manifest, const fs::path& data) {
  if (!manifest.data_sha256.empty()) {
    TRY(const std::string sum, sha256_file(data));
    if (sum != manifest.data_sha256)
      return changed(recipe, data.string(), "was changed",
                     "bring back its old content (it may be the same file as the recipe's data)");
  }
  const bool holds_out = recipe.target.wanted() || recipe.fit.wanted();
  // Only of a text are rows cut anew: other data has its held-out rows in the run directory.
  if (manifest.source_sha256.empty() || !holds_out || !has_test_split(recipe)) return Done{};
  TRY(const DataSpec spec, data_spec(recipe));
  auto now = source_digests(spec);
  if (!now) {
    return changed(recipe, manifest.source_sha256.begin()->first,
                   "became unreadable (" + now.error().message + ")", "bring it back");
  }
  for (const auto& [file, sum] : manifest.source_sha256) {
    const auto found = now->extract(file);
    if (found.empty()) return changed(recipe, file, "was taken away", "bring it back");
    if (found.mapped() != sum) return changed(recipe, file, "was changed", "bring back its old content");
  }
  if (!now->empty()) return changed(recipe, now->begin()->first, "was added", "take it away");
  return Done{};
}

}  // namespace bakeoff
