#include "data/data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/testing.h"
#include "ir/bounds.h"
#include "ir/builder.h"
#include "ir/text.h"
#include "tensor/safetensors.h"
#include "zoo/zoo.h"

namespace bakeoff {
namespace {

using tensor::DType;
using tensor::IntTensor;
using tensor::Tensor;
using ::testing::HasSubstr;

// x: f32[N,2], y: i32[N] of 3 classes.
ir::Workload tiny() {
  ir::Builder b("tiny");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 2}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  return b.finish(b.softmax_cross_entropy(b.linear(x, "fc", 3), y)).value();
}

class DataTest : public ::testing::Test {
 protected:
  void write(const Tensor& x, const IntTensor& y, DType x_type = DType::kF32, DType y_type = DType::kI32) {
    ASSERT_TRUE(tensor::write_safetensors(
        file_, {{"x", tensor::encode(x, x_type).value()}, {"y", tensor::encode(y, y_type).value()}}));
  }
  std::string failure() {
    const auto data = prepare({.kind = DataKind::kFile, .path = file_}, tiny(), folder_, kSilent);
    return data ? "" : data.error().text();
  }

  const testing::TestFolder folder_;
  const fs::path file_ = folder_ / "mine.safetensors";
  const Tensor x_ = {{4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}};
  const IntTensor y_ = {{4}, {0, 1, 2, 0}};
};

TEST(DataKind, AnUnknownWordIsAnError) {
  EXPECT_EQ(data_kind("synthetic").value(), DataKind::kSynthetic);
  EXPECT_EQ(data_kind("text").value(), DataKind::kText);
  const auto refused = data_kind("textt");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().remedy.find("mnist"), std::string::npos);
}

TEST_F(DataTest, AFileThatFitsIsTaken) {
  write(x_, y_);
  const auto data = prepare({.kind = DataKind::kFile, .path = file_}, tiny(), folder_, kSilent);
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(data->rows, 4);
  EXPECT_EQ(data->file, file_);
  EXPECT_EQ(data->description, "4 rows of 'mine.safetensors'");
  EXPECT_EQ(data->sha256.size(), 64u);
  for (const DType x_type : {DType::kF64, DType::kU8}) {
    for (const DType y_type : {DType::kI64, DType::kU8}) {
      write(x_, y_, x_type, y_type);
      EXPECT_EQ(failure(), "");
    }
  }
}

TEST_F(DataTest, MisfitsNameFileTensorAndRemedy) {
  const struct {
    const char* name;
    Tensor x;
    IntTensor y;
    const char* message;
  } cases[] = {
      {"label too large", x_, {{4}, {0, 1, 3, 0}}, "tensor 'y' holds 3 in row 2, outside 0..2"},
      {"label negative", x_, {{4}, {0, -1, 2, 0}}, "tensor 'y' holds -1 in row 1, outside 0..2"},
      {"width",
       {{4, 3}, std::vector<double>(12)},
       y_,
       "tensor 'x' has shape [4,3], the workload's input is f32[N,2]"},
      {"rank", {{8}, std::vector<double>(8)}, y_, "tensor 'x' has shape [8]"},
      {"rows", x_, {{3}, {0, 1, 2}}, "tensor 'y' has 3 rows, 'x' has 4"},
      {"no rows", {{0, 2}, {}}, {{0}, {}}, "tensor 'x' has no rows"},
      {"nan", {{4, 2}, {1, 2, 3, 4, 5, std::nan(""), 7, 8}}, y_, "tensor 'x' holds nan in row 2"},
      {"infinite",
       {{4, 2}, {1, 2, 3, 4, 5, 6, 7, -std::numeric_limits<double>::infinity()}},
       y_,
       "tensor 'x' holds -inf in row 3"},
  };
  for (const auto& [name, x, y, message] : cases) {
    SCOPED_TRACE(name);
    write(x, y);
    EXPECT_THAT(failure(), HasSubstr(message));
    EXPECT_THAT(failure(), HasSubstr(file_.string()));
    EXPECT_THAT(failure(), HasSubstr("\n"));  // the remedy
  }
}

TEST_F(DataTest, BeyondFloat32IsNotFinite) {
  write({{4, 2}, {1, 2, 3, 4, 5, 6, 7, 1e300}}, y_, DType::kF64);
  EXPECT_THAT(failure(), HasSubstr("row 3, which is not a finite float32"));
}

