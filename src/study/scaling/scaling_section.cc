// Efficiency is a ratio of ratios, so it is taken within heats and on the log scale: one heat has the
// contender on all devices, on one, and without communication, in turns, and each gives one difference. The
// mean over heats then has an interval that noise between heats does not widen.
//
// Communication is what a step loses when devices exchange nothing. What arithmetic hides is not in it, and a
// contender that ignores the switch would show none: so the worker must have said that it left communication
// out (kCommunicationOff), else it is a note. A step that takes longer without communication is noise, and
// the share is then 0, not negative.

#include "study/scaling/scaling_section.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "evidence/heats.h"
#include "records/machine_report.h"
#include "stats/distributions.h"
#include "study/scaling/scaling.h"
#include "study/section_rows.h"

namespace bakeoff {

using namespace table;
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// exp() of the mean of `logs`, with its interval.
std::optional<Estimate> from_logs(const std::vector<double>& logs) {
  if (logs.empty()) return std::nullopt;
  const auto n = static_cast<double>(logs.size());
  double mean = 0, squares = 0;
  for (const double one : logs) mean += one / n;
  for (const double one : logs) squares += (one - mean) * (one - mean);
  if (logs.size() < 2) return Estimate{std::exp(mean), 0, kUnbounded};
  const double half = stats::student_quantile(n - 1, 0.975) * std::sqrt(squares / (n - 1) / n);
  return Estimate{std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

std::optional<double> value_of(const std::optional<Trial>& trial) {
  return trial ? heat_value(*trial) : std::nullopt;
}

std::optional<Estimate> scaled(std::optional<Estimate> e, double by) {
  if (e) *e = {e->value * by, e->low * by, e->high * by};
  return e;
}

// The share of a step that is gone where it takes `kept` of its time. Steps without communication that take longer are
// noise: the share is never below 0.
std::optional<Estimate> gone(const std::optional<Estimate>& kept) {
  if (!kept) return std::nullopt;
  return Estimate{std::max(0.0, 1 - kept->value), std::max(0.0, 1 - kept->high),
                  std::max(0.0, 1 - kept->low)};
}

std::string why_not(const std::optional<Trial>& trial) {
  if (!trial) return "";
  if (trial->failure) return trial->failure->text();
  return trial->invalid.value_or(trial->dropped);
}

std::string effective(const Trial& trial, const std::string& key) {
  const auto found = trial.effective.find(key);
  return found == trial.effective.end() ? "" : found->second.substr(0, found->second.find(' '));
}

// The logarithms of the ratios of step times that the heats of one contender show.
class ScalingHeats {
 public:
  void add(const ScalingTrial& record) {
    const auto strong = value_of(record.strong);
    note(record.strong, "");
    if (!strong) return;
    strong_.push_back(*strong);
    const auto one = value_of(record.one), weak = value_of(record.weak), silent = value_of(record.silent);
    if (one) one_.push_back(*one - *strong);
    note(record.one, "one device: ");
    if (one && weak) weak_.push_back(*one - *weak);
    note(record.weak, fmt::format("{} rows on each device: ", record.batch));
    // A worker that does not know the variable trains on as usual.
    if (silent && effective(*record.silent, "communication") == kCommunicationOff)
      silent_.push_back(*silent - *strong);
    else if (silent)
      said("without communication: its worker cannot leave it out");
    note(record.silent, "without communication: ");
  }

  void fill(ScalingRow& row) const {
    row.heats = static_cast<int>(strong_.size());
    if (const auto step = from_logs(strong_)) row.step_ms = step->value;
    row.strong = scaled(from_logs(one_), 1 / static_cast<double>(row.devices));
    row.weak = from_logs(weak_);
    const auto kept = from_logs(silent_);
    row.communication = gone(kept);
    if (kept && row.step_ms) row.silent_ms = *row.step_ms * kept->value;
    row.note = note_;
  }

 private:
  void note(const std::optional<Trial>& trial, const std::string& which) {
    if (const std::string why = why_not(trial); !why.empty()) said(which + why);
  }
  void said(const std::string& text) {
    if (note_.find(text) == std::string::npos) note_ += (note_.empty() ? "" : "; ") + text;
  }
  std::vector<double> strong_, one_, weak_, silent_;
  std::string note_;
};

template <auto Member>
Json json_of_estimate(const ScalingRow& row) {
  return row.*Member ? estimate(*(row.*Member)) : Json(nullptr);
}

std::vector<CsvColumn> csv(const std::string& name) {
  return {{name, "/value"}, {name + "_low", "/low"}, {name + "_high", "/high"}};
}

const std::vector<Quantity<ScalingRow>> kQuantities = {
    contender_quantity<ScalingRow>(),
    {{.key = "devices", .title = "devices", .meaning = "How many devices it trains on.", .priority = 4},
     [](const ScalingRow& r) { return Json(r.devices); },
     count},
    {{.key = "strong_efficiency",
      .csv = csv("strong_efficiency"),
      .title = "strong",
      .meaning =
          "Efficiency with the batch fixed: how many times as fast a step is as on one device, over the number "
          "of devices. 1: nothing is lost.",
      .range_title = "interval"},
     json_of_estimate<&ScalingRow::strong>,
     ratio},
    {{.key = "weak_efficiency",
      .csv = csv("weak_efficiency"),
      .title = "weak",
      .meaning =
          "Efficiency with the rows of each device fixed: how many times as many rows a second as on one device, "
          "over the number of devices. 1: nothing is lost.",
      .range_title = "interval"},
     json_of_estimate<&ScalingRow::weak>,
     ratio},
    {{.key = "step_ms",
      .title = "step ms",
      .meaning = "Milliseconds of a step of all devices that share the batch.",
      .priority = 3},
     [](const ScalingRow& r) { return number(r.step_ms); },
     milliseconds},
    {{.key = "step_without_communication_ms",
      .title = "compute ms",
      .meaning = "Milliseconds of the same step where devices exchange nothing.",
      .priority = 5},
     [](const ScalingRow& r) { return number(r.silent_ms); },
     milliseconds},
    {{.key = "communication_share",
      .csv = csv("communication_share"),
      .title = "communication",
      .meaning =
          "Share of the step that is gone where devices exchange nothing. What arithmetic hides is not in it.",
      .range_title = "interval",
      .range_priority = 2},
     json_of_estimate<&ScalingRow::communication>,
     percent},
    {{.key = "sent_bytes",
      .title = "sent",
      .meaning = "What each device has to send in a step, at least: 2 (n - 1) / n times the gradients.",
      .priority = 6},
     [](const ScalingRow& r) { return number(r.sent_bytes); },
     bytes},
    {{.key = "link_ms",
      .title = "link ms",
      .meaning = "Milliseconds that the link between two processes needs for it at its measured rate.",
      .priority = 7},
     [](const ScalingRow& r) { return number(r.link_ms); },
     milliseconds},
    {{.key = "heats", .title = "heats", .meaning = "Heats in which it was timed.", .priority = 8},
     [](const ScalingRow& r) { return Json(r.heats); },
     count},
    {{.key = "batch", .in_csv = false}, [](const ScalingRow& r) { return Json(r.batch); }},
    {{.key = "note", .in_csv = false}, [](const ScalingRow& r) { return text_or_null(r.note); }},
};

std::string sentence(const ScalingRow& row) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (row.strong)
    add(fmt::format("an efficiency of {} {} where {} devices share {} rows", times(row.strong->value),
                    interval(*row.strong, times), row.devices, count(static_cast<double>(row.batch))));
  if (row.weak)
    add(fmt::format("{} {} where each has {}", times(row.weak->value), interval(*row.weak, times),
                    count(static_cast<double>(row.batch))));
  if (row.communication && row.communication->high > 0)
    add(fmt::format("{} {} of a step is communication", percent(row.communication->value),
                    interval(*row.communication, percent)));
  return text.empty() ? "" : fmt::format("{}: {}.", row.contender, text);
}

StudySection section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<ScalingTrial>());
  std::string ignored;  // why limits are not used: the report says it
  const auto machine = machine_of_run(directory.path(), context.manifest.host, ignored);
  const auto rows = scaling_rows(trials, context.ids(), context.recipe.workload.parameter_count(),
                                 machine ? machine->limits.link : 0);
  if (rows.empty()) return std::optional<Section>();
  return std::optional(scaling_section(rows));
}

}  // namespace

