#include "regression/compare.h"

#include "cli/command.h"
#include "cli/console.h"
#include "summary/summarise.h"

namespace bakeoff::cli {
namespace {

struct CompareOptions {
  std::filesystem::path first = {}, second = {};  // run directories
  bool json = false;
};

Result<Summary> finished(const std::filesystem::path& run) {
  TRY(const RunDirectory directory, RunDirectory::open(run));
  TRY(Summary summary, summarise(directory));
  if (summary.run.empty()) summary.run = run.string();
  return summary;
}

int compare(const CompareOptions& options) {
  const auto first = finished(options.first);
  if (!first) return fail(first.error());
  const auto second = finished(options.second);
  if (!second) return fail(second.error());
  const regression::Comparison found = regression::compare(*first, *second);
  print(options.json ? regression::to_json(found) : regression::to_text(found, output_width()));
  return 0;
}

Action add_compare(CLI::App& sub) {
  const auto options = std::make_shared<CompareOptions>();
  sub.add_option("first", options->first, "run directory")->required()->type_name("DIR");
  sub.add_option("second", options->second, "the run to compare with")->required()->type_name("DIR");
  sub.add_flag("--json", options->json, "print all of it as JSON");
  return [options](const Invocation&) { return compare(*options); };
}

}  // namespace

const Command kCompare = {
    "compare",
    "Two finished runs side by side: what differs, and how their times compare; no proof, and it says why",
    "bakeoff compare runs/mnist_cnn-20261121-080000 runs/mnist_cnn-20261124-101500", add_compare,
    Home::kUnused};

}  // namespace bakeoff::cli
