#include "study/batches/batch_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "plan/fake_lanes_testing.h"
#include "records/records.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using testing::fake_spec;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestFolder;

// A record of `rate` samples a second.
BatchTrial timed(int64_t batch, double rate, int process = 1, int64_t rss = 0) {
  const auto ns = static_cast<int64_t>(std::llround(1e9 * static_cast<double>(batch) / rate * 10));
  BatchTrial record{batch, {.contender = "a", .heat = process, .bursts = {{ns, 10}, {ns, 10}}}};
  record.trial.peak_rss_bytes = rss;
  return record;
}

SearchRow row_of(const std::vector<BatchTrial>& trials, const recipe::Search& asked = {.batches = {1}}) {
  const auto rows = search_rows(trials, {"a"}, asked, 0.05);
  EXPECT_THAT(rows, SizeIs(1));
  return rows.at(0);
}

TEST(SearchRows, NameTheBestBatchAndTheLeastThatComesNear) {
  const SearchRow row =
      row_of({timed(64, 960), timed(16, 500), timed(32, 970), timed(128, 1000), timed(256, 800)});
  ASSERT_THAT(row.points, SizeIs(5));
  EXPECT_EQ(row.points[0].batch, 16);
  EXPECT_EQ(row.best, 128);
  EXPECT_EQ(row.enough, 32) << "within 5% of 1000";
  EXPECT_NEAR(row.at(128)->samples_per_s, 1000, 0.01);
  EXPECT_EQ(row.note, "");
}

TEST(SearchRows, AreMediansOverProcessesWithTheirRange) {
  const SearchRow row = row_of({timed(8, 90, 1), timed(8, 100, 2), timed(8, 160, 3)});
  EXPECT_EQ(row.points[0].processes, 3);
  EXPECT_NEAR(row.points[0].samples_per_s, 100, 0.01);
  EXPECT_NEAR(row.points[0].least, 90, 0.01);
  EXPECT_NEAR(row.points[0].most, 160, 0.01);
}

TEST(SearchRows, SayWhereALargerBatchMayBeBetter) {
  EXPECT_THAT(row_of({timed(8, 90), timed(16, 180)}).note, HasSubstr("a larger one may be better"));
  // By doubling that is said only at the end that the recipe sets.
  EXPECT_THAT(row_of({timed(8, 90), timed(16, 180)}, {.most = 16}).note,
              HasSubstr("larger one may be better"));
}

TEST(SearchRows, AFailureIsAPointWithItsReason) {
  BatchTrial dead{
      64, {.contender = "a", .heat = 1, .failure = Failure{Stage::kRun, "killed, out of memory", ""}}};
  const SearchRow row = row_of({timed(16, 100), timed(32, 190), dead});
  EXPECT_EQ(row.best, 32);
  EXPECT_EQ(row.points[2].failure, "run: killed, out of memory");
  EXPECT_EQ(row.note, "batch 64: run: killed, out of memory");
  EXPECT_EQ(row_of({dead}).best, std::nullopt);
  EXPECT_THAT(row_of({dead}).note, HasSubstr("out of memory"));
  EXPECT_THAT(search_rows({dead}, {"stranger"}, {}, 0.05), IsEmpty());
}

TEST(NextBatch, DoublesUntilTwoInARowDoNotPay) {
  const recipe::Search asked = {.least = 4, .most = 1000};
  const auto next = [&](const std::vector<BatchTrial>& trials) {
    return next_batch(trials.empty() ? SearchRow{} : row_of(trials, asked), asked, 0.05);
  };
  EXPECT_EQ(next({}), 4);
  EXPECT_EQ(next({timed(4, 100)}), 8);
  EXPECT_EQ(next({timed(4, 100), timed(8, 103)}), 16) << "once in vain";
  EXPECT_EQ(next({timed(4, 100), timed(8, 103), timed(16, 104)}), std::nullopt);
  EXPECT_EQ(next({timed(4, 100), timed(8, 103), timed(16, 130)}), 32) << "it paid again";
  EXPECT_EQ(next({timed(512, 100)}), std::nullopt) << "1024 is more than the recipe allows";
  BatchTrial dead{8, {.contender = "a", .heat = 1, .failure = Failure{Stage::kRun, "out of memory", ""}}};
  EXPECT_EQ(next({timed(4, 100), dead}), std::nullopt);
}

TEST(TooLarge, ExtrapolatesWhatTheLastTwoBatchesTook) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  const SearchRow row = row_of({timed(64, 100, 1, 2 * kGiB), timed(128, 190, 1, 3 * kGiB)});
  EXPECT_EQ(too_large(row, 256, 6 * kGiB), "") << "5 GiB";
  EXPECT_THAT(too_large(row, 512, 8 * kGiB), HasSubstr("about 9.0 GiB of memory, 8.0 GiB are available"));
  EXPECT_EQ(too_large(row, 512, 0), "") << "not known";
  EXPECT_EQ(too_large(row_of({timed(64, 100, 1, kGiB)}), 128, 1), "");
}

// A plan of fakes, and lanes whose step takes `ms(batch)`.
struct Fakes {
  TestFolder folder;
  Plan plan{.recipe = {}, .directory = RunDirectory::create(folder / "run").value()};
  std::vector<Parity> parities;
  std::vector<int64_t> tried;  // every process that was started
  std::function<double(int64_t)> ms;
  std::map<int64_t, std::string> crash = {};

