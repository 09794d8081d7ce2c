#include "report/json.h"

#include "base/json_text.h"
#include "base/version.h"
#include "report/outlook_section.h"
#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
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
          {"compile_s", c.compile_ns > 0 ? number(static_cast<double>(c.compile_ns) / 1e9) : Json(nullptr)},
          {"own_script", c.own_script}};
}

Json failure(const Failure& f) {
  return {{"stage", name(f.stage)}, {"reason", f.reason}, {"log_tail", clean(f.log_tail)}};
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

Json row(const Place& place, const std::vector<Quantity<Place>>& quantities, bool samples) {
  const Row& r = *place.row;
  Json out = {{"contender", contender(r.contender)}};
  out.update(json_of(quantities, place));
  if (r.gpu == GpuUse{.on_gpu = r.gpu.on_gpu}) out["gpu"] = nullptr;  // nothing is known of it
  out["precision_support"] = text_or_null(r.support);
  out["remarks"] = r.remarks;
  out["confirming_heats"] = r.confirmed;
  out["drift"] = number(r.drift);
  out["proof"] = r.proof ? parity(*r.proof) : Json(nullptr);
  out["failure"] = r.failure ? failure(*r.failure) : Json(nullptr);
  out["reason"] = place.ranked ? Json(nullptr) : Json(unranked_reason(r));
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
  return {{"rounds", s.host.rounds},           {"judged", s.host.judged}, {"disturbed", s.host.busy},
          {"run_again", s.host.reruns},        {"example", s.host.worst}, {"not_watched", s.host.absent},
          {"refusal", text_or_null(s.refusal)}};
}

Json promise(const Summary& s) {
  if (s.promise.stated <= 0) return nullptr;
  return {{"noise_ceiling", number(s.promise.stated)},
          {"by", s.promise.by_recipe ? "recipe" : "profile"},
          {"withdrawn", text_or_null(s.promise.withdrawn)},
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
          {"gemm_share_of_peak", r.gemm_flops > 0 ? number(r.gemm_flops / r.peak_flops) : Json(nullptr)},
          {"gemm_of", r.gemm_of},
          {"roofs", roofs},
          {"level", r.level},
          {"flops_per_step", number(r.flops)},
          {"bytes_per_step", number(r.bytes)},
          {"kinds", kinds},
          {"measured", r.measured},
          {"disturbed", r.disturbed}};
}

Json head(const Summary& s) {
  return {{"schema", 1},
          {"tool", "bakeoff"},
          {"version", kVersion},
          {"title", s.title},
          {"track", ir::name(s.track)},
          {"sentence", headline(s)},
          {"decided", s.decided},
          {"interrupted", s.interrupted},
          {"margin", number(s.margin)},
          {"alpha", number(s.alpha)},
          {"batch", s.batch},
          {"heats", s.heats},
          {"elapsed_s", s.elapsed_s > 0 ? number(s.elapsed_s) : table::Json()},
          {"raced_s", s.cost.raced_s > 0 ? number(s.cost.raced_s) : table::Json()},
          {"raced_in_all_heats_s", s.cost.uniform_s > 0 ? number(s.cost.uniform_s) : table::Json()},
          {"gflop_per_step", number(s.gflop_per_step)},
          {"parameters", s.parameters},
          {"frozen_parameters", s.frozen}};
}

}  // namespace

std::string render_json(const Summary& s, const JsonOptions& options) {
  Json out = head(s);
  for (const char* list : {"ranked", "unranked", "sources"}) out[list] = Json::array();
  const auto quantities = ranking_quantities(s);
  for (const Row& r : s.ranked) out["ranked"].push_back(row({&s, &r, true}, quantities, options.samples));
  for (const Row& r : s.unranked)
    out["unranked"].push_back(row({&s, &r, false}, quantities, options.samples));
  out["outlook"] = Json::array();
  for (const Section& section : outlook_sections(s)) out["outlook"].push_back(section.json);
  out["host"] = host_watch(s);
  out["promise"] = promise(s);
  out["variance"] = s.variance ? variance(*s.variance) : Json(nullptr);
  out["published"] = nullptr;
  for (const Section& section : sections_of(s)) out[section.key] = section.json;
  out["notes"] = s.notes;
  out["currency"] = s.currency;
  out["not_sampled"] = s.not_sampled;
  out["roofline"] = s.roofline ? roofline(*s.roofline) : Json(nullptr);
  out["manifest"] = manifest(s.manifest);
  for (const Source& source : s.sources) {
    Json entry = {{"file", source.file}};
    if (options.sources) entry["text"] = source.text;
    out["sources"].push_back(entry);
  }
  return dump(out, options.indent) + '\n';
}

}  // namespace bakeoff::report
