// The lower half of the page is lists of what is known of each contender: proofs, settings, environment,
// scripts. A view of JSON is filled for the page's template, which has no logic but loops and flags; every
// text is escaped by the template and never here, so that a framework's own message can not become markup.
// What has no value is left out instead of shown as a dash: the lists differ much between contenders.

#include "report/html_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/charts.h"
#include "report/phrases.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::vector<std::string> check_names(const Summary& s) {
  std::vector<std::string> names;
  for (const Series& series : all_series(s)) {
    if (!series.row->proof) continue;
    for (const ParityCheck& check : series.row->proof->checks) {
      if (std::find(names.begin(), names.end(), check.what) == names.end()) names.push_back(check.what);
    }
  }
  return names;
}

// Per cent of a bar: 0 at 1e-8 of what is allowed, 100 at the tolerance, on a log scale.
std::string headroom(const ParityCheck& check) {
  if (!(check.error > 0) || !(check.tolerance > 0)) return "0";
  if (!std::isfinite(check.error)) return "100";
  return fmt::format("{:.0f}",
                     std::clamp(100 + 12.5 * std::log10(check.error / check.tolerance), 2.0, 100.0));
}

View check_cell(const Parity& proof, const std::string& what) {
  View v;
  v.flags["has_check"] = false;
  for (const ParityCheck& check : proof.checks) {
    if (check.what != what) continue;
    v.flags["has_check"] = true;
    v.texts = {{"error", error_size(check.error)},
               {"tolerance", error_size(check.tolerance)},
               {"check_what", what},
               {"tensor", one_line(check.tensor)},
               {"check_class", check.passed ? "good" : "bad"},
               {"check_mark", check.passed ? "✓" : "✗"},
               {"headroom", headroom(check)}};
  }
  return v;
}

// An object of JSON as "class: RMSprop, rho: 0.9", which may break between its entries; other texts as they are.
std::string readable(const std::string& value) {
  if (!value.starts_with('{')) return value;
  const auto object = parse_json<nlohmann::ordered_json>(value);
  if (!object.is_object()) return value;
  std::string out;
  for (const auto& [key, of] : object.items())
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key,
                       of.is_string() ? of.get<std::string>() : dump(of));
  return out;
}

// What has no value is left out.
std::vector<View> pairs(const Texts& values) {
  std::vector<View> out;
  for (const auto& [key, value] : values) {
    if (!value.empty())
      out.push_back({{{"key", one_line(key)}, {"value", one_line(readable(value))}}, {}, {}});
  }
  return out;
}

// Everything known of how a contender ran, under names that say where it comes from.
Texts known(const Row& row) {
  Texts out;
  for (const auto& [key, value] : row.effective) out[key] = value;
  for (const auto& [key, value] : row.versions) out["version of " + key] = value;
  return out;
}

Texts shared(const std::vector<Texts>& all) {
  Texts common = all.empty() ? Texts{} : all.front();
  for (const Texts& texts : all) {
    std::erase_if(common, [&](const auto& entry) {
      const auto at = texts.find(entry.first);
      return at == texts.end() || at->second != entry.second;
    });
  }
  return common;
}

View text_block(const std::string& name, const std::string& text) {
  const std::string body = clean(text);
  const auto lines = std::count(body.begin(), body.end(), '\n') + (!body.empty() && body.back() != '\n');
  return {{{"file", one_line(name)},
           {"text", body},
           {"lines", fmt::format("{} line{}", lines, lines == 1 ? "" : "s")}},
          {},
          {}};
}

}  // namespace

void add_parity(const Summary& s, View& page) {
  const std::vector<std::string> names = check_names(s);
  for (const std::string& name : names)
    page.lists["checks"].push_back({{{"check_name", one_line(name)}}, {}, {}});
  for (const Series& series : all_series(s)) {
    if (!series.row->proof) continue;
    const Parity& proof = *series.row->proof;
    View row;
    row.texts = {{"proof_name", series.name},
                 {"explanation", one_line(proof.explanation)},
                 {"diverges_at", one_line(proof.diverges_at)},
                 {"divergence", error_size(proof.divergence)},
                 {"proof_failure", proof.failure ? one_line(proof.failure->reason) : ""}};
    row.flags = {{"diverges", !proof.diverges_at.empty()},
                 {"has_explanation", !proof.explanation.empty()},
                 {"has_proof_failure", proof.failure.has_value()}};
    for (const std::string& name : names) row.lists["cells"].push_back(check_cell(proof, name));
    page.lists["proofs"].push_back(std::move(row));
  }
  page.flags["has_parity"] = !page.lists["proofs"].empty();
}

