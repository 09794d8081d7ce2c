#include "table/quantity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "table/section.h"

namespace bakeoff::table {
namespace {

struct Lap {
  std::string name;
  Estimate seconds;
  std::optional<double> pulse;
};

std::vector<Quantity<Lap>> laps() {
  return {
      {{.key = "runner", .title = "runner", .name = true}, [](const Lap& lap) { return Json(lap.name); }},
      {{.key = "seconds",
        .csv = {{"seconds", "/value"}, {"seconds_low", "/low"}},
        .title = "seconds",
        .ink = Ink::kBold},
       [](const Lap& lap) { return estimate(lap.seconds); },
       ratio},
      {{.key = "body/pulse"}, [](const Lap& lap) { return number(lap.pulse); }},
  };
}

const Lap kAnna{"Anna", {61.25, 60.5, INFINITY}, {}};
const Lap kBen{"Ben", {NAN, NAN, NAN}, 171};

TEST(Quantity, OneEntryIsAColumnForPeople) {
  const auto columns = columns_of(laps(), std::vector{kAnna, kBen});
  ASSERT_EQ(columns.size(), 2u);  // what has no title is for programs alone
  EXPECT_EQ(columns[0].cells[0], (Cell{"Anna"}));
  EXPECT_EQ(columns[1].cells[0], (Cell{"61.2", "[60.5, ∞)", Ink::kBold}));
  EXPECT_EQ(columns[1].cells[1], (Cell{kNone, "", Ink::kBold}));
  EXPECT_FALSE(blank(columns[1]));
}

TEST(Quantity, TheSameEntryIsJsonAndCsv) {
  EXPECT_EQ(json_of(laps(), kAnna).dump(),
            R"({"runner":"Anna","seconds":{"value":61.25,"low":60.5,"high":null},"body":{"pulse":null}})");
  EXPECT_EQ(json_of(laps(), kBen)["body"].dump(), R"({"pulse":171.0})");
  EXPECT_EQ(fields_of(laps(), &kAnna, "lap_"), (Fields{{"lap_runner", "Anna"},
                                                       {"lap_seconds", "61.25"},
                                                       {"lap_seconds_low", "60.5"},
                                                       {"lap_body_pulse", ""}}));
  EXPECT_EQ(fields_of<Lap>(laps(), nullptr),
            (Fields{{"runner", ""}, {"seconds", ""}, {"seconds_low", ""}, {"body_pulse", ""}}));
}

TEST(Quantity, AProgramReadsEveryDigit) {
  EXPECT_EQ(plain(Json(0.1), ""), "0.1");
  EXPECT_EQ(plain(Json(int64_t{1} << 60), ""), "1152921504606846976");
  EXPECT_EQ(plain(Json(nullptr), ""), "");
  EXPECT_EQ(plain(Json(true), ""), "true");
  EXPECT_EQ(plain(Json{{"a", {{"b", 2}}}}, "/a/b"), "2");
  EXPECT_EQ(plain(Json{{"a", 1}}, "/b"), "");
}

TEST(Section, HasTheSameFieldsForEveryContender) {
  Section section;
  add_fields(section, "Anna", fields_of(laps(), &kAnna));
  EXPECT_EQ(fields(section, "Anna")[1], (Fields::value_type{"seconds", "61.25"}));
  EXPECT_EQ(fields(section, "Zoe")[1], (Fields::value_type{"seconds", ""}));
}

}  // namespace
}  // namespace bakeoff::table
