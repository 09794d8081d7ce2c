// A model can be taken apart into steps if each of its values belongs to one place of the sequence, and only attention
// looks at other places, earlier ones. So the pass follows one axis, that of the words, through all values: `axis_[id]` is
// where it lies in a value, or kNone in a value that depends on no input. An op either passes the axis on, and then does
// the same to L words as to T; or it is causal attention, which gets caches; or it mixes places, and is refused.
//
// Values that depend on no input (tables of angles, masks) keep all T places, and a step takes those of its positions.
// That is done once, where the table is made, and not where it is read: so layers stay alike and are printed once.

#include "passes/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/texts.h"
#include "ir/elementwise.h"
#include "ir/op_table.h"
#include "ir/verify.h"

namespace bakeoff::passes {
namespace {

using ir::kSteps;
using ir::Op;

constexpr int64_t kNone = -1;

bool elementwise(Op op) {
  static const std::set<Op> kOthers = {Op::kRelu, Op::kGelu, Op::kSigmoid, Op::kTanh, Op::kDropout,
                                       Op::kAdd,  Op::kMul,  Op::kWhere,   Op::kCast, Op::kStopGradient};
  return kOthers.contains(op) || ir::find_elementwise(op) != nullptr;
}

std::string parent_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

class Decoder {
 public:
  Decoder(const ir::Workload& workload, std::vector<ir::Type> types, bool caches)
      : from_(workload), types_(std::move(types)), caches_(caches) {}

  Result<ir::Workload> run() {
    CHECK_OK(find_words());
    for (int n = 0; n < from_.model_end(); ++n) {
      TRY(const int64_t axis, follow(n));
      axis_.push_back(axis);
    }
    CHECK_OK(check_end());
    find_last();
    rewrite();
    CHECK_OK(ir::infer(made_));
    return std::move(made_);
  }

 private:
  const ir::Shape& shape(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape; }
  int64_t axis(ir::ValueId id) const { return axis_[static_cast<size_t>(id)]; }
  bool depends(ir::ValueId id) const { return axis(id) != kNone; }
  static std::string remedy() {
    return "the scenario \"generate\" needs a causal language model: attention with causal=true, all else at each "
           "position by itself. Attention that is imported as products is not recognised: import it with sdpa";
  }
  Error refuse(const ir::Node& node, const std::string& why) const {
    return Error{.message = fmt::format("'{}' cannot generate word by word: {} = {} {}", from_.name,
                                        node.output, ir::info(node.op).name, why),
                 .remedy = remedy()};
  }
  Error mixes(const ir::Node& node) const { return refuse(node, "mixes the positions of a sequence"); }

  Status find_words() {
    for (int n = 0; n < from_.model_end(); ++n) {
      for (const ir::ValueId id : from_.nodes[static_cast<size_t>(n)].inputs) {
        if (!from_.is_input(id) || id == words_) continue;
        if (words_ >= 0)
          return Error{.message = fmt::format("'{}' cannot generate: it reads '{}' and '{}'", from_.name,
                                              from_.value_name(words_), from_.value_name(id)),
                       .remedy = "the scenario \"generate\" needs a model of one input, words i32[N,T]"};
        words_ = id;
      }
    }
    const bool fits = words_ >= 0 && shape(words_).size() == 2 && shape(words_)[1] > 1 &&
                      types_[static_cast<size_t>(words_)].dtype == ir::DType::kI32;
    if (!fits)
      return Error{.message = fmt::format("'{}' cannot generate: it does not read words", from_.name),
                   .remedy = "the scenario \"generate\" needs a model of one input, words i32[N,T]"};
    places_ = shape(words_)[1];
    axis_.assign(from_.inputs.size(), kNone);
    axis_[static_cast<size_t>(words_)] = 1;
    return Done{};
  }

