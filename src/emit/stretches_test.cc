#include "emit/stretches.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace bakeoff::emit {
namespace {

ir::Workload parse(const std::string& nodes) {
  const auto workload = ir::parse("workload w(x: f32[N,4], y: i32[N]) {\n" + nodes +
                                  "  loss = softmax_cross_entropy(out, y) reduction=mean\n}\n");
  EXPECT_TRUE(workload) << (workload ? "" : workload.error().message);
  return *workload;
}

std::string linear(const std::string& out, const std::string& in, const std::string& name) {
  return out + " = linear(" + in + "; weight=" + name + ".weight[4,4], bias=" + name + ".bias[4])\n";
}

// Two linears below b.<i>, a relu between them, and what follows them.
std::string block(int i, const std::string& in, const std::string& out, const std::string& last) {
  const std::string n = std::to_string(i), name = "b." + n;
  return linear("p" + n, in, name + ".one") + "q" + n + " = relu(p" + n + ")\n" +
         linear("r" + n, "q" + n, name + ".two") + out + " = " + last + "\n";
}

TEST(Stretches, EndWithWhatFollowsInAllOfThem) {
  const auto found =
      find_stretches(parse(block(0, "x", "a", "add(r0, x)") + block(1, "a", "c", "add(r1, a)") +
                           "d = tanh(c)\n" + linear("out", "d", "head")));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Stretch{"b.0", 0, 4}));
  EXPECT_EQ(found[1], (Stretch{"b.1", 4, 8}));  // tanh follows the last one alone
  EXPECT_EQ(found[0].least, 3) << "a sum with what came in may stand outside";
}

TEST(Stretches, LeaveOutWhatNeedsMore) {
  // The sum needs e, which the block does not read.
  const auto found = find_stretches(parse(linear("e", "x", "e") + block(0, "x", "a", "add(r0, e)") +
                                          block(1, "a", "c", "add(r1, e)") + linear("out", "c", "head")));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Stretch{"b.0", 1, 4}));
  EXPECT_EQ(found[1], (Stretch{"b.1", 5, 8}));
}

TEST(Stretches, GiveOneValue) {
  // q0 is read outside.
  const auto found = find_stretches(
      parse(block(0, "x", "a", "add(r0, x)") + linear("c", "a", "head") + "out = add(c, q0)\n"));
  EXPECT_TRUE(found.empty());
}

TEST(Stretches, AreNotOneLayerCalledTwice) {
  EXPECT_TRUE(
      find_stretches(parse(linear("a", "x", "b") + "c = relu(a)\n" + linear("out", "c", "b"))).empty());
}

TEST(Stretches, MakeTheZerosThatTheyStartFrom) {
  const auto workload = ir::parse(
      "workload w(ids: i32[N,4], x: f32[N,4], y: f32[N,4]) {\n  k = constant() value=0\n  z = expand(k, x) shape=N,4\n"
      "  q = linear(x; weight=q[4,4])\n" +
      linear("a", "z", "p.a") + linear("b", "q", "p.b") + "  c = add(a, b)\n  d = add(z, c)\n" +
      linear("e", "z", "r.a") + linear("f", "e", "r.b") + "  g = add(d, f)\n  loss = mse(g, y)\n}\n");
  ASSERT_TRUE(workload) << workload.error().text();
  const auto types = ir::infer(*workload);
  const ir::ValueId z = 4, q = 5;
  Stretch p{"p", 3, 6};
  EXPECT_TRUE(own_fills(*workload, *types, p).empty());
  p.fills = true;
  EXPECT_EQ(own_fills(*workload, *types, p), (std::map<ir::ValueId, ir::ValueId>{{z, q}}));
  Stretch r{"r", 7, 9};
  r.fills = true;
  EXPECT_TRUE(own_fills(*workload, *types, r).empty()) << "nothing else has rows";
}

TEST(Stretches, OwnTheirParameters) {
  // The weight of b.0.two is read again behind b.1.
  const auto found = find_stretches(parse(block(0, "x", "a", "add(r0, x)") +
                                          block(1, "a", "c", "add(r1, a)") + linear("out", "c", "b.0.two")));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, "b.1");
}

