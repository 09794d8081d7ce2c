// The walk: inputs, nodes in the order of the file, functions and branches within them, the output.
//
// Two batch sizes. A file may compute shapes from its input (Shape, Gather, Mul, Reshape). The workload
// wants them as numbers or as N. Instead of a symbolic algebra every constant is computed twice, as if the
// batch were 7 and as if it were 11 (Mapper::sizes): Value::at[0] and at[1]. For example, x is f32[N,4,8]
// and is reshaped to [x.shape[0] * 4, 8]:
//
//   Shape(x)            [7, 4, 8]    [11, 4, 8]
//   Gather 0, Mul 4     28           44
//   Reshape             [28, 8]      [44, 8]      28 / 7 == 44 / 11: this axis is N x 4
//
// A constant that is equal in both does not depend on the batch (Value::fixed). 7 and 11 are primes that
// rarely occur as sizes of layers. A coincidence does not stay hidden: the proof runs the file at another
// batch size. If the file states the batch as a number, both sizes are that number, because its Reshapes
// may repeat it.
//
// Where N lies is a Layout (mapper.h). The IR has N as axis 0; ONNX may have it anywhere, and a reshape may
// merge it with its neighbours.
//
// Errors. A node without a counterpart is noted and its outputs are blocked; nodes that read a blocked
// value are skipped. So one message lists every missing op, and no consequences of one. An invalid
// file (a name given twice, nodes in a circle) ends the walk at once.
//
// Scopes. Values in the body of a function have the prefix scope_, so two calls do not share names. A
// branch of an If sees the names around it and has no scope of its own.

#include <fmt/format.h>
#include <onnx/onnx.pb.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/texts.h"
#include "onnx/mapper.h"
#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

constexpr int kDepth = 16;               // functions and branches within one another
constexpr int64_t kMostNodes = 1000000;  // with those of functions
constexpr size_t kMostRefusals = 40;
constexpr int64_t kMostMadeInAll = int64_t{1} << 27;  // and four times the numbers of the file

// Some exporters write -1 where the size is open.
bool is_stated(const wire::TensorShapeProto::Dimension& dim) {
  return dim.has_dim_value() && dim.dim_value() >= 0;
}

bool is_onnx(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace

Status check_output(const Value& output, const std::string& name) {
  if (!output.is_graph() || output.layout.n == kNone)
    return Error{.message = fmt::format("the output '{}' does not depend on the inputs", name)};
  if (output.kind == Kind::kFloat) return Done{};
  return Error{.message = fmt::format("the output '{}' holds no floats", name),
               .remedy = "--output NAME chooses another"};
}

Status Mapper::define(const std::string& name, Value value) {
  if (!values_.emplace(scope_ + name, std::move(value)).second)
    return Error{.message = fmt::format("'{}' is no valid ONNX model: the name '{}' is given twice",
                                        file_.path().string(), name)};
  return Done{};
}

Result<Value> Mapper::look_up(const std::string& name) {
  if (name.empty()) return Value{};
  if (const auto found = values_.find(scope_ + name); found != values_.end()) return found->second;
  // Initialisers belong to the model: a function's body does not see them.
  const auto tensor =
      scope_.find('\x01') == std::string::npos ? initialisers_.find(name) : initialisers_.end();
  if (tensor == initialisers_.end()) {
    return Error{
        .message = fmt::format("'{}' is no valid ONNX model: '{}' is read before anything gives it (nodes in "
                               "a circle, or not in order)",
                               file_.path().string(), name)};
  }
  ArrayPtr array;
  if (!options_.given.contains(name)) {
    TRY(array, file_.decode(*tensor->second));
  }
  Value value = of_file(name, array);
  values_.emplace(scope_ + name, value);
  return value;
}

const std::set<std::string> kComparisons = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};

// What the nodes read, and the graphs within them.
template <typename Nodes>
void Mapper::count_readers(const Nodes& nodes, const std::string& scope) {
  for (const auto& n : nodes) {
    const bool compares = kComparisons.contains(n.op_type());
    for (const auto& name : n.input()) {
      ++readers_[scope + name];
      if (compares) ++comparing_[scope + name];
    }
    for (const auto& a : n.attribute()) {
      if (!a.has_g()) continue;
      count_readers(a.g().node(), scope);
      for (const auto& output : a.g().output()) ++readers_[scope + output.name()];
    }
  }
}

