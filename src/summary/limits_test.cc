#include "summary/limits.h"

#include <gtest/gtest.h>

namespace bakeoff {
namespace {

Row row_of(double cores, double flop_use) {
  Row row{.ms_per_step = {10, 9, 11}, .threads = 2};
  row.usage.cores = cores;
  row.flop_use = flop_use;
  return row;
}

std::string kind(const Row& row) {
  const auto limit = limit_of(row);
  return limit ? limit->kind : "";
}

TEST(Limits, TheMostCertainSignalIsNamed) {
  Row row = row_of(1.9, 0.2);
  EXPECT_EQ(kind(row), "its kernels");
  EXPECT_EQ(kind(row_of(1.1, 0.2)), "serial work");
  EXPECT_EQ(kind(row_of(1.9, 0.6)), "arithmetic");
  row.byte_use = 0.8;
  EXPECT_EQ(kind(row), "memory");
  row.usage.faults = 5000;  // 1.25 ms of 10
  EXPECT_EQ(kind(row), "page faults");
  row.usage.waiting = 0.2;
  EXPECT_EQ(kind(row), "processors");
  row.wait.share = 0.4;
  EXPECT_EQ(kind(row), "input");
  EXPECT_EQ(limit_of(row)->evidence, "it waits for batches 40% of the time");
}

TEST(Limits, OneThreadIsNotSerialWork) {
  Row row = row_of(1.0, 0.2);
  row.threads = 1;
  EXPECT_EQ(kind(row), "its kernels");
}

TEST(Limits, OfAGpuAreThoseOfTheGpu) {
  Row row = row_of(1.0, 0.2);
  row.gpu.on_gpu = true;
  EXPECT_EQ(kind(row), "") << "no sensor";
  row.gpu.busy = 0.3;
  EXPECT_EQ(kind(row), "dispatch");
  row.gpu.busy = 0.95;
  EXPECT_EQ(kind(row), "the GPU");
}

TEST(Limits, NothingIsSaidWithoutATimeOrASensor) {
  Row row{.ms_per_step = {10, 9, 11}, .threads = 2};
  EXPECT_EQ(kind(row), "");
  row = row_of(1.9, 0.6);
  row.at_least = 5;
  EXPECT_EQ(kind(row), "");
}

}  // namespace
}  // namespace bakeoff