TEST(Stretches, AreNoLists) {
  // Below "b" names are numbers.
  for (const Stretch& stretch : find_stretches(parse(
           block(0, "x", "a", "relu(r0)") + block(1, "a", "c", "relu(r1)") + linear("out", "c", "head"))))
    EXPECT_NE(stretch.path, "b");
}

// "down.1" is nothing but "down.1.nets.0", which is like "up.nets.0".
TEST(Stretches, AreAPlaceInAListWhereAPathAboveItCoversTheSame) {
  const auto of = [](const std::string& path) {
    return find_stretches(parse(linear("p", "x", path + ".one") + linear("r", "p", path + ".two") +
                                linear("out", "r", "head")));
  };
  for (const char* path : {"down.1.nets.0", "down.nets.0", "nets.0"}) EXPECT_EQ(of(path)[0].path, path);
  EXPECT_EQ(of("model.net")[0].path, "model");
}

TEST(Stretches, TakeTheFirstPlaceOfASequence) {
  const auto first_of = [](const std::string& second) {
    const auto found = find_stretches(parse(
        linear("e", "x", "e") +
        "s0 = slice(e) axis=1 begin=0 end=2\na0 = linear(s0; weight=cell.in.weight[4,2])\n" + "s1 = slice(" +
        second + ") axis=1 begin=2 end=4\na1 = linear(s1; weight=cell.in.weight[4,2])\n" +
        "sum = add(a0, a1)\n" + linear("out", "sum", "cell.out")));
    return found.empty() ? -1 : found.back().first;
  };
  EXPECT_EQ(first_of("e"), 1);  // the slice
  EXPECT_EQ(first_of("x"), 2);  // e is no sequence of this part
}

TEST(Stretches, DoNotTakeInWhatOthersGive) {
  // Two values of the part are read behind it, together with one of another.
  const std::string text = linear("e", "x", "e") + linear("p", "x", "b.one") + linear("q", "p", "b.two");
  EXPECT_TRUE(
      find_stretches(parse(text + "s = add(p, e)\nt = add(s, q)\n" + linear("out", "t", "head"))).empty());
  EXPECT_EQ(find_stretches(parse(text + "t = add(p, q)\n" + linear("out", "t", "head"))).size(), 1u);
}

TEST(Stretches, KnowTheLastReader) {
  const ir::Workload w = parse(block(0, "x", "a", "add(r0, x)") + linear("out", "a", "head"));
  const std::vector<int> readers = last_readers(w);
  EXPECT_EQ(readers[0], 3);  // x: the sum
  EXPECT_EQ(readers[1], 5);  // y: the loss
  EXPECT_EQ(readers[w.loss()], -1);
}

TEST(Stretches, FindsWhatAttentionReads) {
  const auto workload = ir::parse(R"(workload w(x: f32[N,5,8], y: f32[N,5,8]) {
  all = linear(x; weight=a.weight[24,8])
  one = slice(all) axis=2 begin=0 end=8 step=1
  two = slice(all) axis=2 begin=8 end=16 step=1
  three = slice(all) axis=2 begin=16 end=24 step=1
  first = reshape(one) shape=N,5,2,4
  turned = neg(first)
  rotated = add(first, turned)
  second = reshape(two) shape=N,5,2,4
  third = reshape(three) shape=N,5,2,4
  h = attention(rotated, second, third)
  again = attention(h, second, second)
  out = reshape(again) shape=N,5,8
  loss = mse(out, y)
})");
  ASSERT_TRUE(workload) << workload.error().text();
  std::string parts;
  for (int n = 0; n < workload->model_end(); ++n) {
    const std::string part = attention_part(*workload, workload->output_of(n));
    parts += part.empty() ? "." : part;
  }
  // What is keys here and values there is neither; nor is what attention gives.
  EXPECT_EQ(parts, ".q.vqqq.v...");
}

}  // namespace
}  // namespace bakeoff::emit