Status Mapper::start() {
  const wire::GraphProto& g = file_.model().graph();
  if (g.sparse_initializer_size() > 0)
    return refused("the model has sparse initialisers, which are not read");
  for (const auto& tensor : g.initializer()) {
    if (!initialisers_.emplace(tensor.name(), &tensor).second)
      return Error{.message = fmt::format("'{}' is no valid ONNX model: the name '{}' is given twice",
                                          file_.path().string(), tensor.name())};
  }
  for (const auto& f : file_.model().functions()) functions_[f.domain() + ":" + f.name()] = &f;
  count_readers(g.node(), "");
  for (const auto& output : g.output()) ++readers_[output.name()];
  return add_inputs();
}

// Axis 0, or the only open one where axis 0 is a number and that one is called by the batch.
int Mapper::batch_axis(const wire::ValueInfoProto& info) const {
  if (const auto given = options_.batch_axes.find(info.name()); given != options_.batch_axes.end())
    return given->second;
  const auto& dims = info.type().tensor_type().shape().dim();
  int open = -1;
  for (int axis = 0; axis < dims.size(); ++axis) {
    if (is_stated(dims[axis])) continue;
    if (axis == 0 || open >= 0) return 0;
    open = axis;
  }
  if (open < 0) return 0;
  const std::string name = lowered(dims[open].dim_param());
  return name == "n" || name == "b" || name.starts_with("batch") ? open : 0;
}

Status Mapper::add_inputs() {
  const wire::GraphProto& g = file_.model().graph();
  // A number in place of N: the file was written for one batch size.
  for (const auto& info : g.input()) {
    if (initialisers_.contains(info.name()) || options_.given.contains(info.name()) || added) continue;
    const auto& dims = info.type().tensor_type().shape().dim();
    const int n = batch_axis(info);
    if (n >= dims.size() || !is_stated(dims[n])) continue;
    if (sizes[0] == sizes[1] && sizes[0] != dims[n].dim_value())
      return refused(fmt::format("the inputs have batches of {} and of {}", sizes[0], dims[n].dim_value()));
    sizes[0] = sizes[1] = dims[n].dim_value();
    if (sizes[0] < 1) return refused(fmt::format("the input '{}' has a batch of {}", info.name(), sizes[0]));
  }
  for (const auto& info : g.input()) {
    if (!initialisers_.contains(info.name())) CHECK_OK(add_input(info));
  }
  return Done{};
}

Status Mapper::add_input(const wire::ValueInfoProto& info) {
  if (const auto given = options_.given.find(info.name()); given != options_.given.end()) {
    return define(info.name(), of_file(info.name(), given->second));
  }
  const auto wrong = [&](const std::string& why) {
    return Error{.message = fmt::format("the input '{}' {}", info.name(), why)};
  };
  if (!info.type().has_tensor_type()) return wrong("is no tensor");
  TRY(const Kind kind, kind_of(info.type().tensor_type().elem_type()));
  Layout layout{.n = added ? kAdded : batch_axis(info)};
  const auto& shape = info.type().tensor_type().shape();
  auto known = options_.shapes.find(info.name());
  if (known == options_.shapes.end()) known = options_.shapes.find("");
  if (known != options_.shapes.end()) {
    layout.dims = known->second;
    if (shape.dim_size() != static_cast<int>(layout.dims.size()))
      return wrong(fmt::format("has {} axes, and --input gives {}", shape.dim_size(), layout.dims.size()));
  }
  for (int axis = 0; axis < shape.dim_size(); ++axis) {
    const auto& dim = shape.dim(axis);
    const bool batch = layout.holds_batch(static_cast<size_t>(axis));
    if (known != options_.shapes.end()) {
      if (!batch && is_stated(dim) && dim.dim_value() != layout.dims[static_cast<size_t>(axis)])
        return wrong(fmt::format("has size {} at axis {}, and --input gives {}", dim.dim_value(), axis,
                                 layout.dims[static_cast<size_t>(axis)]));
    } else if (!batch && !is_stated(dim)) {
      return Error{.message = fmt::format("the input '{}' has the open size '{}' at axis {}", info.name(),
                                          dim.dim_param(), axis),
                   .remedy = fmt::format("give the sizes: --input '{}=f32[8,...]'", info.name())};
    } else {
      layout.dims.push_back(batch ? 1 : dim.dim_value());
    }
  }
  if (layout.n >= static_cast<int>(layout.rank())) return wrong("is a scalar: it has no batch axis");
  if (!added) layout.dims[static_cast<size_t>(layout.n)] = 1;
  TRY(const int64_t elements, count(layout.dims));
  if (elements < 1) return wrong("is empty");
  const std::string name = graph.unique(ir_word(info.name()));
  graph.input(name, ir_shape(layout));
  if (first_input_.empty()) first_input_ = name;
  result_.inputs.push_back({name, {kind == Kind::kFloat ? Kind::kFloat : Kind::kInt, ir_shape(layout)}});
  result_.input_names[name] = info.name();
  result_.input_layouts[name] = layout;
  mapped_.push_back({info.name(), name, "input", "", layout});
  Value value{.name = name, .kind = kind, .layout = layout};
  if (kind == Kind::kBool) {
    value.bound = 2;
    graph.base = name;
    TRY(value, truths_of(*this, value));
  } else if (kind == Kind::kInt) {
    value.bound = bound_of(info.name());
  }
  return define(info.name(), value);
}

