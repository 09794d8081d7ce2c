// Terminal, Markdown, JSON and CSV over the sample summaries. Goldens: tests/golden/report, UPDATE_GOLDENS=1.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/testing.h"
#include "base/version.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/phrases.h"
#include "report/sample_summary_testing.h"
#include "report/terminal.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A race without a verdict has one term for its rows, and nobody leads it.
TEST(Renderers, ARowWithoutAVerdictIsNotJudgedInEveryFormat) {
  Summary s = single_summary();
  s.refusal = "this host was busy throughout";
  for (Row& row : s.ranked) row.verdict = RowVerdict::kRefused;
  for (const std::string& text : {render_terminal(s, {.width = 200}), render_markdown(s), render_csv(s),
                                  render_json(s), render_html(s)}) {
    EXPECT_THAT(text, HasSubstr("not judged"));
    EXPECT_THAT(text, Not(HasSubstr("refused")));
  }
  EXPECT_THAT(render_csv(s), Not(HasSubstr(",ranked,")));
  EXPECT_THAT(render_html(s), Not(HasSubstr("class=\"leads\"")));
  EXPECT_THAT(render_csv(single_summary()), HasSubstr(",ranked,"));
  EXPECT_THAT(render_html(single_summary()), HasSubstr("class=\"leads\""));
}

// Interpolated quantiles of equal step times differ by one rounding: no chart may tick through that range.
TEST(Renderers, EqualStepTimesAreRenderedByEveryFormat) {
  Summary s = single_summary();
  Row& row = s.ranked.front();
  for (const double ms : {8.1, 86.8, 0.1}) {
    row.step_ms.assign(200, ms);
    row.heat_ms.assign(5, std::nextafter(ms, 0));
    row.ms_per_step = {ms, ms, ms};
    EXPECT_LT(render_html(s).size(), 1'000'000U);
    for (const std::string& text : {render_terminal(s, {}), render_markdown(s)})
      EXPECT_THAT(text, HasSubstr("PyTorch"));
    for (const std::string& text : {render_csv(s), render_json(s)})
      EXPECT_THAT(text, HasSubstr(row.contender.id));
  }
}

std::vector<std::string> split(const std::string& text, const std::string& at) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t to; (to = text.find(at, from)) != std::string::npos; from = to + at.size()) {
    parts.push_back(text.substr(from, to - from));
  }
  parts.push_back(text.substr(from));
  return parts;
}

void expect_golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(BAKEOFF_SOURCE_DIR) / "tests/golden/report" / name;
  if (std::getenv("UPDATE_GOLDENS") != nullptr) {
    ASSERT_TRUE(write_file(path, text));
  }
  const Result<std::string> golden = read_file(path);
  ASSERT_TRUE(golden) << golden.error().text();
  EXPECT_EQ(text, *golden) << "UPDATE_GOLDENS=1 rewrites " << path;
}

Summary poisoned_summary() {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  Summary s = sample_summary(10);
  s.margin = s.alpha = s.gflop_per_step = s.elapsed_s = nan;
  for (Row& row : s.ranked) {
    row.ms_per_step = {nan, inf, nan};
    row.ratio = {inf, nan, -inf};
    row.samples_per_second = row.gflops = inf;
    row.start_up = {nan, inf, -inf, nan, inf};
    row.break_even_step = inf;
    row.step_ms.push_back(nan);
    row.heat_ms = {nan, inf};
    row.proof->losses = {nan, inf, 1};
    row.proof->checks[0].error = nan;
  }
  return s;
}

TEST(Goldens, Terminal) {
  for (const int width : {80, 100, 200}) {
    expect_golden("terminal_" + std::to_string(width) + ".txt",
                  render_terminal(sample_summary(), {.width = width}));
  }
  expect_golden("terminal_single_60.txt", render_terminal(single_summary(), {.width = 60}));
  expect_golden("terminal_empty_80.txt", render_terminal(empty_summary()));
}

TEST(Renderers, SayThatDataAreSynthetic) {
  Summary s = sample_summary();
  EXPECT_THAT(render_terminal(s), Not(HasSubstr("MNIST, 60,000")));
  s.manifest.data_description = "2,000 synthetic samples (seed 3)";
  for (const std::string& out : {render_terminal(s, {.width = 200}), render_markdown(s)})
    EXPECT_THAT(out, HasSubstr("2,000 synthetic samples (seed 3) · "));
}

TEST(Goldens, Markdown) { expect_golden("report.md", render_markdown(sample_summary())); }

TEST(Goldens, Csv) { expect_golden("report.csv", render_csv(sample_summary())); }

