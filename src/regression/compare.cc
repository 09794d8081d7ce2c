// Two finished runs were never paired: between them the machine may have changed its clock, its temperature
// or its neighbours, and nothing in the records can take that out. So the comparison first lists all that
// differs, and its ratio is worded as what it is: heats of one time against heats of another (Welch's
// interval, which needs no equal variances). It has an interval only where work and machine are the same, and
// no ratio at all between two machines: there the rankings stand side by side.
//
// What would decide it is a race of both versions. gate_command() writes that command, as far as the records
// tell which versions these were.

#include "regression/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/json_text.h"
#include "base/texts.h"
#include "records/names.h"
#include "stats/distributions.h"
#include "stats/interval.h"
#include "stats/trimmed.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

using table::paragraph;
using CompareJson = nlohmann::ordered_json;

constexpr double kCompareAlpha = 0.01;
constexpr size_t kMostLines = 12;  // of a recipe

void differ(std::vector<Difference>& all, const std::string& what, const std::string& first,
            const std::string& second) {
  if (first != second)
    all.push_back({what, first.empty() ? "none" : first, second.empty() ? "none" : second});
}

void differ(std::vector<Difference>& all, const std::string& of, const Texts& first, const Texts& second,
            const std::string& contender = {}) {
  std::set<std::string> keys;
  for (const Texts* texts : {&first, &second})
    for (const auto& [key, value] : *texts) keys.insert(key);
  const auto in = [](const Texts& texts, const std::string& key) {
    const auto found = texts.find(key);
    return found == texts.end() ? std::string() : found->second;
  };
  const size_t before = all.size();
  for (const std::string& key : keys) differ(all, of + key, in(first, key), in(second, key));
  for (size_t i = before; i < all.size(); ++i) all[i].contender = contender;
}

// Lines of one recipe that the other has not, in their order.
std::vector<std::string> lines_alone(const std::string& text, const std::string& other) {
  const auto lines = [](const std::string& of) {
    std::vector<std::string> all;
    std::istringstream in(of);
    for (std::string line; std::getline(in, line);)
      if (line = table::one_line(line); !line.empty() && line[0] != '#') all.push_back(line);
    return all;
  };
  const std::vector<std::string> theirs = lines(other);
  const std::multiset<std::string> known(theirs.begin(), theirs.end());
  std::vector<std::string> alone;
  for (const std::string& line : lines(text))
    if (!known.contains(line) && alone.size() < kMostLines) alone.push_back(line);
  return alone;
}

std::vector<Difference> differences(const Manifest& a, const Manifest& b) {
  std::vector<Difference> all;
  differ(all, "recipe", a.recipe_name, b.recipe_name);
  differ(all, "recipe's lines", join(lines_alone(a.recipe_text, b.recipe_text), "; "),
         join(lines_alone(b.recipe_text, a.recipe_text), "; "));
  if (a.workload_text != b.workload_text) {
    const std::string first = workload_name(a), second = workload_name(b);
    all.push_back({"workload", first, first == second ? second + " with other ops" : second});
  }
  differ(all, "initial weights", a.weights_sha256.substr(0, 12), b.weights_sha256.substr(0, 12));
  differ(all, "data", a.data_sha256.substr(0, 12), b.data_sha256.substr(0, 12));
  differ(all, "bakeoff", a.bakeoff_version, b.bakeoff_version);
  differ(all, "machine: name", a.host.name, b.host.name);
  differ(all, "machine: processor", a.host.cpu, b.host.cpu);
  differ(all, "machine: processors", std::to_string(a.host.cpus), std::to_string(b.host.cpus));
  differ(all, "machine: memory", table::bytes(static_cast<double>(a.host.memory_bytes)),
         table::bytes(static_cast<double>(b.host.memory_bytes)));
  differ(all, "machine: kernel", a.host.kernel, b.host.kernel);
  differ(all, "machine: system", a.host.os, b.host.os);
  differ(all, "machine: ", a.host.more, b.host.more);
  differ(all, "control: ", a.controls, b.controls);
  // Each run has cache folders of its own.
  Texts first = a.worker_environment, second = b.worker_environment;
  for (Texts* variables : {&first, &second})
    std::erase_if(*variables, [](const auto& one) { return one.first.ends_with("_CACHE_DIR"); });
  differ(all, "variable: ", first, second);
  return all;
}

