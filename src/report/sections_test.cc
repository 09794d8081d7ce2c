// A section as a study makes it: every format renders all of it, and knows nothing of the study.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/csv.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/sample_summary_testing.h"
#include "report/terminal.h"

namespace bakeoff::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Lap {
  std::string contender;
  Estimate seconds;
  std::optional<double> spare;
};

std::vector<table::Quantity<Lap>> laps() {
  return {
      {{.title = "contender", .left = true, .name = true},
       [](const Lap& lap) { return table::Json(lap.contender); }},
      {{.key = "seconds",
        .csv = {{"lap_seconds", "/value"}},
        .title = "lap time",
        .meaning = "Seconds of a <lap>.",
        .range_title = "bounds",
        .range_priority = 1},
       [](const Lap& lap) { return table::estimate(lap.seconds); },
       table::ratio},
      {{.key = "spare", .title = "spare part", .meaning = "Nothing has it.", .priority = 1},
       [](const Lap& lap) { return table::number(lap.spare); },
       table::ratio},
  };
}

Summary with_section() {
  Summary s = sample_summary(6);
  const std::vector<Lap> all = {{s.ranked[1].contender.id, {41.5, 40, 43}, {}},
                                {s.ranked[0].contender.id, {50, 49, 51}, {}}};
  table::Section section = {.key = "laps",
                            .label = "Laps",
                            .title = "Laps of the <course>",
                            .legend = "Each lap is one process | and a pipe.",
                            .columns = table::columns_of(laps(), all),
                            .notes = {"", "it *slipped*"}};
  section.json["rows"] = table::Json::array();
  for (const Lap& lap : all) {
    section.row_names.push_back(lap.contender);
    section.json["rows"].push_back(table::json_of(laps(), lap));
    add_fields(section, lap.contender, table::fields_of(laps(), &lap));
  }
  section.pictures = {{"throughput",
                       "rows a step",
                       "samples/s",
                       {{s.ranked[0].contender.id, {{16, 100, 90, 110}, {32, 150, 140, 160}}, 32}},
                       true}};
  s.studies = {section};
  return s;
}

TEST(Sections, StandInEveryFormat) {
  const Summary s = with_section();
  const std::string terminal = render_terminal(s, {.width = 200});
  EXPECT_THAT(terminal, AllOf(HasSubstr("Laps of the <course>"), HasSubstr("lap time"), HasSubstr("bounds"),
                              HasSubstr("41.5"), HasSubstr("[40.0, 43.0]"), HasSubstr("it *slipped*"),
                              HasSubstr("Each lap is one process")));
  EXPECT_THAT(terminal, Not(HasSubstr("spare part"))) << "a column that no row has anything in";
  EXPECT_THAT(render_markdown(s),
              AllOf(HasSubstr("**Laps of the \\<course\\>**"), HasSubstr("| 41.5 [40.0, 43.0] |"),
                    HasSubstr("one process \\| and"), HasSubstr("it \\*slipped\\*")));
  const std::string html = render_html(s);
  EXPECT_THAT(html,
              AllOf(HasSubstr("<section id=\"laps\">"), HasSubstr("<a href=\"#laps\">Laps</a>"),
                    HasSubstr("Laps of the &lt;course&gt;"), HasSubstr("title=\"Seconds of a &lt;lap&gt;.\""),
                    HasSubstr("<b>41.5</b><span class=\"range\">[40.0, 43.0]</span>"),
                    HasSubstr("it *slipped*"), HasSubstr("samples/s against rows a step")));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["laps"]["rows"][0]["seconds"]["low"], 40);
  EXPECT_TRUE(json["laps"]["rows"][0]["spare"].is_null());
  const std::string csv = render_csv(s);
  EXPECT_THAT(csv, AllOf(HasSubstr(",lap_seconds,spare,reason\r\n"), HasSubstr(",41.5,,\r\n"),
                         HasSubstr(",50,,\r\n")));
}

}  // namespace
}  // namespace bakeoff::report
