#include "regression/bisect.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include "base/files.h"
#include "base/temporary_folder.h"

namespace bakeoff::regression {
namespace {

// Versions of which those from `culprit` on are slower.
struct World {
  size_t versions = 17, culprit = 11;
  double slower = 1.05, sd = 0.01;
  std::vector<size_t> broken = {};
  std::optional<double> sd_of_probes = {};  // where it differs from that of the ends
  std::chrono::milliseconds heat{0};
  int made = 0;
  std::vector<double> lefts_s = {};  // what each heat was told to be left
  std::mt19937_64 random{3};

  bool is_broken(size_t at) const { return std::ranges::find(broken, at) != broken.end(); }
  double level(size_t at) const { return at >= culprit ? std::log(slower) : 0; }
};

class PlayedPair : public Pairing {
 public:
  PlayedPair(World& world, size_t base, size_t head) : world_(world), base_(base), head_(head) {}
  std::vector<Row> rows() const override { return {{.contender = "torch", .name = "PyTorch"}}; }
  Result<std::vector<PairHeats>> heat(const std::vector<size_t>&, int64_t rounds, double left_s) override {
    world_.lefts_s.push_back(left_s);
    std::this_thread::sleep_for(world_.heat);
    const double sd = world_.made > 1 ? world_.sd_of_probes.value_or(world_.sd) : world_.sd;
    const double d = world_.level(head_) - world_.level(base_) + sd * normal_(world_.random);
    return std::vector<PairHeats>{
        {{{.log_ms = {std::log(100.0), std::log(100.0) + d}}}, {{.d = d, .within = 1e-6, .rounds = rounds}}}};
  }
  std::string per() const override { return "step"; }
  double round_s(const std::vector<size_t>&) const override { return 0.3; }

 private:
  World& world_;
  size_t base_, head_;
  std::normal_distribution<double> normal_;
};

class Bisecting : public ::testing::Test {
 protected:
  BisectOutcome found(BisectFile& file) {
    BisectOutcome outcome{.settings = {.budget_s = budget_s}};
    for (size_t i = 0; i < world.versions; ++i) outcome.versions.push_back({"v" + std::to_string(i), ""});
    const MakePair make = [this](size_t base, size_t head) -> Result<std::unique_ptr<Pairing>> {
      ++world.made;
      if (world.is_broken(base) || world.is_broken(head)) return Error{"it does not build"};
      return std::unique_ptr<Pairing>(new PlayedPair(world, base, head));
    };
    const Status done = bisect(outcome, file, make, kSilent, TimeBudget(budget_s, begun_ns));
    EXPECT_TRUE(done) << done.error().text();
    return outcome;
  }
  BisectFile file() {
    nlohmann::json header = {{"versions", nlohmann::json::array()}};
    for (size_t i = 0; i < world.versions; ++i) header["versions"].push_back(i);
    return BisectFile::create(folder_->path() / "search", header).value();
  }
  std::filesystem::path place() const { return folder_->path() / "search"; }
  World world;
  double budget_s = 600;
  int64_t begun_ns = monotonic_clock().now_ns();

