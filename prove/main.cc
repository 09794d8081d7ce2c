// bakeoff_prove: every claim about verdicts, tried on noise whose truth is known. See docs/verdicts.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "prove/report.h"

namespace bakeoff::prove {
namespace {

int fail(const Error& error) {
  fmt::print(stderr, "bakeoff_prove: {}{}{}{}{}\n", error.where, error.where.empty() ? "" : ": ",
             error.message, error.remedy.empty() ? "" : "; ", error.remedy);
  return 2;
}

int run(Options options, const std::string& traces) {
  const auto begin = std::chrono::steady_clock::now();
  if (!traces.empty()) {
    Result<std::vector<Block>> recorded = read_blocks(traces);
    if (!recorded) return fail(recorded.error());
    options.recorded = std::move(*recorded);
  }
  Report report;
  prove_verdicts(options, report);
  prove_hosts(options, report);
  prove_races(options, report);
  prove_families(options, report);
  prove_series(options, report);
  prove_stalls(options, report);
  prove_times(options, report);
  prove_gates(options, report);
  prove_fleets(options, report);
  hold_contest(options, report);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (const Status written = write_json(report, options); !written) return fail(written.error());
  if (const Status written = write_document(report, options, seconds); !written) return fail(written.error());
  fmt::print("{} claims, {} missed, {:.0f} s, seed {}\n", report.claims().size(), report.missed(), seconds,
             options.seed);
  if (report.claims().empty())
    return fail(
        {.message =
             "no such claim; there are T1, T3 to T12, T14, T15, V2 to V6, V9, V10, G1 to G3 and L1 to L3"});
  return report.missed() > 0 ? 1 : 0;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app(
      "Tries every claim about verdicts on simulated noise and prints claim, bar, seen.\n"
      "Exit status: 0 all bars held, 1 one was missed, 2 bad input.");
  Options options;
  std::string traces, mutation;
  bool quick = false;
  auto* full = app.add_flag("--full", options.full, "the whole proof: about 20 minutes on two processors");
  app.add_flag("--quick", quick, "the short one, the default: about a minute")->excludes(full);
  app.add_option("--share", options.share, "of the short one's simulations: quicker, and blinder")
      ->check(CLI::Range(0.01, 1.0))
      ->excludes(full)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of everything that is drawn")->capture_default_str();
  app.add_option("--only", options.only, "claims, as T5 or T1,T7")->delimiter(',');
  app.add_option("--traces", traces, "recorded A/A blocks, a JSON object a line (prove/blocks.h)");
  app.add_option("--mutant", mutation, "wrong statistics, which must miss bars")
      ->check(CLI::IsMember(mutants()));
  app.add_option("--json", options.json, "writes all figures to this file");
  app.add_option("--document", options.document,
                 "rewrites the tables of docs/measured/verdicts.md, and its plot");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.mutant = mutant(mutation).value_or(Mutant::kNone);
  return run(std::move(options), traces);
}

}  // namespace
}  // namespace bakeoff::prove

int main(int argc, char** argv) { return bakeoff::prove::parse_and_run(argc, argv); }
