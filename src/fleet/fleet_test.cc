#include "fleet/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing.h"

namespace bakeoff::fleet {
namespace {

using bakeoff::testing::TestFolder;
using ::testing::ElementsAre;

// Holds what a test says.
struct FakeEngine : Engine {
  std::map<int, Queued> held = {};
  mutable std::vector<Job> cancelled = {};
  Status check() const override { return Done{}; }
  Status submit(Job& job, const std::vector<std::string>&) const override {
    job.ids = {"1"};
    return Done{};
  }
  Result<std::map<int, Queued>> queued(const Job&) const override { return held; }
  std::string why_gone(const Job&, int) const override { return "the node died"; }
  Status cancel(const Job& job) const override {
    cancelled.push_back(job);
    return Done{};
  }
};

TEST(Fleet, SaysWhereBlocksAre) {
  TestFolder folder;
  const Board board = Board::create(folder.path(), {.engine = "local"}).value();
  for (int block = 1; block <= 5; ++block)
    ASSERT_TRUE(board.write(HeatOrder{.number = block, .members = {0}}));
  ASSERT_TRUE(board.write(Job{.number = 1, .blocks = {1, 2, 3, 4, 5}, .ids = {"1"}}));
  ASSERT_TRUE(board.settle({.block = 1}));
  ASSERT_TRUE(board.settle({.block = 2, .given_up = "tried"}));
  FakeEngine engine;
  engine.held = {{3, {.running = true, .node = "n1"}}, {4, {.why = "Priority"}}};
  const auto seen = overview(board, engine);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->blocks, 5);
  EXPECT_EQ(seen->settled, 2);
  EXPECT_EQ(seen->running, 1);
  EXPECT_EQ(seen->waiting, 1);
  EXPECT_EQ(seen->lost, 1);
  EXPECT_FALSE(seen->over());
  EXPECT_THAT(seen->notes, ElementsAre("block 3 runs on n1", "1 wait: Priority"));
}

TEST(Fleet, CancelsWhatItHasNotCancelled) {
  TestFolder folder;
  const Board board = Board::create(folder.path(), {.engine = "local"}).value();
  ASSERT_TRUE(board.write(Job{.number = 1, .blocks = {1}, .ids = {"1"}, .cancelled = true}));
  ASSERT_TRUE(board.write(Job{.number = 2, .blocks = {1}, .ids = {"2"}}));
  ASSERT_TRUE(board.write(Job{.number = 3, .blocks = {1}}));
  FakeEngine engine;
  ASSERT_TRUE(cancel(board, engine));
  ASSERT_EQ(engine.cancelled.size(), 2u) << "the engine may have the one whose submission was interrupted";
  EXPECT_EQ(engine.cancelled.front().number, 2);
  EXPECT_EQ(engine.cancelled.back().number, 3);
  EXPECT_TRUE(board.jobs()->at(1).cancelled);
}

TEST(Fleet, AWaveGivesEachContenderTwoHeats) {
  EXPECT_EQ(planned_blocks(2, 8, 0.01), 8u);
  EXPECT_EQ(planned_blocks(256, 8, 0.01), 74u);
  EXPECT_GE(planned_blocks(8, 8, 0.01), 8u);
}

TEST(Shell, WordsAreQuoted) {
  EXPECT_EQ(detail::quoted("a b"), "'a b'");
  EXPECT_EQ(detail::quoted("it's $HOME"), "'it'\\''s $HOME'");
}

}  // namespace
}  // namespace bakeoff::fleet
