#include "report/json.h"

#include <nlohmann/json.hpp>

#include "base/version.h"
#include "recipe/published_table.h"
#include "report/cells.h"
#include "report/json_beside.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

Json numbers(const std::vector<double>& values) {
  Json all = Json::array();
  for (const double value : values) all.push_back(number(value));
  return all;
}

Json texts(const Texts& values) {
  Json all = Json::object();
  for (const auto& [key, value] : values) all[key] = value;
  return all;
}

Json contender(const Contender& c) {
  return {{"id", c.id},
          {"framework", c.framework},
          {"environment", c.environment},
          {"settings", texts(c.settings)},
          {"controls", texts(c.controls)},
          {"script", c.script},
          {"own_script", c.own_script}};
}

Json failure(const Failure& f) {
  return {{"stage", f.stage}, {"reason", f.reason}, {"log_tail", clean(f.log_tail)}};
}

Json parity(const Parity& p) {
  Json checks = Json::array();
  for (const ParityCheck& check : p.checks) {
    checks.push_back({{"what", check.what},
                      {"tensor", check.tensor},
                      {"error", number(check.error)},
                      {"tolerance", number(check.tolerance)},
                      {"passed", check.passed}});
  }
  return {{"passed", p.passed()},
          {"checks", checks},
          {"diverges_at", p.diverges_at},
          {"divergence", number(p.divergence)},
          {"explanation", p.explanation},
          {"losses", numbers(p.losses)},
          {"failure", p.failure ? failure(*p.failure) : Json(nullptr)}};
}

Json gpu(const GpuUse& g) {
  if (g == GpuUse{.on_gpu = g.on_gpu}) return nullptr;  // nothing is known of it
  return {{"busy", number(g.busy)},
          {"power_w", number(g.power_w)},
          {"joules_per_step", number(g.joules)},
          {"memory_bytes", number(g.memory_bytes)},
          {"sm_clock_hz", number(g.sm_clock_hz)},
          {"temperature_c", number(g.temperature_c)},
          {"processes", number(g.processes)},
          {"throttled", number(g.throttled)}};
}

void add_usage(const Row& r, Json& out) {
  out["cores_busy"] = number(r.usage.cores);
  out["waiting_for_processor"] = number(r.usage.waiting);
  out["page_faults_per_step"] = number(r.usage.faults);
  out["major_page_faults_per_step"] = number(r.usage.major_faults);
  out["context_switches_per_step"] = number(r.usage.switches);
  out["joules_per_step"] = number(r.usage.joules);
  out["instructions_per_step"] = number(r.usage.instructions);
  out["instructions_per_cycle"] = number(r.usage.per_cycle);
  out["cache_misses_per_step"] = number(r.usage.cache_misses);
  out["branch_misses_per_step"] = number(r.usage.branch_misses);
  out["temperature_c"] = number(r.usage.temperature_c);
  out["memory"] = {{"rss_in_bursts_bytes", number(r.memory.in_bursts)},
                   {"pss_bytes", number(r.memory.pss)},
                   {"allocator_peak_bytes", number(r.memory.allocator_peak)},
                   {"bytes_per_sample", number(r.memory.per_sample)}};
  out["gpu"] = gpu(r.gpu);
}

