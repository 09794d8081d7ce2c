#include "regression/compare.h"

#include <fmt/format.h>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/usage.h"
#include "regression/rankings.h"
#include "report/rankings_page.h"
#include "summary/summarise.h"

namespace bakeoff::cli {
namespace {

struct CompareOptions {
  std::vector<std::filesystem::path> runs = {};  // their directories
  std::string format = "text";
  std::filesystem::path html = {};
  bool json = false;
};

Result<Summary> finished(const std::filesystem::path& run) {
  TRY(const RunDirectory directory, RunDirectory::open(run));
  TRY(Summary summary, summarise(directory));
  if (summary.run.empty()) summary.run = run.string();
  return summary;
}

Result<std::vector<Summary>> all_finished(const std::vector<std::filesystem::path>& runs) {
  std::vector<Summary> all;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::error_code ignored;
    for (size_t k = 0; k < i; ++k)
      if (std::filesystem::equivalent(runs[i], runs[k], ignored))
        return Error{.message = fmt::format("'{}' and '{}' are one run", runs[k].string(), runs[i].string()),
                     .remedy = "name runs that differ"};
    TRY(Summary one, finished(runs[i]));
    all.push_back(std::move(one));
  }
  return all;
}

int compare(const CompareOptions& options) {
  const auto runs = all_finished(options.runs);
  if (!runs) return fail(runs.error());
  const std::string format = options.json ? "json" : options.format;
  if (!options.html.empty()) {
    const Status written =
        write_file(options.html, report::render_rankings_page(regression::rankings(*runs)));
    if (!written) return fail(written.error());
  }
  if (runs->size() == 2 && format != "csv") {
    const regression::Comparison found = regression::compare(runs->front(), runs->back());
    print(format == "json" ? regression::to_json(found) : regression::to_text(found, output_width()));
    return 0;
  }
  const regression::Rankings found = regression::rankings(*runs);
  print(format == "csv"    ? regression::to_csv(found)
        : format == "json" ? regression::to_json(found)
                           : regression::to_text(found, output_width()));
  return 0;
}

Action add_compare(CLI::App& sub) {
  const auto options = std::make_shared<CompareOptions>();
  sub.add_option("runs", options->runs, "run directories: two, or more for their rankings side by side")
      ->required()
      ->expected(2, 1000)
      ->type_name("DIR");
  sub.add_option("--format", options->format, "text, json or csv")->check(one_of({"text", "json", "csv"}));
  sub.add_option("--html", options->html, "write a page with the rankings into this file")->type_name("FILE");
  sub.add_flag("--json", options->json, "the same as --format json");
  return [options](const Invocation&) { return compare(*options); };
}

}  // namespace

const Command kCompare = {
    "compare",
    "Finished runs side by side: of two what differs and how their times compare, of more their rankings",
    "bakeoff compare runs/mnist_cnn-20261121-080000 runs/mnist_cnn-20261124-101500", add_compare,
    Home::kUnused};

}  // namespace bakeoff::cli
