// Words that are given one by one have two times that must not be averaged together: the first word takes in
// the whole prompt, each later one takes one step. Both are medians within a process; the spread is that
// among processes, as words of one process are no independent sample. Sizes (batch, prompt) become columns
// where they differ, so that a run with one size has a small table and CSV names of several sizes stay apart.

#include "study/generation/generation_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/texts.h"
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

std::optional<AmongProcesses> among(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return AmongProcesses{(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
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
    {{.key = "compilations",
      .title = "compiled",
      .meaning = "Functions that were compiled or traced while words were timed: 0 is right.",
      .priority = 9,
      .zero_is_nothing = true},
     [](const GenerationRow& r) { return Json(r.compilations); },
     count},
    {{.key = "words", .in_csv = false}, [](const GenerationRow& r) { return Json(r.words); }},
    {{.key = "processes", .in_csv = false}, [](const GenerationRow& r) { return Json(r.processes); }},
    {{.key = "note", .in_csv = false}, [](const GenerationRow& r) { return Json(r.note); }},
};

std::string size_text(const GenerationRow& row) {
  return fmt::format("prompts of {}, {} at a time", row.prompt, row.batch);
}

std::string legend(const std::vector<GenerationRow>& rows) {
  const GenerationRow& own = rows.front();
  const bool others = std::any_of(rows.begin(), rows.end(),
                                  [&](const GenerationRow& r) { return size_text(r) != size_text(own); });
  return fmt::format(
      "Answers of {} words to {}, by greedy choice; all but those with cache=none keep keys and values. Each word is awaited before the next "
      "one is asked for. Every figure is the median of the processes, with the least and the greatest of them: it is no "
      "interval, and no verdict rests on it.{}",
      own.words, size_text(own),
      others
          ? " Other batches and prompts are of scripts that differ in these numbers alone; proven are the race's own."
          : "");
}

using Quantities = std::vector<Quantity<GenerationRow>>;

// Batch and prompt are columns where they differ.
Quantities quantities(const std::vector<GenerationRow>& rows) {
  const auto differs = [&](int64_t GenerationRow::*member) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const GenerationRow& r) { return r.*member != rows.front().*member; });
  };
  Column batch{.key = "batch", .in_csv = false}, prompt{.key = "prompt", .in_csv = false};
  if (differs(&GenerationRow::batch)) {
    batch.title = "batch";
    batch.meaning = "Rows that are answered at a time.";
  }
  if (differs(&GenerationRow::prompt)) {
    prompt.title = "prompt";
    prompt.meaning = "Words of each row that are read before the first one is chosen.";
  }
  Quantities all = kQuantities;
  all.insert(all.begin() + 1, {{batch, [](const GenerationRow& r) { return Json(r.batch); }, count},
                               {prompt, [](const GenerationRow& r) { return Json(r.prompt); }, count}});
  return all;
}

// A curve for each contender over one of a row's sizes, and a picture for each value of the other.
std::vector<Picture> pictures(const std::vector<GenerationRow>& rows, const Picture& blank,
                              int64_t GenerationRow::*over, int64_t GenerationRow::*each,
                              const std::function<std::optional<Point>(const GenerationRow&)>& point) {
  std::map<int64_t, std::set<int64_t>> seen;
  for (const GenerationRow& row : rows) seen[row.*each].insert(row.*over);
  std::vector<Picture> all;
  for (const auto& [value, sizes] : seen) {
    if (sizes.size() < 2) continue;
    Picture picture = blank;
    picture.name += fmt::format(", {} {}", each == &GenerationRow::batch ? "batch" : "prompts of", value);
    for (const GenerationRow& row : rows) {
      const std::optional<Point> at = point(row);
      if (row.*each != value || !at) continue;
      auto curve = std::find_if(picture.curves.begin(), picture.curves.end(),
                                [&](const Curve& c) { return c.contender == row.contender; });
      if (curve == picture.curves.end())
        curve = picture.curves.insert(curve, Curve{.contender = row.contender});
      curve->points.push_back(*at);
    }
    for (Curve& curve : picture.curves)
      std::sort(curve.points.begin(), curve.points.end(),
                [](const Point& a, const Point& b) { return a.x < b.x; });
    if (!picture.curves.empty()) all.push_back(std::move(picture));
  }
  return all;
}

std::optional<Point> point_of(double x, const std::optional<AmongProcesses>& y) {
  if (!y) return std::nullopt;
  return Point{x, y->middle, y->least, y->greatest};
}

