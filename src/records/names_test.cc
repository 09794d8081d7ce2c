// What people call a contender, and where in a text an id stands for it.

#include "records/names.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

const std::vector<Contender> kContenders = {
    {.id = "torch", .framework = "torch"},
    {.id = "torch[compile=default]", .framework = "torch", .settings = {{"compile", "default"}}},
    {.id = "keras[backend=tensorflow]", .framework = "keras", .settings = {{"backend", "tensorflow"}}},
    {.id = "tensorflow", .framework = "tensorflow"},
    {.id = "mine", .framework = "torch", .own_script = "/home/me/mine.py"},
    {.id = "before torch", .framework = "torch"}};

TEST(Names, AreThoseOfTheFrameworkWithItsBackendAndSettings) {
  EXPECT_EQ(spoken(kContenders[0]), "PyTorch");
  EXPECT_EQ(spoken(kContenders[1]), "PyTorch (compile = default)");
  EXPECT_EQ(label(kContenders[1]), "PyTorch · compile = default");
  EXPECT_EQ(spoken(kContenders[2]), "Keras on TensorFlow");
}

TEST(Names, AScriptOfTheUsersOwnAndASideOfAGateKeepTheirs) {
  EXPECT_EQ(spoken(kContenders[4]), "mine");
  EXPECT_EQ(spoken(kContenders[5]), "before torch");
}

TEST(Names, ReplaceIdsInASentence) {
  EXPECT_EQ(with_names(kContenders, "torch against torch[compile=default], keras[backend=tensorflow] ahead."),
            "PyTorch against PyTorch (compile = default), Keras on TensorFlow ahead.");
  EXPECT_EQ(with_names(kContenders, "once torch has run."), "once PyTorch has run.");
}

TEST(Names, LeaveWordsCodeQuotesAndSettingsAlone) {
  for (const char* text :
       {"torch.compile costs more", "`bakeoff env create torch`", "environment 'torch'", "train_torch.py",
        "backend = torch, not jax", "keras[backend=torch]", "scripts/torch", "torchvision", "torch[fused]"})
    EXPECT_EQ(with_names(kContenders, text), text);
}

TEST(Names, OfAWatchAreSpoken) {
  Happening seen;
  const Watch watch = with_names(kContenders, [&](const Happening& now) { seen = now; });
  watch({.detail = "starting keras[backend=tensorflow]",
         .leader = "torch",
         .standing = Standing{.next = "torch[compile=default]"},
         .remark = "tensorflow is left out"});
  EXPECT_EQ(seen.detail, "starting Keras on TensorFlow");
  EXPECT_EQ(seen.leader, "PyTorch");
  EXPECT_EQ(seen.standing->next, "PyTorch (compile = default)");
  EXPECT_EQ(seen.remark, "TensorFlow is left out");
  watch({});
  EXPECT_EQ(seen.leader, "");
}

TEST(Names, OfATableAreLabelsWithTheIdAsHint) {
  table::Section section{
      .title = "Fastest so far: tensorflow",
      .sentences = {"backend = torch is slower than tensorflow[x], keras[backend=tensorflow]"},
      .row_names = {"torch[compile=default], batch 32", "else"}};
  section.columns = {{{.name = true}, {{"torch[compile=default], batch 32"}, {"else"}}},
                     {{}, {{"torch"}, {}}}};
  name_contenders(kContenders, section);
  EXPECT_EQ(section.title, "Fastest so far: TensorFlow");
  EXPECT_EQ(section.sentences[0], "backend = torch is slower than tensorflow[x], Keras on TensorFlow");
  EXPECT_EQ(section.columns[0].cells[0].text, "PyTorch · compile = default, batch 32");
  EXPECT_EQ(section.columns[0].cells[0].hint, "torch[compile=default], batch 32");
  EXPECT_EQ(section.row_names[0], section.columns[0].cells[0].text);
  EXPECT_EQ(section.columns[0].cells[1].hint, "");
  EXPECT_EQ(section.columns[1].cells[0].text, "torch");
}

}  // namespace
}  // namespace bakeoff
