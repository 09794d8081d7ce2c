#include "regression/metric.h"

#include <gtest/gtest.h>

namespace bakeoff::regression {
namespace {

std::optional<double> figure(const std::string& pattern, const std::string& line) {
  const auto reader = MetricReader::make(pattern);
  EXPECT_TRUE(reader);
  return reader->figure(line);
}

TEST(Metric, AGroupHoldsTheFigure) {
  EXPECT_EQ(figure(R"(tokens/s: ([\d.]+))", "step 7, tokens/s: 812.5 (best 900)"), 812.5);
  EXPECT_EQ(figure(R"(took (\S+) s)", "took 1.5e-3 s"), 1.5e-3);
  EXPECT_EQ(figure(R"(rows: ([\d,]+))", "rows: 1,234,567"), 1234567);
}

TEST(Metric, WithoutAGroupItIsTheNextNumber) {
  EXPECT_EQ(figure("img/s", "epoch 3: img/s = 97.25, loss 0.5"), 97.25);
  EXPECT_EQ(figure("loss", "loss -0.25"), -0.25);
  EXPECT_EQ(figure("loss:", "loss:.5"), .5);
}

TEST(Metric, OtherLinesHaveNone) {
  EXPECT_FALSE(figure("img/s", "epoch 3"));
  EXPECT_FALSE(figure("img/s", "img/s: nan"));
  EXPECT_FALSE(figure(R"(loss: (\w+))", "loss: inf"));
  EXPECT_FALSE(figure("x", "x 1e999"));
  EXPECT_FALSE(figure("img/s", std::string(1 << 20, 'a') + "img/s 7")) << "and a long line is survived";
}

TEST(Metric, WhatIsNoExpressionIsRefused) {
  const auto reader = MetricReader::make("loss: (");
  ASSERT_FALSE(reader);
  EXPECT_NE(reader.error().message.find("'loss: ('"), std::string::npos);
  EXPECT_FALSE(reader.error().remedy.empty());
}

}  // namespace
}  // namespace bakeoff::regression
