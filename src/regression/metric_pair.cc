#include "regression/metric_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/texts.h"
#include "explain/observed.h"
#include "proc/interrupt.h"
#include "proc/run.h"
#include "stats/trimmed.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

constexpr double kLeastSeconds = 1;  // of a run, whatever is left

Error failed(const std::string& what, const std::string& why, const std::string& printed) {
  const std::string last = join(table::last_lines(printed, 8), "\n");
  return Error{.message =
                   fmt::format("{}: {}{}", what, why, last.empty() ? "" : "; it printed last:\n" + last)};
}

}  // namespace

Result<std::unique_ptr<MetricPair>> MetricPair::make(ScriptSide base, ScriptSide head, const Metric& metric) {
  auto pair = std::unique_ptr<MetricPair>(new MetricPair);
  TRY(pair->reader_, MetricReader::make(metric.pattern));
  pair->sides_[0] = std::move(base);
  pair->sides_[1] = std::move(head);
  pair->metric_ = metric;
  return pair;
}

std::vector<Row> MetricPair::rows() const {
  const std::string& name = sides_[1].subject.name;
  return {{.contender = name, .name = name, .file = file}};
}

double MetricPair::round_s(const std::vector<size_t>&) const { return pair_s_; }

// The median of what it prints; nothing where the time ended.
Result<std::optional<double>> MetricPair::run(const ScriptSide& side, double left_s) {
  TRY(const explain::Unobserved script, explain::unobserved(side.subject.spec));
  std::vector<double> figures;
  const auto done =
      proc::run_command({.child = script.options,
                         .timeout_ns = std::llround(std::max(kLeastSeconds, std::min(left_s, 1e6)) * kSecond),
                         .on_line = [&](std::string_view line) {
                           if (const auto figure = reader_.figure(line)) figures.push_back(*figure);
                         }});
  if (proc::interrupted()) return std::optional<double>();
  if (!done) return done.error();
  if (done->timed_out) return std::optional<double>();
  if (!done->ok()) return failed(side.what, "it ended with " + done->text(), done->output_tail);
  if (figures.empty()) {
    Error none = failed(
        side.what, fmt::format("no line that it printed has the figure of --metric '{}'", metric_.pattern),
        done->output_tail);
    none.remedy =
        "the figure is what the first (group) holds, or else the first number after what is matched";
    return none;
  }
  most_lines_ = std::max(most_lines_, figures.size());
  const double figure = stats::median(figures);
  if (figure > 0) return std::optional(figure);
  return Error{
      .message = fmt::format("{}: the figure of --metric is {}", side.what, table::significant(figure, 4)),
      .remedy = "only figures above 0 can be compared by their ratio"};
}

Result<std::vector<PairHeats>> MetricPair::heat(const std::vector<size_t>&, int64_t, double left_s) {
  const int64_t begin = monotonic_clock().now_ns();
  const size_t first = random_() % 2;
  double logs[2] = {0, 0};
  for (const size_t side : {first, 1 - first}) {
    TRY(const auto figure, run(sides_[side], left_s - seconds_since(begin)));
    if (!figure && (pairs_ > 0 || proc::interrupted())) return std::vector<PairHeats>{};
    if (!figure)
      return Error{
          .message = fmt::format("{}: a pair of runs does not end within the budget", sides_[side].what),
          .remedy = "a larger --budget, of at least ten pairs of runs, or shorter runs"};
    logs[side] = metric_.higher_is_better ? -std::log(*figure) : std::log(*figure);
  }
  pair_s_ = seconds_since(begin);
  ++pairs_;
  PairHeats pair;
  pair.heats.push_back({.log_ms = {logs[0], logs[1]}});
  pair.past.push_back({.d = logs[1] - logs[0], .within = 1e-9, .rounds = 1});
  return std::vector<PairHeats>{std::move(pair)};
}

std::vector<std::string> MetricPair::notes() const {
  if (most_lines_ < 2) return {};
  return {fmt::format("a run printed up to {} such figures: their median counts", most_lines_)};
}

}  // namespace bakeoff::regression
