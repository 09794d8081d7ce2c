// Shares of gaps and orders, from races whose truth is known, by the functions that races and reports use.

#include "suite/reproduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "evidence/evidence.h"
#include "suite/gap_share.h"
#include "summary/pair_ratios.h"

namespace bakeoff::suite {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kOpen = std::numeric_limits<double>::infinity();

Estimate factor(double value, double width) { return {value, value / width, value * width}; }

TEST(GapShare, OfKnownRatios) {
  // a takes 4 times as long as b, and half as long when it is switched: half of the log gap.
  const Estimate half = share_of_gap(factor(2, 1.01), factor(4, 1.01), factor(2, 1.01));
  EXPECT_NEAR(half.value, 0.5, 1e-12);
  EXPECT_LT(half.high - half.low, 0.02);
  // The faster one of the two: the same shares.
  EXPECT_NEAR(share_of_gap(factor(0.5, 1.01), factor(0.25, 1.01), factor(0.5, 1.01)).value, 0.5, 1e-12);
  EXPECT_NEAR(share_of_gap(factor(0.8, 1.01), factor(2, 1.01), factor(2.5, 1.01)).value, -0.322, 1e-3);
  EXPECT_NEAR(share_of_gap(factor(8, 1.01), factor(4, 1.01), factor(0.5, 1.01)).value, 1.5, 1e-12);
  // A gap that may be none has no share; open ends leave it open, or the third ratio closes it.
  EXPECT_EQ(share_of_gap(factor(2, 1.1), factor(1.05, 1.1), factor(0.5, 1.1)).low, -kOpen);
  const Estimate open = share_of_gap({2, 0, kOpen}, factor(4, 1.01), {2, 0, kOpen});
  EXPECT_EQ(open.low, -kOpen);
  EXPECT_EQ(open.high, kOpen);
  const Estimate closed = share_of_gap({2, 0, kOpen}, factor(4, 1.01), factor(2, 1.01));
  EXPECT_NEAR(closed.low, 0.49, 0.01);
  EXPECT_NEAR(closed.high, 0.51, 0.01);
  const Estimate far = share_of_gap(factor(2, 1.1), {4, 3.6, kOpen}, {2, 0, kOpen});
  EXPECT_LE(far.low, 0.006) << "the gap may be any size";
  EXPECT_GE(far.high, 0.6);
}

// The interval is the range over all points that the three intervals allow: none lies outside, and the ends are met.
TEST(GapShare, IsTheRangeOfWhatIsAllowed) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int i = 0; i < 300; ++i) {
    const double x = 2 * unit(random) - 1, y = 0.8 + unit(random), z = y - x;
    const auto around = [&](double v) {
      return Estimate{std::exp(v), std::exp(v - 0.25 * unit(random)), std::exp(v + 0.25 * unit(random))};
    };
    const Estimate ex = around(x), ey = around(y), ez = around(z), share = share_of_gap(ex, ey, ez);
    double least = kOpen, most = -kOpen;
    for (int u = 0; u <= 100; ++u) {
      for (int v = 0; v <= 100; ++v) {
        const double px = std::lerp(std::log(ex.low), std::log(ex.high), u / 100.0);
        const double py = std::lerp(std::log(ey.low), std::log(ey.high), v / 100.0);
        if (py - px < std::log(ez.low) || py - px > std::log(ez.high)) continue;
        least = std::min(least, px / py);
        most = std::max(most, px / py);
      }
    }
    EXPECT_LE(share.low, least + 1e-9);
    EXPECT_GE(share.high, most - 1e-9);
    EXPECT_NEAR(share.low, least, 0.05);
    EXPECT_NEAR(share.high, most, 0.05);
    EXPECT_LE(share.low, x / y + 1e-9);
    EXPECT_GE(share.high, x / y - 1e-9);
  }
}

struct Member {
  const char* framework;
  std::map<std::string, std::string> settings;
  double ms;
};

