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

struct LstmShape {
  std::string name;
  bool tied = false;
  int64_t vocabulary = 10000, tokens = 35, units = 650;
};

Result<ir::Workload> language_model(const LstmShape& shape) {
  Builder b(shape.name);
  const auto tokens = b.input("tokens", {DType::kI32, {kBatch, shape.tokens}});
  const auto labels = b.input("labels", {DType::kI32, {kBatch, shape.tokens}});
  const auto dropout = [&](ValueId x) { return b.apply(Op::kDropout, {x}, {{"rate", 0.5}}); };
  auto h = dropout(b.embedding(tokens, "tokens", shape.vocabulary, shape.units));
  h = dropout(b.lstm(h, "lstm1", shape.units));
  h = dropout(b.lstm(h, "lstm2", shape.units));
  h = shape.tied ? b.tied_linear(h, "tokens", "decoder_bias") : b.linear(h, "decoder", shape.vocabulary);
  return b.finish(b.softmax_cross_entropy(b.named(h, "logits"), labels));
}

}  // namespace

Result<ir::Workload> lstm_lm(Preset preset) {
  if (preset == Preset::kFull) return language_model({.name = "lstm_lm"});
  return language_model({.name = "lstm_lm_small", .vocabulary = 500, .tokens = 20, .units = 64});
}

Result<ir::Workload> lstm_lm_tied(Preset preset) {
  if (preset == Preset::kFull) return language_model({.name = "lstm_lm_tied", .tied = true});
  return language_model(
      {.name = "lstm_lm_tied_small", .tied = true, .vocabulary = 500, .tokens = 20, .units = 64});
}

}  // namespace bakeoff::zoo