void add_fairness(const Summary& s, View& page) {
  const FairnessDiff& diff = s.manifest.fairness;
  for (const std::string& name : diff.frameworks)
    page.lists["frameworks"].push_back({{{"framework", one_line(name)}}, {}, {}});
  std::vector<FairnessLine> lines = diff.lines;
  std::stable_partition(lines.begin(), lines.end(), [](const FairnessLine& line) { return line.differs; });
  for (const FairnessLine& line : lines) {
    View v{{{"topic", one_line(line.topic)}}, {{"differs", line.differs}}, {}};
    for (size_t i = 0; i < diff.frameworks.size(); ++i) {
      v.lists["defaults"].push_back({{{"default", i < line.values.size() ? one_line(line.values[i]) : kNone},
                                      {"of", one_line(diff.frameworks[i])}},
                                     {},
                                     {}});
    }
    page.lists["fairness"].push_back(std::move(v));
  }
  page.texts["fairness_text"] = s.track == ir::Track::kAsIs
                                    ? "What each framework does where the user says nothing. In this track "
                                      "the differences are part of what was timed."
                                    : "What each framework does where the user says nothing. In this track "
                                      "the scripts spell all of it out, so "
                                      "that none of it is left to a default.";
  page.flags["has_fairness"] = !lines.empty();
}

void add_settings(const Summary& s, View& page) {
  std::vector<Texts> all;
  for (const Row& row : s.ranked) all.push_back(known(row));
  const Texts common = shared(all);
  for (const Series& series : all_series(s)) {
    Texts own = known(*series.row);
    if (series.ranked) std::erase_if(own, [&](const auto& entry) { return common.count(entry.first) > 0; });
    const Contender& c = series.row->contender;
    View v;
    v.texts = {{"own_name", series.name},
               {"own_class", series.cls},
               {"own_environment", one_line(c.environment)},
               {"own_file", one_line(c.own_script.empty() ? c.script : c.own_script)}};
    Texts requested = c.settings;
    requested.insert(c.stated.begin(), c.stated.end());
    v.lists = {{"requested", pairs(requested)}, {"effective", pairs(own)}};
    v.flags = {{"has_requested", !requested.empty()},
               {"has_effective", !own.empty()},
               {"has_file", !v.texts["own_file"].empty()}};
    page.lists["settings"].push_back(std::move(v));
  }
  page.lists["common"] = pairs(common);
  page.flags["has_common"] = !common.empty();
  page.flags["has_settings"] = !page.lists["settings"].empty();
}

void add_host(const Summary& s, View& page) {
  const Manifest& m = s.manifest;
  std::vector<View> out;
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) out.push_back({{{"key", key}, {"value", one_line(value)}}, {}, {}});
  };
  add("host", m.host.name);
  add("processor", m.host.cpu);
  add("processors used", m.host.cpus > 0 ? std::to_string(m.host.cpus) : "");
  add("memory", m.host.memory_bytes > 0 ? bytes(static_cast<double>(m.host.memory_bytes)) : "");
  add("system", m.host.os);
  add("kernel", m.host.kernel);
  for (const View& pair : pairs(m.host.more)) out.push_back(pair);
  page.lists["host"] = std::move(out);
  out.clear();
  add("Bakeoff", m.bakeoff_version);
  add("started", m.started);
  add("recipe", m.recipe_file);
  add("data", m.data_description);
  add("data, SHA-256", m.data_sha256);
  add("initial weights, SHA-256", m.weights_sha256);
  for (const auto& [key, value] : m.worker_environment)
    add(("set for every worker: " + key).c_str(), value.empty() ? "(empty)" : value);
  for (const auto& [key, value] : m.controls) add(("control: " + key).c_str(), value);
  for (const auto& [key, value] : m.calibration) add(("calibration, " + key).c_str(), value);
  page.lists["run"] = std::move(out);
}

void add_texts(const Summary& s, bool sources, View& page) {
  if (sources) {
    for (const Source& source : s.sources)
      page.lists["sources"].push_back(text_block(source.file, source.text));
  }
  page.flags["has_sources"] = !page.lists["sources"].empty();
  const Manifest& m = s.manifest;
  if (!m.recipe_text.empty()) {
    page.lists["texts"].push_back(
        text_block(m.recipe_file.empty() ? "recipe" : m.recipe_file, m.recipe_text));
  }
  if (!m.workload_text.empty()) page.lists["texts"].push_back(text_block("workload", m.workload_text));
  page.flags["has_texts"] = !page.lists["texts"].empty();
}

}  // namespace bakeoff::report
