// Effects of settings and ratios to a baseline, from trials whose truth is known, by the functions that races use.

#include "summary/effects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "emit/all/frameworks.h"
#include "evidence/evidence.h"
#include "summary/baseline.h"
#include "summary/pair_ratios.h"

namespace bakeoff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// Contenders of one framework with their true step times, raced heat by heat.
struct Crossed {
  Summary s;
  std::vector<Trial> trials;
  std::vector<double> ms;

  Crossed() {
    s.margin = 0.03;
    s.alpha = 0.01;
    s.manifest.controls = {{"allocator", "tuned"}, {"threads", "2"}};
  }
  std::string add(const std::string& framework, const std::map<std::string, std::string>& changed,
                  double time, const Texts& controls = {}) {
    Contender c{.framework = framework, .settings = emit::defaults_of(*emit::find_framework(framework))};
    c.id = framework;
    c.controls = s.manifest.controls;
    for (const auto& [key, value] : changed) c.settings[key] = value, c.id += "," + key + "=" + value;
    for (const auto& [key, value] : controls) c.controls[key] = value, c.id += "," + key + "=" + value;
    s.manifest.contenders.push_back(c);
    ms.push_back(time);
    return c.id;
  }
  // `members` by index, in `heats` more heats.
  void race(const std::vector<size_t>& members, int heats, double noise = 2e-3) {
    const int first = trials.empty() ? 1 : trials.back().heat + 1;
    for (int heat = first; heat < first + heats; ++heat) {
      for (const size_t i : members) {
        std::mt19937_64 random(static_cast<uint64_t>(heat) * 64 + i);
        const double own = std::normal_distribution<double>(0, noise)(random);
        const auto ns = static_cast<int64_t>(ms[i] * (1 + 0.05 * std::sin(heat)) * (1 + own) * 1e7);
        trials.push_back(
            {.contender = s.manifest.contenders[i].id, .heat = heat, .bursts = {{ns, 10}, {ns, 10}}});
      }
    }
  }
  void finish() {
    std::vector<std::string> ids;
    for (const Contender& c : s.manifest.contenders) ids.push_back(c.id);
    const auto table = tabulate(trials, ids, s.margin);
    ASSERT_TRUE(table) << table.error().text();
    const stats::Ranking ranking = stats::rank(*table, {.alpha = s.alpha, .margin = s.margin});
    for (const size_t i : ranking.order) {
      s.ranked.push_back({.contender = s.manifest.contenders[i]});
      s.ranked.back().verdict = s.ranked.size() == 1 ? RowVerdict::kLeader : RowVerdict::kSlower;
    }
    add_pairs(ranking, ids, s);
    keep_pairs_of_ranked(s);
  }
};

const SettingEffect& only(const std::vector<SettingEffect>& effects) {
  EXPECT_THAT(effects, SizeIs(1));
  static const SettingEffect none;
  return effects.empty() ? none : effects.front();
}

TEST(Effects, OneSettingThatGains) {
  Crossed run;
  run.add("torch", {{"channels_last", "true"}}, 4);
  run.add("torch", {}, 4.6);
  run.race({0, 1}, 20);
  run.finish();
  const auto effects = effects_of(run.s);
  const SettingEffect& e = only(effects);
  EXPECT_EQ(e.where, "torch");
  EXPECT_EQ(e.setting, "channels_last");
  EXPECT_EQ(e.from, "false") << "the default, although it stands second in the recipe";
  EXPECT_EQ(e.to, "true");
  ASSERT_THAT(e.pairs, SizeIs(1));
  const EffectPair& pair = e.pairs.front();
  EXPECT_EQ(pair.verdict, PairVerdict::kFaster);
  EXPECT_LT(pair.speed.low, 1.15);
  EXPECT_GT(pair.speed.high, 1.15);
  EXPECT_GT(pair.speed.low, 1.12);
  EXPECT_THAT(pair.with, IsEmpty());
  EXPECT_THAT(advice(e, 0.03), AllOf(HasSubstr("Set channels_last = true in PyTorch: 1.15x faster [1.1"),
                                     HasSubstr(" than false.")));
}

TEST(Effects, ASettingThatCostsIsLeftAlone) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("torch", {}, 5, {{"allocator", "default"}});
  run.race({0, 1}, 20);
  run.finish();
  const SettingEffect e = only(effects_of(run.s));
  EXPECT_EQ(e.setting, "allocator");
  EXPECT_EQ(e.from, "tuned") << "that of all who state none";
  EXPECT_THAT(advice(e, 0.03), HasSubstr("Leave allocator = tuned in PyTorch: default is 1.25x slower [1.2"));
}

