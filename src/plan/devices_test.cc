#include "plan/devices.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "base/testing.h"
#include "plan/plan.h"

namespace bakeoff {
namespace {

recipe::Recipe with(const std::string& contender, const std::string& race = "") {
  const auto recipe = recipe::parse(
      "workload = \"mlp_small\"\nbatch = 12\ncontenders = [\n  { framework = \"jax\" },\n  { " + contender +
          " },\n]\n[race]\n" + race + "\n[data]\nsamples = 25\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n",
      "r.toml");
  EXPECT_TRUE(recipe) << recipe.error().text();
  return *recipe;
}

constexpr const char* kSeveral = "framework = \"torch\", devices = ";

TEST(CheckShares, ABatchDividesByTheDevices) {
  for (const char* good : {"1", "2", "3", "12", "[1, 2, 6]"})
    EXPECT_TRUE(check_shares(with(std::string(kSeveral) + good)));
  EXPECT_EQ(check_shares(with(std::string(kSeveral) + "[2, 5]")).error().text(),
            "r.toml:5: torch[devices=5]: a batch of 12 rows does not divide by devices = 5\n"
            "  set devices = 4, or batch = 15: it is of all devices together");
  EXPECT_EQ(check_shares(with(std::string(kSeveral) + "24")).error().remedy,
            "set devices = 12, or batch = 24: it is of all devices together");
}

TEST(CheckDevices, EachHasAProcessor) {
  const Machine two{.cpus = {4, 7}}, eight{.cpus = {0, 1, 2, 3, 4, 5, 6, 7}};
  const auto check = [](const std::string& contender, const Machine& machine, Controls shared) {
    return check_devices(with(contender), shared, machine);
  };
  const std::string three = kSeveral + std::string("3");
  EXPECT_TRUE(check(three, eight, {.threads = 8}));
  EXPECT_TRUE(check(three, eight, {.threads = 1, .pin = "none"}));
  EXPECT_TRUE(check(three, eight, {.threads = 1, .pin = "1,3-4"}));
  EXPECT_TRUE(check(three + ", pin = \"1,3-4\"", eight, {.threads = 1})) << "what it states itself counts";
  EXPECT_TRUE(check("framework = \"torch\", devices = [1]", two, {.threads = 1}));
  EXPECT_EQ(
      check(three, two, {.threads = 2}).error().text(),
      "r.toml:5: torch[devices=3]: devices = 3 need a processor each, and it may run on 2 (pin = \"auto\", threads = "
      "2, 2 allowed to Bakeoff)\n  set devices to at most 2");
  for (const Controls& few : {Controls{.threads = 1}, Controls{.threads = 8, .pin = "0,1"}})
    EXPECT_EQ(check(three, eight, few).error().remedy, "set threads and pin so that it has 3 or more");
  EXPECT_FALSE(check(three + ", threads = 2", eight, {.threads = 8}));
}

TEST(CheckDevices, WhereThereAreGpusTheyCount) {
  testing::TestFolder folder;
  ASSERT_TRUE(make_folder(folder / "dev"));
  for (const char* gpu : {"nvidia0", "nvidia1"}) std::ofstream(folder / "dev" / gpu) << "";
  const Machine machine{.cpus = {0}, .root = folder.path()};
  EXPECT_TRUE(check_devices(Texts{{"devices", "2"}}, {.threads = 1}, machine));
  EXPECT_EQ(check_devices(Texts{{"devices", "3"}}, {.threads = 1}, machine).error().text(),
            "devices = 3, but this machine has 2 GPUs\n  set devices to at most 2, or device = \"cpu\"");
  EXPECT_FALSE(check_devices(Texts{{"devices", "2"}}, {.threads = 1, .device = "cpu"}, machine));
}

TEST(MakePlan, EndsBeforeAnythingStartsWhereDevicesLack) {
  testing::TestFolder folder;
  ::setenv("BAKEOFF_HOME", (folder / "home").c_str(), 1);
  for (const char* devices : {"5", "4096"}) {
    recipe::Recipe recipe = with(kSeveral + std::string(devices));
    if (std::string(devices) == "4096") recipe.training.batch = 4096;
    const auto plan = make_plan(recipe, folder / "run", {}, [](const std::string&) {});
    ASSERT_FALSE(plan) << devices;
    EXPECT_NE(plan.error().message.find(std::string("devices = ") + devices), std::string::npos);
    EXPECT_FALSE(fs::exists(folder / "run"));
    EXPECT_FALSE(fs::exists(folder / "home" / "data"));
  }
}

}  // namespace
}  // namespace bakeoff
