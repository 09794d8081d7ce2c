// Binary search with answers that may be wrong: each probe is a race of a few heats, and noise decides some
// of them. stats/bisection.h keeps a probability for each version and says which one to probe next; here are
// the races, the time and the records.
//
// Three parts share the budget. First the good version races against the bad one: without a gap there is
// nothing to find, and the size of the gap says how many heats a probe needs. Then probes, each against the
// good version, never against times of another hour. At last what was found races against its parent, for
// which a quarter of the time is kept: a probability is no proof, a race is.
//
// A version that cannot be built or raced is skipped and kept as such; one for which the time was too short
// is not, or a continued search would believe that it had failed. Every probe is written down before the next
// begins.

#include "regression/bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "proc/interrupt.h"

namespace bakeoff::regression {
namespace {

constexpr double kShareOfEnds = 0.25;   // of the budget, for good against bad
constexpr double kShareOfProof = 0.25;  // the same, for what was found against its parent
constexpr int64_t kRoundsOfProbe = 12;
constexpr size_t kFewestHeats = 3;  // of a probe
constexpr double kLeastShift = 0.002;

// A search while it runs.
class Search {
 public:
  Search(BisectOutcome& out, BisectFile& file, const MakePair& make, const Progress& progress,
         const TimeBudget& time)
      : out_(out), file_(file), make_(make), progress_(progress), time_(time) {
    time_.keep(kShareOfProof * time_.seconds());
  }

  Status run() {
    CHECK_OK(ends());
    if (!shift_ || proc::interrupted()) return Done{};
    stats::Bisection bisection(out_.versions.size() - 1, *shift_);
    for (const ProbeRecord& probe : out_.probes) {
      if (probe.seen) bisection.observe(probe.position, *probe.seen);
      if (!probe.seen) bisection.skip(probe.position);
    }
    const auto probed = [&](size_t at) { return probe(bisection, at); };
    const size_t most = 16 + 4 * out_.versions.size();
    if (const Status done = search(bisection, probed, most); !done) {
      if (out_.stopped.empty() && !proc::interrupted()) return done.error();
    }
    out_.found = bisection.found();
    if (out_.stopped.empty() && !proc::interrupted()) {
      if (bisection.next())
        out_.stopped = "the probes did not settle on one version";
      else
        CHECK_OK(confirm(bisection));
    }
    return Done{};
  }

 private:
  Progress progress_of(const std::string& what) const {
    return [this, what](const std::string& line) { progress_(what + ": " + line); };
  }

  Result<std::unique_ptr<Pairing>> made(size_t base, size_t head) {
    const int64_t begin = monotonic_clock().now_ns();
    auto pair = make_(base, head);
    if (pair) making_s_ = seconds_since(begin);
    return pair;
  }

  // Good against bad: is there anything to find, and how large is it?
  Status ends() {
    out_.probes = file_.probes;
    if (file_.shift) {
      shift_ = *file_.shift;
      out_.contender = file_.contender;
      return Done{};
    }
    TRY(const auto pair, made(0, out_.versions.size() - 1));
    Outcome gate{.settings = out_.settings};
    gate.settings.budget_s = std::min(kShareOfEnds * time_.seconds(), time_.left_s());
    CHECK_OK(race(*pair, gate, progress_of("good against bad"), TimeBudget(gate.settings.budget_s)));
    const auto worst = std::ranges::max_element(gate.rows, {}, [&](const Row& row) {
      return out_.contender.empty() || row.contender == out_.contender ? row.ratio.low : -1.0;
    });
    if (worst == gate.rows.end())
      return Error{.message = "there is nothing to compare",
                   .remedy = "name a script or a recipe with contenders"};
    if (!out_.contender.empty() && worst->contender != out_.contender)
      return Error{.message = fmt::format("no contender is called '{}'", out_.contender),
                   .remedy = fmt::format("for example '{}'", worst->contender)};
    out_.contender = worst->contender;
    out_.ends = *worst;
    if (worst->change != stats::Change::kRegression) return Done{};
    shift_ = std::max(kLeastShift, std::log(worst->ratio.value));
    return file_.keep_shift(*shift_, out_.contender);
  }

  Error time_over() {
    out_.stopped = "the time was over before one version was sure";
    return {.message = out_.stopped};
  }

  size_t place(const Pairing& pair) const {
    const std::vector<Row> rows = pair.rows();
    const auto at = std::ranges::find(rows, out_.contender, &Row::contender);
    return static_cast<size_t>(at - rows.begin());
  }

