#pragma once

// The models that every emitter writes goldens for, beside those of the zoo, and how they are trained.

#include <fmt/format.h>

#include <array>
#include <string>

#include "ir/training.h"

namespace bakeoff {

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline ir::Training mnist_training(ir::Track track = ir::Track::kEqualised) {
  return {.track = track,
          .optimizer = {.kind = ir::OptimizerKind::kRmsprop, .lr = 1e-4, .rho = 0.9, .eps = 1e-7},
          .batch = 256,
          .input_divisor = 255};
}

inline ir::Training adam_training(ir::Track track = ir::Track::kEqualised) {
  return {.track = track,
          .optimizer = {.kind = ir::OptimizerKind::kAdam, .lr = 1e-3, .eps = 1e-8},
          .batch = 1000};
}

// All that surrounds an update, of mlp_small: its biases do not decay.
inline ir::Training updates_training(int64_t accumulate) {
  return {.optimizer = {.kind = ir::OptimizerKind::kSgd,
                        .lr = 0.1,
                        .momentum = 0.9,
                        .weight_decay = 0.01,
                        .no_decay = {1, 3},
                        .schedule = {.kind = ir::ScheduleKind::kCosine,
                                     .warmup_steps = 10,
                                     .warmup_from = 0.1,
                                     .steps = 90,
                                     .final = 0.01},
                        .clip_norm = 1,
                        .ema = 0.99,
                        .accumulate = accumulate},
          .batch = 1000};
}

// Every op that mnist_cnn, mlp_deep and residual_cnn leave out; uneven padding everywhere; three inputs;
// integer inputs to an embedding whose table is also the weight of a linear layer.
inline constexpr const char* kAllSortsModel = R"(
workload all_sorts(picture: f32[N,3,9,8], words: i32[N,5], y: i32[N]) {
  c1 = conv2d(picture; weight=stem.conv.weight[6,3,3,2], bias=stem.conv.bias[6]) stride=2,1 pad=0,1,1,0
  c2 = conv2d(c1; weight=stem.depth.weight[6,1,3,3]) pad=2,2,2,2 dilation=2,2 groups=6
  g = gelu(c2) form=tanh
  m = max_pool2d(g) kernel=2,2 stride=1,1 pad=1,0,0,1
  a = avg_pool2d(m) kernel=3,2 stride=2,2 pad=1,0,0,1
  p = pad(a) pad=0,0,1,0,0,2 value=0.5
  v = avg_pool2d(p) kernel=2,2 stride=1,1 pad=1,1,0,0 count_include_pad=true
  n = batch_norm(v; weight=stem.bn.weight[6], bias=stem.bn.bias[6], mean=stem.bn.running_mean[6], var=stem.bn.running_var[6]) eps=0.001 momentum=0.01
  s = sigmoid(n)
  gated = mul(n, s)
  pooled = global_avg_pool2d(gated)
  e = embedding(words; weight=words.weight[20,6])
  t = transpose(e) perm=0,2,1
  r = reshape(t) shape=N,5,6
  l = layer_norm(r; weight=norm.weight[6], bias=norm.bias[6]) eps=1e-6
  f = flatten(l)
  d = dropout(f) rate=0.25
  q = linear(d; weight=mix.weight[6,30], bias=mix.bias[6])
  w = tanh(q)
  k = softmax(w) axis=1
  both = concat(pooled, k) axis=1
  z = linear(both; weight=head.weight[6,12])
  u = add(z, pooled)
  ge = gelu(u)
  logits = linear(ge; weight=words.weight[20,6], bias=tied_bias[20])
  loss = softmax_cross_entropy(logits, y) reduction=sum
}
)";

// Attention that drops its weights: with heads of its own, and with keys that four heads share.
inline constexpr const char* kDroppedAttentionModel = R"(
workload dropped(x: f32[N,5,8], y: f32[N,5,8]) {
  q = linear(x; weight=q.weight[8,8])
  heads = reshape(q) shape=N,5,4,2
  keys = linear(x; weight=k.weight[2,8])
  shared = reshape(keys) shape=N,5,1,2
  own = attention(heads, heads, heads) rate=0.25
  a = attention(own, shared, shared) causal=true rate=0.25
  f = reshape(a) shape=N,5,8
  loss = mse(f, y)
}
)";