// Two settings, each crossed with the other: each pair is named with the value of the other.
TEST(Effects, CrossedSettingsThatAgreeGiveOneSentence) {
  Crossed run;
  run.add("torch", {}, 4 * 1.2 * 1.1);
  run.add("torch", {{"compile", "default"}}, 4 * 1.1);
  run.add("torch", {{"channels_last", "true"}}, 4 * 1.2);
  run.add("torch", {{"channels_last", "true"}, {"compile", "default"}}, 4);
  run.race({0, 1, 2, 3}, 25);
  run.finish();
  const auto effects = effects_of(run.s);
  ASSERT_THAT(effects, SizeIs(2));
  const SettingEffect& compile = effects[0];
  EXPECT_EQ(compile.setting, "compile");
  ASSERT_THAT(compile.pairs, SizeIs(2));
  EXPECT_THAT(with_in_words(compile.pairs[0]), "channels_last = false");
  EXPECT_THAT(with_in_words(compile.pairs[1]), "channels_last = true");
  for (const EffectPair& pair : compile.pairs) EXPECT_NEAR(pair.speed.value, 1.2, 0.01);
  EXPECT_THAT(
      advice(compile, 0.03),
      HasSubstr(
          "Set compile = default in PyTorch: 1.20x to 1.20x faster than off, whatever channels_last is."));
  for (const EffectPair& pair : effects[1].pairs) EXPECT_NEAR(pair.speed.value, 1.1, 0.01);
}

TEST(Effects, WhereItDependsTheSentenceSaysOnWhat) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("torch", {{"compile", "default"}}, 5);
  run.add("torch", {{"channels_last", "true"}}, 6);
  run.add("torch", {{"channels_last", "true"}, {"compile", "default"}}, 4.5);
  run.race({0, 1, 2, 3}, 25);
  run.finish();
  const SettingEffect compile = effects_of(run.s).at(0);
  EXPECT_EQ(compile.pairs[0].verdict, PairVerdict::kSlower);
  EXPECT_EQ(compile.pairs[1].verdict, PairVerdict::kFaster);
  EXPECT_THAT(
      advice(compile, 0.03),
      AllOf(HasSubstr("Whether compile = default gains in PyTorch depends on channels_last: 1.25x slower ["),
            HasSubstr("with channels_last = false; 1.33x faster ["),
            HasSubstr("with channels_last = true.")));
}

TEST(Effects, EqualOnesAreTheSameAndNoisyOnesAreNotDecided) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("torch", {{"channels_last", "true"}}, 4);
  run.race({0, 1}, 40, 1e-3);
  run.finish();
  EXPECT_THAT(advice(only(effects_of(run.s)), 0.03),
              HasSubstr("channels_last = false or true in PyTorch makes no difference of more than 3%."));
  Crossed noisy;
  noisy.add("torch", {}, 4);
  noisy.add("torch", {{"channels_last", "true"}}, 4.1);
  noisy.race({0, 1}, 6, 0.1);
  noisy.finish();
  EXPECT_THAT(advice(only(effects_of(noisy.s)), 0.03), HasSubstr("is not decided against false: between "));
}

// One that differs in two settings, one of another framework and one of another precision tell nothing.
TEST(Effects, OnlyPairsThatDifferInOneSetting) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("torch", {{"channels_last", "true"}, {"compile", "default"}}, 5);
  run.add("jax", {}, 6);
  run.race({0, 1, 2}, 10);
  run.finish();
  EXPECT_THAT(effects_of(run.s), IsEmpty());
  run.s.refusal = "the host was busy";
  EXPECT_THAT(effects_of(run.s), IsEmpty());
}

TEST(Effects, AreNotStatedWhereTheVerdictIsRefused) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("torch", {{"channels_last", "true"}}, 5);
  run.race({0, 1}, 10);
  run.finish();
  run.s.refusal = "the host was busy";
  EXPECT_THAT(effects_of(run.s), IsEmpty());
}

// Two that never met are compared by way of one that both met, and their interval is wider than either.
TEST(PairRatios, GoByAThirdWhereTwoNeverMet) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("torch", {{"channels_last", "true"}}, 4.4);
  run.add("jax", {}, 3);
  run.race({0, 2}, 12);
  run.race({1, 2}, 12);
  run.finish();
  const PairRatios ratios(run.s);
  const auto met = ratios.between("torch", "jax"),
             linked = ratios.between("torch,channels_last=true", "torch");
  ASSERT_TRUE(met && linked);
  EXPECT_EQ(met->through, "");
  EXPECT_EQ(met->heats, 12);
  EXPECT_NEAR(met->ratio.value, 4.0 / 3, 0.01);
  EXPECT_EQ(linked->through, "jax");
  EXPECT_EQ(linked->heats, 0);
  EXPECT_NEAR(linked->ratio.value, 1.1, 0.01);
  EXPECT_LT(linked->ratio.low, 1.1);
  EXPECT_GT(linked->ratio.high, 1.1);
  EXPECT_GT(linked->ratio.high / linked->ratio.low, met->ratio.high / met->ratio.low);
  const auto back = ratios.between("torch", "torch,channels_last=true");
  EXPECT_NEAR(back->ratio.low, 1 / linked->ratio.high, 1e-12);
  EXPECT_FALSE(ratios.between("torch", "nobody"));
}