// Integers lie in the tables that they look up; else --input says below which number, or they are 0 and 1.
int64_t Mapper::bound_of(const std::string& input) const {
  if (const auto below = options_.below.find(input); below != options_.below.end()) return below->second;
  int64_t bound = 0;
  for (const auto& n : file_.model().graph().node()) {
    if (n.op_type() != "Gather" || n.input_size() < 2 || n.input(1) != input) continue;
    const auto table = initialisers_.find(n.input(0));
    if (table == initialisers_.end() || table->second->dims_size() < 1) continue;
    const int64_t rows = table->second->dims(0);
    bound = bound == 0 ? rows : std::min(bound, rows);
  }
  return bound == 0 ? 2 : bound;
}

Result<MapResult> Mapper::run() {
  for (MapOptions options = options_;;) {
    Mapper once(file_, options);
    Result<MapResult> made = once.walk();
    const MapOptions& next = once.next_;
    if (next.whole.empty() && next.everywhere.empty() && next.frozen.empty()) return made;
    options.whole.insert(next.whole.begin(), next.whole.end());
    options.everywhere.insert(next.everywhere.begin(), next.everywhere.end());
    options.frozen.insert(next.frozen.begin(), next.frozen.end());
  }
}

Result<MapResult> Mapper::walk() {
  CHECK_OK(start());
  int64_t opset = 0;
  for (const auto& one : file_.model().opset_import()) {
    if (is_onnx(one.domain())) opset = one.version();
  }
  const wire::GraphProto& g = file_.model().graph();
  if (opset < 1 || opset > 27)
    return refused(fmt::format("the model is of opset {}; opsets 1 to 27 are read", opset));
  CHECK_OK(walk_nodes(g.node(), opset, 0));
  if (!refusals_.empty() && next_.frozen.empty()) return refusal_error();
  if (!next_.frozen.empty()) return refused("weights are not trained in the next walk");
  return finish();
}

template <typename Nodes>
Status Mapper::walk_nodes(const Nodes& nodes, int64_t opset, int depth) {
  for (const auto& n : nodes) CHECK_OK(node(n, opset, depth));
  return Done{};
}

void Mapper::refuse(const wire::NodeProto& n, const std::string& why) {
  refusals_.push_back({(is_onnx(n.domain()) ? "" : n.domain() + ".") + n.op_type(), n.name(), why});
}

