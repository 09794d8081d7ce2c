#include "translate/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/testing.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

Interpreters ready(const std::vector<std::string>& names) {
  Interpreters all;
  for (const char* name : {"torch", "tensorflow", "keras2", "jax", "onnxruntime"})
    all[name] = {.python = "/usr/bin/python3", .why_not = "never created"};
  for (const std::string& name : names) all[name].why_not.clear();
  return all;
}

TEST(TranslationTargets, AreReadInOrder) {
  const auto targets = translation_targets("jax,keras:torch,libtorch", ready({}));
  ASSERT_TRUE(targets) << targets.error().text();
  ASSERT_EQ(targets->size(), 3u);
  EXPECT_EQ((*targets)[0].framework->name, "jax");
  EXPECT_EQ((*targets)[1].settings.at("backend"), "torch");
  EXPECT_EQ((*targets)[1].folder(), "keras_torch");
  EXPECT_EQ((*targets)[2].folder(), "libtorch");
}

TEST(TranslationTargets, AnOpenVariantIsTheFirstThatIsInstalled) {
  EXPECT_EQ((*translation_targets("keras", ready({"jax"})))[0].settings.at("backend"), "jax");
  EXPECT_EQ((*translation_targets("keras", ready({"torch", "tensorflow"})))[0].settings.at("backend"),
            "tensorflow");
  EXPECT_EQ((*translation_targets("keras", ready({})))[0].settings.at("backend"), "tensorflow");
}

TEST(TranslationTargets, MistakesAreNamed) {
  for (const char* text : {"", "jaxx", "jax,", ",jax", "keras:numpy", "jax:torch", "jax,jax", "jax, torch"}) {
    const auto targets = translation_targets(text, ready({}));
    ASSERT_FALSE(targets) << text;
    EXPECT_THAT(targets.error().message, HasSubstr("--to")) << text;
    EXPECT_FALSE(targets.error().remedy.empty());
  }
}

TEST(TranslationFolder, OnlyAnEarlierTranslationIsReplaced) {
  const testing::TestFolder place;
  const fs::path out = place.path() / "out";
  EXPECT_TRUE(check_translation_folder(out, false));
  fs::create_directories(out);
  EXPECT_TRUE(check_translation_folder(out, false));
  ASSERT_TRUE(write_file(out / "thesis.tex", "years of work"));
  EXPECT_FALSE(check_translation_folder(out, false));
  EXPECT_FALSE(check_translation_folder(out, true));
  ASSERT_TRUE(write_file(out / "translation.json", "{}"));
  EXPECT_FALSE(check_translation_folder(out, false));
  EXPECT_TRUE(check_translation_folder(out, true));
  EXPECT_FALSE(check_translation_folder(out / "thesis.tex", true));
}

TEST(TranslationRecord, HoldsEveryRow) {
  Translation translation{.out = "out", .model = "m.py:make"};
  translation.rows.push_back({.name = "jax", .title = "JAX", .folder = "jax"});
  EXPECT_TRUE(translation.complete());
  translation.rows.push_back({.name = "keras", .title = "Keras", .reason = "bytes \xff that are no text"});
  EXPECT_FALSE(translation.complete());
  const std::string json = to_json(translation);
  EXPECT_THAT(json, HasSubstr("\"folder\": \"out/jax\""));
  EXPECT_THAT(json, HasSubstr("that are no text"));
}

}  // namespace
}  // namespace bakeoff
