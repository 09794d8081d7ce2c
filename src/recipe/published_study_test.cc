#include "recipe/published_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "recipe/published_table.h"
#include "recipe/shipped.h"
#include "recipe/suite_file.h"

namespace bakeoff::recipe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kHead =
    "title = \"t\"\nsource = \"s\"\nunit = \"ms\"\ncolumns = [\"torch\", \"jax\"]\nreferences = [\"torch\"]\n";
const std::string kRow = "[[row]]\nname = \"a\"\nrecipe = \"mlp_small\"\n";

TEST(PublishedStudy, HoldsRowsFiguresAndConfounds) {
  const auto study = parse_study(kHead + "gpu = \"an X\"\nminutes = 4\n[every]\nbatch = 3\n" + kRow +
                                     "figures = [2, nan]\nwith = { margin = 0.1 }\n[[row]]\nname = \"b\"\n"
                                     "why_not = \"no\"\n[[confound]]\nname = \"x\"\nwhat = \"y\"\n"
                                     "settings = [\"compile\"]\n",
                                 "/s/mine.toml");
  ASSERT_TRUE(study) << study.error().text();
  EXPECT_EQ(study->name, "mine");
  EXPECT_EQ(study->gpu, "an X");
  EXPECT_EQ(study->minutes, 4);
  EXPECT_THAT(study->every, HasSubstr("batch = 3"));
  ASSERT_EQ(study->rows.size(), 2U);
  EXPECT_EQ(study->rows[0].recipe, "mlp_small") << "there is no such file beside it";
  EXPECT_THAT(study->rows[0].with, HasSubstr("margin = 0.1"));
  EXPECT_EQ(study->rows[0].figures[0].value, 2);
  EXPECT_TRUE(std::isnan(study->rows[0].figures[1].value));
  EXPECT_EQ(study->rows[1].why_not, "no");
  EXPECT_THAT(study->confounds.at(0).settings, ElementsAre("compile"));
}

TEST(PublishedStudy, ErrorsNameLineKeyAndRemedy) {
  const struct {
    std::string text;
    const char* message;
  } cases[] = {
      {"title = [\n", "not valid TOML"},
      {kHead, "a study lacks rows"},
      {kHead + "rwo = 3\n" + kRow, "/s.toml:6: a study has no key 'rwo'"},
      {kHead + "row = 3\n", "/s.toml:6: 'row' must be a list of tables"},
      {kHead + "row = [1, {}]\n", "'row' must be a list of tables"},
      {kHead + "minutes = -1\n" + kRow, "/s.toml:6: 'minutes' must be a number above 0"},
      {kHead + "gpu = true\n" + kRow, "/s.toml:6: 'gpu' must be a text"},
      {kHead + "every = 3\n" + kRow, "/s.toml:6: 'every' must be a table"},
      {kHead + "compared = [3]\n" + kRow, "/s.toml:6: 'compared' must be a list of texts"},
      {"title = 3\n" + kRow, "/s.toml:1: 'title' must be a text"},
      {"title = \"t\"\nsource = \"s\"\n" + kRow, "a study lacks 'unit'"},
      {kHead + kRow + "figure = [1, 2]\n", "/s.toml:9: a row has no key 'figure'"},
      {kHead + kRow + "figures = [1]\n", "/s.toml:9: 1 figures for 2 columns"},
      {kHead + kRow + "figures = [1, 0]\n", "/s.toml:9: 'figures' must be a list of numbers above 0"},
      {kHead + kRow + "figures = [1, inf]\n", "'figures' must be a list of numbers above 0"},
      {kHead + kRow + "figures = 1\n", "'figures' must be a list of numbers above 0"},
      {kHead + kRow + "references = [\"touch\"]\n", "the reference 'touch' is no column"},
      {kHead + kRow + "columns = [\"torch\", \"torch\"]\n", "/s.toml:9: a contender is named twice"},
      {kHead + kRow + "columns = [\"torch\"]\n", "the row compares nothing"},
      {kHead + kRow + "why_not = \"no\"\n", "either 'recipe' or 'why_not'"},
      {kHead + "[[row]]\nname = \"a\"\n", "either 'recipe' or 'why_not'"},
      {kHead + "[[row]]\nrecipe = \"a\"\n", "/s.toml:6: a row lacks 'name'"},
      {kHead + kRow + kRow, "/s.toml:10: two rows have the name 'a'"},
      {kHead + kRow + "[[confound]]\nname = \"x\"\nwhat = \"y\"\n", "either 'settings' or 'why_not'"},
      {kHead + kRow + "[[confound]]\nname = \"x\"\nwhy_not = \"y\"\n", "a confound lacks 'what'"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto study = parse_study(c.text, "/s.toml");
    ASSERT_FALSE(study);
    EXPECT_THAT(study.error().text(), HasSubstr(c.message));
    EXPECT_NE(study.error().remedy, "");
  }
  const auto unknown = find_study("keras_a100");
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().remedy, HasSubstr("did you mean 'keras3_a100'?"));
}

// Every row inside the program is a recipe that can be raced, with the contenders that its figures name, and every
// confound that a setting switches is crossed in some row.
TEST(PublishedStudy, TheStudiesInsideAreWhole) {
  const std::vector<StudyText> all = shipped_studies();
  ASSERT_EQ(all.size(), 5U);
  for (const StudyText& text : all) {
    SCOPED_TRACE(text.file);
    const auto study = parse_study(text.text, text.file, true);
    ASSERT_TRUE(study) << study.error().text();
    for (const StudyRow& row : study->rows) {
      SCOPED_TRACE(row.name);
      EXPECT_EQ(row.name.find(','), std::string::npos) << "--rows takes names between commas";
      if (!row.why_not.empty()) continue;
      const auto found = load(row.recipe);
      ASSERT_TRUE(found) << found.error().text();
      const auto every = with_every(*found, study->every);
      ASSERT_TRUE(every) << every.error().text();
      const auto recipe = with_every(*every, row.with, "the row");
      ASSERT_TRUE(recipe) << recipe.error().text();
      std::vector<std::string> ids;
      for (const Contender& one : recipe->contenders) ids.push_back(one.id);
      for (const PublishedFigure& figure : row.figures) EXPECT_THAT(ids, Contains(figure.contender));
    }
  }
}

TEST(PublishedStudy, TheFiguresOfMnistAreThoseOfItsTable) {
  const auto table = parse_published(std::string(*shipped_file("published/mnist_cnn_4060ti.csv")), "table");
  ASSERT_TRUE(table) << table.error().text();
  const auto text = find_study("mnist_4060ti");
  ASSERT_TRUE(text) << text.error().text();
  const auto study = parse_study(text->text, text->file, true);
  ASSERT_TRUE(study) << study.error().text();
  int found = 0;
  for (const StudyRow& row : study->rows) {
    for (const PublishedFigure& figure : row.figures) {
      for (const PublishedRow& other : table->rows) {
        if (other.contender != figure.contender) continue;
        EXPECT_EQ(figure.value, other.seconds) << row.name << ": " << figure.contender;
        ++found;
      }
    }
  }
  EXPECT_EQ(found, 17);
}

}  // namespace
}  // namespace bakeoff::recipe
