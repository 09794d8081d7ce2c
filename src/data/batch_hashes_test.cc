#include "data/batch_hashes.h"

#include <gtest/gtest.h>

#include "data/testing.h"
#include "ir/text.h"

namespace bakeoff {
namespace {

using testing::TestFolder;

ir::Workload small() {
  return *ir::parse(
      "workload small(x: f32[N,2], y: i32[N]) {\n"
      "  logits = linear(x; weight=fc.weight[3,2], bias=fc.bias[3])\n"
      "  loss = softmax_cross_entropy(logits, y)\n}\n");
}

// Ten rows: x = 0..19 as bytes, y = row % 3.
fs::path data_in(const TestFolder& folder) {
  tensor::RawTensor x{tensor::DType::kU8, {10, 2}, {}}, y{tensor::DType::kU8, {10}, {}};
  for (char row = 0; row < 10; ++row) {
    x.bytes += {static_cast<char>(2 * row), static_cast<char>(2 * row + 1)};
    y.bytes += static_cast<char>(row % 3);
  }
  EXPECT_TRUE(tensor::write_safetensors(folder / "data.safetensors", {{"x", x}, {"y", y}}));
  return folder / "data.safetensors";
}

// From Python: pipeline.digest of float32 [[0, .5], [1, 1.5]] and int32 [0, 1], whose rows are the first
// batch.
TEST(BatchHashes, AreThoseOfTheRunner) {
  const TestFolder folder;
  const auto hashes = batch_hashes(small(), {.batch = 2, .input_divisor = 2}, data_in(folder), 10, 1);
  ASSERT_TRUE(hashes);
  EXPECT_EQ(hashes->at(0), "23f001cb7d82be34b9ad104b0a94bc3ba929c475b1ffae16ddd349bb0e8056c4");
}

// N,2,2 and N,2,2 with channels last have the same shape: a runner hashes what it sees.
TEST(BatchHashes, RowsOfEqualAxesAreAlsoKnownWithChannelsLast) {
  const tensor::Tensor x{{2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}}, moved{{2, 2, 2}, {0, 2, 1, 3, 4, 6, 5, 7}};
  const tensor::Tensor other{{2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  EXPECT_EQ(batch_hash({x}, AlikeRows::kChannelsLast), batch_hash({moved}));
  EXPECT_NE(batch_hash({x}), batch_hash({moved}));
  EXPECT_EQ(batch_hash({other}, AlikeRows::kChannelsLast), batch_hash({other}));
  EXPECT_TRUE(alike_with_channels_last({ir::kBatch, 9, 9}));
  EXPECT_TRUE(alike_with_channels_last({ir::kBatch, 3, 3, 3}));
  EXPECT_FALSE(alike_with_channels_last({ir::kBatch, 3, 3, 4}));
  EXPECT_FALSE(alike_with_channels_last({ir::kBatch, 9}));
}

TEST(BatchHashes, BeginAgainAfterTheLastWholeBatch) {
  const TestFolder folder;
  const ir::Training training{.batch = 3};
  EXPECT_EQ(batches_to_compare(small(), training, 10), 5);
  const auto hashes = batch_hashes(small(), training, data_in(folder), 10, 5);
  ASSERT_TRUE(hashes);
  EXPECT_EQ(hashes->at(3), hashes->at(0));
  EXPECT_EQ(hashes->at(4), hashes->at(1));
  EXPECT_NE(hashes->at(1), hashes->at(0));
}

}  // namespace
}  // namespace bakeoff
