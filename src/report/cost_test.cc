// What a sample costs in memory, energy and money, in every form of the report.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/charts.h"
#include "report/csv.h"
#include "report/first_screen.h"
#include "report/html.h"
#include "report/json.h"
#include "report/markdown.h"
#include "report/phrases.h"
#include "report/sample_summary_testing.h"
#include "report/terminal.h"

namespace bakeoff::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The first row has all of it, the second no energy, the others nothing.
Summary with_cost() {
  Summary s = sample_summary(6);
  s.currency = "EUR";
  for (Row& row : s.ranked) {
    row.epoch = {};
    row.usage.joules.reset();
    row.memory.per_sample.reset();
  }
  s.ranked[0].usage.joules = 9;
  s.ranked[0].memory.per_sample = 1536 * 1024;
  s.ranked[0].epoch = {.seconds = 23.4,
                       .price = 0.0234,
                       .joules = 2109,
                       .grams_co2 = 0.2343,
                       .samples_per_joule = 28.44,
                       .samples_per_unit = 2.56e6};
  s.ranked[1].epoch = {.seconds = 30, .price = 0.03, .samples_per_unit = 2e6};
  return s;
}

// 100 ms on 4 threads: 10 wait for the batch; of the 90 left 3 of 4 threads compute, 40 ms of it at the peak's speed.
TEST(PhasesChart, SharesOutAStep) {
  Summary s = sample_summary(6);
  for (Row& row : s.ranked) row.usage = {}, row.gpu = {};
  EXPECT_EQ(phases_chart(s, kWide), "") << "nothing is known";
  Row& row = s.ranked[0];
  row.ms_per_step = {100, 95, 105};
  row.wait.share = 0.1;
  row.threads = 4;
  row.usage.cores = 3;
  row.flop_use = 0.4;
  EXPECT_THAT(phases_chart(s, kWide),
              AllOf(HasSubstr("the model&#39;s arithmetic at the measured peak: 40 ms"),
                    HasSubstr("GPU: 28 ms"), HasSubstr("without work: 22 ms"),
                    HasSubstr("waiting for the batch: 10 ms"), HasSubstr("a step: 100 ms")));
  row.usage.waiting = 0.1;
  EXPECT_THAT(phases_chart(s, kWide), HasSubstr("waiting for a processor that others use: 7.5 ms"));
  row.usage.waiting.reset();
  row.flop_use.reset();
  EXPECT_THAT(phases_chart(s, kWide), AllOf(HasSubstr("GPU: 68 ms"), Not(HasSubstr("arithmetic"))));
  row.at_least = 3;
  EXPECT_EQ(phases_chart(s, kWide), "") << "it was not timed";
}

// The recipe's text begins with what changed it; a run of somebody else's may say anything there.
TEST(CommandToRepeat, HasTheOptionsThatChangedTheRecipe) {
  Summary s = sample_summary(6);
  s.manifest.recipe_file = "recipes/mnist_cnn.toml";
  s.manifest.recipe_text = "# The CNN\nbatch = 4\n";
  EXPECT_EQ(command_to_repeat(s), "bakeoff run mnist_cnn.toml");
  s.manifest.recipe_text = "# recipes/mnist_cnn.toml with --batch 64 --set race.threads=1\n# The CNN\n";
  EXPECT_EQ(command_to_repeat(s), "bakeoff run mnist_cnn.toml --batch 64 --set race.threads=1");
  s.manifest.recipe_text = "# recipes/mnist_cnn.toml with --lr 1;rm $(x) it's\n";
  EXPECT_EQ(command_to_repeat(s), "bakeoff run mnist_cnn.toml --lr '1;rm' '$(x)' 'it'\\''s'");
}

TEST(Cost, StandsInEveryFormat) {
  const Summary s = with_cost();
  const std::string terminal = render_terminal(s, {.width = 500});
  for (const char* part : {"samples/J", "28.4", "samples/EUR", "2.56 M", "CO2/epoch", "0.234 g",
                           "price/epoch", "0.0234 EUR", "memory/sample", "1.50 MiB", "J/sample"})
    EXPECT_THAT(terminal, HasSubstr(part));
  const std::string markdown = render_markdown(s);
  EXPECT_THAT(
      markdown,
      AllOf(
          HasSubstr(
              "| contender | memory/sample | J/sample | samples/J | samples/EUR | epoch | price/epoch | CO2/epoch |"),
          HasSubstr(" | 1.50 MiB | 0.0352 J | 28.4 | 2.56 M | 23.4 s | 0.0234 EUR | 0.234 g |"),
          HasSubstr(" | – | – | – | 2.00 M | 30.0 s | 0.03 EUR | – |"),
          HasSubstr("Not measured: energy: there is no /sys/class/powercap")));
  const std::string html = render_html(s);
  for (const char* part : {"samples/J", "samples/EUR", "CO2/epoch", "memory/sample", "price/epoch",
                           "there is no /sys/class/powercap"})
    EXPECT_THAT(html, HasSubstr(part));
  const std::string csv = render_csv(s);
  EXPECT_THAT(csv,
              AllOf(HasSubstr(",samples_per_joule,samples_per_currency_unit,epoch_seconds,price_per_epoch,"
                              "joules_per_epoch,grams_co2_per_epoch,"),
                    HasSubstr(",28.44,2560000,23.4,0.0234,2109,0.2343,"), HasSubstr(",,2000000,30,0.03,,,")));
  const auto json = nlohmann::json::parse(render_json(s));
  EXPECT_EQ(json["ranked"][0]["samples_per_joule"], 28.44);
  EXPECT_EQ(json["ranked"][0]["samples_per_currency_unit"], 2.56e6);
  EXPECT_EQ(json["ranked"][0]["epoch"]["grams_co2"], 0.2343);
  EXPECT_EQ(json["ranked"][0]["memory"]["bytes_per_sample"], 1536 * 1024);
  EXPECT_TRUE(json["ranked"][1]["samples_per_joule"].is_null()) << "absent, never a zero";
  EXPECT_TRUE(json["ranked"][1]["epoch"]["joules"].is_null());
  EXPECT_TRUE(json["ranked"][2]["samples_per_currency_unit"].is_null());
}

TEST(Cost, LeavesNoColumnWhereNobodyHasANumber) {
  Summary s = with_cost();
  for (Row& row : s.ranked) row.epoch = {}, row.memory.per_sample.reset(), row.usage.joules.reset();
  EXPECT_THAT(render_terminal(s, {.width = 500}), AllOf(Not(HasSubstr("samples/J")), Not(HasSubstr("CO2"))));
  EXPECT_THAT(render_markdown(s), Not(HasSubstr("**Cost**")));
  EXPECT_THAT(render_html(s), AllOf(Not(HasSubstr("samples/J")), Not(HasSubstr("memory/sample"))));
}

}  // namespace
}  // namespace bakeoff::report