  Fakes(const recipe::Search& search, std::function<double(int64_t)> step_ms) : ms(std::move(step_ms)) {
    plan.recipe.search = search;
    plan.recipe.margin = 0.1;
    plan.recipe.race.bursts = 2;
    plan.recipe.race.burst_seconds = 0.02;
    plan.recipe.race.warmup_steps = 2;
    testing::add_fake_lane(plan, "a");
    parities = testing::all_pass(plan);
  }

  Status search() {
    const LaneAt lane_at = [this](size_t lane, int64_t batch) {
      tried.push_back(batch);
      Lane at = plan.lanes[lane];
      std::map<std::string, std::string> options = {{"step_ms", std::to_string(ms(batch))}};
      if (crash.contains(batch)) options["crash_at"] = crash[batch];
      at.entry.worker = fake_spec(options);
      return at;
    };
    return search_batches({.plan = plan, .parities = parities, .trials = {}}, lane_at);
  }
  SearchRow row() {
    return search_rows(plan.directory.read<BatchTrial>().value(), {"a"}, plan.recipe.search, 0.1).at(0);
  }
};

TEST(SearchBatches, DoublesWhileItPaysThenRepeatsWhatItTried) {
  // 4 ms a step up to 16 rows, then four times as long for twice as many: far from any margin.
  const auto ms = [](int64_t batch) { return batch <= 16 ? 4.0 : static_cast<double>(batch * batch) / 64; };
  std::optional<Fakes> made;
  // Beside other work a short step may take as long as two; then again.
  ASSERT_TRUE(testing::soon([&] {
    made.emplace(recipe::Search{.wanted = true, .least = 4, .most = 512, .processes = 2}, ms);
    EXPECT_TRUE(made->search());
    return made->tried.size() == 10 && made->row().enough == 16;
  }));
  Fakes& fakes = *made;
  EXPECT_THAT(std::vector(fakes.tried.begin(), fakes.tried.begin() + 5), ElementsAre(4, 8, 16, 32, 64));
  EXPECT_THAT(fakes.tried, SizeIs(10)) << "two processes for each";
  EXPECT_EQ(std::multiset<int64_t>(fakes.tried.begin(), fakes.tried.end()),
            (std::multiset<int64_t>{4, 4, 8, 8, 16, 16, 32, 32, 64, 64}));
  const SearchRow row = fakes.row();
  ASSERT_THAT(row.points, SizeIs(5));
  EXPECT_EQ(row.points[0].processes, 2);
  EXPECT_GT(row.at(16)->samples_per_s, 2 * row.at(4)->samples_per_s);
  EXPECT_EQ(row.enough, 16);
  fakes.tried.clear();
  ASSERT_TRUE(fakes.search());
  EXPECT_THAT(fakes.tried, IsEmpty()) << "all of it was there";
}

TEST(SearchBatches, TakesTheBatchesOfTheRecipe) {
  Fakes fakes({.wanted = true, .batches = {3, 60}, .processes = 2}, [](int64_t) { return 1.0; });
  ASSERT_TRUE(fakes.search());
  EXPECT_EQ(std::multiset<int64_t>(fakes.tried.begin(), fakes.tried.end()),
            (std::multiset<int64_t>{3, 3, 60, 60}));
  EXPECT_EQ(fakes.row().best, 60);
}

TEST(SearchBatches, ABatchThatFailsEndsTheDoublingAndIsNotTriedAgain) {
  Fakes fakes({.wanted = true, .least = 4, .most = 512, .processes = 3},
              [](int64_t batch) { return 100.0 / static_cast<double>(batch); });
  fakes.crash[16] = "run";
  ASSERT_TRUE(fakes.search());
  EXPECT_EQ(std::count(fakes.tried.begin(), fakes.tried.end(), 16), 1);
  EXPECT_EQ(std::count(fakes.tried.begin(), fakes.tried.end(), 32), 0);
  const SearchRow row = fakes.row();
  EXPECT_EQ(row.best, 8);
  EXPECT_THAT(row.note, HasSubstr("batch 16: first step: "));
}

TEST(SearchBatches, ABatchAboveTheDataIsARowOrTheEnd) {
  Fakes listed({.wanted = true, .batches = {4, 100}, .processes = 1}, [](int64_t) { return 1.0; });
  listed.plan.gate.rows = 50;
  ASSERT_TRUE(listed.search());
  EXPECT_THAT(listed.tried, ElementsAre(4));
  EXPECT_THAT(listed.row().note, HasSubstr("the data has 50 rows"));
  Fakes doubled({.wanted = true, .least = 16, .most = 512, .processes = 1}, [](int64_t) { return 1.0; });
  doubled.plan.gate.rows = 50;
  ASSERT_TRUE(doubled.search());
  EXPECT_THAT(doubled.tried, ElementsAre(16, 32));
}

TEST(SearchBatches, DoesNothingUnasked) {
  Fakes fakes({}, [](int64_t) { return 1.0; });
  ASSERT_TRUE(fakes.search());
  EXPECT_THAT(fakes.tried, IsEmpty());
}

}  // namespace
}  // namespace bakeoff
