// What a step reads of an input is what the file has: whatever its type, in whatever order batches ask for rows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "emit/native/storage.h"

namespace {

using ::testing::ElementsAre;

template <typename T>
Tensor tensor(const char* dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  Tensor made{dtype, std::move(shape), std::vector<char>(values.size() * sizeof(T))};
  std::memcpy(made.bytes.data(), values.data(), made.bytes.size());
  return made;
}

template <typename T>
std::vector<T> some(Feed<T>& feed, int64_t first, int64_t count) {
  const T* from = feed.rows(first, count);
  return {from, from + count * feed.width};
}

TEST(Feed, BytesAreDividedInFloatWhereABatchNeedsThem) {
  const Tensor pictures = tensor<uint8_t>("U8", {3, 1, 2}, {0, 51, 102, 153, 204, 255});
  Feed<float> single;
  single.take(pictures, 255);
  EXPECT_THAT(some(single, 1, 1), ElementsAre(102 / 255.0F, 153 / 255.0F));
  EXPECT_EQ(single.made, 2) << "the last row was not asked for";
  EXPECT_THAT(some(single, 2, 1), ElementsAre(204 / 255.0F, 1));
  EXPECT_THAT(some(single, 0, 1), ElementsAre(0, 51 / 255.0F));
  Feed<double> wide;
  wide.take(pictures, 255);
  EXPECT_THAT(some(wide, 2, 1), ElementsAre(static_cast<double>(204 / 255.0F), 1));
}

TEST(Feed, WhatHasTheTypeOfTheStepIsUsedWhereItLies) {
  Feed<int32_t> labels;
  labels.take(tensor<int32_t>("I32", {3}, {4, 5, 6}));
  EXPECT_THAT(some(labels, 1, 2), ElementsAre(5, 6));
  EXPECT_EQ(labels.values, nullptr);
  labels.take(tensor<int64_t>("I64", {2}, {7, 8}));
  EXPECT_THAT(some(labels, 0, 2), ElementsAre(7, 8)) << "of data that were given later";
  labels.take(tensor<int16_t>("I16", {1}, {1}));
  EXPECT_THROW(labels.rows(0, 1), std::runtime_error);
}

TEST(Feed, AxesInAnotherOrderAreTurnedRowByRow) {
  Feed<float> feed;
  feed.take(tensor<float>("F32", {2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), 2, {0, 2, 1});
  EXPECT_THAT(some(feed, 0, 1), ElementsAre(0, 1, 0.5, 1.5));
  EXPECT_EQ(feed.made, 1);
  EXPECT_THAT(some(feed, 1, 1), ElementsAre(2, 3, 2.5, 3.5));
  feed.take(tensor<float>("F32", {2, 1, 2}, {0, 1, 2, 3}), 1, {0, 2, 1});
  EXPECT_THAT(some(feed, 1, 1), ElementsAre(2, 3)) << "axes of one place have no order";
}

TEST(Feed, RowsOfAFileAreReadWhenABatchNeedsThem) {
  constexpr int64_t kWidth = 1 << 16;  // more than a stream reads ahead
  std::vector<int32_t> numbers(3 * kWidth);
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::string path = ::testing::TempDir() + "rows_of_a_feed";
  std::ofstream(path).write(reinterpret_cast<const char*>(numbers.data()), 4 * 3 * kWidth);
  const auto file = std::make_shared<std::ifstream>(path);
  Feed<int32_t> feed;
  feed.take({"I32", {3, kWidth}, {}, file, 0, 4 * 3 * kWidth, path});
  EXPECT_EQ(feed.rows(1, 1)[0], kWidth);
  EXPECT_EQ(feed.given.bytes.size(), 4 * 2 * kWidth) << "the last row was not asked for";
  EXPECT_EQ(feed.rows(0, 1)[1], 1);
  std::filesystem::resize_file(path, 4 * 2 * kWidth);
  try {
    feed.rows(2, 1);
    ADD_FAILURE() << "the file has become shorter";
  } catch (const std::runtime_error& said) {
    EXPECT_THAT(said.what(), ::testing::HasSubstr("'" + path + "' became shorter"));
  }
  std::filesystem::remove(path);
}

}  // namespace
