// Why rankings and not ratios. Two machines differ in everything at once, and two runs of one machine in their time: a
// ratio of such times has no interval that covers what differs. Within a race it has, so each run's own distances stand
// beside those of the others, and readers see whether the order holds. Terminals have room for one such block, or for
// four; what has no room stands below, never left out.

#include "regression/rankings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/texts.h"
#include "records/names.h"
#include "stats/trimmed.h"
#include "table/quantity.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

constexpr size_t kWidestNumber = 9;
constexpr int kLeastName = 12;
const std::vector<std::string> kTitles = {"rank", "ms a step", "behind", "J", "price"};

std::string fitting(double value, std::string (*show)(double)) {
  const std::string text = show(value);
  return text.size() <= kWidestNumber ? text : fmt::format("{:.3g}", value);
}

std::vector<std::string> cells_of(const std::optional<Place>& place) {
  if (!place) return std::vector<std::string>(kTitles.size(), table::kNone);
  return {rank_text(*place), fitting(place->ms, table::milliseconds),
          fitting(place->ratio.value, table::ratio), any_size(place->joules), any_size(place->price)};
}

// The lines of one run: its head, the titles, its contenders.
std::vector<std::string> block_of(const RankedRun& run, const std::string& head) {
  std::vector<std::vector<std::string>> rows = {kTitles};
  for (const auto& place : run.places) rows.push_back(cells_of(place));
  std::vector<int> widths(kTitles.size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], table::display_width(row[i]));
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += (i == 0 ? "" : "  ") + table::pad_left(row[i], widths[i]);
    lines.push_back(std::move(line));
  }
  const int width = table::display_width(lines.front());
  lines.insert(lines.begin(), table::pad_right(table::fit(table::one_line(head), width), width));
  return lines;
}

std::string state_of(const Summary& summary) {
  if (summary.ranked.empty()) return "nobody is ranked";
  if (summary.interrupted) return "interrupted";
  if (!summary.refusal.empty()) return "no verdict: " + summary.refusal;
  return summary.decided ? "decided" : "not decided";
}

bool same_work(const Summary& first, const Summary& second) {
  const Manifest &a = first.manifest, &b = second.manifest;
  return a.workload_text == b.workload_text && a.data_sha256 == b.data_sha256 &&
         a.weights_sha256 == b.weights_sha256 && first.batch == second.batch;
}

}  // namespace

std::string rank_text(const Place& place) {
  return place.rank_best == place.rank_worst ? std::to_string(place.rank_best)
                                             : fmt::format("{}-{}", place.rank_best, place.rank_worst);
}

std::string any_size(const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return table::kNone;
  const double size = std::abs(*value);
  return size >= 0.01 && size < 1e6 ? table::significant(*value, 3) : fmt::format("{:.3g}", *value);
}

std::string workload_name(const Manifest& m) {
  const size_t begin = m.workload_text.find(' '), end = m.workload_text.find('(');
  return begin < end && end != std::string::npos ? m.workload_text.substr(begin + 1, end - begin - 1)
                                                 : "unknown";
}

std::optional<Place> place_in(const Summary& run, const std::string& contender) {
  for (const bakeoff::Row& row : run.ranked) {
    if (row.contender.id != contender || row.heat_ms.empty()) continue;
    Place place{.rank_best = row.rank_best,
                .rank_worst = row.rank_worst,
                .ms = stats::median(row.heat_ms),
                .ratio = row.ratio};
    if (const auto samples = row.epoch.samples_per_joule; samples && *samples > 0)
      place.joules = 1 / *samples;
    if (const auto samples = row.epoch.samples_per_unit; samples && *samples > 0)
      place.price = 1e6 / *samples;
    return place;
  }
  return std::nullopt;
}

Rankings rankings(const std::vector<Summary>& runs) {
  Rankings all;
  std::vector<Contender> contenders;
  for (const Summary& run : runs) {
    for (const bakeoff::Row& row : run.ranked) {
      contenders.push_back(row.contender);
      if (std::ranges::find(all.ids, row.contender.id) == all.ids.end()) all.ids.push_back(row.contender.id);
    }
  }
  for (const std::string& id : all.ids) all.names.push_back(table::one_line(label(contenders, id)));
  for (const Summary& run : runs) {
    const Manifest& m = run.manifest;
    all.same_work &= same_work(runs.front(), run);
    all.runs.push_back({.run = run.run,
                        .started = m.started,
                        .machine = fmt::format("{}, {}", m.host.cpu.empty() ? m.host.name : m.host.cpu,
                                               table::counted(m.host.cpus, "processor")),
                        .workload = fmt::format("{}, batch {}", workload_name(m), run.batch),
                        .state = state_of(run),
                        .currency = run.currency,
                        .fleet = run.fleet,
                        .places = {}});
    for (const std::string& id : all.ids) all.runs.back().places.push_back(place_in(run, id));
  }
  return all;
}

