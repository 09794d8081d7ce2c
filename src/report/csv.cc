#include "report/csv.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "report/cells.h"
#include "report/fit_view.h"
#include "report/largest_view.h"
#include "report/latency_view.h"
#include "table/numbers.h"
#include "report/search_view.h"
#include "report/target_view.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string field(std::string_view text) {
  std::string valid = clean(text);
  if (valid.find_first_of(",\"\n\r") == std::string::npos) return valid;
  std::string out = "\"";
  for (const char c : valid) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

using Fields = std::vector<std::pair<std::string, std::string>>;  // name of the column, value

// The names of the columns, or their values.
std::string record(const Fields& fields, std::string Fields::value_type::*text) {
  std::string out;
  for (const auto& one : fields) out += field(one.*text) + ',';
  out.back() = '\r';
  return out + '\n';
}

std::string settings(const Contender& contender) {
  std::string out;
  for (const auto& [key, value] : contender.settings) out += (out.empty() ? "" : ";") + key + '=' + value;
  return out;
}

Fields standing(const Summary& s, const Row& row, bool ranked) {
  const auto if_ranked = [&](const std::string& text) { return ranked ? text : std::string(); };
  const auto if_timed = [&](double value) { return ranked && !row.at_least ? plain(value) : std::string(); };
  const auto low = [](const Estimate& e) { return bounded_below(e) ? plain(e.low) : ""; };
  const auto high = [](const Estimate& e) { return bounded_above(e) ? plain(e.high) : ""; };
  return {
      {"recipe", s.title},
      {"track", s.track},
      {"contender", row.contender.id},
      {"framework", row.contender.framework},
      {"settings", settings(row.contender)},
      {"group", row.group},
      {"loss_distance_from_float32", plain(row.loss_distance)},
      {"gradient_distance_from_float32", plain(row.gradient_distance)},
      {"state", ranked ? "ranked" : "not ranked"},
      {"rank_best", if_ranked(fmt::format("{}", row.rank_best))},
      {"rank_worst", if_ranked(fmt::format("{}", row.rank_worst))},
      {"ties", row.ties},
      {"verdict", row.behind ? "behind " + row.behind->contender : row.verdict},
      {"ms_per_step", if_timed(row.ms_per_step.value)},
      {"ms_per_step_low", if_ranked(low(row.ms_per_step))},
      {"ms_per_step_high", if_ranked(high(row.ms_per_step))},
      {"ratio", if_timed(row.ratio.value)},
      {"ratio_low", if_ranked(low(row.ratio))},
      {"ratio_high", if_ranked(high(row.ratio))},
      {"samples_per_second", if_timed(row.samples_per_second)},
      {"gflops", if_timed(row.gflops)},
      {"share_of_peak", if_ranked(plain(row.flop_use))},
      {"share_of_bandwidth", if_ranked(plain(row.byte_use))},
  };
}

Fields use(const Row& row) {
  return {
      {"cores_busy", plain(row.usage.cores)},
      {"page_faults_per_step", plain(row.usage.faults)},
      {"context_switches_per_step", plain(row.usage.switches)},
      {"joules_per_step", plain(row.usage.joules)},
      {"batch_wait_share", plain(row.wait.share)},
      {"batch_wait_ms", plain(row.wait.batch_ms)},
      {"first_batch_wait_ms", plain(row.wait.first_ms)},
      {"epoch_wait_ms", plain(row.wait.epoch_ms)},
      {"price_per_epoch", plain(row.epoch.price)},
      {"joules_per_epoch", plain(row.epoch.joules)},
      {"grams_co2_per_epoch", plain(row.epoch.grams_co2)},
      {"samples_per_joule", plain(row.epoch.samples_per_joule)},
      {"samples_per_currency_unit", plain(row.epoch.samples_per_unit)},
  };
}

Fields start_and_memory(const Row& row, bool ranked) {
  const auto if_ranked = [&](const std::string& text) { return ranked ? text : std::string(); };
  return {
      {"start_ms", if_ranked(plain(row.start_up.start))},
      {"import_ms", if_ranked(plain(row.start_up.import))},
      {"build_ms", if_ranked(plain(row.start_up.build))},
      {"first_step_ms", if_ranked(plain(row.start_up.first_step))},
      {"first_step_cold_ms", if_ranked(plain(row.start_up.first_step_cold))},
      {"transfer_of", row.transfer ? row.transfer->of : ""},
      {"transfer_ms", row.transfer ? plain(static_cast<double>(row.transfer->ns) / 1e6) : ""},
      {"transfer_bytes", row.transfer ? fmt::format("{}", row.transfer->bytes) : ""},
      {"break_even_step", plain(row.break_even_step)},
      {"rss_in_bursts_bytes", plain(row.memory.in_bursts)},
      {"pss_bytes", plain(row.memory.pss)},
      {"allocator_peak_bytes", plain(row.memory.allocator_peak)},
      {"memory_bytes_per_sample", plain(row.memory.per_sample)},
      {"gpu_memory_bytes", plain(row.gpu.memory_bytes)},
      {"gpu_joules_per_step", plain(row.gpu.joules)},
      {"peak_rss_bytes", row.peak_rss_bytes > 0 ? fmt::format("{}", row.peak_rss_bytes) : ""},
      {"heats", fmt::format("{}", row.heats)},
      {"parity", parity_word(row.parity)},
      {"reason", ranked ? "" : unranked_reason(row)},
  };
}

// What only some recipes ask for stands behind the columns of all.
Fields fields(const Summary& s, const Row& row, bool ranked) {
  const std::string& id = row.contender.id;
  Fields all;
  for (const Fields& part :
       {standing(s, row, ranked), use(row), start_and_memory(row, ranked), target_fields(s, id),
        fit_fields(s, id), latency_fields(s, id), search_fields(s, id), largest_fields(s, id)})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::string render_csv(const Summary& summary) {
  std::string out = record(fields(summary, {}, false), &Fields::value_type::first);
  for (const bool ranked : {true, false}) {
    for (const Row& row : ranked ? summary.ranked : summary.unranked)
      out += record(fields(summary, row, ranked), &Fields::value_type::second);
  }
  return out;
}

}  // namespace bakeoff::report
