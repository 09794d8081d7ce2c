#include "fleet/board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "base/files.h"
#include "base/testing.h"

namespace bakeoff::fleet {
namespace {

using bakeoff::testing::TestFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

BlockResult result_of(int block, const std::string& trials = "") {
  return {
      .block = block, .attempt = "1-n1-9", .bytes = static_cast<int64_t>(trials.size()), .trials = trials};
}

class BoardTest : public ::testing::Test {
 protected:
  TestFolder folder_;
  Board board_ = Board::create(folder_.path(), {.engine = "local"}).value();
  fs::path result_file(int block) const {
    return folder_ / ("fleet/blocks/0000" + std::to_string(block) + "/result.json");
  }
};

TEST_F(BoardTest, KeepsWhatIsWritten) {
  const Job job{.number = 2, .blocks = {3, 1}, .minutes = 5, .submitted = "now", .ids = {"17"}};
  ASSERT_TRUE(board_.write(job));
  ASSERT_TRUE(board_.write(Job{.number = 1, .blocks = {1}}));
  ASSERT_TRUE(board_.write(HeatOrder{.number = 3, .members = {0, 2}}));
  const auto again = Board::open(folder_.path());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->settings(), board_.settings());
  ASSERT_EQ(again->jobs()->size(), 2u);
  EXPECT_EQ(again->jobs()->back(), job);
  EXPECT_THAT(*again->blocks(), ElementsAre(3));
  EXPECT_THAT(again->order(3)->members, ElementsAre(0, 2));
}

TEST_F(BoardTest, TheFirstResultStands) {
  ASSERT_TRUE(board_.write(HeatOrder{.number = 1, .members = {0}}));
  EXPECT_FALSE(board_.settled(1));
  std::atomic<int> firsts = 0;
  std::vector<std::thread> attempts;
  for (int i = 0; i < 8; ++i)
    attempts.emplace_back([&, i] {
      const auto first = board_.settle(result_of(1, "{\"attempt\":" + std::to_string(i) + "}\n"));
      firsts += first && *first;
    });
  for (std::thread& attempt : attempts) attempt.join();
  EXPECT_EQ(firsts, 1);
  EXPECT_TRUE(board_.settled(1));
  ASSERT_TRUE(board_.result(1));
  const std::string stands = board_.result(1)->trials;
  EXPECT_FALSE(*board_.settle(result_of(1, "late\n")));
  EXPECT_EQ(board_.result(1)->trials, stands);
}

TEST_F(BoardTest, OneProcessTakesABlock) {
  ASSERT_TRUE(board_.write(HeatOrder{.number = 1, .members = {0}}));
  EXPECT_EQ(board_.taken_by(1, 4), "");
  EXPECT_TRUE(*board_.take(1, 4, "n1"));
  EXPECT_FALSE(*board_.take(1, 4, "n2"));
  EXPECT_EQ(board_.taken_by(1, 4), "n1");
  EXPECT_TRUE(*board_.take(1, 5, "n2")) << "of another job";
}

TEST_F(BoardTest, DamagedResultsAreErrorsAndCanRunAgain) {
  ASSERT_TRUE(board_.write(HeatOrder{.number = 1, .members = {0}}));
  ASSERT_TRUE(board_.settle(result_of(1, "{\"a\":1}\n{\"b\":2}\n")));
  const std::string whole = *read_file(result_file(1));
  for (size_t length = 0; length < whole.size(); length += 29) {
    ASSERT_TRUE(write_file(result_file(1), whole.substr(0, length)));
    EXPECT_FALSE(board_.result(1)) << length;
  }
  ASSERT_TRUE(write_file(result_file(1), whole + "{}\n"));
  EXPECT_FALSE(board_.result(1));
  ASSERT_TRUE(board_.set_aside(1));
  EXPECT_FALSE(board_.settled(1));
  EXPECT_TRUE(*board_.settle(result_of(1)));
  ASSERT_TRUE(board_.set_aside(1)) << "a second one has a name of its own";
  ASSERT_TRUE(board_.settle(result_of(1)));
  fs::create_directories(folder_ / "fleet/blocks/00002");
  fs::copy_file(result_file(1), result_file(2));
  EXPECT_THAT(board_.result(2).error().message, HasSubstr("another block"));
}

TEST_F(BoardTest, KeepsWhyAttemptsFailed) {
  ASSERT_TRUE(board_.write(HeatOrder{.number = 1, .members = {0}}));
  EXPECT_THAT(board_.failures(1), IsEmpty());
  ASSERT_TRUE(board_.write(
      FailedAttempt{.block = 1, .job = 1, .node = "n1", .reason = "full", .contenders = {"a"}}, "1-n1"));
  ASSERT_EQ(board_.failures(1).size(), 1u);
  EXPECT_EQ(board_.failures(1).front().reason, "full");
  BlockResult given_up = result_of(1);
  given_up.given_up = "3 attempts failed";
  ASSERT_TRUE(board_.settle(given_up));
  EXPECT_EQ(board_.result(1)->given_up, "3 attempts failed");
  fs::remove(result_file(1));
  ASSERT_EQ(::mkfifo(result_file(1).c_str(), 0600), 0);
  EXPECT_FALSE(board_.result(1)) << "it does not wait for a writer";
}

TEST_F(BoardTest, ChecksAreKeptByNodeContenderAndOutcome) {
  EXPECT_THAT(board_.checks(), ::testing::IsEmpty());
  const std::vector<Check> all = {{"n1", "torch", ""}, {"n1", "a/b", "logits differ"}, {"n2", "torch", ""}};
  for (const Check& check : all) ASSERT_TRUE(board_.write(check));
  ASSERT_TRUE(board_.write(all[1]));
  EXPECT_THAT(board_.checks(), ::testing::UnorderedElementsAreArray(all));
}

TEST(Board, AFolderThatIsNoFleetsIsRefused) {
  TestFolder folder;
  const auto none = Board::open(folder.path());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no run of a fleet"));
  ASSERT_TRUE(write_file(folder / "fleet/fleet.json", "{\"engine\": 7}"));
  const auto damaged = Board::open(folder.path());
  ASSERT_FALSE(damaged);
  EXPECT_THAT(damaged.error().where, HasSubstr("fleet.json"));
}

}  // namespace
}  // namespace bakeoff::fleet