// Welch's interval of the difference of the heats' mean log times.
Estimate ratio_of(const std::vector<double>& first_ms, const std::vector<double>& second_ms, bool valid) {
  const auto logs = [](const std::vector<double>& ms) {
    std::vector<double> all;
    for (const double value : ms) all.push_back(std::log(value));
    return all;
  };
  Estimate ratio{stats::median(second_ms) / stats::median(first_ms), 0, stats::kInfinity};
  if (!valid || first_ms.size() < 3 || second_ms.size() < 3) return ratio;
  const std::vector<double> a = logs(first_ms), b = logs(second_ms);
  const double va = stats::variance(a) / static_cast<double>(a.size()),
               vb = stats::variance(b) / static_cast<double>(b.size());
  const double sum = va + vb;
  if (!(sum > 0)) return ratio;
  const double freedom =
      sum * sum / (va * va / static_cast<double>(a.size() - 1) + vb * vb / static_cast<double>(b.size() - 1));
  const double half = stats::student_quantile(freedom, 1 - kCompareAlpha / 2) * std::sqrt(sum);
  const double d = stats::mean(b) - stats::mean(a);
  return {std::exp(d), std::exp(d - half), std::exp(d + half)};
}

const bakeoff::Row* ranked_in(const Summary& summary, const std::string& id) {
  for (const bakeoff::Row& row : summary.ranked)
    if (row.contender.id == id && !row.heat_ms.empty()) return &row;
  return nullptr;
}

std::string gate_command(const Comparison& comparison, const Manifest& a, const Manifest& b) {
  const std::string file = b.recipe_file.empty() ? b.recipe_name + ".toml" : b.recipe_file;
  const bool versions = std::ranges::any_of(comparison.differences, [](const Difference& one) {
    return one.what.find("version of") != std::string::npos;
  });
  if (a.recipe_text != b.recipe_text && a.recipe_file != b.recipe_file)
    return fmt::format("bakeoff gate --base {} --head {}", a.recipe_file, file);
  if (versions) return fmt::format("bakeoff gate --base OLD_ENVIRONMENT --head NEW_ENVIRONMENT {}", file);
  return fmt::format("bakeoff gate --base OLD_COMMIT --head NEW_COMMIT {}", file);
}

std::string doubt(const Comparison& c) {
  if (!c.same_machine && !c.rankings.ids.empty()) return never_paired(c.rankings);
  if (c.rows.empty()) return "There are no times to compare.";
  return fmt::format(
      "The two runs are of different times{}. What slowed one of them, and not the other, is in the ratios too, and no "
      "interval covers it: they are no proof that a version is faster or slower. Raced as one, on one machine, both "
      "decide it:",
      c.same_work ? "" : ", and of different work");
}

// "PyTorch: ", where it is of one contender.
std::string of(const Difference& one, const std::string& name) {
  return one.contender.empty() ? "" : name + ": ";
}

CompareJson end_of(double value) {
  return value > 0 && std::isfinite(value) ? CompareJson(value) : CompareJson();
}

}  // namespace

Comparison compare(const Summary& first, const Summary& second) {
  const Manifest &a = first.manifest, &b = second.manifest;
  Comparison all{.first = first.run,
                 .second = second.run,
                 .first_started = a.started,
                 .second_started = b.started,
                 .differences = differences(a, b)};
  all.rankings = rankings({first, second});
  all.same_work = all.rankings.same_work;
  all.fleet = first.fleet || second.fleet;
  all.same_machine =
      !all.fleet && a.host.name == b.host.name && a.host.cpu == b.host.cpu && a.host.cpus == b.host.cpus;
  differ(all.differences, "batch", std::to_string(first.batch), std::to_string(second.batch));
  for (const bakeoff::Row& row : first.ranked) {
    const std::string& id = row.contender.id;
    const bakeoff::Row* other = ranked_in(second, id);
    const std::optional<Place> mine = place_in(first, id), theirs = place_in(second, id);
    if (!mine || !theirs) {
      all.first_alone.push_back(id);
      continue;
    }
    differ(all.differences, "version of ", row.versions, other->versions, id);
    differ(all.differences, "", row.effective, other->effective, id);
    all.rows.push_back({.contender = id, .first = *mine, .second = *theirs, .ratio = {}});
    if (all.same_machine) all.rows.back().ratio = ratio_of(row.heat_ms, other->heat_ms, all.same_work);
  }
  for (const bakeoff::Row& row : second.ranked)
    if (ranked_in(first, row.contender.id) == nullptr) all.second_alone.push_back(row.contender.id);
  for (const Summary* summary : {&first, &second})
    for (const bakeoff::Row& row : summary->ranked) all.contenders.push_back(row.contender);
  if (all.same_machine && !all.rows.empty()) all.gate = gate_command(all, a, b);
  return all;
}

