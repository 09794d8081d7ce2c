#include "calibrate/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "machine/host.h"
#include "plan/testing.h"
#include "records/controls.h"
#include "stats/planning.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

const Host kHere{.name = "box",
                 .kernel = "Linux 6.1",
                 .cpu = "Zen",
                 .os = "Debian",
                 .cpus = 2,
                 .memory_bytes = 1,
                 .more = {}};

// Six values with a root mean square of `sd`.
std::vector<double> spread_of(double sd) { return {sd, -sd, sd, -sd, sd, -sd}; }

Profile good() {
  const Controls base{.threads = 2};
  Controls tuned = base, one = base;
  tuned.allocator = one.allocator = "tuned";
  one.threads = 1;
  return {.bakeoff_version = "1",
          .measured = "2026-11-21T08:00:00Z",
          .host = kHere,
          .framework = "torch",
          .work = "mnist_cnn",
          .minutes = 2,
          .complete = true,
          .entries = {{.name = "default", .controls = base, .d = spread_of(0.071), .why = "x"},
                      {.name = "tuned",
                       .controls = tuned,
                       .d = spread_of(0.014),
                       .against = "default",
                       .p = 0.002,
                       .kept = true,
                       .why = "y"},
                      {.name = "one thread",
                       .controls = one,
                       .d = spread_of(0.0063),
                       .against = "tuned",
                       .p = 0.1,
                       .why = "z"}},
          .kept = tuned,
          .processes_sd = 0.009,
          .bursts_sd = 0.004,
          .steps_sd = std::nullopt,
          .cheapest_bursts = 3,
          .start_s = 1.5,
          .burst_s = 0.15};
}

recipe::Recipe race_of(size_t contenders, const std::set<std::string>& stated = {}) {
  recipe::Recipe recipe;
  recipe.file = "/r/x.toml";
  recipe.contenders.resize(contenders);
  recipe.race.stated = stated;
  recipe.margin = 0.02;
  return recipe;
}

TEST(Profile, SurvivesItsFile) {
  const auto again = profile_from_json(to_json(good()), "p.json");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, good());
}

TEST(Profile, TruncatedAnywhereIsRefusedWithTheRemedy) {
  const std::string text = to_json(good());
  for (size_t size = 0; size + 2 < text.size(); size += 7) {
    const auto cut = profile_from_json(text.substr(0, size), "p.json");
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().where, "p.json");
    EXPECT_THAT(cut.error().remedy, HasSubstr("bakeoff calibrate"));
  }
}

TEST(Profile, DamagedIsRefused) {
  const struct {
    const char *from, *to, *message;
  } kCases[] = {
      {"\"profile_version\": 1", "\"profile_version\": 9", "profile version 9"},
      {"\"profile_version\": 1", "\"profile_version\": \"one\"", "no machine profile"},
      {"\"entries\"", "\"entrys\"", "truncated or damaged"},
      {"\"threads\": \"2\"", "\"threads\": \"0\"", "impossible controls"},
      {"\"cheapest_bursts\": 3", "\"cheapest_bursts\": -3", "impossible controls"},
      {"\"measured\": \"2026", "\"measured\": 2026, \"x\": \"", "truncated or damaged"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.to);
    std::string text = to_json(good());
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, std::string(c.from).size(), c.to);
    const auto read = profile_from_json(text, "p.json");
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr(c.message));
  }
  EXPECT_THAT(profile_from_json("{}", "p").error().message, HasSubstr("no machine profile"));
}

TEST(LoadProfile, OfAnotherMachineOrKernelIsRefused) {
  const TestFolder folder;
  const fs::path file = folder / "profile.json";
  EXPECT_THAT(load_profile(file, kHere).error().remedy, HasSubstr("bakeoff calibrate"));
  ASSERT_TRUE(write_file(file, to_json(good())));
  EXPECT_TRUE(load_profile(file, kHere));
  Host cpu = kHere, name = kHere, fewer = kHere, kernel = kHere, grown = kHere;
  cpu.cpu = "Xeon";
  name.name = "other";
  fewer.cpus = 1;
  kernel.kernel = "Linux 6.2";
  grown.memory_bytes = 2;
  EXPECT_TRUE(load_profile(file, grown));
  for (const auto& [host, message] : {std::pair{cpu, "another machine: its processor is 'Zen'"},
                                      {name, "another machine: 'box'"},
                                      {fewer, "of 2 CPUs, but now 1 may be used"},
                                      {kernel, "of another kernel: Linux 6.1, but now it is Linux 6.2"}}) {
    const auto refused = load_profile(file, host);
    ASSERT_FALSE(refused) << message;
    EXPECT_THAT(refused.error().message, HasSubstr(message));
    EXPECT_EQ(refused.error().where, file.string());
    EXPECT_THAT(refused.error().remedy, HasSubstr("--profile none"));
  }
}