// A race of these contenders with noise of restarts, ranked by the functions of real races.
Summary raced(const std::vector<Member>& members, int heats, uint64_t seed, double noise,
              double alpha = 0.01) {
  Summary s{.title = "r", .margin = 0.03, .alpha = alpha};
  std::vector<std::string> ids;
  for (const Member& m : members) {
    Contender c{.framework = m.framework, .settings = m.settings};
    c.id = m.framework;
    for (const auto& [key, value] : m.settings) c.id += "," + key + "=" + value;
    ids.push_back(c.id);
    s.manifest.contenders.push_back(c);
  }
  std::mt19937_64 random(seed);
  std::normal_distribution<double> own(0, noise);
  std::vector<Trial> trials;
  for (int heat = 1; heat <= heats; ++heat) {
    const double shared = 1 + 0.2 * std::sin(heat);
    for (size_t i = 0; i < members.size(); ++i) {
      const auto ns = static_cast<int64_t>(members[i].ms * shared * std::exp(own(random)) * 1e7);
      trials.push_back({.contender = ids[i], .heat = heat, .bursts = {{ns, 10}, {ns, 10}}});
    }
  }
  const auto table = tabulate(trials, ids, s.margin);
  EXPECT_TRUE(table);
  const stats::Ranking ranking = stats::rank(*table, {.alpha = s.alpha, .margin = s.margin});
  for (const size_t i : ranking.order) s.ranked.push_back({.contender = s.manifest.contenders[i]});
  add_pairs(ranking, ids, s);
  keep_pairs_of_ranked(s);
  return s;
}

const Member kPlain = {"keras", {{"jit_compile", "false"}, {"steps", "1"}}, 12};
const Member kXla = {"keras", {{"jit_compile", "true"}, {"steps", "1"}}, 6};
const Member kBoth = {"keras", {{"jit_compile", "true"}, {"steps", "8"}}, 5};
const Member kTorch = {"torch", {{"compile", "off"}}, 3};
const Member kCompiled = {"torch", {{"compile", "default"}}, 4};

recipe::PublishedStudy study_with(double keras, double torch) {
  recipe::PublishedStudy study{.name = "s", .gpu = "an X"};
  study.rows = {{.name = "row",
                 .recipe = "r.toml",
                 .references = {"torch,compile=off"},
                 .figures = {{"keras,jit_compile=false,steps=1", keras}, {"torch,compile=off", torch}}},
                {.name = "later", .why_not = "generate cannot be raced yet", .references = {"torch"}}};
  study.confounds = {{.name = "XLA", .what = "w", .settings = {"jit_compile"}},
                     {.name = "compile", .what = "w", .settings = {"compile"}},
                     {.name = "steps", .what = "w", .settings = {"steps", "other"}},
                     {.name = "eager", .what = "w", .settings = {"mode"}},
                     {.name = "TF32", .what = "w", .why_not = "no GPU"}};
  return study;
}

Reproduction replay(const recipe::PublishedStudy& study, Summary s) {
  return reproduction_of(study, {{.name = "row", .folder = "01-row", .summary = std::move(s)}});
}

TEST(Reproduction, SharesOfBothSidesAndTheReasonsOfOthers) {
  const Reproduction r =
      replay(study_with(40, 20), raced({kPlain, kXla, kBoth, kTorch, kCompiled}, 30, 1, 0.005));
  const ReplayedLine& line = r.rows.at(0).lines.at(0);
  EXPECT_EQ(*line.published, 2);
  EXPECT_NEAR(line.today->ratio.value, 4, 0.1);
  EXPECT_EQ(line.order, Order::kAgrees);
  ASSERT_THAT(line.shares, SizeIs(2));
  EXPECT_EQ(line.shares[0].confound, "XLA");
  EXPECT_EQ(line.shares[0].to, "true");
  EXPECT_NEAR(line.shares[0].share.value, 0.5, 0.02);
  // torch's side: with its own setting switched, 12 / 4 is left of 12 / 3.
  EXPECT_EQ(line.shares[1].contender, "torch,compile=off");
  EXPECT_NEAR(line.shares[1].share.value, 1 - std::log(3.0) / std::log(4.0), 0.02);
  for (const GapShare& one : line.shares) {
    EXPECT_LT(one.share.low, one.share.value);
    EXPECT_GT(one.share.high, one.share.value);
    EXPECT_LT(one.share.high - one.share.low, 0.1);
  }
  EXPECT_EQ(why_no_share(r, r.study.confounds[0]), "");
  EXPECT_THAT(why_no_share(r, r.study.confounds[2]), HasSubstr("no contender with a published figure"));
  EXPECT_THAT(why_no_share(r, r.study.confounds[3]), HasSubstr("no race here"));
  EXPECT_EQ(why_no_share(r, r.study.confounds[4]), "no GPU");
  EXPECT_FALSE(r.rows[1].raced());
  EXPECT_THAT(headline(r),
              HasSubstr("Not a replication: no GPU was used here (the study's figures are of an X)"));
}

