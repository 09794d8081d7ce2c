#include "passes/predicting.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace bakeoff::passes {
namespace {

TEST(Predicting, KeepsTheFirstLossAndWhatItNeeds) {
  const auto w = ir::parse(
      "workload w(x: f32[N,3], y: i32[N], t: f32[N,3]) {\n"
      " h = linear(x; weight=a[3,3])\n g = linear(h; weight=b[3,3])\n"
      " main = softmax_cross_entropy(h, y) ignore_index=-1\n aux = mse(g, t)\n loss = add(main, aux)\n}");
  ASSERT_TRUE(w) << w.error().text();
  const ir::Workload part = predicting(*w);
  ASSERT_TRUE(ir::infer(part));
  EXPECT_EQ(ir::dump(part),
            "workload w(x: f32[N,3], y: i32[N], t: f32[N,3]) {\n  h = linear(x; weight=a[3,3])\n"
            "  main = softmax_cross_entropy(h, y) reduction=mean label_smoothing=0 ignore_index=-1\n}\n");
  EXPECT_EQ(predicting(part), part);
}

TEST(Predicting, JoinsTheOutputsThatAreNamed) {
  const auto w = ir::parse(
      "workload w(x: f32[N,3], y: i32[N], t: f32[N,2,2]) {\n"
      " outputs = linear(x; weight=a[3,3])\n g = linear(x; weight=b[4,3])\n r = reshape(g) shape=N,2,2\n"
      " main = softmax_cross_entropy(outputs, y)\n aux = mse(r, t)\n loss = add(main, aux)\n}");
  ASSERT_TRUE(w) << w.error().text();
  const auto both = predicting(*w, {"r", "outputs"});
  ASSERT_TRUE(both) << both.error().text();
  EXPECT_NE(
      ir::dump(*both).find("  outputs_ = join(r, outputs)\n  loss = mse(outputs_, outputs_) reduction=mean"),
      std::string::npos)
      << ir::dump(*both);
  EXPECT_EQ(both->predictions().size(), 2U);
  EXPECT_EQ(predicting(*both), *both);
  const auto one = predicting(*w, {"g"});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->parameters.size(), 1U);
  EXPECT_EQ(one->value_name(one->prediction()), "g");
  EXPECT_FALSE(predicting(*w, {"g", "g"}));
  EXPECT_FALSE(predicting(*w, {"x", "g"})) << "an input";
  EXPECT_FALSE(predicting(*w, {"main", "g"})) << "a loss";
}

TEST(Predicting, LeavesOutWhatStopsGradients) {
  const auto stops = ir::parse(
      "workload w(x: i32[N,3], y: f32[N,3,2]) {\n e = embedding(x; weight=a[9,2])\n"
      " v = embedding(x; weight=b[9,1] frozen)\n k = constant() value=0.5\n t = less(k, v)\n"
      " s = stop_gradient(e)\n c = where(t, e, s)\n z = parameter(; weight=z[1,1,2])\n f = where(t, z, z)\n d = mul(c, f)\n"
      " loss = mse(d, y) reduction=mean\n}");
  ASSERT_TRUE(stops) << stops.error().text();
  const std::string left = ir::dump(predicting(*stops));
  EXPECT_NE(left.find("d = mul(e, f)"), std::string::npos) << left;
  EXPECT_NE(left.find("f = where(t, z, z)"), std::string::npos) << "it is wider than what it chooses from";
  EXPECT_EQ(left.find("stop_gradient"), std::string::npos) << left;
}

}  // namespace
}  // namespace bakeoff::passes