TEST(TakeOver, FillsInWhatAnEqualisedRecipeLeavesOpen) {
  recipe::Recipe open = race_of(2);
  EXPECT_EQ(take_over(good(), open), (Texts{{"allocator", "tuned"}}));
  EXPECT_EQ(open.race.allocator, "tuned");
  EXPECT_EQ(open.race.threads, 0) << "the number of threads is the recipe's";
  EXPECT_EQ(open.race.bursts, 0) << "the race plans them itself";
  recipe::Recipe stated = race_of(2, {"allocator", "bursts"});
  EXPECT_EQ(take_over(good(), stated), Texts{});
  EXPECT_EQ(stated.race.allocator, "default");
  recipe::Recipe as_is = race_of(2);
  as_is.training.track = ir::Track::kAsIs;
  EXPECT_EQ(take_over(good(), as_is), Texts{});
  EXPECT_EQ(as_is.race.allocator, "default");
}

TEST(Predict, IsPlanningsCountUnderTheRecipesOwnControls) {
  recipe::Recipe tuned = race_of(2);
  (void)take_over(good(), tuned);
  tuned.budget = {.minutes = 10, .heats = 100};
  const auto p = predict(good(), tuned, 2);
  ASSERT_TRUE(p);
  EXPECT_NEAR(p->sd, 0.014, 1e-12);
  EXPECT_EQ(p->heats_needed, stats::pairs_needed(0.014, 0.02));
  // A heat: two starts of 1.5 s, and 16 bursts of .3 s each.
  EXPECT_NEAR(p->minutes_needed, static_cast<double>(p->heats_needed) * 2 * 6.3 / 60, 1e-9);
  EXPECT_EQ(p->heats_held, 47) << "in 10 minutes";
  EXPECT_TRUE(p->enough());
  EXPECT_TRUE(check_prediction(*p, tuned));
  EXPECT_THAT(p->text,
              HasSubstr("identical contenders differ by 1.4% (sd) in a heat: a gap of 2% takes about 14"));

  recipe::Recipe single = race_of(2, {"threads"});
  single.race.threads = 1;
  EXPECT_NEAR(predict(good(), single, 2)->sd, 0.0063, 1e-12);
  single.race.threads = 5;
  EXPECT_FALSE(predict(good(), single, 2)) << "never measured";
  EXPECT_FALSE(predict(good(), race_of(1), 2)) << "nothing to tell apart";
}

TEST(Predict, SaysWhatWouldDecideWhereTheBudgetDoesNot) {
  recipe::Recipe noisy = race_of(2, {"allocator"});  // default: sd 7.1%, 230 pairs
  noisy.budget = {.minutes = 5, .heats = 40};
  const auto p = predict(good(), noisy, 2);
  ASSERT_TRUE(p);
  EXPECT_FALSE(p->enough());
  EXPECT_TRUE(check_prediction(*p, noisy)) << "an obvious gap can still be decided";
  EXPECT_THAT(p->text, HasSubstr("not expected to decide that: allow"));
  EXPECT_THAT(p->text, HasSubstr("budget.heats = " + std::to_string(p->heats_needed)));
  // The margin offered is one that the budget does decide.
  EXPECT_LE(stats::pairs_needed(p->sd, p->margin_held * 1.001).value(), p->heats_held);
  noisy.budget.minutes = 0.2;
  const auto hopeless = predict(good(), noisy, 2);
  const Status refused = check_prediction(*hopeless, noisy);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("a budget of 12.0 s cannot decide"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("allow more than"));
}

}  // namespace
}  // namespace bakeoff
