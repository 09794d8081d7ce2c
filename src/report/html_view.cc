#include "report/html_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/cells.h"
#include "report/charts.h"
#include "report/fit_view.h"
#include "report/html_parts.h"
#include "report/largest_view.h"
#include "report/latency_view.h"
#include "table/numbers.h"
#include "report/search_view.h"
#include "report/svg.h"
#include "report/target_view.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string parity_class(ParityState state) {
  switch (state) {
    case ParityState::kPassed:
      return "good";
    case ParityState::kReported:
      return "warn";
    case ParityState::kFailed:
      return "bad";
    case ParityState::kNotRun:
      break;
  }
  return "none";
}

// A name that may break after "[" and ",". Escaped.
std::string breakable(std::string_view name) {
  std::string markup;
  while (!name.empty()) {
    const size_t end = std::min(name.find_first_of("[,"), name.size() - 1) + 1;
    markup += (markup.empty() ? "" : "<wbr>") + escape_markup(name.substr(0, end));
    name.remove_prefix(end);
  }
  return markup;
}

// The verdict with the contenders' names set apart. Escaped.
std::string headline_markup(const Summary& s) {
  std::vector<std::string> names;
  for (const Series& series : all_series(s)) names.push_back(series.name);
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  const std::string text = headline(s);
  std::string markup, plain;
  for (size_t at = 0; at < text.size();) {
    const auto name = std::find_if(names.begin(), names.end(), [&](const std::string& n) {
      return !n.empty() && text.compare(at, n.size(), n) == 0;
    });
    if (name == names.end()) {
      plain += text[at++];
      continue;
    }
    markup += escape_markup(plain) + "<span class=\"id\">" + breakable(*name) + "</span>";
    plain.clear();
    at += name->size();
  }
  return markup + escape_markup(plain);
}

View tile(const std::string& value, const std::string& unit, const std::string& label) {
  return {{{"tile_value", value}, {"tile_unit", unit}, {"tile_label", label}}, {}, {}};
}

std::vector<View> tiles(const Summary& s) {
  std::vector<View> out;
  if (!s.ranked.empty()) {
    const Cells c = cells(s, s.ranked.front());
    out.push_back(tile(c.ms, "ms", "a step of the leader"));
    if (c.rate != kNone) out.push_back(tile(c.rate, "", "samples per second"));
    if (c.gflops != kNone) out.push_back(tile(c.gflops, "GFLOP/s", "of the model's arithmetic"));
  }
  size_t proven = 0;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) proven += row.parity == ParityState::kPassed;
  }
  out.push_back(tile(fmt::format("{}", proven), fmt::format("of {}", s.ranked.size() + s.unranked.size()),
                     "contenders proven equal to the referee"));
  out.push_back(
      tile(fmt::format("{}", s.heats), s.heats == 1 ? "heat" : "heats",
           s.elapsed_s > 0 ? "of fresh processes, in " + duration(s.elapsed_s * 1e3) : "of fresh processes"));
  out.push_back(tile(percent(s.alpha), "", "error rate of all verdicts and ratios together"));
  return out;
}

View ranked_row(const Series& series, const Summary& s) {
  const Row& row = *series.row;
  const Cells c = cells(s, row);
  View v;
  v.texts = {{"rank", c.rank},
             {"row_markup", breakable(c.name)},
             {"row_class", series.cls},
             {"series", std::to_string(series.index)},
             {"row_ties", c.ties},
             {"row_group", c.group},
             {"row_distance", c.distance},
             {"ms", c.ms},
             {"ms_interval", c.ms_interval},
             {"ratio", c.ratio},
             {"ratio_interval", c.ratio_interval == kNone ? "" : c.ratio_interval},
             {"verdict", c.verdict},
             {"rate", c.rate},
             {"flop_use", c.flop_use},
             {"first_step", c.first_step},
             {"break_even", c.break_even},
             {"memory", c.memory},
             {"parity_mark", parity_mark(row.parity)},
             {"parity_word", parity_word(row.parity)},
             {"parity_class", parity_class(row.parity)},
             {"cold", c.first_step_cold == kNone ? "" : "cold " + c.first_step_cold}};
  v.flags = {{"leads", &row == &leader_of(s, row)}};
  return v;
}

