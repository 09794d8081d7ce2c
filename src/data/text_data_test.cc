#include "data/text_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/testing.h"
#include "data/data.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Tokenise, KnowsTheMostFrequentWordsAndCallsTheOthersUnknown) {
  const Tokens tokens = tokenise("The cat, the dog; the CAT isn't\n\ta d\xc3\xb6g.", 4);
  EXPECT_THAT(tokens.words, ElementsAre("<unknown>", "the", "cat", ","));
  EXPECT_THAT(tokens.ids, ElementsAre(1, 2, 3, 1, 0, 0, 1, 2, 0, 0, 0, 0));
  EXPECT_EQ(tokens.unknown, 6);
  EXPECT_THAT(tokenise("b a b c", 1).ids, ElementsAre(0, 0, 0, 0)) << "nothing is known";
  EXPECT_THAT(tokenise("b a b c", 9).words, ElementsAre("<unknown>", "b", "a", "c")) << "and no more";
  EXPECT_TRUE(tokenise(" \n", 5).ids.empty());
}

TEST(LanguageRows, AreWindowsAndTheSameOneWordOn) {
  Tokens tokens{.words = std::vector<std::string>(32)};
  for (int64_t i = 0; i < 32; ++i) tokens.ids.push_back(i);
  const LanguageShape shape{"x", "y", 3, 32};
  const auto read = [&](const std::string& split, size_t input) {
    const auto rows = language_rows(tokens, shape, split);
    EXPECT_TRUE(rows) << rows.error().text();
    EXPECT_EQ((*rows)[input].first, input == 0 ? "x" : "y");
    const tensor::RawTensor& raw = (*rows)[input].second;
    EXPECT_EQ(raw.shape[1], 3);
    std::vector<int64_t> ids;
    for (size_t at = 0; at < raw.bytes.size(); at += 4)
      ids.push_back(static_cast<unsigned char>(raw.bytes[at]));
    return ids;
  };
  EXPECT_EQ(read("train", 0).size(), 27u);
  EXPECT_EQ(read("train", 0)[26], 26);
  EXPECT_EQ(read("train", 1)[26], 27);
  EXPECT_THAT(read("test", 0), ElementsAre(27, 28, 29)) << "the last tenth";
  EXPECT_THAT(read("test", 1), ElementsAre(28, 29, 30));
  tokens.ids.resize(6);
  EXPECT_THAT(language_rows(tokens, shape, "train").error().text(), HasSubstr("6 words, a row takes 4"));
}

TEST(LanguageShape, IsThatOfALanguageModelOnly) {
  const auto shape = language_shape(*zoo::build("lstm_lm_small"));
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->words, "tokens");
  EXPECT_EQ(shape->next, "labels");
  EXPECT_EQ(shape->length, 20);
  EXPECT_EQ(shape->vocabulary, 500);
  EXPECT_THAT(language_shape(*zoo::build("mlp_small")).error().text(),
              HasSubstr("'mlp_small' has x: f32[N,100], y"));
  EXPECT_FALSE(language_shape(*zoo::build("bert_small")));
}

class TextDataTest : public ::testing::Test {
 protected:
  const testing::TestFolder folder_;
};

TEST_F(TextDataTest, AFileOrAFolderOfTexts) {
  ASSERT_TRUE(write_file(folder_ / "texts/b", "of b"));
  ASSERT_TRUE(write_file(folder_ / "texts/a", "a word"));
  fs::create_symlink("a", folder_ / "texts/c");
  EXPECT_EQ(read_texts(folder_ / "texts").value(), "a word\nof b\n");
  EXPECT_EQ(read_texts(folder_ / "texts/b").value(), "of b");
  EXPECT_FALSE(read_texts(folder_ / "none"));
  fs::create_directories(folder_ / "empty");
  EXPECT_THAT(read_texts(folder_ / "empty").error().text(), HasSubstr("no texts"));
}

TEST_F(TextDataTest, IsPreparedOnceAndChecked) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "word" + std::to_string(i % 50) + (i % 7 == 0 ? ", " : " ");
  ASSERT_TRUE(write_file(folder_ / "mine.txt", text));
  const DataSpec spec{.kind = DataKind::kText, .path = folder_ / "mine.txt"};
  std::string said;
  const auto progress = [&](const std::string& line) { said += line + "\n"; };
  const auto data = prepare(spec, *zoo::build("lstm_lm_small"), folder_, progress);
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(data->rows, 20);
  EXPECT_EQ(data->description, "20 rows of 20 words of 'mine.txt' (train), 51 known, 0.0% others");
  EXPECT_THAT(said, HasSubstr("reading"));
  said.clear();
  EXPECT_EQ(prepare(spec, *zoo::build("lstm_lm_small"), folder_, progress)->sha256, data->sha256);
  EXPECT_EQ(said, "") << "it is kept";
  ASSERT_TRUE(write_file(folder_ / "mine.txt", text + " and more of it"));
  EXPECT_NE(prepare(spec, *zoo::build("lstm_lm_small"), folder_, progress)->file, data->file);
  const auto none = prepare({.kind = DataKind::kText, .path = folder_ / "none.txt"},
                            *zoo::build("lstm_lm_small"), folder_, progress);
  EXPECT_THAT(none.error().text(), HasSubstr("none.txt"));
}

}  // namespace
}  // namespace bakeoff