 private:
  Result<TemporaryFolder> folder_ = TemporaryFolder::make("bisect");
};

TEST_F(Bisecting, WhatTheCommandDidBeforeCountsToo) {
  begun_ns -= 2 * 600 * kSecond;
  BisectFile kept = file();
  const BisectOutcome outcome = found(kept);
  EXPECT_EQ(world.made, 1);
  EXPECT_EQ(world.lefts_s, std::vector<double>{0}) << "the least that can be said of the ends";
  EXPECT_TRUE(outcome.probes.empty());
  EXPECT_EQ(verdict(outcome), BisectVerdict::kUndecided);
}

TEST_F(Bisecting, FindsAndConfirmsTheCulprit) {
  BisectFile kept = file();
  const BisectOutcome outcome = found(kept);
  EXPECT_EQ(exit_code(outcome), 0) << to_text(outcome, 80);
  EXPECT_EQ(outcome.found.first, 11U);
  EXPECT_EQ(outcome.found.last, 11U);
  EXPECT_EQ(outcome.parent, 10U);
  EXPECT_NE(to_text(outcome, 80).find("FOUND: v11 made PyTorch slower"), std::string::npos)
      << to_text(outcome, 80);
  EXPECT_EQ(nlohmann::json::parse(to_json(outcome))["found"]["first"], 11);
}

TEST_F(Bisecting, BrokenVersionsLeaveARange) {
  world.broken = {3, 10, 11};
  BisectFile kept = file();
  const BisectOutcome outcome = found(kept);
  EXPECT_EQ(exit_code(outcome), 0) << to_text(outcome, 80);
  EXPECT_EQ(outcome.found.first, 10U);
  EXPECT_EQ(outcome.found.last, 12U);
  EXPECT_EQ(outcome.parent, 9U);
  EXPECT_NE(to_text(outcome, 80).find("skipped: it does not build"), std::string::npos);
}

TEST_F(Bisecting, EqualEndsHaveNothingToFind) {
  world.slower = 1;
  BisectFile kept = file();
  const BisectOutcome outcome = found(kept);
  EXPECT_EQ(exit_code(outcome), 1);
  EXPECT_NE(to_text(outcome, 80).find("NOTHING TO FIND"), std::string::npos);
}

TEST_F(Bisecting, NoiseForbidsAnAnswer) {
  world.sd = 1;
  budget_s = 1e-4;
  BisectFile kept = file();
  EXPECT_EQ(exit_code(found(kept)), 3);
}

TEST_F(Bisecting, ProbesLeaveTheProofItsShareOfTheBudget) {
  world.sd_of_probes = 3;
  world.heat = std::chrono::milliseconds(4);
  budget_s = 1;
  BisectFile kept = file();
  const BisectOutcome outcome = found(kept);
  EXPECT_EQ(exit_code(outcome), 3);
  EXPECT_NE(outcome.stopped.find("the time was over"), std::string::npos) << to_text(outcome, 80);
  ASSERT_GT(world.made, 1);
  EXPECT_LE(world.lefts_s.back(), 0.75 * budget_s);
  for (const ProbeRecord& probe : outcome.probes)
    EXPECT_GE(probe.heats, 3U) << "no probe that the end of the time cut short";
}

TEST_F(Bisecting, ContinuesWhereItEnded) {
  BisectFile kept = file();
  const BisectOutcome whole = found(kept);
  // What a killed process left: half a line.
  const std::string text = read_file(place() / "bisect.jsonl").value();
  ASSERT_TRUE(write_file(place() / "bisect.jsonl", text + "{\"position\": 3, \"ver"));
  auto again = BisectFile::open(place());
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->probes, whole.probes);
  world.made = 0;
  const BisectOutcome resumed = found(*again);
  EXPECT_EQ(exit_code(resumed), 0) << to_text(resumed, 80);
  EXPECT_EQ(world.made, 1) << "only the confirmation is left";
  EXPECT_FALSE(BisectFile::create(place(), {})) << "nothing is replaced";
}

TEST_F(Bisecting, RecordsThatAreNoneAreRefused) {
  BisectFile kept = file();
  const std::string head = read_file(place() / "bisect.jsonl").value();
  for (const std::string bad :
       {"{oops\n", "{\"position\": 99, \"version\": \"x\", \"skipped\": \"\"}\n",
        "{\"position\": 0, \"version\": \"x\", \"skipped\": \"\"}\n",
        "{\"shift\": -1, \"contender\": \"x\"}\n",
        "{\"position\": 2, \"version\": \"x\", \"seen\": {\"mean\": 0, \"variance\": 0}}\n"}) {
    ASSERT_TRUE(write_file(place() / "bisect.jsonl", head + bad));
    const auto opened = BisectFile::open(place());
    ASSERT_FALSE(opened) << bad;
    EXPECT_NE(opened.error().where.find("bisect.jsonl:2"), std::string::npos);
  }
  ASSERT_TRUE(write_file(place() / "bisect.jsonl", ""));
  EXPECT_FALSE(BisectFile::open(place()));
  EXPECT_FALSE(BisectFile::open(place() / "nowhere"));
}

}  // namespace
}  // namespace bakeoff::regression
