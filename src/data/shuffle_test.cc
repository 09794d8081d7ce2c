#include "data/shuffle.h"

#include <gtest/gtest.h>

#include <set>

#include "data/testing.h"

namespace bakeoff {
namespace {

TEST(Shuffle, MovesWholeRowsOfAllTensorsAlike) {
  const testing::TestFolder folder;
  tensor::RawTensor x{tensor::DType::kU8, {50, 2}, {}}, y{tensor::DType::kU8, {50}, {}};
  for (char row = 0; row < 50; ++row) {
    x.bytes += {row, static_cast<char>(row + 50)};
    y.bytes += row;
  }
  ASSERT_TRUE(tensor::write_safetensors(folder / "data", {{"x", x}, {"y", y}}));
  ASSERT_TRUE(write_shuffled(folder / "data", folder / "one", 1));
  ASSERT_TRUE(write_shuffled(folder / "data", folder / "again", 1));
  ASSERT_TRUE(write_shuffled(folder / "data", folder / "two", 2));
  EXPECT_EQ(*read_file(folder / "one"), *read_file(folder / "again"));
  EXPECT_NE(*read_file(folder / "one"), *read_file(folder / "two"));
  EXPECT_NE(*read_file(folder / "one"), *read_file(folder / "data"));
  const auto file = tensor::SafetensorsFile::open(folder / "one");
  const auto rows = file->read_int_rows("x", 0, 50), labels = file->read_int_rows("y", 0, 50);
  ASSERT_TRUE(rows && labels);
  std::set<int64_t> seen;
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(rows->data[2 * i], labels->data[i]);
    EXPECT_EQ(rows->data[2 * i + 1], labels->data[i] + 50);
    seen.insert(labels->data[i]);
  }
  EXPECT_EQ(seen.size(), 50u);
}

}  // namespace
}  // namespace bakeoff
