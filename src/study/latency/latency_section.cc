// One table serves every way in which requests arrive: a single stream, and each rate of a server. Of a queue
// that grew without end no percentile is shown, as it would only say how long was measured. Each percentile
// has its bounds in the cell, and in the cell's hint how far apart the processes were: a tail that one
// process alone has is that process's, not the framework's.

#include "study/latency/latency_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "study/latency/latency.h"
#include "study/section_rows.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

constexpr const char* kQueue[] = {"steady", "growing", "unsettled", "failed"};           // in JSON
constexpr const char* kQueueText[] = {"steady", "queue grows", "not steady", "failed"};  // for people

std::string mode_name(const LatencyRow& row) {
  return row.single_stream() ? "single stream" : fmt::format("{:g} requests/s", row.rate);
}

// "single_stream", "50_per_s".
std::string mode_key(double rate) { return rate == 0 ? "single_stream" : fmt::format("{:g}_per_s", rate); }

std::string queue_text(const LatencyRow& row) { return kQueueText[static_cast<int>(row.state)]; }

Json load(const LatencyRow& row) { return row.single_stream() ? Json(nullptr) : number(row.load); }

std::string load_text(double load) { return load > 0 ? significant(100 * load, 2) + "%" : kNone; }

std::string positive_ms(double ms) { return ms > 0 ? milliseconds(ms) : kNone; }

std::string positive_count(double n) { return n > 0 ? count(n) : kNone; }

// Shares that any row has, ascending.
std::set<double> shares_of(const std::vector<LatencyRow>& rows) {
  std::set<double> all;
  for (const LatencyRow& row : rows) {
    for (const auto& percentile : row.percentiles) all.insert(percentile.p);
  }
  return all;
}

// Its index among the row's percentiles; their number where it has none of that share.
size_t at(const LatencyRow& row, double share) {
  const auto found = std::find_if(row.percentiles.begin(), row.percentiles.end(),
                                  [&](const auto& percentile) { return percentile.p == share; });
  return static_cast<size_t>(found - row.percentiles.begin());
}

Cell percentile_cell(const LatencyRow& row, double share) {
  const size_t i = at(row, share);
  if (i == row.percentiles.size()) return {};
  const auto& [p, value, bounds, n, n_eff] = row.percentiles[i];
  Cell cell{milliseconds(value), interval({value, bounds.low, bounds.high}, milliseconds)};
  if (row.processes > 1 && i < row.by_process.size()) {
    cell.hint = fmt::format("{} to {} ms in the {} processes", milliseconds(row.by_process[i].low),
                            milliseconds(row.by_process[i].high), row.processes);
  }
  return cell;
}

Json percentiles(const LatencyRow& row) {
  Json all = Json::array();
  for (size_t i = 0; i < row.percentiles.size(); ++i) {
    const auto& p = row.percentiles[i];
    all.push_back({{"percentile", 100 * p.p},
                   {"ms", estimate({p.value, p.bounds.low, p.bounds.high})},
                   {"requests", p.n},
                   {"independent_requests", number(p.n_eff)},
                   {"by_process_ms", {number(row.by_process[i].low), number(row.by_process[i].high)}}});
  }
  return all;
}

using Quantities = std::vector<Quantity<LatencyRow>>;

const Quantities kWho = {
    {{.title = "requests",
      .meaning = "How requests arrive: one after the other, or at random, with this mean number per second.",
      .left = true},
     nullptr,
     [](const LatencyRow& r) { return Cell{mode_name(r)}; }},
    contender_quantity<LatencyRow>(),
    {{.key = "arrivals_per_second"},
     [](const LatencyRow& r) { return r.single_stream() ? Json(nullptr) : number(r.rate); }},
    {{.key = "queue"}, [](const LatencyRow& r) { return Json(kQueue[static_cast<int>(r.state)]); }},
    {{.key = "processes"}, [](const LatencyRow& r) { return Json(r.processes); }},
};

const Quantities kHow = {
    {{.key = "percentiles"}, percentiles},
    {{.key = "mean_ms"},
     [](const LatencyRow& r) { return r.mean_ms > 0 ? number(r.mean_ms) : Json(nullptr); }},
    {{.key = "load",
      .title = "load",
      .meaning = "Share of the contender's capacity that the requests ask for.",
      .priority = 2},
     load,
     load_text},
    {{.title = "queue",
      .meaning = "Whether the queue of waiting requests was steady; only then there are percentiles.",
      .priority = 3,
      .left = true},
     nullptr,
     [](const LatencyRow& r) {
       return Cell{.text = queue_text(r), .ink = r.state == LatencyState::kSteady ? Ink::kGood : Ink::kBad};
     }},
    {{.key = "answer_ms",
      .title = "answer ms",
      .meaning = "Mean milliseconds of an answer, without the time that its request waited.",
      .priority = 9,
      .ink = Ink::kDim},
     [](const LatencyRow& r) { return number(r.service_ms); },
     positive_ms},
    {{.key = "requests",
      .title = "measured",
      .meaning = "Requests that the percentiles rest on.",
      .priority = kLuxury},
     [](const LatencyRow& r) { return Json(r.requests); },
     positive_count},
    {{.key = "growth_per_second"}, [](const LatencyRow& r) { return number(r.growth_per_s); }},
    {{.key = "generator_late_ms"}, [](const LatencyRow& r) { return number(r.late_ms); }},
    {{.key = "note"}, [](const LatencyRow& r) { return Json(r.note); }},
};