Status Mapper::node(const wire::NodeProto& n, int64_t opset, int depth) {
  if (++nodes_seen_ > kMostNodes) return refused("the model has more than a million nodes");
  ops_seen_.insert(n.op_type());
  const bool blocked = std::any_of(n.input().begin(), n.input().end(),
                                   [&](const auto& name) { return blocked_.contains(scope_ + name); });
  const auto block = [&] {
    for (const auto& output : n.output()) blocked_.insert(scope_ + output);
  };
  if (blocked) {
    block();
    return Done{};
  }
  std::map<std::string, const wire::AttributeProto*> attributes;
  for (const auto& a : n.attribute()) attributes[a.name()] = &a;
  Call call{n, opset, {}, attributes, file_};
  for (const auto& name : n.output()) call.used.push_back(!name.empty() && readers_.contains(scope_ + name));
  for (const auto& name : n.input()) {
    TRY(Value value, look_up(name));
    call.inputs.push_back(std::move(value));
  }
  const wire::NodeProto* outer = current_;
  current_ = &n;
  graph.base = ir_word(n.output_size() > 0 && !n.output(0).empty() ? n.output(0) : n.op_type());
  if (const size_t end = graph.base.rfind("_output_"); end != std::string::npos && end > 0)
    graph.base.resize(end);
  graph.source = n.op_type();
  graph.where = n.name();
  const auto own = functions_.find(n.domain() + ":" + n.op_type());
  if (own != functions_.end()) {
    CHECK_OK(function(*own->second, n, call.inputs, depth));
    current_ = outer;
    return Done{};
  }
  gave_up_ = false;
  const auto made = map_call(call, depth);
  current_ = outer;
  if (!made) {
    give_up(call, made.error().message);
    if (!gave_up_) refuse(n, made.error().message);
    block();
    return Done{};
  }
  for (int i = 0; i < n.output_size(); ++i) {
    if (n.output(i).empty()) continue;
    const auto at = static_cast<size_t>(i);
    if (at >= made->size() || (*made)[at].absent()) {
      if (!call.used[at]) continue;
      refuse(n, fmt::format("output {} ('{}') has no counterpart", i, n.output(i)));
      block();
      return Done{};
    }
    const Value& value = (*made)[at];
    if (value.is_graph() && value.layout.n != kNone && scope_.empty())
      mapped_.push_back({n.output(i), value.name, n.op_type(), n.name(), value.layout});
    CHECK_OK(define(n.output(i), value));
  }
  return Done{};
}

Result<Values> Mapper::map_call(const Call& call, int depth) {
  // Ops that had other inputs or attributes then.
  static const std::set<std::string> kChanged = {
      "BatchNormalization", "Cast", "Dropout", "Gemm", "Pad", "Tile", "Upsample"};
  if (call.opset < 6 && kChanged.contains(call.op()))
    return refused(fmt::format("it is of opset {}, in which it had another form", call.opset));
  if (!is_onnx(call.node.domain()))
    return refused(fmt::format("the op is of the domain '{}', which is not ONNX's own{}", call.node.domain(),
                               call.node.domain() == "com.microsoft"
                                   ? "; import the file from before ONNX Runtime's optimiser"
                                   : ""));
  if (call.op() == "If") return branch(call, depth);
  TRY(auto computed, folded(call));
  if (computed) return *computed;
  const auto row = rows().find(call.op());
  if (row == rows().end()) return refused("there is no counterpart in the IR");
  if (call.in(0).absent()) return refused("an input is missing");
  Call read = call;
  CHECK_OK(on_graph(read));
  TRY(Values made, row->second(*this, read));
  remember_weights(read, made);
  return made;
}

// Computes a node whose inputs are all constants, at both batch sizes; not what is trained on its way through arithmetic.
Result<std::optional<Values>> Mapper::folded(const Call& call) {
  const auto fold = folds().find(call.op());
  if (fold == folds().end()) return std::optional<Values>();
  // What moves numbers, and what passes no gradient.
  static const std::set<std::string> kMoves = {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity",
                                               "Flatten", "Cast",    "CastLike",  "Slice",     "Split",
                                               "Gather",  "Concat",  "Expand",    "Tile"};
  static const std::set<std::string> kSteps = {
      "Shape", "Size", "Equal",   "Less",  "LessOrEqual", "Greater", "GreaterOrEqual",
      "Not",   "And",  "NonZero", "Floor", "Ceil",        "Round",   "ConstantOfShape"};
  const bool moves = kMoves.contains(call.op()), steps = kSteps.contains(call.op());
  bool fixed_all = true, trains = false;
  for (const Value& v : call.inputs) {
    if (v.is_graph()) return std::optional<Values>();
    fixed_all = fixed_all && v.fixed();
    if (!v.is_const() || !v.at[0]->has_origins() || steps) continue;
    trains = trains || tracked(v);
    if ((trains && !moves) || is_whole(*v.at[0])) return std::optional<Values>();
    if (moves) continue;
    for (const Tensor* one : tensors_of(*v.at[0])) computed_with_.insert(one->name);
  }
  Values made;
  for (int which = 0; which < (fixed_all ? 1 : 2); ++which) {
    Arrays arrays;
    for (const Value& v : call.inputs) arrays.push_back(v.at[which]);
    TRY(const Arrays results, fold->second(call, arrays));
    for (const ArrayPtr& one : results)
      if (std::ranges::find(arrays, one) == arrays.end()) numbers_made_ += static_cast<int64_t>(one->size());
    if (numbers_made_ > kMostMadeInAll + 4 * next_origin_)
      return refused(fmt::format("the file's ops on constants make more than {} numbers", kMostMadeInAll));
    made.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      made[i].at[which] = results[i];
      if (fixed_all) made[i].at[1] = results[i];
    }
  }
  for (Value& v : made) {
    if (trains && !clean(v)) return std::optional<Values>();
    for (ArrayPtr& at : v.at) at = moves ? at : without_origins(at);
  }
  if (call.op() == "Constant" && scope_.empty() && !made[0].at[0]->shape.empty())
    made[0] = of_file(call.node.output(0), made[0].at[0], true);
  return std::optional<Values>(std::move(made));
}

