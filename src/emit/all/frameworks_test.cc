#include "emit/all/frameworks.h"

#include <gtest/gtest.h>

#include "emit/precision.h"
#include "ir/text.h"

namespace bakeoff::emit {
namespace {

// On one line, with single spaces.
std::string words_of(const std::string& text) {
  std::string words;
  for (const char c : text)
    if (c != ' ' || !words.ends_with(' ')) words += c == '\n' ? ' ' : c;
  return words;
}

// The base of LoRA: what products and lookups alone read is stored in half precision. What trains, what a norm reads,
// running statistics and tables of values are not: there a rounded number would be another one.
TEST(Frameworks, StoreFrozenWeightsOfProductsInHalfPrecision) {
  const auto parsed = ir::parse(R"(workload m(ids: i32[N,4], y: i32[N,4]) {
    places = parameter(; weight=places[1,4,6] frozen)
    e = embedding(ids; weight=words.weight[9,6] frozen)
    p = add(e, places)
    n = rms_norm(p; weight=norm.weight[6] frozen) dims=1 eps=1e-06
    a = linear(n; weight=base.weight[5,6] frozen)
    b = linear(n; weight=trained.weight[5,6])
    h = add(a, b)
    loss = softmax_cross_entropy(h, y)
  })");
  ASSERT_TRUE(parsed) << parsed.error().text();
  const ir::Workload& workload = *parsed;
  ir::Training training;
  training.batch = 8;
  training.optimizer.kind = ir::OptimizerKind::kAdamW;
  const std::map<std::string, std::string> lines = {
      {"torch", "nn.Linear( 6, 5, bias=False, dtype=torch.bfloat16 ).requires_grad_(False)"},
      {"jax", "IN_HALF_PRECISION = (\"words.weight\", \"base.weight\")"},
      {"tensorflow", "tf.Variable(half(weights[\"base_weight\"]), trainable=False)"},
      {"keras", "5, use_bias=False, trainable=False, dtype=\"bfloat16\", name=\"base\""},
      {"keras2", "5, use_bias=False, trainable=False, dtype=\"bfloat16\", name=\"base\""},
      {"libtorch", "Tensor base_weight = torch::empty({5, 6}, torch::kBFloat16);"}};
  for (const auto& [name, line] : lines) {
    Settings settings = defaults_of(*find_framework(name));
    settings["precision"] = "bfloat16";
    const auto emitted = find_framework(name)->emit({workload, training, settings, "train_" + name});
    ASSERT_TRUE(emitted) << name << ": " << emitted.error().text();
    EXPECT_NE(words_of(emitted->source).find(line), std::string::npos) << name << ": " << emitted->source;
    EXPECT_EQ(stored_in_half({workload, training, settings, ""}),
              (std::vector<bool>{false, true, false, true, false}));
    settings["precision"] = kFullPrecision;
    EXPECT_EQ(stored_in_half({workload, training, settings, ""}), std::vector<bool>(5)) << name;
  }
}

// What a script returns has the values in the order that the recipe names, none of them reshaped.
TEST(Frameworks, PredictTheValuesOfAJoinOneByOne) {
  const auto parsed = ir::parse(R"(workload m(x: f32[N,3,4,4], y: f32[N,36]) {
    masks = conv2d(x; weight=m.weight[2,3,1,1])
    pooled = global_avg_pool2d(masks)
    scores = linear(pooled; weight=s.weight[4,2])
    outputs = join(masks, scores)
    loss = mse(outputs, y)
  })");
  ASSERT_TRUE(parsed) << parsed.error().text();
  const std::map<std::string, std::string> lines = {
      {"torch", "def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:"},
      {"jax", "return jnp.transpose(masks, (0, 3, 1, 2)), scores"},
      {"tensorflow", "return tf.transpose(masks, (0, 3, 1, 2)), scores"},
      {"keras", "outputs = [masks_first, scores]"},
      {"keras2", "outputs = [masks_first, scores]"},
      {"onnxruntime", "return session.run([\"masks\", \"scores\"], {\"x\": x})"}};
  const ir::Training training{.scenario = ir::Scenario::kPredict, .batch = 8};
  for (const auto& [name, line] : lines) {
    const Framework& framework = *find_framework(name);
    const auto emitted = framework.emit({*parsed, training, defaults_of(framework), "predict_" + name});
    ASSERT_TRUE(emitted) << name << ": " << emitted.error().text();
    EXPECT_NE(words_of(emitted->source).find(line), std::string::npos) << name << ": " << emitted->source;
    EXPECT_NE(emitted->source.find("[\"masks\", \"scores\"]"), std::string::npos)
        << "the names that --out saves";
  }
}

}  // namespace
}  // namespace bakeoff::emit