Study scaling_study() {
  return {.name = "scaling",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.scaling.wanted; },
          .run = measure_scaling,
          .section = section_of_run};
}

std::optional<double> least_sent(int64_t parameters, const std::string& dtype, int64_t devices) {
  static const std::map<std::string, double> kBytes = {
      {"float64", 8}, {"float32", 4}, {"bfloat16", 2}, {"float16", 2}};
  const auto size = kBytes.find(dtype);
  if (size == kBytes.end() || devices < 1) return std::nullopt;
  const auto n = static_cast<double>(devices);
  return 2 * (n - 1) / n * size->second * static_cast<double>(parameters);
}

std::vector<ScalingRow> scaling_rows(const std::vector<ScalingTrial>& trials,
                                     const std::vector<std::string>& contenders, int64_t parameters,
                                     double link) {
  std::vector<ScalingRow> rows;
  for (const std::string& contender : contenders) {
    ScalingRow row{.contender = contender};
    ScalingHeats heats;
    bool processes = false, any = false;
    std::string dtype;
    for (const ScalingTrial& trial : trials) {
      if (trial.contender != contender) continue;
      any = true;
      row.devices = trial.devices, row.batch = trial.batch;
      heats.add(trial);
      if (!trial.strong) continue;
      dtype = effective(*trial.strong, "reduced_gradient");
      if (dtype.empty()) dtype = effective(*trial.strong, "master_weights");
      processes = effective(*trial.strong, "backend") == "gloo";
    }
    if (!any) continue;
    heats.fill(row);
    if (row.step_ms) row.sent_bytes = least_sent(parameters, dtype, row.devices);
    if (row.sent_bytes && processes && link > 0) row.link_ms = 1e3 * *row.sent_bytes / link;
    rows.push_back(std::move(row));
  }
  return rows;
}

Section scaling_section(const std::vector<ScalingRow>& rows) {
  Section section = section_of(kQuantities, rows);
  section.key = "scaling";
  section.label = "Scaling";
  section.title = "What several devices gain, and what communication costs";
  section.legend =
      "Each contender on several devices against the same on one, which has the processors of one of them. Strong: all "
      "devices share the recipe's batch. Weak: each device has that batch. All take turns in one heat, burst by burst; "
      "intervals hold the mean of the heats with 95% (Student's t), and no verdict rests on them. Scripts differ in "
      "batch and number of devices alone; proven are the race's own.";
  for (const ScalingRow& row : rows)
    if (std::string text = sentence(row); !text.empty()) section.sentences.push_back(std::move(text));
  section.json = json_rows(kQuantities, rows);
  add_csv(section, kQuantities, rows, "scaling_");
  return section;
}

}  // namespace bakeoff