  // Where the axis of the words lies in the value of a node.
  Result<int64_t> follow(int n) {
    const ir::Node& node = from_.nodes[static_cast<size_t>(n)];
    const auto& in = node.inputs;
    if (std::none_of(in.begin(), in.end(), [this](ir::ValueId id) { return depends(id); })) return kNone;
    const auto rank = static_cast<int64_t>(shape(from_.output_of(n)).size());
    if (elementwise(node.op) || node.op == Op::kConcat) return follow_alike(node, rank);
    const int64_t at = axis(in[0]);
    if (node.op == Op::kExpand && from_.is_constant(in[0])) return kNone;  // the same number at all places
    if (node.op == Op::kAttention) return follow_attention(node);
    const auto others =
        std::count_if(in.begin() + 1, in.end(), [this](ir::ValueId id) { return depends(id); });
    if (at == kNone || (others > 0 && node.op != Op::kExpand)) return mixes(node);
    const auto last = [&](int64_t axes) -> Result<int64_t> {
      if (at >= static_cast<int64_t>(shape(in[0]).size()) - axes) return mixes(node);
      return at;
    };
    switch (node.op) {
      case Op::kEmbedding:
      case Op::kPositionEmbedding:
        return at;
      case Op::kLinear:
        return last(1);
      case Op::kLayerNorm:
      case Op::kRmsNorm:
        return last(node.integer("dims"));
      case Op::kMatmul:
        // With a table of numbers behind it, the same for all places.
        if (ir::product(shape(in[1]), 0, shape(in[1]).size() - 2) != 1) return mixes(node);
        return last(1);
      case Op::kTranspose: {
        const auto& perm = node.integers("perm");
        return std::find(perm.begin(), perm.end(), at) - perm.begin();
      }
      case Op::kReshape:
      case Op::kFlatten:
        return follow_reshape(node, shape(from_.output_of(n)));
      case Op::kExpand:
        return at + rank - static_cast<int64_t>(shape(in[0]).size());
      case Op::kPad:
        for (const size_t side : {2 * at - 2, 2 * at - 1})
          if (node.integers("pad")[side] != 0) return mixes(node);
        return at;
      case Op::kSoftmax:
      case Op::kLogSoftmax:
      case Op::kSlice:
      case Op::kCumsum:
      case Op::kTake:
      case Op::kFlip:
      case Op::kSum:
      case Op::kMean:
      case Op::kMax:
      case Op::kMin:
      case Op::kLogsumexp:
      case Op::kProd:
      case Op::kArgmax:
        return follow_axes(node, rank);
      default:
        return mixes(node);
    }
  }

  // Along other axes than that of the words.
  Result<int64_t> follow_axes(const ir::Node& node, int64_t rank) const {
    const int64_t at = axis(node.inputs[0]);
    int64_t before = 0;
    for (const int64_t reduced : node.reduced_axes()) {
      if (reduced == at) return mixes(node);
      before += reduced < at ? 1 : 0;
    }
    const bool gone = rank < static_cast<int64_t>(shape(node.inputs[0]).size());
    return gone ? at - before : at;
  }

  // The axis stays where as many elements lie before it, and it is as long.
  Result<int64_t> follow_reshape(const ir::Node& node, const ir::Shape& to) const {
    const ir::Shape& from = shape(node.inputs[0]);
    const auto at = static_cast<size_t>(axis(node.inputs[0]));
    for (size_t b = 1; b < to.size(); ++b) {
      if (to[b] == places_ && ir::product(to, 0, b) == ir::product(from, 0, at))
        return static_cast<int64_t>(b);
    }
    return mixes(node);
  }

  // All inputs have the axis at the same place of the result; a table without inputs may have all its places there.
  Result<int64_t> follow_alike(const ir::Node& node, int64_t rank) {
    int64_t at = kNone;
    const auto shift = [&](ir::ValueId id) { return rank - static_cast<int64_t>(shape(id).size()); };
    for (const ir::ValueId id : node.inputs) {
      if (!depends(id)) continue;
      if (at != kNone && axis(id) + shift(id) != at) return mixes(node);
      at = axis(id) + shift(id);
    }
    if (node.op == Op::kConcat && node.integer("axis") == at) return mixes(node);
    for (const ir::ValueId id : node.inputs) {
      const int64_t mine = at - shift(id);
      if (depends(id) || mine < 0 || shape(id)[static_cast<size_t>(mine)] == 1) continue;
      tables_[id].insert(mine);
    }
    return at;
  }

  Result<int64_t> follow_attention(const ir::Node& node) const {
    const bool alike =
        std::all_of(node.inputs.begin(), node.inputs.end(), [this](ir::ValueId id) { return axis(id) == 1; });
    if (!node.flag("causal") || node.inputs.size() != 3 || !alike)
      return refuse(node, "sees words that come later, or a mask of padding");
    return 1;
  }

  Status check_end() const {
    const ir::Node& loss = from_.first_loss();
    const ir::Shape& logits = shape(from_.prediction());
    if (loss.op != Op::kSoftmaxCrossEntropy || logits.size() != 3 || axis(from_.prediction()) != 1)
      return Error{.message = fmt::format(
                       "'{}' cannot generate: its loss is not softmax_cross_entropy of f32[N,T,words] at "
                       "each position",
                       from_.name),
                   .remedy = remedy()};
    return Done{};
  }