// Two layers of attention whose queries, keys and values are one product.
// Its parts are the places of an axis, as timm has them; the last place of another tensor is read alone.
inline constexpr const char* kStackedAttentionModel = R"(
workload stacked(x: f32[N,5,8], y: f32[N,2,4]) {
  h = linear(x; weight=qkv.weight[24,8], bias=qkv.bias[24])
  stack = reshape(h) shape=N,5,3,2,4
  q_one = slice(stack) axis=2 begin=0 end=1
  q = reshape(q_one) shape=N,5,2,4
  k_one = slice(stack) axis=2 begin=1 end=2
  k = reshape(k_one) shape=N,5,2,4
  v_one = slice(stack) axis=2 begin=2 end=3
  v = reshape(v_one) shape=N,5,2,4
  mixed = attention(q, k, v)
  last_one = slice(mixed) axis=1 begin=4 end=5
  last = reshape(last_one) shape=N,2,4
  loss = mse(last, y)
}
)";

inline constexpr const char* kFusedAttentionModel = R"(
workload fused(x: f32[N,5,8], y: f32[N,5,8]) {
  block layer(x) {
    all = linear(x; weight=.all.weight[24,8])
    one = slice(all) axis=2 begin=0 end=8 step=1
    two = slice(all) axis=2 begin=8 end=16 step=1
    three = slice(all) axis=2 begin=16 end=24 step=1
    queries = reshape(one) shape=N,5,2,4
    keys = reshape(two) shape=N,5,2,4
    values = reshape(three) shape=N,5,2,4
    mixed = attention(queries, keys, values) causal=true window=3
    flat = reshape(mixed) shape=N,5,8
    out = linear(flat; weight=.out.weight[8,8])
    sum = add(x, out)
  }
  layers.0 = layer(x)
  layers.1 = layer(layers_0_sum)
  loss = mse(layers_1_sum, y)
}
)";

// A cell that an importer has unrolled over three places, from a state of zeros.
inline constexpr const char* kDecoderModel = R"(
workload decoder(x: f32[N,3,3], y: i32[N]) {
  c = constant() value=0
  start = expand(c, x) shape=N,5
  s0 = slice(x) axis=1 begin=0 end=1
  f0 = flatten(s0)
  a0 = linear(f0; weight=a.weight[5,3])
  b0 = linear(start; weight=b.weight[5,5])
  m0 = add(a0, b0)
  h0 = tanh(m0)
  s1 = slice(x) axis=1 begin=1 end=2
  f1 = flatten(s1)
  a1 = linear(f1; weight=a.weight[5,3])
  b1 = linear(h0; weight=b.weight[5,5])
  m1 = add(a1, b1)
  h1 = tanh(m1)
  s2 = slice(x) axis=1 begin=2 end=3
  f2 = flatten(s2)
  a2 = linear(f2; weight=a.weight[5,3])
  b2 = linear(h1; weight=b.weight[5,5])
  m2 = add(a2, b2)
  h2 = tanh(m2)
  i0 = reshape(h0) shape=N,1,5
  i1 = reshape(h1) shape=N,1,5
  i2 = reshape(h2) shape=N,1,5
  all = concat(i0, i1, i2) axis=1
  flat = flatten(all)
  z = linear(flat; weight=head.weight[3,15])
  loss = softmax_cross_entropy(z, y)
}
)";

// Two heads of classes, one of them smoothed, padded labels, and a picture that two losses compare: four losses.
inline constexpr const char* kLossesModel = R"(
workload losses(x: f32[N,2,4,4], y: i32[N], t: f32[N,2,4,4]) {
  h1 = conv2d(x; weight=trunk.weight[2,2,3,3], bias=trunk.bias[2]) pad=1,1,1,1
  h2 = relu(h1)
  picture = conv2d(h2; weight=decoder.weight[2,2,1,1], bias=decoder.bias[2])
  h3 = flatten(h2)
  logits = linear(h3; weight=head.weight[5,32], bias=head.bias[5])
  h4 = linear(h3; weight=aux.weight[5,32], bias=aux.bias[5])
  main_loss = softmax_cross_entropy(logits, y) ignore_index=-100
  aux_loss = softmax_cross_entropy(h4, y) label_smoothing=0.1 ignore_index=-100
  error = mse(picture, t)
  h5 = l1(picture, t) reduction=sum
  share = constant() value=0.3
  h6 = mul(share, aux_loss)
  h7 = add(main_loss, h6)
  h8 = add(h7, error)
  tiny = constant() value=-0.001
  h9 = mul(h5, tiny)
  loss = add(h8, h9)
}
)";

