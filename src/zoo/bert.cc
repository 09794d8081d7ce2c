#include <string>
#include <vector>

#include "ir/builder.h"
#include "zoo/networks.h"

namespace bakeoff::zoo {
namespace {

using ir::Builder;
using ir::DType;
using ir::kBatch;
using ir::Op;
using ir::ValueId;
using Ints = std::vector<int64_t>;

struct BertShape {
  std::string name = "bert";
  int64_t vocabulary = 30522, positions = 512, tokens = 128;
  int64_t layers = 12, width = 768, heads = 12, inner = 3072;
};

constexpr double kEps = 1e-12;
constexpr double kDropout = 0.1;

class Bert {
 public:
  explicit Bert(const BertShape& shape) : s_(shape), b_(shape.name) {}
  Result<ir::Workload> build();

 private:
  ValueId dropout(ValueId x) { return b_.apply(Op::kDropout, {x}, {{"rate", kDropout}}); }
  ValueId gelu(ValueId x) { return b_.apply(Op::kGelu, {x}, {{"form", std::string("erf")}}); }
  // x + dropout(h), normalised.
  ValueId join(ValueId x, ValueId h, const std::string& norm) {
    return b_.layer_norm(b_.apply(Op::kAdd, {x, dropout(h)}), norm, 1, kEps);
  }
  ValueId self_attention(ValueId x, ValueId last, const std::string& name);
  ValueId layer(ValueId x, ValueId last, const std::string& name);

  const BertShape& s_;
  Builder b_;
};

ValueId Bert::self_attention(ValueId x, ValueId last, const std::string& name) {
  const auto project = [&](const char* part) {
    const ValueId h = b_.linear(x, name + "." + part, s_.width);
    return b_.apply(Op::kReshape, {h}, {{"shape", Ints{kBatch, s_.tokens, s_.heads, s_.width / s_.heads}}});
  };
  const ValueId q = project("query"), k = project("key"), v = project("value");
  const ValueId h = b_.apply(Op::kAttention, {q, k, v, last});
  return b_.apply(Op::kReshape, {h}, {{"shape", Ints{kBatch, s_.tokens, s_.width}}});
}

ValueId Bert::layer(ValueId x, ValueId last, const std::string& name) {
  const ValueId seen = self_attention(x, last, name + ".attention");
  x = join(x, b_.linear(seen, name + ".attention.output", s_.width), name + ".attention.norm");
  const ValueId h = gelu(b_.linear(x, name + ".intermediate", s_.inner));
  return join(x, b_.linear(h, name + ".output", s_.width), name + ".norm");
}

Result<ir::Workload> Bert::build() {
  const auto tokens = b_.input("tokens", {DType::kI32, {kBatch, s_.tokens}});
  const auto types = b_.input("token_types", {DType::kI32, {kBatch, s_.tokens}});
  const auto last = b_.input("last", {DType::kI32, {kBatch}});
  const auto labels = b_.input("labels", {DType::kI32, {kBatch, s_.tokens}});
  auto h = b_.embedding(tokens, "embeddings.word", s_.vocabulary, s_.width);
  h = b_.apply(Op::kAdd, {h, b_.embedding(types, "embeddings.token_type", 2, s_.width)});
  h = b_.position_embedding(h, "embeddings.position", s_.positions);
  h = dropout(b_.layer_norm(h, "embeddings.norm", 1, kEps));
  for (int64_t i = 0; i < s_.layers; ++i) h = layer(h, last, "encoder." + std::to_string(i));
  h = b_.layer_norm(gelu(b_.linear(h, "head.dense", s_.width)), "head.norm", 1, kEps);
  const auto logits = b_.named(b_.tied_linear(h, "embeddings.word", "decoder_bias"), "logits");
  return b_.finish(b_.softmax_cross_entropy(logits, labels));
}

}  // namespace

Result<ir::Workload> bert(Preset preset) {
  if (preset == Preset::kFull) return Bert({}).build();
  return Bert({.name = "bert_small",
               .vocabulary = 500,
               .positions = 32,
               .tokens = 24,
               .layers = 2,
               .width = 64,
               .heads = 4,
               .inner = 256})
      .build();
}

}  // namespace bakeoff::zoo