// Where there is no room the least and the greatest percentile stay longest, then greater ones before lesser.
Quantities quantities(const std::set<double>& shares) {
  Quantities all = kWho;
  auto rank = static_cast<int>(shares.size());
  for (const double share : shares) {
    const bool kept = share == *shares.begin() || share == *shares.rbegin();
    all.push_back({{.title = percentile_name(share),
                    .meaning = fmt::format("Milliseconds within which {:.7g}% of the requests were answered, "
                                           "waiting included, with bounds.",
                                           100 * share),
                    .priority = kept ? 0 : rank,
                    .range_title = "bounds",
                    .range_priority = 10 + rank},
                   nullptr,
                   [share](const LatencyRow& r) { return percentile_cell(r, share); }});
    --rank;
  }
  all.insert(all.end(), kHow.begin(), kHow.end());
  return all;
}

// In a CSV every mode is columns of its own.
Quantities in_csv(const std::set<double>& shares) {
  Quantities all = {{{.key = "queue"}, queue_text}, {{.key = "load"}, load}};
  for (const double share : shares) {
    const std::string name = percentile_name(share) + "_ms";
    all.push_back(
        {{.key = name, .csv = {{name, "/value"}, {name + "_low", "/low"}, {name + "_high", "/high"}}},
         [share](const LatencyRow& r) {
           const size_t i = at(r, share);
           if (i == r.percentiles.size()) return Json(nullptr);
           const auto& p = r.percentiles[i];
           return Json{
               {"value", number(p.value)}, {"low", number(p.bounds.low)}, {"high", number(p.bounds.high)}};
         }});
  }
  return all;
}

std::string legend(double level, int64_t batch) {
  return fmt::format(
      "Milliseconds from a request's arrival to its answer; a request is one batch of {}. Single stream: the "
      "next one arrives when the last is answered, so nothing ever waits. At a rate: they arrive at random, "
      "whether or not earlier ones are answered, and latency counts from the intended moment. Each bound "
      "holds with {} on its own, whatever the shape; requests that queue are counted as fewer. Load: share "
      "of its capacity that is asked for.",
      count(static_cast<double>(batch)), percent(level));
}

// A picture for each way that requests arrive: the percentiles of every contender with their bounds. Equal steps to
// the right leave a tenth of the requests.
std::vector<Picture> percentile_curves(const std::vector<LatencyRow>& rows, const std::set<double>& shares) {
  std::vector<Picture> pictures;
  const auto place = [](double share) { return -std::log10(1 - share); };
  for (const LatencyRow& row : rows) {
    if (row.percentiles.empty()) continue;
    const std::string name = mode_name(row);
    auto picture =
        std::find_if(pictures.begin(), pictures.end(), [&](const Picture& p) { return p.name == name; });
    if (picture == pictures.end()) {
      pictures.push_back({.name = name, .x_title = "percentile of the requests", .y_title = "ms"});
      picture = pictures.end() - 1;
      for (const double share : shares) picture->ticks.emplace_back(place(share), percentile_name(share));
    }
    Curve curve{.contender = row.contender};
    for (const auto& p : row.percentiles)
      curve.points.push_back({place(p.p), p.value, p.bounds.low, p.bounds.high});
    picture->curves.push_back(std::move(curve));
  }
  return pictures;
}

StudySection section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<LatencyTrial>());
  const double level = 1 - context.recipe.alpha;
  const auto rows = latency_rows(trials, context.ids(), context.recipe.latency, level);
  if (rows.empty()) return std::optional<Section>();
  Section section = latency_section(rows, level, context.recipe.training.batch);
  section.remarks = latency_notes(trials);
  section.json["disturbed"] = Json::array();  // what the remarks give one example of
  for (const LatencyTrial& trial : trials) {
    if (!trial.host.busy.empty()) section.json["disturbed"].push_back(trial.host.busy);
  }
  return std::optional(std::move(section));
}

}  // namespace

Study latency_study() {
  return {.name = "latency",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.latency.wanted(); },
          .run = measure_latencies,
          .section = section_of_run};
}

std::string percentile_name(double share) { return fmt::format("p{:.7g}", 100 * share); }

Section latency_section(const std::vector<LatencyRow>& rows, double level, int64_t batch) {
  const std::set<double> shares = shares_of(rows);
  const Quantities all = quantities(shares);
  Section section = section_of(all, rows);
  section.key = "latency";
  section.label = "Latency";
  section.title = "Latency of requests";
  section.legend = legend(level, batch);
  section.json = {{"level", number(level)}, {"rows", json_rows(all, rows)}};
  for (size_t i = 0; i < rows.size(); ++i) section.row_names[i] += ", " + mode_name(rows[i]);
  section.pictures = percentile_curves(rows, shares);
  add_csv<LatencyRow>(section, in_csv(shares), rows,
                      [](const LatencyRow& r) { return "latency_" + mode_key(r.rate) + "_"; });
  return section;
}

}  // namespace bakeoff
