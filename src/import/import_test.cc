#include "import/import.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/text.h"
#include "recipe/recipe.h"

namespace bakeoff {
namespace {

TEST(ImportInputs, AreReadAsWritten) {
  const auto plain = parse_import_input("f32[8,3,32,32]");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->name, "");
  EXPECT_EQ(plain->type, (ir::Type{ir::DType::kF32, {8, 3, 32, 32}}));
  const auto named = parse_import_input("ids=i32[16]");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->name, "ids");
  EXPECT_EQ(named->type, (ir::Type{ir::DType::kI32, {16}}));
}

TEST(ImportInputs, MistakesAreQuoted) {
  for (const char* text : {"", "f32", "f32[", "f32[]", "f32[8", "f32[8,]", "f32[,8]", "f32[8,x]", "f32[0,3]",
                           "f32[-1]", "f64[8]", "f32[8]]", "x=", "f32[99999999999999999999]", "f32[8, 3]"}) {
    const auto input = parse_import_input(text);
    ASSERT_FALSE(input) << text;
    EXPECT_NE(input.error().message.find(std::string("'") + text + "'"), std::string::npos) << text;
    EXPECT_FALSE(input.error().remedy.empty());
  }
}

TEST(ImportDistance, IsRelativeToTheLargestMagnitude) {
  const tensor::Tensor b{{2}, {2, 0}};
  EXPECT_EQ(import_distance({{2}, {2, 0}}, b), 0);
  EXPECT_DOUBLE_EQ(import_distance({{2}, {2, 1}}, b), 0.5);
  EXPECT_DOUBLE_EQ(import_distance({{2}, {2, 1}}, b, 10), 0.1);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  EXPECT_EQ(import_distance({{1}, {2}}, b), kNever);
  EXPECT_EQ(import_distance({{2}, {2, std::numeric_limits<double>::quiet_NaN()}}, b), kNever);
  EXPECT_EQ(import_distance({{2}, {1e-300, 0}}, {{2}, {0, 0}}), kNever);
}

TEST(ImportRecipe, IsOneThatTheParserTakes) {
  ImportRequest request{.file = "model.py", .function = "make", .out = "my.ir"};
  request.inputs = {{.type = {ir::DType::kF32, {8, 4}}}};
  const auto workload = ir::parse(
      "workload my(x: f32[N,4], y: f32[N,2]) {\n"
      "  h = linear(x; weight=fc.weight[2,4])\n  loss = mse(h, y) reduction=mean\n}\n");
  ASSERT_TRUE(workload);
  const std::string text = import_recipe(request, *workload);
  const auto recipe = recipe::parse_recorded(text, "my.toml");
  ASSERT_TRUE(recipe) << recipe.error().text();
  EXPECT_EQ(recipe->training.batch, 8);
  EXPECT_EQ(recipe->weights.filename(), "my.safetensors");
  EXPECT_GT(recipe->contenders.size(), 3u);
  EXPECT_NE(text.find("workload = \"my.ir\""), std::string::npos);
}

}  // namespace
}  // namespace bakeoff
