// T14: identical contenders under noise as hosts make it, called different. Where the guarantee holds there
// is a bar; where it does not, what is seen stands as an open row. Beside the rule of races: the t e-process
// alone, and with the backup always on.

#include <fmt/format.h>

#include "prove/models.h"
#include "prove/parallel.h"
#include "prove/report.h"

namespace bakeoff::prove {
namespace {

constexpr int kHostPairs = 40;

struct Seen {
  int wrong = 0;
  int warned = 0;
};

Seen run(const Options& options, const HostModel& model, Engine engine, int n) {
  const auto outcomes = for_each_seed(n, [&](int i) {
    const uint64_t seed = options.seed * 179424673 + static_cast<uint64_t>(i);
    return race(simulated(model.noise, 0, seed, options.mutant), 0, engine, 0, kHostPairs, names_a_winner,
                options.mutant);
  });
  Seen seen;
  for (const Outcome& outcome : outcomes) {
    seen.wrong += names_a_winner(outcome.verdict);
    seen.warned += outcome.warned;
  }
  return seen;
}

}  // namespace

void prove_hosts(const Options& options, Report& report) {
  if (!wanted(options, "T14")) return;
  const int n = tier(options, 2000, 20000);
  for (const HostModel& model : host_models()) {
    if (!model.open.empty() && options.mutant != Mutant::kNone) continue;
    const Seen seen = run(options, model, Engine::kRaced, n);
    Claim claim = at_most("T14", model.name, seen.wrong, n, kAlpha);
    if (options.mutant == Mutant::kNone && !in_part(options)) {
      const double percent = 100.0 / n;
      claim.seen +=
          fmt::format("; t alone {:.2f}%, backup always {:.2f}%; a sign in {:.1f}%",
                      percent * run(options, model, Engine::kTest, n).wrong,
                      percent * run(options, model, Engine::kBackup, n).wrong, percent * seen.warned);
    }
    if (!model.open.empty()) {
      claim.what += ": " + model.open;
      claim.barred = false;
      claim.open = true;
    }
    report.add(claim);
  }
}

}  // namespace bakeoff::prove