Result<Values> Mapper::branch(const Call& call, int depth) {
  if (depth >= kDepth) return refused("branches lie too deep within one another");
  const Value& condition = call.in(0);
  if (!condition.is_const() || !condition.fixed() || condition.at[0]->size() != 1)
    return refused("the branch depends on data");
  const char* name = condition.at[0]->real(0) != 0 ? "then_branch" : "else_branch";
  const auto found = call.attributes.find(name);
  if (found == call.attributes.end()) return refused(std::string("has no ") + name);
  const wire::GraphProto& g = found->second->g();
  for (const auto& tensor : g.initializer()) {
    TRY(const ArrayPtr array, file_.decode(tensor));
    CHECK_OK(define(tensor.name(), of_file(tensor.name(), array)));
  }
  const size_t refusals = refusals_.size();
  CHECK_OK(walk_nodes(g.node(), call.opset, depth + 1));
  if (refusals_.size() > refusals) return refused("a node of the branch has no counterpart");
  Values outputs;
  for (const auto& output : g.output()) {
    TRY(Value value, look_up(output.name()));
    outputs.push_back(std::move(value));
  }
  return outputs;
}

// A function of the model's own: its nodes, in a scope of their own.
Status Mapper::function(const wire::FunctionProto& f, const wire::NodeProto& n, const Values& inputs,
                        int depth) {
  if (depth >= kDepth) {
    refuse(n, "functions lie too deep within one another");
    for (const auto& output : n.output()) blocked_.insert(scope_ + output);
    return Done{};
  }
  wire::FunctionProto body = f;  // attributes that refer to those of the call are filled in
  std::map<std::string, const wire::AttributeProto*> given;
  for (const auto& a : f.attribute_proto()) given[a.name()] = &a;
  for (const auto& a : n.attribute()) given[a.name()] = &a;
  for (auto& inner : *body.mutable_node()) {
    auto& list = *inner.mutable_attribute();
    for (int i = list.size(); i-- > 0;) {
      if (list[i].ref_attr_name().empty()) continue;
      const std::string name = list[i].name();
      const auto found = given.find(list[i].ref_attr_name());
      if (found == given.end()) {
        list.DeleteSubrange(i, 1);
        continue;
      }
      list[i] = *found->second;
      list[i].set_name(name);
    }
  }
  int64_t opset = 0;
  for (const auto& one : f.opset_import()) {
    if (is_onnx(one.domain())) opset = one.version();
  }
  const std::string outer = scope_;
  scope_ = fmt::format("{}\x01{}\x01", outer, nodes_seen_);
  for (int i = 0; i < f.input_size(); ++i)
    CHECK_OK(define(f.input(i),
                    static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : Value{}));
  count_readers(body.node(), scope_);
  for (const auto& name : f.output()) ++readers_[scope_ + name];
  const size_t refusals = refusals_.size();
  CHECK_OK(walk_nodes(body.node(), opset, depth + 1));
  Values outputs;
  for (const auto& name : f.output()) {
    if (refusals_.size() > refusals) break;
    TRY(Value value, look_up(name));
    outputs.push_back(std::move(value));
  }
  scope_ = outer;
  for (int i = 0; i < n.output_size(); ++i) {
    if (static_cast<size_t>(i) >= outputs.size())
      blocked_.insert(scope_ + n.output(i));
    else if (!n.output(i).empty())
      CHECK_OK(define(n.output(i), outputs[static_cast<size_t>(i)]));
  }
  return Done{};
}