std::vector<Picture> all_pictures(const std::vector<GenerationRow>& rows) {
  using Row = GenerationRow;
  std::vector<Picture> all = pictures(
      rows, {.name = "words per second", .x_title = "rows at a time", .y_title = "words/s", .log_x = true},
      &Row::batch, &Row::prompt,
      [](const Row& r) { return point_of(static_cast<double>(r.batch), r.per_second); });
  const auto add = [&](std::vector<Picture> more) { all.insert(all.end(), more.begin(), more.end()); };
  add(pictures(
      rows, {.name = "throughput and delay", .x_title = "ms from word to word", .y_title = "words/s"},
      &Row::batch, &Row::prompt,
      [](const Row& r) { return r.word_ms ? point_of(r.word_ms->middle, r.per_second) : std::nullopt; }));
  add(pictures(rows,
               {.name = "first word", .x_title = "words of the prompt", .y_title = "ms until the first word"},
               &Row::prompt, &Row::batch,
               [](const Row& r) { return point_of(static_cast<double>(r.prompt), r.first_ms); }));
  return all;
}

// What the recipe asks for and no contender has: the run's time ended, or it was interrupted.
std::string not_measured(const std::vector<GenerationRow>& rows, const recipe::Recipe& recipe) {
  std::vector<std::string> missing;
  for (const Sizes& at : measured_sizes(recipe)) {
    if (std::none_of(rows.begin(), rows.end(), [&](const GenerationRow& r) {
          // A record whose recipe states no prompt does not know the default: 0.
          return r.batch == at.batch && (at.prompt == 0 || r.prompt == at.prompt);
        }))
      missing.push_back(fmt::format("{} at a time with prompts of {}", at.batch, at.prompt));
  }
  if (missing.empty()) return "";
  return fmt::format("Words were not measured {}: the run ended before. `bakeoff run --resume DIR` goes on.",
                     join(missing, ", "));
}

StudySection section_of_run(const RunDirectory& directory, const StudyContext& context) {
  TRY(const auto trials, directory.read<GenerationTrial>());
  const auto rows = generation_rows(trials, context.ids());
  if (rows.empty()) return std::optional<Section>();
  Section section = generation_section(rows);
  std::string missing = not_measured(rows, context.recipe);
  if (!missing.empty()) section.remarks.push_back(std::move(missing));
  return std::optional(std::move(section));
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
  std::vector<std::pair<int64_t, int64_t>> sizes;
  for (const GenerationTrial& t : trials) {
    if (std::find(sizes.begin(), sizes.end(), std::pair(t.batch, t.prompt)) == sizes.end())
      sizes.emplace_back(t.batch, t.prompt);
  }
  std::vector<GenerationRow> rows;
  for (const auto& [batch, prompt] : sizes) {
    for (const std::string& contender : contenders) {
      GenerationRow row{.contender = contender, .batch = batch, .prompt = prompt};
      Found found;
      bool any = false;
      for (const GenerationTrial& trial : trials) {
        if (trial.contender != contender || trial.batch != batch || trial.prompt != prompt) continue;
        any = true;
        row.words = trial.words;
        row.compilations += trial.compilations;
        if (trial.failure) row.note = trial.failure->text();
        add(trial, found, row);
      }
      if (!any) continue;
      row.first_ms = among(found.first), row.word_ms = among(found.word);
      row.slow_ms = among(found.slow), row.per_second = among(found.per_second);
      if (row.compilations > 0 && row.note.empty())
        row.note =
            fmt::format("{} functions were compiled or traced after the warm-up: the figures include it",
                        row.compilations);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

Section generation_section(const std::vector<GenerationRow>& rows) {
  const Quantities all = quantities(rows);
  Section section = section_of(all, rows);
  section.key = "generate";
  section.label = "Words";
  section.title = "Words per second, and their delays";
  section.legend = rows.empty() ? "" : legend(rows);
  section.json = json_rows(all, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (size_text(rows[i]) != size_text(rows.front())) section.row_names[i] += ", " + size_text(rows[i]);
  }
  section.pictures = all_pictures(rows);
  // Columns of other sizes than the first row's have a prefix: "batch32_prompt4_word_ms".
  add_csv<GenerationRow>(section, kQuantities, rows, [&](const GenerationRow& r) {
    return size_text(r) == size_text(rows.front()) ? std::string()
                                                   : fmt::format("batch{}_prompt{}_", r.batch, r.prompt);
  });
  return section;
}

}  // namespace bakeoff