  // Heats of the version and the good one, until they say enough.
  Result<ProbeRecord> raced(size_t at) {
    ProbeRecord record{.position = at, .version = out_.versions[at].name};
    const auto pair = made(0, at);
    if (!pair) {
      if (proc::interrupted()) return pair.error();
      if (time_.left_s() <= 0) return time_over();
      record.reason = pair.error().text();
      return record;
    }
    const size_t row = place(**pair);
    if (row >= (*pair)->rows().size()) {
      record.reason = fmt::format("it has no contender '{}'", out_.contender);
      return record;
    }
    std::vector<stats::PastHeat> past;
    double heat_s = 0;
    while (past.size() < stats::kMostHeatsOfProbe && !proc::interrupted()) {
      if (past.size() >= kFewestHeats && says_enough(stats::seen_in(past), *shift_)) break;
      // A probe that ends early says less, and is not kept as one that failed.
      if (time_.left_s() <= heat_s) {
        if (past.size() >= kFewestHeats) break;
        return time_over();
      }
      const int64_t heat_begin = monotonic_clock().now_ns();
      const auto heat = (*pair)->heat({row}, kRoundsOfProbe, time_.left_s());
      heat_s = seconds_since(heat_begin);
      if (proc::interrupted()) return Error{.message = "interrupted"};
      if (!heat || heat->empty()) {
        record.reason = heat ? "it gave no times" : heat.error().text();
        return record;
      }
      past.insert(past.end(), heat->front().past.begin(), heat->front().past.end());
      record.heats = past.size();
    }
    if (!past.empty()) record.seen = stats::seen_in(past);
    return record;
  }

  Result<stats::Probe> probe(const stats::Bisection& bisection, size_t at) {
    if (proc::interrupted()) return Error{.message = "interrupted"};
    if (time_.left_s() <= making_s_) return time_over();
    const auto now = bisection.found();
    progress_(fmt::format("probe {}: {} ({} of {}; most likely {} to {}, {:.0f}%)", out_.probes.size() + 1,
                          out_.versions[at].name, at, out_.versions.size() - 1, now.first, now.last,
                          100 * now.probability));
    TRY(const ProbeRecord record, raced(at));
    if (proc::interrupted()) return Error{.message = "interrupted"};
    CHECK_OK(file_.keep(record));
    out_.probes.push_back(record);
    if (!record.seen) progress_(fmt::format("skipped {}: {}", record.version, record.reason));
    return stats::Probe{record.seen};
  }

  // Against the last version before it that was not skipped.
  Status confirm(const stats::Bisection& bisection) {
    size_t parent = out_.found.first - 1;
    while (parent > 0 && bisection.skipped(parent)) --parent;
    out_.parent = parent;
    time_.keep(0);
    const auto none_left = [&] {
      out_.stopped = "the time was over before what was found could be raced against its parent";
      return Done{};
    };
    if (time_.left_s() <= making_s_) return none_left();
    const auto pair = made(parent, out_.found.last);
    if (time_.left_s() <= 0) return none_left();
    if (!pair) {
      if (!proc::interrupted())
        out_.stopped = fmt::format("what was found cannot be raced against {}: {}",
                                   out_.versions[parent].name, pair.error().text());
      return Done{};
    }
    Outcome gate{.settings = out_.settings};
    gate.settings.budget_s = time_.left_s();
    CHECK_OK(race(**pair, gate, progress_of("confirming"), TimeBudget(gate.settings.budget_s)));
    const auto row = std::ranges::find(gate.rows, out_.contender, &Row::contender);
    if (row != gate.rows.end() && row->heats > 0) out_.confirmed = *row;
    return Done{};
  }

  BisectOutcome& out_;
  BisectFile& file_;
  const MakePair& make_;
  const Progress& progress_;
  TimeBudget time_;      // of which a share is kept for the proof
  double making_s_ = 0;  // what the last pair took to be made ready
  std::optional<double> shift_ = {};
};

}  // namespace

Status bisect(BisectOutcome& outcome, BisectFile& file, const MakePair& make, const Progress& progress,
              const TimeBudget& time) {
  const Status done = Search(outcome, file, make, progress, time).run();
  outcome.seconds = time.spent_s();
  outcome.interrupted = proc::interrupted();
  if (!done && !outcome.interrupted) return done.error();
  return Done{};
}

}  // namespace bakeoff::regression
