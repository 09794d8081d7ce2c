#include "emit/native/native.h"

#include <gtest/gtest.h>

#include "../tests/golden.h"
#include "ir/text.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

std::string emitted(const ir::Workload& workload, const ir::Training& training) {
  const auto result = native_framework().emit({workload, training, {}, "train_native.cc"});
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  return result ? result->source : "";
}

TEST(Native, WritesPrograms) {
  const ir::Training adam{.optimizer = {.kind = ir::OptimizerKind::kAdam, .lr = 1e-3, .eps = 1e-7},
                          .batch = 1000};
  expect_golden("native/mlp_small.cc", emitted(*zoo::build("mlp_small"), adam));
  const ir::Training rmsprop{.optimizer = {.kind = ir::OptimizerKind::kRmsprop, .lr = 1e-4, .eps = 1e-7},
                             .batch = 256,
                             .input_divisor = 255};
  expect_golden("native/mnist_cnn.cc", emitted(*zoo::build("mnist_cnn"), rmsprop));
}

}  // namespace
}  // namespace bakeoff::emit