// Labels that are fewer than the frames, compared twice.
inline constexpr const char* kCtcModel = R"(
workload speech(sound: f32[N,12,5], words: i32[N,4]) {
  h = gru(sound; weight_ih=rnn.weight_ih_l0[18,5], weight_hh=rnn.weight_hh_l0[18,6], bias_ih=rnn.bias_ih_l0[18], bias_hh=rnn.bias_hh_l0[18])
  early = linear(sound; weight=early.weight[7,5], bias=early.bias[7])
  logits = linear(h; weight=head.weight[7,6], bias=head.bias[7])
  main = ctc(logits, words)
  aux = ctc(early, words) reduction=sum
  share = constant() value=0.1
  part = mul(share, aux)
  loss = add(main, part)
}
)";

// Every form of the ops of sequences: masks of both kinds, LSTMs with and without bias, one of them under
// names that are not torch's.
inline constexpr const char* kSequencesModel = R"(
workload sequences(x: f32[N,6,4], last: i32[N], y: i32[N]) {
  placed = position_embedding(x; weight=place.weight[8,4])
  own = lstm(placed; weight_ih=rnn.kernel[16,4], weight_hh=rnn.recurrent[16,4], bias=rnn.bias[16])
  bare = lstm(own; weight_ih=bare.weight_ih_l0[16,4], weight_hh=bare.weight_hh_l0[16,4])
  full = lstm(bare; weight_ih=deep.full.weight_ih_l0[16,4], weight_hh=deep.full.weight_hh_l0[16,4], bias=deep.full.bias_ih_l0[16])
  q = reshape(full) shape=N,6,2,2
  a1 = attention(q, q, q, last) causal=true
  a2 = attention(a1, q, a1) causal=true
  a3 = attention(a2, q, q, last)
  a4 = attention(a3, q, a3, last)
  a5 = attention(a4, a3, q)
  f = flatten(a5)
  logits = linear(f; weight=head.weight[3,24], bias=head.bias[3])
  loss = softmax_cross_entropy(logits, y)
}
)";

// Sizes that differ: the gradient of `gate` is a sum.
inline constexpr const char* kGatesModel = R"(
workload gates(x: f32[N,3,4,4], gate: f32[N,3,1,1], y: f32[N,3,4,4]) {
  scaled = mul(x, gate)
  moved = add(scaled, gate)
  twice = add(moved, moved)
  loss = mse(twice, y)
}
)";

// Targets that are computed: a real one, from an input named like a function of the scripts, and integers.
inline constexpr const char* kComputedTargetModel = R"(
workload computed_target(half: f32[N,4]) {
  a = linear(half; weight=a.weight[3,4])
  b = linear(half; weight=b.weight[3,4])
  loss = mse(a, b)
}
)";
inline constexpr const char* kComputedLabelsModel = R"(
workload computed_labels(x: f32[N,4], y: i32[N,2,3]) {
  h = linear(x; weight=fc.weight[24,4])
  n = batch_norm(h; weight=bn.weight[24], bias=bn.bias[24], mean=bn.running_mean[24], var=bn.running_var[24])
  logits = reshape(n) shape=N,6,4
  labels = flatten(y)
  loss = softmax_cross_entropy(logits, labels)
}
)";

// Two cells of one kind: the first starts from zeros, the second from `state`.
inline std::string two_cells(const std::string& state) {
  std::string nodes = "  k = constant() value=0\n  zeros = expand(k, x) shape=N,4\n";
  for (const auto& [path, in, h] : {std::array<std::string, 3>{"a", "x", "zeros"}, {"b", "a4", state}})
    nodes += fmt::format(
        "  {0}1 = linear({1}; weight={0}.i.weight[4,4])\n  {0}2 = linear({2}; weight={0}.h.weight[4,4])\n"
        "  {0}3 = add({0}1, {0}2)\n  {0}4 = tanh({0}3)\n",
        path, in, h);
  return "workload m(x: f32[N,4], y: f32[N,4]) {\n" + nodes + "  loss = mse(b4, y)\n}\n";
}

}  // namespace bakeoff
