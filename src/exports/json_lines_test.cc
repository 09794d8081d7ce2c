#include "exports/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "exports/recorded_testing.h"

namespace bakeoff::exports {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Json> lines_of(const Recorded& run) {
  std::vector<Json> all;
  std::istringstream text(json_lines(run));
  for (std::string line; std::getline(text, line);) all.push_back(Json::parse(line));
  return all;
}

bool fits(const Json& value, const std::string& type) {
  if (value.is_null()) return true;
  if (type == "text") return value.is_string();
  if (type == "yes or no") return value.is_boolean();
  return type == "whole" ? value.is_number_integer() : value.is_number_float();
}

TEST(JsonLines, EveryLineHasEveryKeyOfItsType) {
  for (const Json& line : lines_of(sample_recorded())) {
    ASSERT_EQ(line.size(), line_keys().size());
    size_t i = 0;
    for (const auto& [key, value] : line.items()) {
      SCOPED_TRACE(key);
      EXPECT_EQ(key, line_keys()[i].name);
      EXPECT_TRUE(fits(value, line_keys()[i].type)) << value;
      ++i;
    }
  }
}

TEST(JsonLines, OneLineForEveryBurst) {
  const auto lines = lines_of(sample_recorded());
  ASSERT_EQ(lines.size(), 2u * 5 + 4);
  int counting = 0;
  for (const Json& line : lines) counting += line["counts"] == true ? 1 : 0;
  EXPECT_EQ(counting, 2 * 3) << "neither warm-up nor what was run again";
  EXPECT_EQ(lines[1]["seconds_per_step"], 0.1);
  EXPECT_EQ(lines[1]["samples_per_second"], 1000.0);
  EXPECT_EQ(lines[4]["seconds"], 3.0);
  EXPECT_EQ(lines[4]["cpu_seconds"], nullptr);
  EXPECT_EQ(lines[0]["reason"], nullptr);
  EXPECT_EQ(lines.back()["contender"], "waiting");
  EXPECT_EQ(lines.back()["heat"], nullptr);
  EXPECT_EQ(lines.back()["ranked"], false);
  EXPECT_THAT(lines.back()["reason"].get<std::string>(), ::testing::HasSubstr("ended before"));
}

}  // namespace
}  // namespace bakeoff::exports