TEST(Reproduction, OrdersThatAgreeTurnOrAreNotKnown) {
  const auto order = [](double keras, double torch, const Summary& s) {
    return replay(study_with(keras, torch), s).rows.at(0).lines.at(0).order;
  };
  const Summary apart = raced({kPlain, kTorch}, 30, 2, 0.005);
  EXPECT_EQ(order(2, 1, apart), Order::kAgrees);
  EXPECT_EQ(order(1, 2, apart), Order::kReversed);
  EXPECT_EQ(order(1, 1.01, apart), Order::kNoGapPublished);
  EXPECT_EQ(order(std::nan(""), 1, apart), Order::kNotPublished);
  const Summary even = raced({kPlain, kXla, {"torch", {{"compile", "off"}}, 12}}, 40, 3, 0.001);
  EXPECT_EQ(order(2, 1, even), Order::kNoGapHere);
  EXPECT_THAT(replay(study_with(2, 1), even).rows.at(0).lines.at(0).shares, IsEmpty());
  const Reproduction unsure = replay(study_with(2, 1), raced({kPlain, kXla, kTorch}, 2, 4, 0.3));
  EXPECT_EQ(unsure.rows.at(0).lines.at(0).order, Order::kUndecided);
  ASSERT_THAT(unsure.rows.at(0).lines.at(0).shares, SizeIs(1));
  EXPECT_EQ(unsure.rows.at(0).lines.at(0).shares[0].share.high, kOpen) << "the gap may be none";
  EXPECT_THAT(why_no_share(unsure, unsure.study.confounds[0]), HasSubstr("too few heats"));
  Summary busy = raced({kPlain, kXla, kTorch}, 30, 5, 0.005);
  busy.refusal = "the host was busy";
  const Reproduction refused = replay(study_with(2, 1), busy);
  EXPECT_EQ(refused.rows.at(0).lines.at(0).order, Order::kNotJudged);
  EXPECT_THAT(refused.rows.at(0).lines.at(0).shares, IsEmpty());
}

TEST(Reproduction, AContenderWithoutATimeIsALineWithItsReason) {
  Summary s = raced({kXla, kTorch}, 10, 6, 0.005);
  s.unranked.push_back({.contender = {.id = "keras,jit_compile=false,steps=1"},
                        .failure = Failure{Stage::kStart, "no environment 'tensorflow'", {}}});
  const Reproduction r = replay(study_with(2, 1), s);
  EXPECT_FALSE(r.rows.at(0).lines.at(0).today);
  EXPECT_THAT(r.rows.at(0).lines.at(0).note, HasSubstr("no environment 'tensorflow'"));
  EXPECT_EQ(r.rows.at(0).lines.at(0).order, Order::kNotRaced);
  const Reproduction none = reproduction_of(study_with(2, 1), {{.name = "row", .failure = "recipe: broken"}});
  EXPECT_EQ(none.rows.at(0).failure, "recipe: broken");
  EXPECT_THAT(headline(none), HasSubstr("Nothing was raced"));
}

TEST(Reproduction, OnlyTheStudysOwnNetworkOnItsKindOfMachineReplicates) {
  recipe::PublishedStudy study = study_with(2, 1);
  Summary s = raced({kPlain, kTorch}, 10, 7, 0.005);
  s.ranked[0].gpu.on_gpu = true;
  EXPECT_TRUE(replicates(replay(study, s)));
  study.rows[0].instead = "a smaller one";
  EXPECT_FALSE(replicates(replay(study, s)));
  EXPECT_THAT(headline(replay(study, s)), HasSubstr("1 of 1 rows raced differ"));
}

// Noise as restarts make it, alpha = 0.1: of 300 races at most 10% may have a share outside its interval, and they are
// narrow enough to say something.
TEST(Reproduction, IntervalsOfSharesCoverTheTruth) {
  int missed = 0, known = 0;
  double width = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Reproduction r =
        replay(study_with(2, 1), raced({kPlain, kXla, kTorch, kCompiled}, 12, 100 + seed, 0.04, 0.1));
    const ReplayedLine& line = r.rows.at(0).lines.at(0);
    const double truth[] = {0.5, 1 - std::log(3.0) / std::log(4.0)};
    bool out = false;
    for (size_t i = 0; i < line.shares.size(); ++i) {
      const Estimate& share = line.shares[i].share;
      out |= truth[i] < share.low || truth[i] > share.high;
      width += share.high - share.low;
      ++known;
    }
    missed += out;
  }
  EXPECT_EQ(known, 600);
  EXPECT_LE(missed, 30);
  EXPECT_LT(width / known, 0.3);
}

}  // namespace
}  // namespace bakeoff::suite