namespace {

std::string head(const std::string& name, int column) {
  return table::pad_right(table::fit(name, column), column);
}

std::string paired_rows(const Comparison& c, const std::vector<std::string>& names, int column) {
  if (c.rows.empty()) return "";
  std::string out = fmt::format("{}  {:>10}  {:>10}  {:>7}  {}\n", head("ms a step", column), "first",
                                "second", "ratio", "interval");
  for (size_t i = 0; i < c.rows.size(); ++i) {
    const ComparedRow& row = c.rows[i];
    const Estimate ratio = row.ratio.value_or(Estimate{});
    out += fmt::format("{}  {:>10}  {:>10}  {:>7}  {}\n", head(names[i], column),
                       table::milliseconds(row.first.ms), table::milliseconds(row.second.ms),
                       table::ratio(ratio.value), table::interval(ratio, table::ratio));
  }
  return out;
}

}  // namespace

std::string to_text(const Comparison& c, int width) {
  const auto line = [&](const std::string& text, const std::string& first = "",
                        const std::string& next = "") {
    return paragraph(table::one_line(text), width, first, next) + "\n";
  };
  std::string out = line(fmt::format("{} ({})", c.first, c.first_started), "first   ", "        ") +
                    line(fmt::format("{} ({})", c.second, c.second_started), "second  ", "        ") + "\n";
  if (c.differences.empty())
    out += line("Nothing that was recorded differs but the time.");
  else
    out += line("What differs:");
  for (const Difference& one : c.differences)
    out += line(fmt::format("{}{}: {} / {}", of(one, spoken(c.contenders, one.contender)), one.what,
                            one.first, one.second),
                "  ", "    ");
  out += "\n";
  size_t column = 10;
  std::vector<std::string> names;
  for (const ComparedRow& row : c.rows) {
    names.push_back(table::one_line(label(c.contenders, row.contender)));
    column = std::max<size_t>(column, static_cast<size_t>(table::display_width(names.back())));
  }
  column = std::min<size_t>(column, static_cast<size_t>(std::max(12, width - 50)));
  out += c.same_machine ? paired_rows(c, names, static_cast<int>(column))
                        : blocks_text(c.rankings, {"first", "second"}, width);
  const struct {
    const char* what;
    const std::string& run;
    const std::vector<std::string>& alone;
  } sides[] = {{"first", c.first, c.first_alone}, {"second", c.second, c.second_alone}};
  if (c.rows.empty()) {
    for (const auto& [what, run, alone] : sides)
      if (alone.empty())
        out +=
            line(fmt::format("The {} run has ranked no contender; `bakeoff report {}` says why.", what, run));
    out += line("No contender was ranked in both.");
  }
  for (const auto& [what, run, alone] : sides)
    if (!alone.empty()) {
      std::vector<std::string> spoken_names;
      for (const std::string& id : alone) spoken_names.push_back(spoken(c.contenders, id));
      out += line(fmt::format("ranked in the {} alone: {}", what, join(spoken_names, ", ")));
    }
  out += "\n" + line(doubt(c));
  return c.gate.empty() ? out : out + line(c.gate, "  ", "    ");
}

namespace {

CompareJson ends_json(const Estimate& ratio) {
  return {{"value", ratio.value}, {"low", end_of(ratio.low)}, {"high", end_of(ratio.high)}};
}

CompareJson place_json(const Place& place) {
  const auto number = [](const std::optional<double>& value) {
    return value ? CompareJson(*value) : CompareJson();
  };
  return {{"rank", {place.rank_best, place.rank_worst}},
          {"behind", ends_json(place.ratio)},
          {"joules_per_sample", number(place.joules)},
          {"price_per_million_samples", number(place.price)}};
}

CompareJson run_json(const std::string& run, const std::string& started, const std::string& currency) {
  return {{"run", run}, {"started", started}, {"currency", currency}};
}

}  // namespace

std::string to_json(const Comparison& c) {
  CompareJson json = {{"format", "bakeoff compare 1"},
                      {"first", run_json(c.first, c.first_started, c.rankings.runs[0].currency)},
                      {"second", run_json(c.second, c.second_started, c.rankings.runs[1].currency)},
                      {"same_work", c.same_work},
                      {"same_machine", c.same_machine},
                      {"differences", CompareJson::array()},
                      {"contenders", CompareJson::array()},
                      {"first_alone", c.first_alone},
                      {"second_alone", c.second_alone},
                      {"proves_nothing", doubt(c)},
                      {"gate", c.gate}};
  for (const Difference& one : c.differences)
    json["differences"].push_back(
        {{"what", of(one, one.contender) + one.what}, {"first", one.first}, {"second", one.second}});
  for (const ComparedRow& row : c.rows)
    json["contenders"].push_back({{"contender", row.contender},
                                  {"first_ms", row.first.ms},
                                  {"second_ms", row.second.ms},
                                  {"first", place_json(row.first)},
                                  {"second", place_json(row.second)},
                                  {"ratio", row.ratio ? ends_json(*row.ratio) : CompareJson()}});
  return dump(json, 2) + "\n";
}

}  // namespace bakeoff::regression