// What a step used and an epoch costs.
struct UsageColumn {
  const char* title;
  const char* meaning;
  std::string Cells::*text;
};
constexpr UsageColumn kUsageColumns[] = {
    {"Threads", "That it computes with, at most its processors", &Cells::threads},
    {"Of peak", "The model's arithmetic over the measured peak of so many threads", &Cells::flop_use},
    {"Of bandwidth", "What its ops move, nothing fused, over the measured bandwidth", &Cells::byte_use},
    {"Processors busy", "Processor time over wall time of the bursts", &Cells::cores},
    {"Waiting", "Of the time in which a thread wanted a processor: none was free", &Cells::waiting},
    {"Page faults a step", "Pages of memory that were set up", &Cells::faults},
    {"Switches a step", "Context switches of all its threads", &Cells::switches},
    {"Waiting for batches", "Share of its time in which the training loop had no batch", &Cells::wait},
    {"Wait for a batch", "Those within an epoch", &Cells::wait_batch},
    {"First of an epoch", "Wait for the first batch of an epoch", &Cells::wait_first},
    {"Wait an epoch", "For all batches of an epoch", &Cells::wait_epoch},
    {"To the device", "A copy from the host, by itself: of a batch, or once of the data that stay there",
     &Cells::transfer},
    {"Instructions a step", "Outside the kernel", &Cells::instructions},
    {"Cache misses a step", "Of the last level, outside the kernel", &Cells::misses},
    {"Memory a sample", "Beyond the model as built, over the rows of a batch", &Cells::sample_memory},
    {"Shared memory divided", "Resident after the last burst, shared pages divided by those who share them",
     &Cells::pss},
    {"Allocator's peak", "By the framework's own count", &Cells::allocator},
    {"Temperature", "Of the processors, the highest", &Cells::temperature},
    {"GPU busy", "Share of the time in which some kernel ran", &Cells::gpu_busy},
    {"GPU power", "Of the board, mean", &Cells::gpu_power},
    {"GPU energy a step", "Of the board", &Cells::gpu_energy},
    {"GPU memory", "In use by anybody, the most", &Cells::gpu_memory},
    {"GPU clock", "Of its multiprocessors, mean", &Cells::gpu_clock},
    {"GPU throttled", "Share of the time in which its clocks were held down", &Cells::gpu_throttled},
    {"Energy a sample", "Of the processors' packages and memory, idle parts included", &Cells::energy},
    {"Samples a joule", "Of the same energy, and of its GPU's board", &Cells::per_joule},
    {"Samples a unit of currency", "At the recipe's price of an hour", &Cells::per_unit},
    {"An epoch", "At the steady rate, start-up left out", &Cells::epoch},
    {"Price of an epoch", "At the recipe's price of an hour", &Cells::price},
    {"CO2 of an epoch", "At the recipe's intensity", &Cells::co2}};

// Columns that nobody has are left out.
void add_usage(const Summary& s, View& page) {
  std::vector<Cells> rows;
  for (const Row& row : s.ranked) {
    rows.push_back(cells(s, row));
    fill_usage(s, row, rows.back());
  }
  std::vector<const UsageColumn*> shown;
  for (const UsageColumn& column : kUsageColumns) {
    const auto has = [&](const Cells& c) { return c.*column.text != kNone; };
    if (std::any_of(rows.begin(), rows.end(), has)) shown.push_back(&column);
  }
  for (const UsageColumn* column : shown)
    page.lists["usage_columns"].push_back(
        {{{"usage_title", column->title}, {"usage_meaning", column->meaning}}, {}, {}});
  for (const Cells& c : rows) {
    View v;
    v.texts["usage_name"] = c.name;
    for (const UsageColumn* column : shown)
      v.lists["usage_cells"].push_back(
          {{{"usage_of", column->title}, {"usage_value", c.*column->text}}, {}, {}});
    page.lists["usage"].push_back(std::move(v));
  }
  page.flags["has_usage"] = shown.size() > 1;
  page.flags["has_not_sampled"] = !s.not_sampled.empty();
  page.texts["not_sampled"] = one_line(fmt::format("{}", fmt::join(s.not_sampled, "; ")));
}