Json row(const Row& r, bool ranked, bool samples) {
  Json out = {{"contender", contender(r.contender)}};
  out["group"] = r.group;
  out["precision_support"] = r.support.empty() ? Json(nullptr) : Json(r.support);
  out["distance_from_float32"] = {{"loss", number(r.loss_distance)},
                                  {"gradients", number(r.gradient_distance)}};
  out["rank"] = ranked ? Json::array({r.rank_best, r.rank_worst}) : Json(nullptr);
  out["ties"] = r.ties;
  out["verdict"] = r.verdict;
  out["behind"] = r.behind
                      ? Json{{"contender", r.behind->contender}, {"at_least", number(r.behind->at_least)}}
                      : Json(nullptr);
  out["ms_per_step"] = ranked ? estimate(r.ms_per_step) : Json(nullptr);
  out["ratio"] = ranked ? estimate(r.ratio) : Json(nullptr);
  out["at_least_times_slower"] = number(r.at_least);
  if (r.at_least) out["ms_per_step"]["value"] = out["ratio"]["value"] = nullptr;  // bounds alone are known
  const bool timed = ranked && !r.at_least;
  out["samples_per_second"] = timed ? number(r.samples_per_second) : Json(nullptr);
  out["gflops"] = timed ? number(r.gflops) : Json(nullptr);
  out["threads"] = ranked && r.threads > 0 ? Json(r.threads) : Json(nullptr);
  out["share_of_peak"] = ranked ? number(r.flop_use) : Json(nullptr);
  out["share_of_bandwidth"] = ranked ? number(r.byte_use) : Json(nullptr);
  add_usage(r, out);
  out["batch_wait"] = {{"share", number(r.wait.share)},
                       {"ms_per_batch", number(r.wait.batch_ms)},
                       {"ms_first_of_epoch", number(r.wait.first_ms)},
                       {"ms_per_epoch", number(r.wait.epoch_ms)}};
  out["epoch"] = {{"seconds", number(r.epoch.seconds)},
                  {"price", number(r.epoch.price)},
                  {"joules", number(r.epoch.joules)},
                  {"grams_co2", number(r.epoch.grams_co2)}};
  out["samples_per_joule"] = number(r.epoch.samples_per_joule);
  out["samples_per_currency_unit"] = number(r.epoch.samples_per_unit);
  out["start_up_ms"] = {{"start", number(r.start_up.start)},
                        {"import", number(r.start_up.import)},
                        {"build", number(r.start_up.build)},
                        {"first_step", number(r.start_up.first_step)},
                        {"first_step_cold", number(r.start_up.first_step_cold)},
                        {"total", number(r.start_up.total())}};
  out["transfer"] = r.transfer ? Json{{"of", r.transfer->of},
                                      {"ms", number(static_cast<double>(r.transfer->ns) / 1e6)},
                                      {"bytes", r.transfer->bytes}}
                               : Json(nullptr);
  out["break_even_step"] = number(r.break_even_step);
  out["peak_rss_bytes"] = r.peak_rss_bytes;
  out["remarks"] = r.remarks;
  out["heats"] = r.heats;
  out["confirming_heats"] = r.confirmed;
  out["drift"] = number(r.drift);
  out["parity"] = parity_word(r.parity);
  out["proof"] = r.proof ? parity(*r.proof) : Json(nullptr);
  out["failure"] = r.failure ? failure(*r.failure) : Json(nullptr);
  out["reason"] = ranked ? Json(nullptr) : Json(unranked_reason(r));
  out["heat_ms"] = numbers(r.heat_ms);
  if (samples) out["step_ms"] = numbers(r.step_ms);
  out["effective"] = texts(r.effective);
  out["versions"] = texts(r.versions);
  return out;
}

Json host(const Host& h) {
  return {{"name", h.name},       {"kernel", h.kernel}, {"cpu", h.cpu},
          {"os", h.os},           {"cpus", h.cpus},     {"memory_bytes", h.memory_bytes},
          {"more", texts(h.more)}};
}

Json host_watch(const Summary& s) {
  return {{"rounds", s.host.rounds},
          {"judged", s.host.judged},
          {"disturbed", s.host.busy},
          {"run_again", s.host.reruns},
          {"example", s.host.worst},
          {"not_watched", s.host.absent},
          {"refusal", s.refusal.empty() ? Json(nullptr) : Json(s.refusal)}};
}

Json promise(const Summary& s) {
  if (s.promise.stated <= 0) return nullptr;
  return {{"noise_ceiling", number(s.promise.stated)},
          {"by", s.promise.by_recipe ? "recipe" : "profile"},
          {"withdrawn", s.promise.withdrawn.empty() ? Json(nullptr) : Json(s.promise.withdrawn)},
          {"verdicts_rest_on_it", s.rests_on_promise}};
}

Json fairness(const FairnessDiff& diff) {
  Json lines = Json::array();
  for (const FairnessLine& line : diff.lines) {
    lines.push_back({{"topic", line.topic}, {"values", line.values}, {"differs", line.differs}});
  }
  return {{"frameworks", diff.frameworks}, {"lines", lines}};
}

Json manifest(const Manifest& m) {
  Json contenders = Json::array();
  for (const Contender& c : m.contenders) contenders.push_back(contender(c));
  Json not_started = Json::array();
  for (const Failure& f : m.not_started) not_started.push_back(f.reason.empty() ? Json(nullptr) : failure(f));
  return {{"record_version", m.version},
          {"bakeoff_version", m.bakeoff_version},
          {"started", m.started},
          {"recipe_name", m.recipe_name},
          {"recipe_file", m.recipe_file},
          {"recipe_text", m.recipe_text},
          {"workload_text", m.workload_text},
          {"weights_sha256", m.weights_sha256},
          {"data", m.data_description},
          {"data_sha256", m.data_sha256},
          {"host", host(m.host)},
          {"contenders", contenders},
          {"not_started", not_started},
          {"referee_losses", numbers(m.referee_losses)},
          {"fairness", fairness(m.fairness)},
          {"worker_environment", texts(m.worker_environment)},
          {"controls", texts(m.controls)},
          {"calibration", texts(m.calibration)}};
}

