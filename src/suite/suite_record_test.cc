#include "suite/suite_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace bakeoff::suite {
namespace {

using ::testing::HasSubstr;

Record sample() {
  return {.name = "quick",
          .file = "/s.toml",
          .started = "today",
          .minutes = 10,
          .baseline = "torch",
          .every = "margin = 0.1\n",
          .entries = {{"a", "/a.toml", "01-a", EntryState::kEnded, "", 60},
                      {"b", "/b.toml", "02-b", EntryState::kFailed, "no \"data\"", 0}}};
}

TEST(SuiteRecord, ComesBackAsItWas) {
  const auto back = record_from_json(to_json(sample()), "suite.json");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, sample());
}

TEST(SuiteRecord, RefusesWhatIsNoRecord) {
  Record outside = sample(), twice = sample(), version = sample();
  outside.entries[1].folder = "../../etc";
  twice.entries[1].folder = "01-a";
  version.version = 2;
  std::string state = to_json(sample());
  state.replace(state.find("ended"), 5, "done!");
  for (const std::string& text :
       {std::string(""), std::string("[]"), std::string("{\"version\": 1}"), std::string("{\"entries\": 3}"),
        to_json(outside), to_json(twice), state, to_json(version)}) {
    SCOPED_TRACE(text);
    const auto back = record_from_json(text, "here/suite.json");
    ASSERT_FALSE(back);
    EXPECT_THAT(back.error().text(), HasSubstr("here/suite.json"));
  }
}

TEST(SuiteRecord, FoldersArePlainAndUnique) {
  EXPECT_EQ(folder_name(0, "mlp small/../x"), "01-mlp_small_.._x");
  EXPECT_EQ(folder_name(11, "a"), "12-a");
}

TEST(SuiteRecord, TheTotalIsSharedOutAmongThoseThatAreToRun) {
  Record record = sample();
  record.minutes = 10;
  record.entries = {{"a", "", "1"}, {"b", "", "2"}, {"c", "", "3", EntryState::kFailed}};
  EXPECT_DOUBLE_EQ(share(record), 5);
  record.entries[0] = {"a", "", "1", EntryState::kEnded, "", 60};
  EXPECT_DOUBLE_EQ(share(record), 9) << "what the first did not need";
  record.entries[1].seconds = 3600;
  EXPECT_DOUBLE_EQ(share(record, 0.5), 0.5);
}

}  // namespace
}  // namespace bakeoff::suite
