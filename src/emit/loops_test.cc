#include "emit/loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/texts.h"
#include "emit/slices.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "zoo/op_cases.h"

namespace bakeoff::emit {
namespace {

struct Found {
  ir::Workload workload;
  std::vector<Loop> loops;
};

std::vector<Loop> loops_of(const ir::Workload& workload) {
  const auto types = ir::infer(workload);
  EXPECT_TRUE(types);
  const Loops loops(workload, *types, all_nodes(workload));
  return loops.in({"", 0, workload.model_end()}, Blocks());
}

Found find(const std::string& nodes) {
  const auto workload = ir::parse("workload w(x: f32[N,4,3], y: i32[N]) {\n" + nodes +
                                  "  loss = softmax_cross_entropy(z, y)\n}\n");
  EXPECT_TRUE(workload) << (workload ? "" : workload.error().message);
  return {*workload, loops_of(*workload)};
}

std::string place(int t, int at) {
  return fmt::format("  s{0} = slice(x) axis=1 begin={1} end={2}\n  f{0} = flatten(s{0})\n", t, at, at + 1);
}

// h<t> of the place f<t> and `before`.
std::string cell(int t, const std::string& before) {
  return fmt::format(
      "  a{0} = linear(f{0}; weight=a.weight[5,3])\n  b{0} = linear({1}; weight=b.weight[5,5])\n"
      "  c{0} = add(a{0}, b{0})\n  h{0} = tanh(c{0})\n",
      t, before);
}

std::string first() { return "  fx = flatten(x)\n  h = linear(fx; weight=start.weight[5,12])\n"; }
std::string head(const std::string& of, int width) {
  return fmt::format("  z = linear({}; weight=head.weight[2,{}])\n", of, width);
}

TEST(Loops, CarryWhatTheNextIterationReads) {
  std::string text = first();
  for (int t = 0; t < 4; ++t) text += place(t, t) + cell(t, t == 0 ? "h" : fmt::format("h{}", t - 1));
  const Found found = find(text + head("h3", 5));
  ASSERT_EQ(found.loops.size(), 1u);
  const Loop& loop = found.loops[0];
  EXPECT_EQ(loop.count, 4);
  EXPECT_EQ(loop.body.size(), 6u);
  ASSERT_EQ(loop.carries.size(), 1u);
  EXPECT_EQ(found.workload.value_name(loop.carries[0].start), "h");
  EXPECT_EQ(found.workload.value_name(loop.carries[0].before), "h0");
  EXPECT_EQ(found.workload.value_name(loop.carries[0].next), "h1");
  EXPECT_EQ(found.workload.value_name(loop.carries[0].last), "h3");
  ASSERT_EQ(loop.moving.size(), 1u);
  EXPECT_EQ(loop.moving.begin()->second.place("t"), "t");
}

TEST(Loops, TakePlacesThatWereTakenInFront) {
  std::string text = first();
  for (int t = 0; t < 4; ++t) text += place(t, t);
  for (int t = 0; t < 4; ++t) text += cell(t, t == 0 ? "h" : fmt::format("h{}", t - 1));
  const Found found = find(text + head("h3", 5));
  ASSERT_EQ(found.loops.size(), 1u);
  EXPECT_EQ(found.loops[0].count, 4);
  EXPECT_EQ(found.loops[0].moving.size(), 1u);
}

TEST(Loops, CollectAlsoWhatIsReshapedBehindThem) {
  std::string text = first(), tails, names;
  for (int t = 0; t < 4; ++t) {
    text += place(t, t) + cell(t, t == 0 ? "h" : fmt::format("h{}", t - 1));
    tails += fmt::format("  u{0} = reshape(h{0}) shape=N,1,5\n", t);
    names += fmt::format("{}u{}", t == 0 ? "" : ", ", t);
  }
  // The last state is read besides.
  const Found found = find(text + tails + "  all = concat(" + names + ") axis=1\n  flat = flatten(all)\n" +
                           "  more = concat(flat, h3) axis=1\n" + head("more", 25));
  ASSERT_EQ(found.loops.size(), 1u);
  ASSERT_EQ(found.loops[0].collected.size(), 1u);
  const Loop::Collected& made = found.loops[0].collected.begin()->second;
  EXPECT_TRUE(made.stacks);
  EXPECT_EQ(found.workload.value_name(made.value), "h1");
  EXPECT_TRUE(made.tail.empty());
}

TEST(Loops, CollectWhatIsReadBehindThemToo) {
  std::string text = first(), names;
  for (int t = 0; t < 4; ++t) {
    text += place(t, t) + cell(t, t == 0 ? "h" : fmt::format("g{}", t - 1)) +
            fmt::format("  g{0} = neg(h{0})\n", t);
    names += fmt::format("{}h{}", t == 0 ? "" : ", ", t);
  }
  const Found found = find(text + "  all = concat(" + names +
                           ") axis=1\n  last = concat(all, h3, g3) axis=1\n" + head("last", 30));
  ASSERT_EQ(found.loops.size(), 1u);
  EXPECT_EQ(found.loops[0].collected.size(), 1u);
  ASSERT_EQ(found.loops[0].finals.size(), 1u);  // h3, which no iteration carries
  EXPECT_EQ(found.workload.value_name(found.loops[0].finals.begin()->second), "h3");
}

TEST(Loops, GoBackAndPutItemsInOrderAgain) {
  std::string text = first(), names;
  for (int t = 0; t < 4; ++t) {
    text += place(t, 3 - t) + cell(t, t == 0 ? "h" : fmt::format("h{}", t - 1));
    names += fmt::format("{}h{}", t == 0 ? "" : ", ", 3 - t);
  }
  const Found found = find(text + "  all = concat(" + names + ") axis=1\n" + head("all", 20));
  ASSERT_EQ(found.loops.size(), 1u);
  const Loop& loop = found.loops[0];
  EXPECT_EQ(loop.moving.begin()->second.place("t"), "3 - t");
  EXPECT_TRUE(loop.collected.begin()->second.reversed);
  Namer names_of_loop;
  EXPECT_EQ(Rolling(loop, found.workload, names_of_loop).joined(loop.collected.begin()->first),
            "parts[::-1]");
}

TEST(Loops, EndWhereTheLastIterationLacksWhatNobodyReads) {
  std::string text = first();
  for (int t = 0; t < 4; ++t) {
    text += place(t, t) + cell(t, t == 0 ? "h" : fmt::format("g{}", t - 1));
    if (t < 3) text += fmt::format("  g{0} = sigmoid(h{0})\n", t);
  }
  const Found found = find(text + head("h3", 5));
  ASSERT_EQ(found.loops.size(), 1u);
  EXPECT_EQ(found.loops[0].count, 4);
  EXPECT_EQ(found.loops[0].finals.size(), 1u);  // h3, which is no state
}

TEST(Loops, DoNotChangeWhatIsRead) {
  const auto made = [](const std::string& third) {
    std::string text = first();
    for (int t = 0; t < 4; ++t)
      text += place(t, t) + cell(t, t == 0 ? "h" : t == 2 ? third : fmt::format("h{}", t - 1));
    return find(text + head("h3", 5)).loops;
  };
  EXPECT_EQ(made("h1").size(), 1u);
  EXPECT_TRUE(made("h0").empty());  // the third iteration reads what the first one gave
  EXPECT_TRUE(made("h").empty());
}

TEST(Loops, DoNotHideAValueThatIsReadOutside) {
  std::string text = first();
  for (int t = 0; t < 4; ++t) text += place(t, t) + cell(t, t == 0 ? "h" : fmt::format("h{}", t - 1));
  EXPECT_TRUE(find(text + "  sum = add(h3, h1)\n" + head("sum", 5)).loops.empty());
  EXPECT_EQ(find(text + "  sum = add(h3, h)\n" + head("sum", 5)).loops.size(), 1u);
}

TEST(Loops, DoNotReadPlacesInAnotherOrder) {
  std::string text = first();
  const int at[] = {0, 2, 1, 3};
  for (int t = 0; t < 4; ++t) text += place(t, at[t]) + cell(t, t == 0 ? "h" : fmt::format("h{}", t - 1));
  EXPECT_TRUE(find(text + head("h3", 5)).loops.empty());
}

// The statement that prints all parts would otherwise stand behind the second part's reader.
TEST(Loops, KeepThePartsOfASplitTogether) {
  std::string text = first();
  for (int t = 0; t < 4; ++t)
    text += place(t, t) + cell(t, t == 0 ? "h" : fmt::format("o{}", t - 1)) +
            fmt::format(
                "  p{0} = slice(h{0}) axis=1 begin=0 end=2\n  q{0} = slice(h{0}) axis=1 begin=2 end=5\n"
                "  e{0} = exp(q{0})\n  r{0} = reshape(p{0}) shape=N,1,2\n  k{0} = flatten(r{0})\n"
                "  j{0} = concat(e{0}, k{0}) axis=1\n  o{0} = linear(j{0}; weight=o.weight[5,5])\n",
                t);
  const Found found = find(text + head("o3", 5));
  ASSERT_EQ(found.loops.size(), 1u);
  const std::vector<int>& body = found.loops[0].body;
  const auto at = [&](const char* name) {
    const auto named = [&](int n) { return found.workload.nodes[static_cast<size_t>(n)].output == name; };
    return std::find_if(body.begin(), body.end(), named) - body.begin();
  };
  EXPECT_EQ(at("q1"), at("p1") + 1);
  EXPECT_LT(at("p1"), at("e1"));
}

TEST(Loops, AreFoundInRandomDecoders) {
  int found = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    tensor::Rng rng(seed);
    const ir::Workload workload = zoo::random_loop(rng);
    found += loops_of(workload).empty() ? 0 : 1;
  }
  EXPECT_EQ(found, 100);
}

TEST(Slices, SideBySideAreOneStatement) {
  const auto workload = ir::parse(
      "workload w(x: f32[N,6], y: i32[N]) {\n"
      "  a = slice(x) axis=1 begin=0 end=2\n  b = slice(x) axis=1 begin=2 end=4\n"
      "  c = slice(x) axis=1 begin=4 end=6\n  d = slice(x) axis=1 begin=0 end=1\n"
      "  e = slice(x) axis=1 begin=1 end=4\n  all = concat(a, b, c, d, e) axis=1\n"
      "  z = linear(all; weight=w[2,10])\n  loss = softmax_cross_entropy(z, y)\n}\n");
  ASSERT_TRUE(workload);
  const auto types = ir::infer(*workload);
  const Slices slices(*workload, *types);
  const Stretch all{"", 0, workload->model_end()};
  const Split* const split = slices.split_at(0, all, Blocks());
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->nodes, (std::vector<int>{0, 1, 2}));
  EXPECT_TRUE(split->even());
  EXPECT_EQ(split->cuts(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(slices.split_at(3, all, Blocks()), nullptr);  // d and e leave out the end
  EXPECT_EQ(slices.split_at(0, {"", 0, 2}, Blocks()), nullptr);
}

}  // namespace
}  // namespace bakeoff::emit
