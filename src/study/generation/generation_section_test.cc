#include "study/generation/generation_section.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "records/testing.h"
#include "study/section_testing.h"

namespace bakeoff {
namespace {

using testing::cell;
using ::testing::HasSubstr;

// Two answers of three words: `first` ms for each first one, `later` for the others. The last word of a third is missing.
GenerationTrial trial(const std::string& contender, int round, int64_t first, int64_t later) {
  GenerationTrial t{
      .contender = contender, .round = round, .started = "now", .batch = 8, .prompt = 5, .words = 3};
  int64_t now = 0;
  for (int i = 0; i < 8; ++i) {
    t.start_ns.push_back(now);
    t.end_ns.push_back(now += (i % 3 == 0 ? first : later) * 1'000'000);
  }
  return t;
}

TEST(GenerationTrial, IsKept) {
  GenerationTrial t = trial("torch", 2, 10, 4);
  t.failure = Failure{Stage::kServe, "killed", "line"};
  t.host = {7, {{"steal", 0.5}}, {{"others", "hidden"}}, "stolen", true, 3};
  testing::expect_kept(t);
}

TEST(GenerationSection, FirstWordsStandApartFromLaterOnes) {
  GenerationTrial dead{.contender = "jax", .round = 1, .batch = 8, .prompt = 5, .words = 3};
  dead.failure = Failure{Stage::kServe, "out of memory", {}};
  const auto rows =
      generation_rows({trial("torch", 1, 10, 4), trial("torch", 2, 30, 2), trial("torch", 3, 20, 5), dead},
                      {"torch", "jax", "keras"});
  ASSERT_EQ(rows.size(), 2u) << "keras was not measured";
  EXPECT_EQ(rows[0].processes, 3);
  EXPECT_EQ(rows[0].answers, 6) << "the third answer has not ended";
  const table::Section section = generation_section(rows);
  testing::expect_whole(section, 2);
  EXPECT_EQ(cell(section, "first word ms", 0).text, "20.0");
  EXPECT_EQ(cell(section, "word ms", 0).text, "4.00");
  // 4 later words of 8 rows in 4 * 4 ms.
  EXPECT_EQ(cell(section, "words/s", 0).text, "2,000");
  EXPECT_EQ(cell(section, "words/s", 0).range, "1,600 to 4,000");
  EXPECT_EQ(cell(section, "words/s", 1).text, table::Cell{}.text);
  EXPECT_EQ(section.notes[1], "serve: out of memory");
  EXPECT_THAT(section.legend, HasSubstr("3 words to prompts of 5, 8 at a time"));
}

}  // namespace
}  // namespace bakeoff