Error Mapper::refusal_error() const {
  std::vector<std::string> lines;
  std::map<std::string, int> more;
  for (const Refusal& r : refusals_) {
    if (++more[r.op + r.why] > 1) continue;
    lines.push_back(
        fmt::format("{}{}: {}", r.op, r.node.empty() ? "" : fmt::format(" ('{}')", r.node), r.why));
  }
  const size_t all = lines.size();
  if (all > kMostRefusals) lines.resize(kMostRefusals), lines.push_back("...");
  return {.message =
              fmt::format("{} op{} cannot be imported:\n  {}", all, all == 1 ? "" : "s", join(lines, "\n  ")),
          .remedy = "nothing was written"};
}

Result<std::vector<std::string>> Mapper::chosen_outputs() const {
  std::vector<std::string> names;
  for (const auto& output : file_.model().graph().output()) names.push_back(output.name());
  const std::string& asked = options_.output;
  if (asked.empty() && names.size() == 1) return names;
  const bool one = asked.empty() || std::ranges::count(names, asked) > 0;  // a name may have a comma
  const std::vector<std::string> chosen = one ? std::vector{asked} : bakeoff::split(asked, ",");
  for (const std::string& name : chosen) {
    if (std::ranges::count(chosen, name) > 1)
      return Error{.message = fmt::format("the output '{}' is named twice", name),
                   .remedy = "name each output once"};
    if (std::ranges::count(names, name) > 0) continue;
    return Error{
        .message = names.empty() ? "the model has no output"
                   : name.empty()
                       ? fmt::format("the model has {} outputs: {}", names.size(), join(names, ", "))
                       : fmt::format("the model has no output '{}'; it has {}", name, join(names, ", ")),
        .remedy = names.empty()
                      ? ""
                      : "--output NAME chooses the one that the loss compares; to predict several, their "
                        "names with commas between them"};
  }
  return chosen;
}

// What the loss compares; of several outputs, which keep their shapes and names, a `join`.
Status Mapper::add_output() {
  TRY(result_.output_names, chosen_outputs());
  std::vector<std::string> parts;
  Layout side_by_side{.dims = {1, 0}, .n = 0};
  for (const std::string& name : result_.output_names) {
    TRY(result_.output, look_up(name));
    const Layout& layout = result_.output.layout;
    result_.output_layouts.push_back(layout);
    if (result_.output_names.size() == 1) return Done{};
    CHECK_OK(check_output(result_.output, name));
    graph.base = ir_word(name);
    Shape shape = ir_shape(layout);
    if (shape.size() == 1) shape.push_back(1);
    parts.push_back(graph.reshape(result_.output.name, shape));
    if (std::ranges::count(parts, parts.back()) > 1)
      return Error{.message = fmt::format("the output '{}' holds the same values as another", name),
                   .remedy = "name one of them"};
    side_by_side.dims[1] += std::accumulate(shape.begin() + 1, shape.end(), int64_t{1}, std::multiplies<>());
  }
  graph.base = "outputs";
  result_.output = make("join", parts, side_by_side);
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = ir_word(result_.output_names[i]), old = parts[i];
    if (graph.rename(old, name)) std::ranges::replace(parts, name, old);
  }
  return Done{};
}

Result<MapResult> Mapper::finish() {
  CHECK_OK(add_output());
  if (result_.output.is_graph()) {
    std::set<std::string> used, statistics;
    for (const GraphNode* one : graph.live(result_.output.name)) {
      result_.text += "  " + graph.line(*one) + "\n";
      result_.ops.emplace_back(one->op, one->source + (one->where.empty() ? "" : " ('" + one->where + "')"));
      for (const auto& [slot, name] : one->params) {
        if (used.insert(name).second) result_.parameters.push_back(graph.parameters().at(name));
        if (one->op == "batch_norm" && (slot == "mean" || slot == "var")) statistics.insert(name);
      }
    }
    settle_tensors(statistics);
  }
  count_numbers();
  note_copies();
  result_.options = options_;
  if (!ops_seen_.contains("Dropout"))
    notes.insert("the file has no dropout: exporters leave it out unless they export in training mode");
  if (ops_seen_.contains("Conv") && !ops_seen_.contains("BatchNormalization"))
    notes.insert(
        "the file has no batch norm: exporters fold it into convolutions unless they export in training mode");
  result_.notes.assign(notes.begin(), notes.end());
  result_.values = std::move(mapped_);
  if (added) result_.batch = 1;
  if (!added && sizes[0] == sizes[1]) result_.batch = sizes[0];
  return std::move(result_);
}

}  // namespace bakeoff::onnx
