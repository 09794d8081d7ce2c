#include "study/generation/generation_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "study/generation/generation.h"
#include "study/section_rows.h"
#include "table/numbers.h"

namespace bakeoff {

using namespace table;
namespace {

// The value that a share of them does not exceed.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::clamp<size_t>(rank, 1, values.size()) - 1];
}

std::optional<AmongProcesses> among(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return AmongProcesses{quantile(values, 0.5), *least, *greatest};
}

struct Found {
  std::vector<double> first, word, slow, per_second;
};

// The figures of one process.
void add(const GenerationTrial& trial, Found& found, GenerationRow& row) {
  const auto words = static_cast<size_t>(std::max<int64_t>(trial.words, 1));
  std::vector<double> first, later;
  for (size_t i = 0; i < std::min(trial.start_ns.size(), trial.end_ns.size()) / words * words; ++i)
    (i % words == 0 ? first : later)
        .push_back(static_cast<double>(trial.end_ns[i] - trial.start_ns[i]) / 1e6);
  if (first.empty()) return;
  ++row.processes;
  row.answers += static_cast<int>(first.size());
  found.first.push_back(quantile(first, 0.5));
  if (later.empty()) return;
  double ms = 0;
  for (const double each : later) ms += each;
  found.word.push_back(quantile(later, 0.5));
  found.slow.push_back(quantile(later, 0.99));
  found.per_second.push_back(static_cast<double>(later.size()) * static_cast<double>(trial.batch) /
                             (ms / 1e3));
}

Json json(const std::optional<AmongProcesses>& value) {
  if (!value) return nullptr;
  return {{"value", number(value->middle)}, {"low", number(value->least)}, {"high", number(value->greatest)}};
}

template <auto Member>
Json value_of(const GenerationRow& row) {
  return json(row.*Member);
}

template <auto Member>
Cell ms_cell(const GenerationRow& row) {
  const std::optional<AmongProcesses>& value = row.*Member;
  if (!value) return {};
  return {milliseconds(value->middle),
          fmt::format("{} to {}", milliseconds(value->least), milliseconds(value->greatest))};
}

Cell rate_cell(const GenerationRow& row) {
  if (!row.per_second) return {};
  return {count(std::round(row.per_second->middle)),
          fmt::format("{} to {}", count(std::round(row.per_second->least)),
                      count(std::round(row.per_second->greatest)))};
}

std::vector<CsvColumn> csv(const std::string& name) {
  return {{name, "/value"}, {name + "_low", "/low"}, {name + "_high", "/high"}};
}

const std::vector<Quantity<GenerationRow>> kQuantities = {
    contender_quantity<GenerationRow>(),
    {{.key = "words_per_second",
      .csv = csv("words_per_second"),
      .title = "words/s",
      .meaning =
          "Words after the first of each answer, of all rows of a batch, in a second: the median of the processes.",
      .range_title = "processes",
      .range_priority = 4},
     value_of<&GenerationRow::per_second>,
     rate_cell},
    {{.key = "first_word_ms",
      .csv = csv("first_word_ms"),
      .title = "first word ms",
      .meaning = "Milliseconds until the first word is there, which includes the reading of the prompt.",
      .range_title = "processes",
      .range_priority = 5},
     value_of<&GenerationRow::first_ms>,
     ms_cell<&GenerationRow::first_ms>},
    {{.key = "word_ms",
      .csv = csv("word_ms"),
      .title = "word ms",
      .meaning = "Milliseconds from one word to the next: the median of the later words.",
      .range_title = "processes",
      .range_priority = 6},
     value_of<&GenerationRow::word_ms>,
     ms_cell<&GenerationRow::word_ms>},
    {{.key = "slow_word_ms",
      .csv = csv("slow_word_ms"),
      .title = "p99 ms",
      .meaning = "Milliseconds within which 99% of the later words came.",
      .priority = 2,
      .range_title = "processes",
      .range_priority = 7},
     value_of<&GenerationRow::slow_ms>,
     ms_cell<&GenerationRow::slow_ms>},
    {{.key = "answers",
      .title = "answers",
      .meaning = "Answers that were measured, of all processes.",
      .priority = 8},
     [](const GenerationRow& r) { return Json(r.answers); },
     count},
    {{.key = "batch", .in_csv = false}, [](const GenerationRow& r) { return Json(r.batch); }},
    {{.key = "prompt", .in_csv = false}, [](const GenerationRow& r) { return Json(r.prompt); }},
    {{.key = "words", .in_csv = false}, [](const GenerationRow& r) { return Json(r.words); }},
    {{.key = "processes", .in_csv = false}, [](const GenerationRow& r) { return Json(r.processes); }},
    {{.key = "note", .in_csv = false}, [](const GenerationRow& r) { return Json(r.note); }},
};

std::string legend(const GenerationRow& row) {
  return fmt::format(
      "Answers of {} words to prompts of {}, {} at a time, by greedy choice with caches of keys and values. Each word is "
      "awaited before the next one is asked for. Every figure is the median of the processes, with the least and the "
      "greatest of them: it is no interval, and no verdict rests on it.",
      row.words, row.prompt, row.batch);
}

StudySection section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<GenerationTrial>());
  const auto rows = generation_rows(trials, context.ids());
  if (rows.empty()) return std::optional<Section>();
  return std::optional(generation_section(rows));
}

}  // namespace

Study generation_study() {
  return {.name = "generate",
          .wanted = [](const recipe::Recipe& recipe) { return recipe.training.generates(); },
          .run = measure_generation,
          .section = section_of_run};
}

std::vector<GenerationRow> generation_rows(const std::vector<GenerationTrial>& trials,
                                           const std::vector<std::string>& contenders) {
  std::vector<GenerationRow> rows;
  for (const std::string& contender : contenders) {
    GenerationRow row{.contender = contender};
    Found found;
    bool any = false;
    for (const GenerationTrial& trial : trials) {
      if (trial.contender != contender) continue;
      any = true;
      row.batch = trial.batch, row.prompt = trial.prompt, row.words = trial.words;
      if (trial.failure) row.note = trial.failure->text();
      add(trial, found, row);
    }
    if (!any) continue;
    row.first_ms = among(found.first), row.word_ms = among(found.word);
    row.slow_ms = among(found.slow), row.per_second = among(found.per_second);
    rows.push_back(std::move(row));
  }
  return rows;
}

Section generation_section(const std::vector<GenerationRow>& rows) {
  Section section = section_of(kQuantities, rows);
  section.key = "generate";
  section.label = "Words";
  section.title = "Words per second, and their delays";
  section.legend = rows.empty() ? "" : legend(rows.front());
  section.json = json_rows(kQuantities, rows);
  add_csv(section, kQuantities, rows, "");
  return section;
}

}  // namespace bakeoff