// Between those that met often the direct interval counts, even where a way round were narrower.
TEST(PairRatios, NothingLinksGroupsAndAHopelessOneHasABound) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("jax", {}, 3);
  run.race({0, 1}, 12);
  run.finish();
  run.s.ranked.push_back({.contender = {.id = "slow"}, .at_least = 10, .heats = 2});
  run.s.ranked.push_back({.contender = {.id = "half"}, .group = "bfloat16"});
  const PairRatios ratios(run.s);
  const auto bound = ratios.between("slow", "torch");
  ASSERT_TRUE(bound);
  EXPECT_TRUE(bound->bound);
  EXPECT_NEAR(bound->ratio.low, 7.5, 0.3) << "10 times the leader, which is 1.33 times as fast";
  EXPECT_TRUE(std::isinf(bound->ratio.high));
  EXPECT_FALSE(ratios.between("half", "torch"));
}

// How often an interval misses the truth, over all pairs of a race together: at most alpha.
TEST(PairRatios, IntervalsOfAllPairsHoldTogether) {
  int missed = 0;
  constexpr int kRaces = 60;
  for (int race = 0; race < kRaces; ++race) {
    Crossed run;
    run.s.alpha = 0.05;
    run.add("torch", {}, 4 + race * 1e-9);
    run.add("torch", {{"compile", "default"}}, 4.1);
    run.add("torch", {{"channels_last", "true"}}, 4.4);
    run.add("torch", {{"channels_last", "true"}, {"compile", "default"}}, 4.5);
    run.trials.push_back({.contender = "none", .heat = race * 100});  // other seeds
    run.race({0, 1, 2, 3}, 12, 0.02);
    run.trials.erase(run.trials.begin());
    run.finish();
    const std::map<std::string, double> truth = {{run.s.manifest.contenders[0].id, run.ms[0]},
                                                 {run.s.manifest.contenders[1].id, run.ms[1]},
                                                 {run.s.manifest.contenders[2].id, run.ms[2]},
                                                 {run.s.manifest.contenders[3].id, run.ms[3]}};
    bool miss = run.s.pairs.size() != 6;
    for (const PairRatio& pair : run.s.pairs) {
      const double is = truth.at(pair.a) / truth.at(pair.b);
      miss |= is < pair.ratio.low || is > pair.ratio.high;
    }
    missed += miss;
  }
  EXPECT_LE(missed, 6) << "of " << kRaces << ", at 5%";
}

TEST(Baseline, IsOneOfTheContendersAndAllAreHeldAgainstIt) {
  Crossed run;
  run.add("torch", {}, 4);
  run.add("jax", {}, 3);
  run.add("tensorflow", {}, 4.02);
  run.race({0, 1, 2}, 30, 1e-3);
  run.finish();
  const Status wrong = set_baseline(run.s, "tourch");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().text(),
              AllOf(HasSubstr("'tourch' is no contender"), HasSubstr("did you mean 'torch'?")));
  EXPECT_THAT(against_baseline(run.s), IsEmpty());
  ASSERT_TRUE(set_baseline(run.s, "torch"));
  const auto all = against_baseline(run.s);
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].contender, "jax");
  EXPECT_EQ(all[0].verdict, PairVerdict::kFaster);
  EXPECT_NEAR(all[0].speed.value, 4.0 / 3, 0.01);
  EXPECT_LT(all[0].speed.low, 4.0 / 3);
  EXPECT_GT(all[0].speed.high, 4.0 / 3);
  for (const AgainstBaseline& one : all) {
    if (one.contender == "torch") {
      EXPECT_EQ(one.verdict, PairVerdict::kBaseline);
    }
    if (one.contender == "tensorflow") {
      EXPECT_THAT(one.verdict, ::testing::AnyOf(PairVerdict::kSame, PairVerdict::kSlower));
    }
  }
  run.s.refusal = "the host was busy";
  EXPECT_EQ(against_baseline(run.s)[0].verdict, PairVerdict::kNotJudged);
}

}  // namespace
}  // namespace bakeoff
