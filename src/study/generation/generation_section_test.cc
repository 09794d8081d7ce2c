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
  t.compilations = 4;
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

TEST(GenerationSection, EachBatchAndPromptHasRowsCurvesAndColumns) {
  std::vector<GenerationTrial> trials = {trial("torch", 1, 10, 4), trial("jax", 1, 10, 2)};
  for (const auto& [batch, prompt, later] : {std::tuple(1, 5, 1), std::tuple(1, 2, 1), std::tuple(8, 2, 3)}) {
    GenerationTrial t = trial("torch", 1, 5, later);
    t.batch = batch, t.prompt = prompt;
    trials.push_back(t);
  }
  trials.back().compilations = 2;
  const auto rows = generation_rows(trials, {"jax", "torch"});
  ASSERT_EQ(rows.size(), 5u);
  const table::Section section = generation_section(rows);
  testing::expect_whole(section, 5);
  EXPECT_EQ(section.row_names[0], "jax");
  EXPECT_EQ(section.row_names[2], "torch, prompts of 5, 1 at a time");
  EXPECT_EQ(cell(section, "batch", 2).text, "1");
  EXPECT_EQ(cell(section, "prompt", 3).text, "2");
  EXPECT_EQ(cell(section, "compiled", 4).text, "2");
  EXPECT_THAT(section.notes[4], HasSubstr("2 functions were compiled"));
  EXPECT_THAT(section.legend, HasSubstr("proven are the race's own"));
  std::vector<std::string> named;
  for (const table::Picture& p : section.pictures) named.push_back(p.name);
  EXPECT_THAT(named, ::testing::ElementsAre(
                         "words per second, prompts of 2", "words per second, prompts of 5",
                         "throughput and delay, prompts of 2", "throughput and delay, prompts of 5",
                         "first word, batch 1", "first word, batch 8"));
  const table::Curve& torch = section.pictures[1].curves.back();
  EXPECT_EQ(torch.contender, "torch");
  ASSERT_EQ(torch.points.size(), 2u);
  EXPECT_EQ(torch.points[0].x, 1);
  EXPECT_EQ(torch.points[0].y, 1000);
  EXPECT_EQ(torch.points[1].y, 2000);
  EXPECT_THAT(section.csv_names, ::testing::Contains("batch1_prompt2_first_word_ms"));
  EXPECT_THAT(section.csv_names, ::testing::Contains("words_per_second"));
}

}  // namespace
}  // namespace bakeoff