TEST_F(DataTest, WrongTypesAndMissingTensors) {
  ASSERT_TRUE(tensor::write_safetensors(
      file_, {{"x", tensor::encode(x_, DType::kF32).value()},
              {"y", tensor::encode(Tensor{{4}, {0, 1, 2, 0}}, DType::kF32).value()}}));
  EXPECT_THAT(failure(),
              HasSubstr("tensor 'y' is F32, the workload's input is i32[N]\n  store it as I32, I64 or U8"));
  ASSERT_TRUE(tensor::write_safetensors(file_, {{"X", tensor::encode(x_, DType::kF32).value()}}));
  EXPECT_THAT(failure(), HasSubstr("has no tensor 'x' (f32[N,2]); it has: X"));
}

TEST_F(DataTest, DamagedAndAbsentFilesAreNamed) {
  write(x_, y_);
  const std::string whole = read_file(file_).value();
  const std::vector<std::string> broken = {whole.substr(0, whole.size() - 1), whole.substr(0, 9),
                                           std::string(), whole + "x"};
  for (const std::string& text : broken) {
    ASSERT_TRUE(write_file(file_, text));
    EXPECT_THAT(failure(), HasSubstr(file_.string()));
  }
  fs::remove(file_);
  EXPECT_THAT(failure(), HasSubstr(file_.string()));
}

TEST_F(DataTest, LargeFilesAreCheckedToTheLastRow) {
  const int64_t rows = 700'000;  // more than is read at once
  IntTensor y{{rows}, std::vector<int64_t>(static_cast<size_t>(rows))};
  Tensor x{{rows, 2}, std::vector<double>(static_cast<size_t>(2 * rows))};
  y.data.back() = 3;
  write(x, y);
  EXPECT_THAT(failure(), HasSubstr("holds 3 in row 699999"));
  y.data.back() = 2;
  x.data.back() = std::nan("");
  write(x, y);
  EXPECT_THAT(failure(), HasSubstr("holds nan in row 699999"));
}

TEST_F(DataTest, SyntheticDataIsDeterministicAndFits) {
  const auto workload = zoo::build("mlp_small").value();
  const DataSpec spec{.kind = DataKind::kSynthetic, .samples = 2000, .seed = 3};
  const auto first = prepare(spec, workload, folder_ / "a", kSilent);
  const auto second = prepare(spec, workload, folder_ / "b", kSilent);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(first->rows, 2000);
  EXPECT_EQ(first->description, "2,000 synthetic samples (seed 3)");
  EXPECT_EQ(first->sha256, second->sha256);
  DataSpec other = spec;
  other.seed = 4;
  EXPECT_NE(prepare(other, workload, folder_, kSilent)->sha256, first->sha256);
  other = spec;
  other.split = "test";
  EXPECT_NE(prepare(other, workload, folder_, kSilent)->sha256, first->sha256);

  const auto file = tensor::SafetensorsFile::open(first->file);
  const Tensor x = file->read("x").value();
  double sum = 0, squares = 0;
  for (const double value : x.data) sum += value, squares += value * value;
  const auto n = static_cast<double>(x.data.size());
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  std::vector<int> counts(10);
  const IntTensor labels = file->read_ints("y").value();
  for (const int64_t label : labels.data) ++counts.at(static_cast<size_t>(label));
  for (const int count : counts) EXPECT_NEAR(count, 200, 70);
}

TEST_F(DataTest, DamagedSyntheticDataIsDrawnAnew) {
  const DataSpec spec{.kind = DataKind::kSynthetic, .samples = 50};
  const auto first = prepare(spec, tiny(), folder_, kSilent);
  ASSERT_TRUE(first);
  std::string bytes = read_file(first->file).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file(first->file, bytes));
  EXPECT_EQ(prepare(spec, tiny(), folder_, kSilent)->sha256, first->sha256);
  EXPECT_FALSE(prepare({.kind = DataKind::kSynthetic, .samples = 0}, tiny(), folder_, kSilent));
}

