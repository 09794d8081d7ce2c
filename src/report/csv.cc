#include "report/csv.h"

#include <fmt/format.h>

#include <vector>

#include "report/cells.h"
#include "report/fit_view.h"
#include "report/largest_view.h"
#include "report/latency_view.h"
#include "report/numbers.h"
#include "report/search_view.h"
#include "report/target_view.h"
#include "report/text.h"

namespace bakeoff::report {
namespace {

std::string field(std::string_view text) {
  std::string valid = clean(text);
  if (valid.find_first_of(",\"\n\r") == std::string::npos) return valid;
  std::string out = "\"";
  for (const char c : valid) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::string record(const std::vector<std::string>& fields) {
  std::string out;
  for (size_t i = 0; i < fields.size(); ++i) out += (i > 0 ? "," : "") + field(fields[i]);
  return out + "\r\n";
}

std::string settings(const Contender& contender) {
  std::string out;
  for (const auto& [key, value] : contender.settings) out += (out.empty() ? "" : ";") + key + '=' + value;
  return out;
}

// What only some recipes ask for stands behind the columns of all.
std::vector<std::string> with_more(std::vector<std::string> record, const Summary& s,
                                   const std::string& contender, bool names) {
  for (const auto& fields :
       {target_fields(s, contender), fit_fields(s, contender), latency_fields(s, contender),
        search_fields(s, contender), largest_fields(s, contender)}) {
    for (const auto& [name, value] : fields) record.push_back(names ? name : value);
  }
  return record;
}

std::vector<std::string> fields(const Summary& s, const Row& row, bool ranked) {
  const auto if_ranked = [&](const std::string& text) { return ranked ? text : std::string(); };
  const auto if_timed = [&](double value) { return ranked && !row.at_least ? plain(value) : std::string(); };
  const auto low = [](const Estimate& e) { return bounded_below(e) ? plain(e.low) : ""; };
  const auto high = [](const Estimate& e) { return bounded_above(e) ? plain(e.high) : ""; };
  return {s.title,
          s.track,
          row.contender.id,
          row.contender.framework,
          settings(row.contender),
          row.group,
          plain(row.loss_distance),
          plain(row.gradient_distance),
          ranked ? "ranked" : "not ranked",
          if_ranked(fmt::format("{}", row.rank_best)),
          if_ranked(fmt::format("{}", row.rank_worst)),
          row.ties,
          row.behind ? "behind " + row.behind->contender : row.verdict,
          if_timed(row.ms_per_step.value),
          if_ranked(low(row.ms_per_step)),
          if_ranked(high(row.ms_per_step)),
          if_timed(row.ratio.value),
          if_ranked(low(row.ratio)),
          if_ranked(high(row.ratio)),
          if_timed(row.samples_per_second),
          if_timed(row.gflops),
          if_ranked(plain(row.flop_use)),
          if_ranked(plain(row.byte_use)),
          plain(row.usage.cores),
          plain(row.usage.faults),
          plain(row.usage.switches),
          plain(row.usage.joules),
          plain(row.wait.share),
          plain(row.wait.batch_ms),
          plain(row.wait.first_ms),
          plain(row.wait.epoch_ms),
          plain(row.epoch.price),
          plain(row.epoch.joules),
          plain(row.epoch.grams_co2),
          plain(row.epoch.samples_per_joule),
          plain(row.epoch.samples_per_unit),
          if_ranked(plain(row.start_up.start)),
          if_ranked(plain(row.start_up.import)),
          if_ranked(plain(row.start_up.build)),
          if_ranked(plain(row.start_up.first_step)),
          if_ranked(plain(row.start_up.first_step_cold)),
          row.transfer ? row.transfer->of : "",
          row.transfer ? plain(static_cast<double>(row.transfer->ns) / 1e6) : "",
          row.transfer ? fmt::format("{}", row.transfer->bytes) : "",
          plain(row.break_even_step),
          plain(row.memory.in_bursts),
          plain(row.memory.pss),
          plain(row.memory.allocator_peak),
          plain(row.memory.per_sample),
          plain(row.gpu.memory_bytes),
          plain(row.gpu.joules),
          row.peak_rss_bytes > 0 ? fmt::format("{}", row.peak_rss_bytes) : "",
          fmt::format("{}", row.heats),
          parity_word(row.parity),
          ranked ? "" : unranked_reason(row)};
}

}  // namespace

std::string render_csv(const Summary& summary) {
  const std::vector<std::string> names = {"recipe",
                                          "track",
                                          "contender",
                                          "framework",
                                          "settings",
                                          "group",
                                          "loss_distance_from_float32",
                                          "gradient_distance_from_float32",
                                          "state",
                                          "rank_best",
                                          "rank_worst",
                                          "ties",
                                          "verdict",
                                          "ms_per_step",
                                          "ms_per_step_low",
                                          "ms_per_step_high",
                                          "ratio",
                                          "ratio_low",
                                          "ratio_high",
                                          "samples_per_second",
                                          "gflops",
                                          "share_of_peak",
                                          "share_of_bandwidth",
                                          "cores_busy",
                                          "page_faults_per_step",
                                          "context_switches_per_step",
                                          "joules_per_step",
                                          "batch_wait_share",
                                          "batch_wait_ms",
                                          "first_batch_wait_ms",
                                          "epoch_wait_ms",
                                          "price_per_epoch",
                                          "joules_per_epoch",
                                          "grams_co2_per_epoch",
                                          "samples_per_joule",
                                          "samples_per_currency_unit",
                                          "start_ms",
                                          "import_ms",
                                          "build_ms",
                                          "first_step_ms",
                                          "first_step_cold_ms",
                                          "transfer_of",
                                          "transfer_ms",
                                          "transfer_bytes",
                                          "break_even_step",
                                          "rss_in_bursts_bytes",
                                          "pss_bytes",
                                          "allocator_peak_bytes",
                                          "memory_bytes_per_sample",
                                          "gpu_memory_bytes",
                                          "gpu_joules_per_step",
                                          "peak_rss_bytes",
                                          "heats",
                                          "parity",
                                          "reason"};
  std::string out = record(with_more(names, summary, "", true));
  for (const bool ranked : {true, false}) {
    for (const Row& row : ranked ? summary.ranked : summary.unranked)
      out += record(with_more(fields(summary, row, ranked), summary, row.contender.id, false));
  }
  return out;
}

}  // namespace bakeoff::report