TEST(Goldens, JsonOfASmallRun) {
  Summary s = single_summary();
  s.unranked = sample_summary(1).unranked;
  s.studies = sample_summary(1).studies;
  const std::string version = std::string("\"version\": \"") + kVersion + '"';
  std::string text = render_json(s);
  const size_t at = text.find(version);
  ASSERT_NE(at, std::string::npos);
  expect_golden("report.json", text.replace(at, version.size(), "\"version\": \"VERSION\""));
}

TEST(Terminal, NoLineIsWiderThanTheScreen) {
  const int step = bakeoff::testing::full_tier() ? 1 : 7;
  for (const Summary& s : {sample_summary(), single_summary(), empty_summary(), poisoned_summary()}) {
    for (int width = 40; width <= 220; width += step) {
      const std::string plain = render_terminal(s, {.width = width});
      for (const std::string& line : split(plain, "\n")) ASSERT_LE(display_width(line), width) << line;
      ASSERT_EQ(clean(render_terminal(s, {.width = width, .colour = true})), plain)
          << "colour is all that it adds";
    }
  }
}

TEST(Terminal, AddsColumnsWithTheWidth) {
  const std::string narrow = render_terminal(sample_summary(), {.width = 80});
  for (const char* title : {"rank", "contender", "ms/step", "ratio", "interval", "first step", "parity"}) {
    EXPECT_THAT(narrow, HasSubstr(title));
  }
  EXPECT_THAT(narrow, Not(HasSubstr("break-even")));
  EXPECT_THAT(narrow, Not(HasSubstr(kTieLegend))) << "explains a column that is not there";
  const std::string wide = render_terminal(sample_summary(), {.width = 200});
  for (const char* title : {"rank", "contender", "tie", "ms/step", "interval", "ratio", "verdict",
                            "samples/s", "first step", "cold", "break-even", "peak memory", "parity"}) {
    EXPECT_THAT(wide, HasSubstr(title));
  }
  EXPECT_THAT(wide, HasSubstr(kTieLegend));
  EXPECT_THAT(wide, HasSubstr("until 74"));
}

TEST(Terminal, VerdictComesBeforeTheTable) {
  const std::string out = render_terminal(sample_summary(), {.width = 200});
  EXPECT_LT(out.find("share the lead"), out.find("ms/step"));
  EXPECT_LT(out.find("equalised track"), out.find("share the lead"));
  EXPECT_LT(out.find("ms/step"), out.find("Not ranked"));
}

TEST(Terminal, PredictionsAreLabelled) {
  Summary s = sample_summary();
  EXPECT_THAT(render_terminal(s, {.width = 200}), Not(HasSubstr("predictions")));
  s.scenario = ir::Scenario::kPredict;
  EXPECT_THAT(render_terminal(s, {.width = 200}),
              HasSubstr("equalised track, predictions: a step is one batch forward"));
}

TEST(Terminal, FailedRowShowsReasonAndLog) {
  const std::string out = render_terminal(sample_summary(), {.width = 200});
  EXPECT_THAT(out, HasSubstr("killed by SIGSEGV at step 3"));
  EXPECT_THAT(out, HasSubstr("│ Segmentation fault"));
  EXPECT_THAT(out, HasSubstr("matches epsilon inside the root"));
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
}

TEST(Renderers, CarryTheTrackLabel) {
  for (const Summary& s : {sample_summary(10), single_summary(), empty_summary()}) {
    SCOPED_TRACE(ir::name(s.track));
    EXPECT_THAT(split(render_terminal(s), "\n").front(), HasSubstr(ir::name(s.track) + " track"));
    EXPECT_THAT(split(render_markdown(s), "\n").front(), HasSubstr(ir::name(s.track) + " track"));
    EXPECT_EQ(nlohmann::json::parse(render_json(s)).at("track"), ir::name(s.track));
  }
  for (const std::string& line : split(render_csv(sample_summary(10)), "\r\n")) {
    const bool labelled = line.empty() || line.find("equalised") != std::string::npos;
    EXPECT_TRUE(labelled || line.rfind("recipe,track", 0) == 0) << line;
  }
}

TEST(Renderers, NeverPrintWhatIsNoNumber) {
  const Summary s = poisoned_summary();
  for (const std::string& out : {render_terminal(s, {.width = 200}), render_markdown(s), render_csv(s)}) {
    EXPECT_THAT(out, Not(HasSubstr("nan")));
    EXPECT_THAT(out, Not(HasSubstr("inf,")));
    EXPECT_THAT(out, Not(HasSubstr("inf ")));
  }
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_TRUE(json["ranked"][0]["ms_per_step"]["value"].is_null());
  EXPECT_TRUE(json["ranked"][0]["ratio"]["high"].is_null());
}

