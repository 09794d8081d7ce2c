#include "environments/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "base/testing.h"
#include "emit/all/frameworks.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::Pair;

TEST(Requirements, ShippedOnesArePinnedAndComplete) {
  std::vector<std::string> names;
  for (const Requirements& requirements : shipped_requirements()) {
    names.push_back(requirements.name);
    const auto pins = parse_pins(requirements);
    ASSERT_TRUE(pins) << pins.error().text();
    const bool predicts = requirements.name == "onnxruntime";
    for (const char* package : {predicts ? "onnx" : "keras", "numpy", "safetensors"}) {
      EXPECT_TRUE(std::ranges::any_of(*pins, [&](const Pin& pin) { return pin.package == package; }))
          << requirements.name << " lacks " << package;
    }
    for (const Pin& pin : *pins) EXPECT_EQ(pin.version.find('+'), std::string::npos) << pin.package;
  }
  EXPECT_THAT(names, IsSupersetOf({"torch", "tensorflow", "jax", "keras2", "onnxruntime"}));
}

TEST(Requirements, EveryFileIsOfAFrameworkWhoseContendersRunThere) {
  std::set<std::string> files;
  for (const auto& file : fs::directory_iterator(fs::path(BAKEOFF_SOURCE_DIR) / "envs"))
    files.insert(file.path().stem().string());
  files.erase("tools");
  for (const Requirements& requirements : shipped_requirements()) {
    SCOPED_TRACE(requirements.name);
    EXPECT_EQ(files.erase(requirements.name), 1u);
    const std::string base = extended(requirements);
    const emit::Framework& framework = *emit::find_framework(base.empty() ? requirements.name : base);
    EXPECT_EQ(framework.environment(emit::defaults_of(framework)), framework.name);
    const auto pins = parse_pins(requirements);
    ASSERT_TRUE(pins);
    const auto is_pinned = [&](const std::string& package) {
      return std::ranges::any_of(*pins, [&](const Pin& pin) { return pin.package == package; });
    };
    EXPECT_TRUE(is_pinned(framework.packages.framework) || is_pinned(framework.packages.framework + "-cpu"));
    EXPECT_TRUE(std::ranges::any_of(framework.packages.shown, is_pinned));
  }
  EXPECT_THAT(files, IsEmpty());
}

// Keras 2 and Keras 3 race on one TensorFlow.
TEST(Requirements, Keras2HasThePinsOfTensorFlowAndOneMore) {
  std::map<std::string, std::vector<Pin>> pins;
  for (const Requirements& r : shipped_requirements()) pins[r.name] = parse_pins(r).value();
  std::erase_if(pins["keras2"], [](const Pin& pin) { return pin.package == "tf-keras"; });
  EXPECT_EQ(pins["keras2"], pins["tensorflow"]);
  for (const char* torch : {"torch_libraries", "torch_vision"})
    EXPECT_THAT(pins[torch], IsSupersetOf(pins["torch"]));
  EXPECT_THAT(pins["keras_libraries"], IsSupersetOf(pins["tensorflow"]));
}

TEST(Requirements, OnlyALineOfItsOwnLeavesDependenciesOut) {
  EXPECT_TRUE(without_dependencies({"x", "# pip: --no-deps\na==1\n"}));
  EXPECT_TRUE(without_dependencies({"x", "a==1\n# pip: --no-deps\n"}));
  EXPECT_FALSE(without_dependencies({"x", "a==1  # pip: --no-deps\n"}));
  for (const Requirements& r : shipped_requirements())
    EXPECT_EQ(without_dependencies(r), r.name.starts_with("keras")) << r.name;
}

TEST(Requirements, SayWhatIsImportedOnce) {
  EXPECT_THAT(imported_once({"x", "# a\n# import: A=b one two.three\na==1\n"}),
              ElementsAre("A=b", "one", "two.three"));
  EXPECT_THAT(imported_once({"x", "a==1  # import: one\n"}), IsEmpty());
  for (const Requirements& r : shipped_requirements())
    EXPECT_THAT(imported_once(r), Not(IsEmpty())) << r.name;
}

TEST(Requirements, PinsAreParsed) {
  const auto pins = parse_pins({"x", "# a comment\n\nml_dtypes==0.6.0  # why\r\nTorch==2.13.0"});
  ASSERT_TRUE(pins) << pins.error().text();
  EXPECT_THAT(*pins, ElementsAre(Pin{"ml-dtypes", "0.6.0"}, Pin{"torch", "2.13.0"}));
}

TEST(Requirements, WhatIsNotPinnedIsRefusedWithItsLine) {
  for (const char* line :
       {"numpy", "numpy>=2", "numpy==", "==2", "-r other.txt", "numpy==2 ; python_version>'3'"}) {
    const auto pins = parse_pins({"jax", std::string("keras==3.15.1\n") + line + "\n"});
    ASSERT_FALSE(pins) << line;
    EXPECT_EQ(pins.error().where, "envs/jax.txt:2");
  }
}

TEST(Requirements, NamesAreNormalised) {
  EXPECT_EQ(normalised("Foo__bar.-Baz"), "foo-bar-baz");
  EXPECT_EQ(normalised("numpy"), "numpy");
}

TEST(Requirements, LocalLabelsSatisfyAPublicPin) {
  EXPECT_TRUE(satisfies("2.13.0", "2.13.0"));
  EXPECT_TRUE(satisfies("2.13.0+cpu", "2.13.0"));
  EXPECT_FALSE(satisfies("2.13.0+cpu", "2.13.0+cu130"));
  EXPECT_FALSE(satisfies("2.13.1", "2.13.0"));
  EXPECT_FALSE(satisfies("2.13.0rc1", "2.13.0"));
}

TEST(Requirements, FinishedPackagesAreFound) {
  const testing::TestFolder folder;
  const fs::path site = folder / "lib" / "python3.11" / "site-packages";
  ASSERT_TRUE(write_file(site / "ml_dtypes-0.6.0.dist-info" / "RECORD", ""));
  ASSERT_TRUE(write_file(site / "torch-2.13.0+cpu.dist-info" / "RECORD", ""));
  ASSERT_TRUE(write_file(site / "half-1.0.dist-info" / "METADATA", ""));  // killed before RECORD
  const Texts installed = installed_packages(folder);
  EXPECT_THAT(installed, ElementsAre(Pair("ml-dtypes", "0.6.0"), Pair("torch", "2.13.0+cpu")));
  EXPECT_EQ(first_misfit({{"torch", "2.13.0"}, {"ml-dtypes", "0.6.0"}}, installed), "");
  EXPECT_EQ(first_misfit({{"torch", "2.13.0"}, {"ml-dtypes", "0.6.1"}}, installed),
            "ml-dtypes is 0.6.0, not 0.6.1");
  EXPECT_EQ(first_misfit({{"half", "1.0"}}, installed), "half 1.0 is not installed");
  EXPECT_TRUE(installed_packages(folder / "absent").empty());
}

}  // namespace
}  // namespace bakeoff