View unranked_row(const Row& row) {
  View v;
  const std::string log = row.failure ? clean(row.failure->log_tail) : "";
  v.texts = {{"row_name", one_line(row.contender.id)},
             {"reason", unranked_reason(row, false)},
             {"log", log},
             {"stage", row.failure ? one_line(row.failure->stage) : "parity"}};
  v.flags = {{"has_log", !last_lines(log, 1).empty()}};
  return v;
}

View chart(const std::string& title, const std::string& id, const std::string& text, const std::string& wide,
           const std::string& narrow) {
  View v;
  v.texts = {
      {"chart_title", title}, {"chart_id", id}, {"chart_text", text}, {"wide", wide}, {"narrow", narrow}};
  return v;
}

using Draw = std::string (*)(const Summary&, double);

struct Picture {
  const char* id;
  const char* title;
  const char* text;
  Draw draw;
  const char* key;  // of a colour key that the template holds
};

const std::vector<Picture>& pictures() {
  static const std::vector<Picture> all = {
      {"intervals", "How far behind the leader",
       "Step time over the leader's, with intervals that hold for all contenders together. The band is the "
       "margin: "
       "inside it a gap does not matter. Contenders of one colour are not told apart; an open arrow means "
       "that the "
       "evidence sets no bound on that side yet.",
       interval_chart, "margin_key"},
      {"steps", "Step times",
       "Every timed step, pooled over the heats, with its median and middle half. Dots are the means of the "
       "heats, "
       "one fresh process each: the verdict rests on them, not on the steps.",
       distribution_chart, "steps_key"},
      {"start", "Start-up",
       "What passes before training is under way, as medians over the heats. First step includes "
       "compilation; the "
       "outline is what a cold compilation cache adds.",
       start_up_chart, "start_key"},
      {"roofline", "Distance from the machine's limits",
       "The model's arithmetic per second against its arithmetic per byte that its ops move. No contender "
       "can be "
       "above the flat line, the measured peak of the processor; the sloped lines are the measured "
       "bandwidths of "
       "the memory levels. Marks below are the kinds of layers of the workload: those left of the kink wait "
       "for "
       "memory.",
       roofline_chart, "roofline_key"},
  };
  return all;
}

std::vector<View> charts(const Summary& s) {
  std::vector<View> out;
  for (const Picture& p : pictures()) {
    const std::string wide = p.draw(s, kWide);
    if (wide.empty()) continue;
    out.push_back(chart(p.title, p.id, p.text, wide, p.draw(s, kNarrow)));
    for (const char* key : {"margin_key", "steps_key", "start_key", "roofline_key"}) {
      out.back().flags[key] = std::string(key) == p.key;
    }
  }
  return out;
}

void tabbed_charts(const Summary& s, View& page) {
  const auto add = [&](const char* key, std::vector<View> tabs) {
    std::erase_if(tabs, [](const View& v) { return v.texts.at("wide").empty(); });
    page.flags[std::string("has_") + key] = !tabs.empty();
    page.lists[key] = std::move(tabs);
  };
  const auto total = [&](bool relative) {
    return chart(relative ? "Relative to the leader" : "Total time", relative ? "total-rel" : "total-abs", "",
                 total_time_chart(s, kWide, relative), total_time_chart(s, kNarrow, relative));
  };
  add("total_tabs", {total(false), total(true)});
  add("loss_tabs", {chart("Difference from the referee", "loss-diff", "", loss_error_chart(s, kWide),
                          loss_error_chart(s, kNarrow)),
                    chart("Losses", "loss-abs", "", loss_chart(s, kWide), loss_chart(s, kNarrow))});
}

std::vector<View> legend(const Summary& s, bool losses) {
  std::vector<View> out;
  for (const Series& series : all_series(s)) {
    const bool shown = losses ? series.row->proof && !series.row->proof->losses.empty() : series.ranked;
    if (!shown) continue;
    out.push_back({{{"series", std::to_string(series.index)},
                    {"legend_class", series.cls},
                    {"legend_name", series.name}},
                   {},
                   {}});
  }
  return out;
}

// A chart's title, or less where that is long.
std::string nav_label(const View& chart) {
  const std::string& id = chart.texts.at("chart_id");
  return id == "intervals" ? "Intervals" : id == "roofline" ? "Limits" : chart.texts.at("chart_title");
}

