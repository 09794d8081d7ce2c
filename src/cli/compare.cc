#include "regression/compare.h"

#include "cli/console.h"
#include "cli/options.h"
#include "summary/summarise.h"

namespace bakeoff::cli {
namespace {

Result<Summary> finished(const std::filesystem::path& run) {
  TRY(const RunDirectory directory, RunDirectory::open(run));
  TRY(Summary summary, summarise(directory));
  if (summary.run.empty()) summary.run = run.string();
  return summary;
}

}  // namespace

int compare(const CompareOptions& options) {
  const auto first = finished(options.first);
  if (!first) return fail(first.error());
  const auto second = finished(options.second);
  if (!second) return fail(second.error());
  const regression::Comparison found = regression::compare(*first, *second);
  print(options.json ? regression::to_json(found) : regression::to_text(found, output_width()));
  return 0;
}

}  // namespace bakeoff::cli