  // The last linear layer reads the last word alone, if only elementwise ops follow: no other logits are asked for.
  void find_last() {
    last_ = from_.prediction();
    ir::ValueId id = last_;
    while (!from_.is_input(id)) {
      const ir::Node& node = from_.producer(id);
      if (node.op == Op::kLinear) {
        last_ = node.inputs[0];
        return;
      }
      if (!elementwise(node.op)) return;
      ir::ValueId next = kNone;
      for (const ir::ValueId in : node.inputs) {
        if (!depends(in) && tables_.contains(in)) return;
        if (depends(in) && next != kNone && next != in) return;
        if (depends(in)) next = in;
      }
      id = next;
    }
  }

  void rewrite() {
    made_ = {.name = from_.name, .inputs = {}, .parameters = from_.parameters, .nodes = {}};
    for (const ir::Input& input : from_.inputs) used_.insert(input.name);
    for (const ir::Node& node : from_.nodes) used_.insert(node.output);
    const ir::ValueId target = from_.first_loss().inputs[1];
    made_.inputs = {from_.inputs[static_cast<size_t>(words_)],
                    {fresh("positions"), {ir::DType::kI32, {kSteps}}},
                    from_.inputs[static_cast<size_t>(target)]};
    if (caches_) made_.inputs[0].type.shape = {ir::kBatch, kSteps};
    made_.inputs[2].type.shape = {ir::kBatch, caches_ ? 1 : kSteps};
    values_.assign(from_.inputs.size(), kNone);
    values_[static_cast<size_t>(words_)] = 0;
    for (int n = 0; n < from_.model_end(); ++n) {
      const ir::ValueId id = from_.output_of(n);
      values_.push_back(moved(n));
      if (id == last_) last_word();
      for (const int64_t at : caches_&& tables_.contains(id) ? tables_.at(id) : std::set<int64_t>())
        of_positions_[{id, at}] = take(values_.back(), at, from_.value_name(id));
    }
    ir::Node loss = from_.first_loss();
    loss.inputs = {value(from_.prediction()), 2};
    add(std::move(loss));
  }

  ir::ValueId value(ir::ValueId id) const { return values_[static_cast<size_t>(id)]; }

  // The node with its inputs as `made_` has them.
  ir::ValueId moved(int n) {
    ir::Node copy = from_.nodes[static_cast<size_t>(n)];
    const ir::ValueId id = from_.output_of(n);
    const int64_t rank = static_cast<int64_t>(shape(id).size()), at = axis(id);
    if (copy.op == Op::kDropout) return value(copy.inputs[0]);
    const std::vector<ir::ValueId> read = copy.inputs;
    for (ir::ValueId& in : copy.inputs) {
      const auto table = of_positions_.find({in, at - rank + static_cast<int64_t>(shape(in).size())});
      const bool takes = at != kNone && !depends(in) && table != of_positions_.end();
      in = takes ? table->second : value(in);
    }
    if (at == kNone || !caches_) return add(std::move(copy));
    if (copy.op == Op::kPositionEmbedding) return position_embedding(std::move(copy));
    if (copy.op == Op::kAttention) return attention(std::move(copy), read);
    if (copy.op == Op::kFlatten) {
      ir::Node reshape = ir::node_with_defaults(Op::kReshape);
      reshape.output = copy.output, reshape.inputs = copy.inputs;
      ir::set_attribute(reshape, "shape", shape(id));
      copy = std::move(reshape);
    }
    if (copy.op == Op::kReshape || copy.op == Op::kExpand) {
      std::vector<int64_t> sizes = copy.integers("shape");
      sizes[static_cast<size_t>(at)] = kSteps;
      ir::set_attribute(copy, "shape", std::move(sizes));
    }
    return add(std::move(copy));
  }

  ir::ValueId take(ir::ValueId table, int64_t at, const std::string& name) {
    ir::Node node = ir::node_with_defaults(Op::kTake);
    node.output = fresh(name + "_now");
    node.inputs = {table, 1};
    ir::set_attribute(node, "axis", at);
    return add(std::move(node));
  }