void navigation(View& page) {
  const auto add = [&](const char* id, const char* label, bool shown) {
    if (shown) page.lists["nav"].push_back({{{"nav_id", id}, {"nav_label", label}}, {}, {}});
  };
  add("table", "Table", page.flags["has_ranked"]);
  add("unranked", "Not ranked", page.flags["has_unranked"]);
  for (const View& v : page.lists["charts"]) {
    page.lists["nav"].push_back({{{"nav_id", v.texts.at("chart_id")}, {"nav_label", nav_label(v)}}, {}, {}});
  }
  add("fit", "Whole training", page.flags["has_fit"]);
  add("target", "Target", page.flags["has_target"]);
  add("latency", "Latency", page.flags["has_latency"]);
  add("batches", "Batch size", page.flags["has_search"]);
  add("largest", "Largest batch", page.flags["has_largest"]);
  add("total", "Total time", page.flags["has_total_tabs"]);
  add("losses", "Losses", page.flags["has_loss_tabs"]);
  add("usage", "Resources", page.flags["has_usage"]);
  add("variance", "Variance", page.flags["has_variance"]);
  add("parity", "Parity", page.flags["has_parity"]);
  add("fairness", "Fairness", page.flags["has_fairness"]);
  add("settings", "Settings", page.flags["has_settings"]);
  add("host", "Host", true);
  add("sources", "Sources", page.flags["has_sources"]);
}

}  // namespace

View page_view(const Summary& s, bool sources) {
  View page;
  page.texts = {{"title", s.title.empty() ? "untitled" : one_line(s.title)},
                {"track", track_label(s)},
                {"track_class", s.track == "as-is" ? "as-is" : "equalised"},
                {"track_meaning", track_meaning(s)},
                {"headline_markup", headline_markup(s)},
                {"state", s.interrupted ? "interrupted"
                          : s.decided   ? "decided"
                                        : "not fully decided"},
                {"state_class", s.interrupted ? "bad"
                                : s.decided   ? "good"
                                              : "warn"},
                {"margin", percent(s.margin)},
                {"alpha", percent(s.alpha)},
                {"started", one_line(s.manifest.started)},
                {"facts", fmt::format("{}", fmt::join(facts(s), " · "))},
                {"roofline_statement", s.roofline ? roofline_statement(*s.roofline) : ""},
                {"tie_legend", kTieLegend}};
  page.lists["tiles"] = tiles(s);
  for (const Series& series : all_series(s)) {
    if (series.ranked) page.lists["ranked"].push_back(ranked_row(series, s));
    if (!series.ranked) page.lists["unranked"].push_back(unranked_row(*series.row));
  }
  for (const std::string& note : s.notes) page.lists["notes"].push_back({{{"note", one_line(note)}}, {}, {}});
  page.flags = {{"has_ranked", !s.ranked.empty()},
                {"has_unranked", !s.unranked.empty()},
                {"has_notes", !s.notes.empty()},
                {"has_roofline", s.roofline.has_value()},
                {"has_ties", has_ties(s)},
                {"has_groups", !s.ranked.empty() && !cells(s, s.ranked.front()).group.empty()}};
  add_published(s, page);
  page.flags["has_variance"] = s.variance.has_value();
  if (s.variance) {
    page.texts["variance_sentence"] = one_line(s.variance->sentence);
    for (const VariancePart& part : variance_parts(*s.variance)) {
      page.lists["variance"].push_back(
          {{{"part", part.what}, {"part_sd", part.sd}, {"part_meaning", part.meaning}}, {}, {}});
    }
  }
  page.lists["charts"] = charts(s);
  tabbed_charts(s, page);
  add_usage(s, page);
  add_fit(s, page);
  add_target(s, page);
  add_latency(s, page);
  add_search(s, page);
  add_largest(s, page);
  page.lists["total_legend"] = legend(s, false);
  page.lists["loss_legend"] = legend(s, true);
  add_parity(s, page);
  add_fairness(s, page);
  add_settings(s, page);
  add_host(s, page);
  add_texts(s, sources, page);
  navigation(page);
  return page;
}

}  // namespace bakeoff::report
