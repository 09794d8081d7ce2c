#include "emit/native/native.h"

#include <gtest/gtest.h>

#include "../tests/golden.h"
#include "../tests/golden_models.h"
#include "base/texts.h"
#include "ir/text.h"
#include "zoo/zoo.h"

namespace bakeoff::emit {
namespace {

const ir::Training kAdam{.optimizer = {.kind = ir::OptimizerKind::kAdam, .lr = 1e-3, .eps = 1e-7},
                         .batch = 1000};

std::string emitted(const ir::Workload& workload, const ir::Training& training) {
  const auto result = native_framework().emit({workload, training, {}, "train_native.cc"});
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().text());
  return result ? result->source : "";
}

std::string of_text(const std::string& text) {
  const auto workload = ir::parse(text);
  EXPECT_TRUE(workload.has_value()) << (workload ? "" : workload.error().text());
  return workload ? emitted(*workload, kAdam) : "";
}

// Behind kernels and helpers: what is this program's own.
std::string own(const std::string& text) { return text.substr(text.find("\nstruct Memory {\n")); }

TEST(Native, WritesPrograms) {
  expect_golden("native/mlp_small.cc", own(emitted(*zoo::build("mlp_small"), kAdam)));
  const ir::Training rmsprop{.optimizer = {.kind = ir::OptimizerKind::kRmsprop, .lr = 1e-4, .eps = 1e-7},
                             .batch = 256,
                             .input_divisor = 255};
  expect_golden("native/mnist_cnn.cc", own(emitted(*zoo::build("mnist_cnn"), rmsprop)));
}

TEST(Native, WritesWhatSurroundsAnUpdate) {
  expect_golden("native/updates.cc", own(emitted(*zoo::build("mlp_small"), updates_training(4))));
}

// Of the first layer no gradient of x, of a frozen layer none of its weight, of what lies below frozen ones nothing.
TEST(Native, NeverPrintsAGradientThatNobodyNeeds) {
  const std::string text = of_text(R"(workload m(x: f32[N,3], y: i32[N]) {
    a = linear(x; weight=a.weight[4,3] frozen)
    b = linear(a; weight=b.weight[5,4])
    c = linear(b; weight=c.weight[2,5] frozen)
    loss = softmax_cross_entropy(c, y)
  })");
  for (const char* part : {"linear_dw(rows, 4, 5, a, d_b, d_b_weight)",
                           "linear(rows, 2, 5, d_c, c_weight_turned, {}, d_b, native::kPlain)"})
    EXPECT_TRUE(holds(text, part)) << part << text;
  for (const char* part : {"const d_a ", "const d_x ", "d_c_weight", "a_backward", "b_weight_turned"})
    EXPECT_FALSE(holds(text, part)) << part << text;
}

// The names of a model that are words of C++ or of the program itself.
TEST(Native, KeepsItsOwnNamesApart) {
  const std::string text = own(of_text(R"(workload m(rows: f32[N,3], int: i32[N]) {
    linear = linear(rows; weight=arena.weight[3,3])
    update = relu(linear)
    loss = softmax_cross_entropy(update, int)
  })"));
  for (const char* part :
       {"void linear_2_forward()", "rows_2_data", "int_2_data", "Real* update_2 = nullptr;"})
    EXPECT_TRUE(holds(text, part)) << part << text;
}

// Two layers of one shape share its constant; long names break lines.
TEST(Native, NamesShapesAndBreaksLines) {
  const std::string text = of_text(R"(workload m(x: f32[N,4,5,5], y: f32[N,4,5,5]) {
    a_name_of_a_block_that_is_as_long_as_imports_give = conv2d(x; weight=a.weight[4,4,3,3]) pad=1,1,1,1
    another_one_that_is_as_long_and_stands_beside_it = conv2d(a_name_of_a_block_that_is_as_long_as_imports_give; weight=b.weight[4,4,3,3]) pad=1,1,1,1
    loss = mse(another_one_that_is_as_long_and_stands_beside_it, y)
  })");
  EXPECT_TRUE(holds(text, "constexpr native::Conv kConv = {.h = 5,")) << text;
  EXPECT_FALSE(holds(text, "kConv_2")) << text;
  EXPECT_TRUE(holds(text, "conv2d_dw<kConv>(rows, x, ")) << text;
  for (const std::string& line : lines_of(own(text))) EXPECT_LE(line.size(), 120U) << line;
}

// By running statistics, without dropout; pictures that are given are turned, the loss and its target left out.
TEST(Native, WritesWhatPredicts) {
  const auto workload = ir::parse(R"(workload m(x: f32[N,3,4,4], k: i32[N,2], y: f32[N,2,4,4]) {
    h = conv2d(x; weight=c.weight[2,3,1,1])
    b = batch_norm(h; weight=b.weight[2], bias=b.bias[2], mean=b.running_mean[2], var=b.running_var[2])
    d = dropout(b) rate=0.5
    e = embedding(k; weight=e.weight[7,5])
    both = join(d, e)
    loss = mse(both, both)
  })");
  ASSERT_TRUE(workload) << workload.error().text();
  ir::Training training = kAdam;
  training.scenario = ir::Scenario::kPredict;
  training.input_divisor = 255;
  const auto program = native_framework().emit({*workload, training, {}, "predict_native.cc"});
  ASSERT_TRUE(program) << program.error().text();
  expect_golden("native/predict.cc", own(program->source));
}

TEST(Native, RefusesByName) {
  ir::Training as_is = kAdam;
  as_is.track = ir::Track::kAsIs;
  const auto own = native_framework().emit({*zoo::build("mlp_small"), as_is, {}, "train_native.cc"});
  ASSERT_FALSE(own);
  EXPECT_TRUE(holds(own.error().text(), "equalised")) << own.error().text();
}

}  // namespace
}  // namespace bakeoff::emit