std::string blocks_text(const Rankings& r, const std::vector<std::string>& heads, int width) {
  if (r.ids.empty()) return "";
  std::vector<std::vector<std::string>> blocks;
  int widest = 0;
  for (size_t i = 0; i < r.runs.size(); ++i) {
    blocks.push_back(block_of(r.runs[i], heads[i]));
    widest = std::max(widest, table::display_width(blocks.back().front()));
  }
  int column = kLeastName;
  for (const std::string& name : r.names) column = std::max(column, table::display_width(name));
  column = std::min(column, std::max(kLeastName, width - widest - 2));
  std::string out;
  for (size_t begin = 0; begin < blocks.size();) {
    size_t end = begin;
    for (int used = column; end < blocks.size(); ++end) {
      used += 3 + table::display_width(blocks[end].front());
      if (end > begin && used > width + 1) break;  // before the first one stand two spaces
    }
    if (begin > 0) out += '\n';
    for (size_t line = 0; line < blocks[begin].size(); ++line) {
      const std::string name = line < 2 ? "" : table::fit(r.names[line - 2], column);
      std::string text = table::pad_right(name, column) + "  ";
      for (size_t i = begin; i < end; ++i) text += (i == begin ? "" : "   ") + blocks[i][line];
      out += text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
    }
    begin = end;
  }
  std::vector<std::string> prices;
  for (const RankedRun& run : r.runs) {
    const std::string price = run.currency.empty() ? "no price" : table::one_line(run.currency);
    if (std::ranges::find(prices, price) == prices.end()) prices.push_back(price);
  }
  return out +
         table::paragraph(
             fmt::format("Behind: step time over that of the leader of the same run. J: energy of a "
                         "sample. Price: of a million samples ({}).",
                         join(prices, ", ")),
             width) +
         "\n";
}

std::string never_paired(const Rankings& r) {
  const bool fleet = std::ranges::any_of(r.runs, [](const RankedRun& run) { return run.fleet; });
  const bool machines = std::ranges::any_of(
      r.runs, [&](const RankedRun& run) { return run.machine != r.runs.front().machine; });
  const std::string why = fleet      ? "Heats of a fleet are of its nodes"
                          : machines ? "The runs are of different machines"
                                     : "The runs are of different times";
  return why +
         ": each run has its own ranking, and a ratio of their times would hold for none of them: they were "
         "never paired." +
         (r.same_work ? "" : " Their work differs as well.");
}

std::string to_text(const Rankings& r, int width) {
  std::string out;
  std::vector<std::string> heads;
  for (const RankedRun& run : r.runs) {
    heads.push_back(fmt::format("run {}", heads.size() + 1));
    out += table::paragraph(
               table::one_line(fmt::format("{} ({}): {}; {}; {}{}", run.run, run.started, run.machine,
                                           run.workload, run.state, run.fleet ? "; nodes of a fleet" : "")),
               width, table::pad_right(heads.back(), 8), "        ") +
           '\n';
  }
  out += '\n' + blocks_text(r, heads, width);
  if (r.ids.empty()) out += "No run has ranked a contender; `bakeoff report` of each says why.\n";
  return out + '\n' + table::paragraph(never_paired(r), width) + '\n';
}

std::string to_json(const Rankings& r) {
  table::Json json = {{"format", "bakeoff rankings 1"},
                      {"same_work", r.same_work},
                      {"no_ratios", never_paired(r)},
                      {"runs", table::Json::array()}};
  for (const RankedRun& run : r.runs) {
    table::Json one = {{"run", run.run},         {"started", run.started},
                       {"machine", run.machine}, {"workload", run.workload},
                       {"state", run.state},     {"currency", run.currency},
                       {"fleet", run.fleet},     {"contenders", table::Json::array()}};
    for (size_t i = 0; i < r.ids.size(); ++i) {
      if (!run.places[i]) continue;
      const Place& place = *run.places[i];
      one["contenders"].push_back({{"contender", r.ids[i]},
                                   {"rank", {place.rank_best, place.rank_worst}},
                                   {"ms_per_step", table::number(place.ms)},
                                   {"behind", table::estimate(place.ratio)},
                                   {"joules_per_sample", table::number(place.joules)},
                                   {"price_per_million_samples", table::number(place.price)}});
    }
    json["runs"].push_back(std::move(one));
  }
  return dump(json, 2) + "\n";
}

std::string to_csv(const Rankings& r) {
  std::string out =
      table::csv_row({"run", "started", "machine", "workload", "state", "fleet", "contender", "rank_best",
                      "rank_worst", "ms_per_step", "behind", "behind_low", "behind_high", "joules_per_sample",
                      "price_per_million_samples", "currency"});
  for (const RankedRun& run : r.runs) {
    for (size_t i = 0; i < r.ids.size(); ++i) {
      if (!run.places[i]) continue;
      const Place& place = *run.places[i];
      out += table::csv_row(
          {run.run, run.started, run.machine, run.workload, run.state, run.fleet ? "true" : "false", r.ids[i],
           std::to_string(place.rank_best), std::to_string(place.rank_worst), table::plain(place.ms),
           table::plain(place.ratio.value), table::plain(place.ratio.low), table::plain(place.ratio.high),
           table::plain(place.joules), table::plain(place.price), run.currency});
    }
  }
  return out;
}

}  // namespace bakeoff::regression