TEST(Markdown, EscapesMarkup) {
  Summary s = sample_summary(10);
  s.sentence = "<img src=x> | *bold* [link](x) `code` @someone";
  s.unranked[0].contender.own_script = "mine.py";  // so that its id is its name
  s.unranked[1].contender.id = "a`b|c";
  const std::string hostile = render_markdown(s);
  EXPECT_THAT(hostile, HasSubstr("\\<img src=x\\> \\| \\*bold\\* \\[link\\](x) `code` \\@someone\n"));
  EXPECT_THAT(hostile, HasSubstr("`keras[script=mine \"<script>alert(1)</script>\" & 'Grüße' 模型.py]`"));
  EXPECT_THAT(hostile, HasSubstr("`` a`b\\|c ``"));
}

TEST(Markdown, EveryTableRowHasTheHeadersCells) {
  const auto cells_of = [](const std::string& line) { return split(line, " |").size(); };
  size_t rows = 0, header = 0;
  for (const std::string& line : split(render_markdown(sample_summary(10)), "\n")) {
    if (line.rfind("|", 0) != 0) header = 0;  // the next table has its own
    if (line.rfind("| ", 0) != 0) continue;
    header = header == 0 ? cells_of(line) : header;
    EXPECT_EQ(cells_of(line), header) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 39U) << "what is open, ranking, cost and resources, two studies";
}

TEST(Json, HoldsEveryContenderAndSample) {
  const Summary s = sample_summary(25);
  const auto json = nlohmann::json::parse(render_json(s, {.samples = true}));
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["ranked"].size(), s.ranked.size());
  ASSERT_EQ(json["unranked"].size(), s.unranked.size());
  for (size_t i = 0; i < s.ranked.size(); ++i) {
    const auto& row = json["ranked"][i];
    EXPECT_EQ(row["contender"]["id"], s.ranked[i].contender.id);
    EXPECT_DOUBLE_EQ(row["ms_per_step"]["value"].get<double>(), s.ranked[i].ms_per_step.value);
    EXPECT_EQ(row["step_ms"].get<std::vector<double>>(), s.ranked[i].step_ms);
    EXPECT_EQ(row["heat_ms"].get<std::vector<double>>(), s.ranked[i].heat_ms);
    EXPECT_TRUE(row["reason"].is_null());
  }
  EXPECT_TRUE(json["ranked"][4]["ratio"]["high"].is_null()) << "not bounded";
  EXPECT_EQ(json["unranked"][0]["contender"]["id"], s.unranked[0].contender.id);
  EXPECT_EQ(json["unranked"][0]["proof"]["diverges_at"], "update/conv1.weight");
  EXPECT_THAT(json["unranked"][2]["failure"]["log_tail"].get<std::string>(), HasSubstr("Segmentation fault"));
  EXPECT_EQ(json["manifest"]["recipe_text"], s.manifest.recipe_text);
  EXPECT_EQ(json["sources"][0]["text"], s.sources[0].text);
}

TEST(Json, LeavesOutWhatIsNotAskedFor) {
  const auto json =
      nlohmann::json::parse(render_json(sample_summary(25), {.samples = false, .sources = false}));
  EXPECT_FALSE(json["ranked"][0].contains("step_ms"));
  EXPECT_FALSE(json["sources"][0].contains("text"));
}

// A reader of RFC 4180 of its own.
std::vector<std::vector<std::string>> parse_csv(const std::string& text) {
  std::vector<std::vector<std::string>> records(1, {""});
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      records.back().back() += text[++i];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && text[i] == ',') {
      records.back().emplace_back();
    } else if (!quoted && text.compare(i, 2, "\r\n") == 0) {
      records.push_back({""});
      ++i;
    } else {
      records.back().back() += text[i];
    }
  }
  records.pop_back();
  return records;
}

TEST(Csv, ReadsBackAsItWas) {
  Summary s = sample_summary(10);
  s.unranked[0].contender.id = "a \"quoted\", comma\nand line";
  const auto records = parse_csv(render_csv(s));
  ASSERT_EQ(records.size(), 1 + s.ranked.size() + s.unranked.size());
  const auto column = [&](const std::string& name) {
    return std::find(records[0].begin(), records[0].end(), name) - records[0].begin();
  };
  for (const auto& record : records) EXPECT_EQ(record.size(), records[0].size());
  for (size_t i = 0; i < s.ranked.size(); ++i) {
    const auto& record = records[i + 1];
    EXPECT_EQ(record[column("contender")], s.ranked[i].contender.id);
    EXPECT_DOUBLE_EQ(std::stod(record[column("ms_per_step")]), s.ranked[i].ms_per_step.value);
    EXPECT_EQ(record[column("reason")], "");
  }
  EXPECT_EQ(records[5][column("ratio_high")], "") << "not bounded";
  EXPECT_EQ(records[9][column("contender")], s.unranked[0].contender.id);
  EXPECT_EQ(records[9][column("state")], "not ranked");
  EXPECT_THAT(records[9][column("reason")], HasSubstr("epsilon inside the root"));
}

}  // namespace
}  // namespace bakeoff::report
