#include "passes/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace bakeoff::passes {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Two kinds of positions (a table that is added, one that is multiplied), grouped by nothing, and a capped head.
constexpr const char* kModel = R"(workload lm(ids: i32[N,6], y: i32[N,6]) {
  angles = parameter(; weight=angles[1,1,6,4] frozen)
  e = embedding(ids; weight=embed.weight[9,8])
  p = position_embedding(e; weight=places.weight[7,8])
  n = layer_norm(p; weight=block.norm.weight[8], bias=block.norm.bias[8])
  q = linear(n; weight=block.attn.q.weight[8,8])
  qs = reshape(q) shape=N,6,2,4
  qt = transpose(qs) perm=0,2,1,3
  qr = mul(qt, angles)
  qb = transpose(qr) perm=0,2,1,3
  k = linear(n; weight=block.attn.k.weight[8,8])
  ks = reshape(k) shape=N,6,2,4
  a = attention(qb, ks, ks) causal=true window=3 rate=0.2
  f = reshape(a) shape=N,6,8
  o = linear(f; weight=block.attn.o.weight[8,8])
  d = dropout(o) rate=0.1
  m = parameter(; weight=mix[1,8,8])
  t = matmul(d, m)
  r = add(p, t)
  head = linear(r; weight=head.weight[9,8])
  capped = tanh(head)
  loss = softmax_cross_entropy(capped, y)
})";

TEST(Decode, AStepReadsWordsAtPositionsAndKeepsKeysAndValues) {
  const auto step = decode(*ir::parse(kModel));
  ASSERT_TRUE(step.has_value()) << step.error().text();
  const std::string text = ir::dump(*step);
  for (const char* line : {
           "workload lm(ids: i32[N,L], positions: i32[L], y: i32[N,1])",
           "angles_now = take(angles, positions) axis=2",
           "p_rows_now = take(p_rows, positions) axis=1",
           "p = add(e, p_rows_now)",
           "qs = reshape(q) shape=N,L,2,4",
           "qr = mul(qt, angles_now)",
           "a = attention(qb, ks, ks, positions; keys=block.attn.key_cache[N,6,2,4], "
           "values=block.attn.value_cache[N,6,2,4]) causal=true window=3 rate=0",
           "t = matmul(o, m)",
           "r_last = slice(r) axis=1 begin=L-1 end=L step=1",
           "head = linear(r_last;",
       })
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("dropout")));
  const auto types = ir::infer(*step);
  ASSERT_TRUE(types.has_value());
  EXPECT_EQ((*types)[static_cast<size_t>(step->prediction())].shape, (ir::Shape{ir::kBatch, 1, 9}));
  EXPECT_EQ(step->parameter_count(), ir::parse(kModel)->parameter_count()) << "caches are not trained";
}

// The model is the one that predicts; only the head reads no more than is asked for.
TEST(Decode, WithoutCachesTheWholeModelSaysWhatFollowsAPosition) {
  const auto step = decode(*ir::parse(kModel), false);
  ASSERT_TRUE(step.has_value()) << step.error().text();
  const std::string text = ir::dump(*step);
  for (const char* line : {
           "workload lm(ids: i32[N,6], positions: i32[L], y: i32[N,L])",
           "p = position_embedding(e; weight=places.weight[7,8])",
           "qr = mul(qt, angles)",
           "a = attention(qb, ks, ks) causal=true window=3",
           "t = matmul(o, m)",
           "r_now = take(r, positions) axis=1",
           "head = linear(r_now;",
       })
    EXPECT_THAT(text, HasSubstr(line));
  for (const char* other : {"dropout", "cache", "slice"}) EXPECT_THAT(text, Not(HasSubstr(other)));
  const auto types = ir::infer(*step);
  ASSERT_TRUE(types.has_value());
  EXPECT_EQ((*types)[static_cast<size_t>(step->prediction())].shape, (ir::Shape{ir::kBatch, ir::kSteps, 9}));
}

struct Refusal {
  const char* what;
  const char* body;
  const char* message;
};

TEST(Decode, WhatMixesPositionsIsRefusedByItsName) {
  const Refusal cases[] = {
      {"attention that sees all",
       "e = embedding(ids; weight=w[9,8])\n s = reshape(e) shape=N,6,2,4\n a = attention(s, s, s)\n"
       " f = reshape(a) shape=N,6,8\n",
       "a = attention sees words that come later"},
      {"a mean over the words",
       "e = embedding(ids; weight=w[9,8])\n m = mean(e) axes=1 keepdims=true\n f = sub(e, m)\n",
       "m = mean mixes the positions"},
      {"a recurrent layer",
       "e = embedding(ids; weight=w[9,8])\n f = gru(e; weight_ih=i[24,8], weight_hh=h[24,8])\n",
       "f = gru mixes the positions"},
      {"words and channels exchanged",
       "e = embedding(ids; weight=w[9,6])\n t = transpose(e) perm=0,2,1\n z = mul(e, t)\n"
       " f = linear(z; weight=v[8,6])\n",
       "z = mul mixes the positions"},
      {"a shift by one place",
       "e = embedding(ids; weight=w[9,8])\n s = slice(e) axis=1 begin=0 end=5 step=1\n"
       " f = pad(s) pad=1,0,0,0\n",
       "s = slice mixes the positions"},
      {"places merged with channels",
       "e = embedding(ids; weight=w[9,8])\n g = flatten(e)\n f = reshape(g) shape=N,6,8\n",
       "g = flatten mixes the positions"},
  };
  for (const Refusal& each : cases) {
    const auto model =
        ir::parse(std::string("workload m(ids: i32[N,6], y: i32[N,6]) {\n ") + each.body +
                  " out = linear(f; weight=head[9,8])\n loss = softmax_cross_entropy(out, y)\n}");
    ASSERT_TRUE(model.has_value()) << each.what << ": " << model.error().text();
    const auto step = decode(*model);
    ASSERT_FALSE(step.has_value()) << each.what;
    EXPECT_THAT(step.error().message, HasSubstr(each.message)) << each.what;
    EXPECT_THAT(step.error().remedy, HasSubstr("causal")) << each.what;
  }
}

TEST(Decode, OtherNetworksAreRefused) {
  const auto classifier = ir::parse(
      "workload m(x: f32[N,6], y: i32[N]) {\n o = linear(x; weight=w[3,6])\n loss = softmax_cross_entropy(o, y)\n}");
  EXPECT_THAT(decode(*classifier).error().message, HasSubstr("does not read words"));
  const auto pairs = ir::parse(
      "workload m(a: i32[N,6], b: i32[N,6], y: i32[N,6]) {\n e = embedding(a; weight=w[9,8])\n"
      " f = embedding(b; weight=v[9,8])\n g = add(e, f)\n o = linear(g; weight=h[9,8])\n"
      " loss = softmax_cross_entropy(o, y)\n}");
  EXPECT_THAT(decode(*pairs).error().message, HasSubstr("reads 'a' and 'b'"));
}

}  // namespace
}  // namespace bakeoff::passes