TEST_F(DataTest, EachColumnOfIntegersHasABoundOfItsOwn) {
  const auto workload = ir::parse(R"(workload w(ids: i32[N,2,3], y: f32[N,4]) {
    turned = transpose(ids) perm=0,2,1
    flat = reshape(turned) shape=N,6
    first = slice(flat) axis=1 begin=0 end=6 step=3
    last = slice(ids) axis=2 begin=2 end=3
    g = embedding(first; weight=a.weight[7,4])
    h = embedding(last; weight=b.weight[5,4])
    gs = sum(g) axes=1 keepdims=false
    hs = sum(h) axes=1,2 keepdims=false
    s = add(gs, hs)
    loss = mse(s, y) reduction=mean
  })");
  ASSERT_TRUE(workload) << workload.error().text();
  // flat holds the elements 0, 3, 1, 4, 2, 5 of a row; `first` 0 and 4; `last` 2 and 5.
  const ir::RowBounds bounds = ir::row_bounds(*workload, 0);
  EXPECT_EQ(bounds, (ir::RowBounds{7, std::nullopt, 5, std::nullopt, 7, 5}));
  EXPECT_EQ(ir::integer_bound(*workload, 0), 5);
  const auto drawn = prepare({.kind = DataKind::kSynthetic, .samples = 64}, *workload, folder_, kSilent);
  ASSERT_TRUE(drawn) << drawn.error().text();
}

TEST_F(DataTest, RowsOfCtcLabelsFitTheirFrames) {
  const auto workload = ir::parse(
      "workload speech(x: f32[N,5,3], y: i32[N,4]) {\n z = linear(x; weight=a[3,3])\n loss = ctc(z, y)\n}");
  ASSERT_TRUE(workload) << workload.error().text();
  const auto drawn = prepare({.kind = DataKind::kSynthetic, .samples = 400}, *workload, folder_, kSilent);
  ASSERT_TRUE(drawn) << drawn.error().text();
  const auto y = tensor::SafetensorsFile::open(drawn->file)->read_ints("y");
  ASSERT_TRUE(y);
  int64_t most = 0, repeats = 0;
  for (size_t row = 0; row < 400; ++row) {
    const auto labels = std::span(y->data).subspan(4 * row, 4);
    EXPECT_EQ(ir::ctc_misfit(labels, 5), "");
    EXPECT_GE(labels[0], 1);
    for (const int64_t label : labels) EXPECT_TRUE(label == -1 || label == 1 || label == 2);
    most += labels[3] > 0;
    repeats += labels[0] == labels[1];
  }
  EXPECT_GT(most, 20);
  EXPECT_GT(repeats, 60);
}

TEST_F(DataTest, RowsOfCtcLabelsThatDoNotFitAreNamed) {
  const auto workload = ir::parse(
      "workload speech(x: f32[N,3,2], y: i32[N,3]) {\n z = linear(x; weight=a[3,2])\n loss = ctc(z, y)\n}");
  ASSERT_TRUE(workload) << workload.error().text();
  const auto said = [&](std::vector<int64_t> row) {
    IntTensor y{{2, 3}, {1, 2, 1}};
    y.data.insert(y.data.end(), row.begin(), row.end());
    write(Tensor{{2, 3, 2}, std::vector<double>(12)}, y);
    const auto data = prepare({.kind = DataKind::kFile, .path = file_}, *workload, folder_, kSilent);
    return data ? "" : data.error().text();
  };
  EXPECT_EQ(said({2, 2, -1}), "");
  EXPECT_EQ(said({-1, -1, -1}), "");
  EXPECT_THAT(said({1, 1, 2}),
              HasSubstr("tensor 'y' in row 1: its labels take 4 frames, a blank between equal "
                        "neighbours included, of 3\n"));
  EXPECT_THAT(said({1, -1, 2}), HasSubstr("tensor 'y' in row 1: label 2 behind the padding of -1\n"));
  EXPECT_THAT(said({0, 1, 2}),
              HasSubstr("holds 0 in row 1, outside 1..2 and -1\n  number the labels from 1"));
}

TEST_F(DataTest, TheSmallestBoundOfAllReadersCounts) {
  const auto workload = ir::parse(R"(workload w(ids: i32[N,3], y: f32[N,3,4]) {
    h = embedding(ids; weight=a.weight[7,4])
    g = embedding(ids; weight=b.weight[5,4])
    s = add(h, g)
    loss = mse(s, y) reduction=mean
  })");
  ASSERT_TRUE(workload) << workload.error().text();
  EXPECT_EQ(ir::integer_bound(*workload, 0), 5);
  EXPECT_EQ(ir::integer_bound(*workload, 1), std::nullopt);
  EXPECT_EQ(ir::integer_bound(tiny(), 1), 3);
}

TEST_F(DataTest, MnistHasTwoSplits) {
  const auto data = prepare({.kind = DataKind::kMnist, .split = "validation"}, tiny(), folder_, kSilent);
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().text(), "MNIST has no split 'validation'\n  train or test");
}

}  // namespace
}  // namespace bakeoff