Json variance(const Variance& v) {
  return {{"sentence", v.sentence},
          {"heats_sd", number(v.heats)},
          {"processes_sd", number(v.processes)},
          {"bursts_sd", number(v.bursts)},
          {"heats_sd_high", number(v.heats_high)},
          {"processes_sd_high", number(v.processes_high)},
          {"bursts_sd_high", number(v.bursts_high)},
          {"steps_sd", number(v.steps)},
          {"cheapest_bursts", v.cheapest_bursts ? Json(*v.cheapest_bursts) : Json(nullptr)}};
}

Json roofline(const Roofline& r) {
  Json roofs = Json::array(), kinds = Json::array();
  for (const auto& roof : r.roofs)
    roofs.push_back({{"name", roof.name}, {"bytes_per_s", number(roof.bytes_per_s)}});
  for (const auto& kind : r.kinds)
    kinds.push_back({{"op", kind.op}, {"flops", number(kind.flops)}, {"bytes", number(kind.bytes)}});
  return {{"threads", r.threads},
          {"peak_flops", number(r.peak_flops)},
          {"peak_of", r.peak_of},
          {"gemm_flops", r.gemm_flops > 0 ? number(r.gemm_flops) : Json(nullptr)},
          {"gemm_of", r.gemm_of},
          {"roofs", roofs},
          {"level", r.level},
          {"flops_per_step", number(r.flops)},
          {"bytes_per_step", number(r.bytes)},
          {"kinds", kinds},
          {"measured", r.measured},
          {"disturbed", r.disturbed}};
}

Json published(const recipe::Published& p) {
  Json rows = Json::array();
  for (const recipe::PublishedRow& row : p.rows) {
    rows.push_back({{"contender", row.contender},
                    {"seconds", number(row.seconds)},
                    {"ratio", number(row.ratio)},
                    {"place", row.place},
                    {"measured_ms", number(row.measured_ms)},
                    {"measured_seconds", number(row.measured_s)},
                    {"measured_ratio", number(row.measured_ratio)},
                    {"measured_place", row.measured_place ? Json(*row.measured_place) : Json(nullptr)}});
  }
  return {{"source", p.source},
          {"rows", rows},
          {"measured", p.epochs > 0 ? "whole trainings" : "steps"},
          {"epochs", p.epochs > 0 ? Json(p.epochs) : Json(nullptr)},
          {"kendall_tau", number(p.agreement)},
          {"compared", p.compared}};
}

Json head(const Summary& s) {
  return {{"schema", 1},
          {"tool", "bakeoff"},
          {"version", kVersion},
          {"title", s.title},
          {"track", s.track},
          {"sentence", headline(s)},
          {"decided", s.decided},
          {"interrupted", s.interrupted},
          {"margin", number(s.margin)},
          {"alpha", number(s.alpha)},
          {"batch", s.batch},
          {"heats", s.heats},
          {"elapsed_s", number(s.elapsed_s)},
          {"gflop_per_step", number(s.gflop_per_step)},
          {"parameters", s.parameters}};
}

}  // namespace

std::string render_json(const Summary& s, const JsonOptions& options) {
  Json out = head(s);
  for (const char* list : {"ranked", "unranked", "sources"}) out[list] = Json::array();
  for (const Row& r : s.ranked) out["ranked"].push_back(row(r, true, options.samples));
  for (const Row& r : s.unranked) out["unranked"].push_back(row(r, false, options.samples));
  out["host"] = host_watch(s);
  out["promise"] = promise(s);
  out["variance"] = s.variance ? variance(*s.variance) : Json(nullptr);
  add_beside(s, out);
  out["notes"] = s.notes;
  out["currency"] = s.currency;
  out["not_sampled"] = s.not_sampled;
  out["published"] = s.published ? published(*s.published) : Json(nullptr);
  out["roofline"] = s.roofline ? roofline(*s.roofline) : Json(nullptr);
  out["manifest"] = manifest(s.manifest);
  for (const Source& source : s.sources) {
    Json entry = {{"file", source.file}};
    if (options.sources) entry["text"] = source.text;
    out["sources"].push_back(entry);
  }
  return out.dump(options.indent, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bakeoff::report
