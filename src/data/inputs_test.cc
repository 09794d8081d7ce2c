#include "data/inputs.h"

#include <gtest/gtest.h>

#include "data/testing.h"

namespace bakeoff {
namespace {

using testing::network;
using testing::TestFolder;

const tensor::Tensor& numbers(const referee::Inputs& inputs) { return std::get<tensor::Tensor>(inputs[0]); }
const tensor::IntTensor& labels(const referee::Inputs& inputs) {
  return std::get<tensor::IntTensor>(inputs[1]);
}

class InputsTest : public ::testing::Test {
 protected:
  // Bytes 0..255 as `rows` rows of the network's 2x8x8 pictures, and labels that count up.
  void write_bytes(int64_t rows) {
    tensor::RawTensor x{tensor::DType::kU8, {rows, 2, 8, 8}, {}};
    for (int64_t i = 0; i < rows * 128; ++i) x.bytes.push_back(static_cast<char>(i % 256));
    tensor::IntTensor y{{rows}, {}};
    for (int64_t i = 0; i < rows; ++i) y.data.push_back(i);
    ASSERT_TRUE(
        tensor::write_safetensors(file_, {{"x", x}, {"y", tensor::encode(y, tensor::DType::kI32).value()}}));
  }
  TestFolder folder_;
  fs::path file_ = folder_ / "data.safetensors";
};

// In double 1/255 is another number: a proof in float64 would see the difference.
TEST_F(InputsTest, BytesAreDividedInFloat32AndRoundedOnce) {
  write_bytes(2);
  const auto inputs = read_inputs(network(), file_, 255, 0, 2);
  ASSERT_TRUE(inputs) << inputs.error().text();
  int differ = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    const float expected = static_cast<float>(byte) / 255.0f;
    EXPECT_EQ(numbers(*inputs).data[byte], static_cast<double>(expected)) << byte;
    differ += static_cast<double>(expected) != static_cast<double>(byte) / 255.0 ? 1 : 0;
  }
  EXPECT_GT(differ, 200) << "float32 and float64 quotients are told apart";
  EXPECT_EQ(labels(*inputs).data, (std::vector<int64_t>{0, 1})) << "labels are never divided";
}

TEST_F(InputsTest, DoublesAreRoundedToFloat32) {
  const ir::Workload workload = network();
  tensor::Tensor x = tensor::full({1, 2, 8, 8}, 0.1);
  const auto y = tensor::encode(tensor::IntTensor{{1}, {2}}, tensor::DType::kI32).value();
  ASSERT_TRUE(
      tensor::write_safetensors(file_, {{"x", tensor::encode(x, tensor::DType::kF64).value()}, {"y", y}}));
  EXPECT_EQ(numbers(read_inputs(workload, file_, 1, 0, 1).value()).data[0], static_cast<double>(0.1f));
  EXPECT_EQ(numbers(read_inputs(workload, file_, 3, 0, 1).value()).data[0], static_cast<double>(0.1f / 3.0f));
}

TEST_F(InputsTest, BatchesAreWholeAndStartAgain) {
  write_bytes(11);
  const ir::Training training{.optimizer = {}, .batch = 4};
  const auto batches = read_batches(network(), training, file_, 11, 5);
  ASSERT_TRUE(batches) << batches.error().text();
  ASSERT_EQ(batches->size(), 5u);
  const std::vector<std::vector<int64_t>> expected = {
      {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}, {4, 5, 6, 7}, {0, 1, 2, 3}};
  for (size_t k = 0; k < 5; ++k) {
    EXPECT_EQ(labels((*batches)[k]).data, expected[k]);
    EXPECT_EQ(numbers((*batches)[k]).shape, (tensor::Shape{4, 2, 8, 8}));
  }
  EXPECT_EQ((*batches)[1], (*batches)[3]);
  EXPECT_NE(numbers((*batches)[0]).data, numbers(read_inputs(network(), file_, 1, 1, 4).value()).data);
}

TEST_F(InputsTest, ErrorsNameTheTensor) {
  EXPECT_FALSE(read_inputs(network(), folder_ / "none.safetensors", 1, 0, 1));
  write_bytes(2);
  const auto beyond = read_inputs(network(), file_, 1, 1, 2);
  ASSERT_FALSE(beyond);
  EXPECT_NE(beyond.error().text().find("x"), std::string::npos);
  ir::Workload other = network();
  other.inputs[1].name = "target";
  const auto missing = read_inputs(other, file_, 1, 0, 1);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text().find("target"), std::string::npos);
}

TEST_F(InputsTest, FewerRowsThanABatchIsAnError) {
  write_bytes(2);
  EXPECT_FALSE(read_batches(network(), {.optimizer = {}, .batch = 4}, file_, 2, 1));
}

}  // namespace
}  // namespace bakeoff