  ir::ValueId position_embedding(ir::Node node) {
    ir::Node table = ir::node_with_defaults(Op::kParameter);
    table.output = fresh(node.output + "_table");
    table.params = node.params;
    ir::Node wide = ir::node_with_defaults(Op::kReshape);
    wide.output = fresh(node.output + "_rows");
    const std::string name = wide.output;
    const ir::Shape& held = from_.parameters[static_cast<size_t>(node.param("weight"))].shape;
    ir::set_attribute(wide, "shape", ir::Shape{1, held[0], held[1]});
    wide.inputs = {add(std::move(table))};
    const ir::ValueId rows = take(add(std::move(wide)), 1, name);
    ir::Node sum = ir::node_with_defaults(Op::kAdd);
    sum.output = node.output;
    sum.inputs = {node.inputs[0], rows};
    return add(std::move(sum));
  }

  ir::ValueId attention(ir::Node node, const std::vector<ir::ValueId>& read) {
    const ir::Shape& k = shape(read[1]);
    const std::string path = path_of(read);
    node.inputs.push_back(1);
    ir::set_attribute(node, "rate", 0.0);
    for (const auto& [slot, leaf] : {std::pair("keys", "key_cache"), std::pair("values", "value_cache")}) {
      std::string name = path + leaf;
      for (int n = 2; made_.find_parameter(name) >= 0; ++n) name = fmt::format("{}{}_{}", path, leaf, n);
      node.params.push_back({slot, static_cast<ir::ParamId>(made_.parameters.size())});
      made_.parameters.push_back(
          {.name = name, .shape = {ir::kBatch, places_, k[2], k[3]}, .role = ir::Role::kCache});
    }
    return add(std::move(node));
  }

  // "model.layers.0.self_attn.": where the layers lie that make q, k and v; empty where they have nothing in common.
  std::string path_of(const std::vector<ir::ValueId>& read) const {
    std::vector<std::string> common;
    for (size_t i = 0; i < 3; ++i) {
      ir::ValueId id = read[i];
      while (!from_.is_input(id) && from_.producer(id).params.empty() && !from_.producer(id).inputs.empty())
        id = from_.producer(id).inputs[0];
      const bool layer = !from_.is_input(id) && !from_.producer(id).params.empty();
      const ir::ParamId p = layer ? from_.producer(id).params[0].param : -1;
      const std::string name = p < 0 ? "" : from_.parameters[static_cast<size_t>(p)].name;
      const std::vector<std::string> parts = split(parent_of(parent_of(name)), ".");
      if (i == 0) common = parts;
      size_t same = 0;
      while (same < std::min(common.size(), parts.size()) && common[same] == parts[same]) ++same;
      common.resize(same);
    }
    const std::string path = join(common, ".");
    return path.empty() ? "" : path + ".";
  }

  void last_word() {
    const ir::ValueId whole = values_.back();
    if (!caches_) {
      values_.back() = take(whole, axis(last_), from_.value_name(last_));
      return;
    }
    ir::Node node = ir::node_with_defaults(Op::kSlice);
    node.output = fresh(from_.value_name(last_) + "_last");
    node.inputs = {whole};
    ir::set_attribute(node, "axis", axis(last_));
    ir::set_attribute(node, "begin", kSteps - 1);
    ir::set_attribute(node, "end", kSteps);
    values_.back() = add(std::move(node));
  }

  ir::ValueId add(ir::Node node) {
    made_.nodes.push_back(std::move(node));
    return made_.loss();
  }

  std::string fresh(const std::string& wish) {
    std::string name = wish;
    for (int n = 2; !used_.insert(name).second; ++n) name = fmt::format("{}_{}", wish, n);
    return name;
  }

  const ir::Workload& from_;
  const std::vector<ir::Type> types_;
  const bool caches_;
  ir::ValueId words_ = kNone;
  int64_t places_ = 0;         // T
  std::vector<int64_t> axis_;  // of each value: that of the words, or kNone
  std::map<ir::ValueId, std::set<int64_t>>
      tables_;                // values without inputs whose axes hold a number for each place
  ir::ValueId last_ = kNone;  // the value of which the last word suffices
  ir::Workload made_;
  std::vector<ir::ValueId> values_;  // in `made_`, of each of `from_`
  std::map<std::pair<ir::ValueId, int64_t>, ir::ValueId>
      of_positions_;            // of tables_, those of the step's positions
  std::set<std::string> used_;  // names of values
};

}  // namespace

Result<ir::Workload> decode(const ir::Workload& workload, bool caches) {
  TRY(auto types, ir::infer(workload));
  return Decoder(workload, std::move(types), caches).run();
}

int64_t decoding_positions(const ir::Workload& workload) { return workload.inputs[0].type.shape[1]; }

}  // namespace bakeoff::passes
