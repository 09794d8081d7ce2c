#include "onnx/mapper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "onnx/onnx.pb.h"
#include "onnx/rows.h"

namespace bakeoff::onnx {
namespace {

constexpr int kDepth = 16;               // functions and branches within one another
constexpr int64_t kMostNodes = 1000000;  // with those of functions
constexpr size_t kMostRefusals = 40;

bool is_onnx(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

// A name as people give them, not one that an exporter made.
bool given_name(const std::string& name) {
  if (name.starts_with("onnx::") || name.starts_with("val_") || name.starts_with("_")) return false;
  if (name.empty() || name[0] == '/' || (name[0] >= '0' && name[0] <= '9')) return false;
  return std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/'; });
}

}  // namespace

Error refused(const std::string& why) { return Error{.message = why}; }

Shape ir_shape(const Layout& layout) {
  Shape shape = {kBatch};
  for (size_t axis = 0; axis < layout.rank(); ++axis) {
    if (!layout.holds_batch(axis)) {
      shape.push_back(layout.dims[axis]);
      continue;
    }
    if (layout.before > 1) shape.push_back(layout.before);
    if (layout.after > 1) shape.push_back(layout.after);
  }
  return shape;
}

int64_t ir_axis(const Layout& layout, size_t axis) {
  if (layout.n == kAdded) return static_cast<int64_t>(axis) + 1;
  const auto a = static_cast<int64_t>(axis);
  if (a < layout.n) return a + 1;
  return a + (layout.before > 1 ? 1 : 0) + (layout.after > 1 ? 1 : 0);
}

const std::string& Call::op() const { return node.op_type(); }
const std::string& Call::name() const { return node.name(); }
size_t Call::outputs() const {
  return static_cast<size_t>(
      std::count_if(node.output().begin(), node.output().end(), [](const auto& o) { return !o.empty(); }));
}
const Value& Call::in(size_t input) const {
  static const Value kNone;
  return input < inputs.size() ? inputs[input] : kNone;
}
int64_t Call::integer(const std::string& name, int64_t fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second->i();
}
double Call::real(const std::string& name, double fallback) const {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return fallback;
  // 1e-5 in a float of 32 bits means 1e-5.
  return std::stod(fmt::format("{}", found->second->f()));
}
std::vector<double> Call::reals(const std::string& name) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? std::vector<double>()
                                   : std::vector<double>(found->second->floats().begin(), found->second->floats().end());
}
Ints Call::integers(const std::string& name, Ints fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : Ints(found->second->ints().begin(), found->second->ints().end());
}
std::string Call::text(const std::string& name, const std::string& fallback) const {
  const auto found = attributes.find(name);
  return found == attributes.end() ? fallback : found->second->s();
}
Result<ArrayPtr> Call::array(const std::string& name) const {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return refused("has no attribute '" + name + "'");
  return file.decode(found->second->t());
}

Mapper::Mapper(const ModelFile& file, MapOptions options) : file_(file), options_(std::move(options)) {
  added = options_.added_batch;
}

// ---- the walk

Status Mapper::define(const std::string& name, Value value) {
  if (!values_.emplace(scope_ + name, std::move(value)).second)
    return Error{.message = fmt::format("'{}' is no valid ONNX model: the name '{}' is given twice",
                                        file_.path().string(), name)};
  return Done{};
}

Result<Value> Mapper::look_up(const std::string& name) {
  if (name.empty()) return Value{};
  if (const auto found = values_.find(scope_ + name); found != values_.end()) return found->second;
  const auto tensor = scope_.find('\x01') == std::string::npos ? initialisers_.find(name) : initialisers_.end();
  if (tensor == initialisers_.end()) {
    return Error{.message = fmt::format("'{}' is no valid ONNX model: '{}' is read before anything gives it (nodes in "
                                        "a circle, or not in order)",
                                        file_.path().string(), name)};
  }
  Value value;
  if (const auto given = options_.given.find(name); given != options_.given.end()) {
    value = constant(given->second);
  } else {
    TRY(const ArrayPtr array, file_.decode(*tensor->second));
    value = constant(array);
  }
  if (value.at[0]->is_float() && !value.at[0]->shape.empty()) value.source = name;
  values_.emplace(scope_ + name, value);
  return value;
}

// What the nodes read, and the graphs within them.
template <typename Nodes>
void Mapper::count_readers(const Nodes& nodes, const std::string& scope) {
  for (const auto& n : nodes) {
    for (const auto& name : n.input()) ++readers_[scope + name];
    for (const auto& a : n.attribute()) {
      if (!a.has_g()) continue;
      count_readers(a.g().node(), scope);
      for (const auto& output : a.g().output()) ++readers_[scope + output.name()];
    }
  }
}

Status Mapper::start() {
  const wire::GraphProto& g = file_.model().graph();
  if (g.sparse_initializer_size() > 0) return refused("the model has sparse initialisers, which are not read");
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

Status Mapper::add_inputs() {
  const wire::GraphProto& g = file_.model().graph();
  // A number in place of N: the file was written for one batch size.
  for (const auto& info : g.input()) {
    if (initialisers_.contains(info.name()) || options_.given.contains(info.name()) || added) continue;
    const auto& dims = info.type().tensor_type().shape().dim();
    if (dims.size() == 0 || !dims[0].has_dim_value()) continue;
    if (sizes[0] == sizes[1] && sizes[0] != dims[0].dim_value())
      return refused(fmt::format("the inputs have batches of {} and of {}", sizes[0], dims[0].dim_value()));
    sizes[0] = sizes[1] = dims[0].dim_value();
    if (sizes[0] < 1) return refused(fmt::format("the input '{}' has a batch of {}", info.name(), sizes[0]));
  }
  for (const auto& info : g.input()) {
    if (!initialisers_.contains(info.name())) CHECK_OK(add_input(info));
  }
  return Done{};
}

Status Mapper::add_input(const wire::ValueInfoProto& info) {
  if (const auto given = options_.given.find(info.name()); given != options_.given.end()) {
    Value value = constant(given->second);
    if (value.at[0]->is_float() && !value.at[0]->shape.empty()) value.source = info.name();
    return define(info.name(), value);
  }
  const auto wrong = [&](const std::string& why) {
    return Error{.message = fmt::format("the input '{}' {}", info.name(), why)};
  };
  if (!info.type().has_tensor_type()) return wrong("is no tensor");
  TRY(const Kind kind, kind_of(info.type().tensor_type().elem_type()));
  if (kind == Kind::kBool) return wrong("holds booleans; inputs of a workload are f32 or i32");
  Layout layout{.n = added ? kAdded : 0};
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
    const bool batch = axis == 0 && !added;
    if (known != options_.shapes.end()) {
      if (!batch && dim.has_dim_value() && dim.dim_value() != layout.dims[static_cast<size_t>(axis)])
        return wrong(fmt::format("has size {} at axis {}, and --input gives {}", dim.dim_value(), axis,
                                 layout.dims[static_cast<size_t>(axis)]));
    } else if (!batch && !dim.has_dim_value()) {
      return Error{.message = fmt::format("the input '{}' has the open size '{}' at axis {}", info.name(),
                                          dim.dim_param(), axis),
                   .remedy = fmt::format("give the sizes: --input '{}=f32[8,...]'", info.name())};
    } else {
      layout.dims.push_back(batch ? 1 : dim.dim_value());
    }
  }
  if (!added && layout.dims.empty()) return wrong("is a scalar: it has no batch axis");
  if (!added) layout.dims[0] = 1;
  TRY(const int64_t elements, count(layout.dims));
  if (elements < 1) return wrong("is empty");
  const std::string name = graph.unique(ir_word(info.name()));
  graph.input(name, ir_shape(layout));
  if (first_input_.empty()) first_input_ = name;
  result_.inputs.push_back({name, {kind, ir_shape(layout)}});
  result_.input_names[name] = info.name();
  mapped_.push_back({info.name(), name, "input", "", layout});
  return define(info.name(), Value{.name = name, .kind = kind, .layout = layout});
}

Result<MapResult> Mapper::run() {
  CHECK_OK(start());
  int64_t opset = 0;
  for (const auto& one : file_.model().opset_import()) {
    if (is_onnx(one.domain())) opset = one.version();
  }
  const wire::GraphProto& g = file_.model().graph();
  if (opset < 6 || opset > 27)
    return refused(fmt::format("the model is of opset {}; opsets 6 to 27 are read", opset));
  CHECK_OK(walk_nodes(g.node(), opset, 0));
  if (!refusals_.empty()) return refusal_error();
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
  if (const size_t end = graph.base.rfind("_output_"); end != std::string::npos && end > 0) graph.base.resize(end);
  graph.source = n.op_type();
  graph.where = n.name();
  const auto own = functions_.find(n.domain() + ":" + n.op_type());
  if (own != functions_.end()) {
    CHECK_OK(function(*own->second, n, call.inputs, depth));
    current_ = outer;
    return Done{};
  }
  const auto made = map_call(call, depth);
  current_ = outer;
  if (!made) {
    refuse(n, made.error().message);
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
    if (value.is_graph() && scope_.empty())
      mapped_.push_back({n.output(i), value.name, n.op_type(), n.name(), value.layout});
    CHECK_OK(define(n.output(i), value));
  }
  return Done{};
}

Result<Values> Mapper::map_call(const Call& call, int depth) {
  if (!is_onnx(call.node.domain()))
    return refused(fmt::format("the op is of the domain '{}', which is not ONNX's own", call.node.domain()));
  if (call.op() == "If") return branch(call, depth);
  TRY(auto computed, folded(call));
  if (computed) return *computed;
  const auto row = rows().find(call.op());
  if (row == rows().end()) return refused("there is no counterpart in the IR");
  return row->second(*this, call);
}

// Computes a node whose inputs are all constants, at both batch sizes.
Result<std::optional<Values>> Mapper::folded(const Call& call) {
  const auto fold = folds().find(call.op());
  if (fold == folds().end()) return std::optional<Values>();
  bool fixed_all = true;
  for (const Value& v : call.inputs) {
    if (v.is_graph()) return std::optional<Values>();
    fixed_all = fixed_all && v.fixed();
  }
  Values made;
  for (int which = 0; which < (fixed_all ? 1 : 2); ++which) {
    Arrays arrays;
    for (const Value& v : call.inputs) arrays.push_back(v.at[which]);
    TRY(const Arrays results, fold->second(call, arrays));
    made.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      made[i].at[which] = results[i];
      if (fixed_all) made[i].at[1] = results[i];
    }
  }
  static const std::set<std::string> kRearranged = {"Reshape", "Squeeze", "Unsqueeze", "Transpose", "Identity",
                                                    "Flatten"};
  if (!call.inputs.empty() && kRearranged.contains(call.op()) && !made.empty()) made[0].source = call.in(0).source;
  if (call.op() == "Cast" && made[0].at[0]->is_float() && call.in(0).at[0]->is_float())
    made[0].source = call.in(0).source;
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
    CHECK_OK(define(tensor.name(), constant(array)));
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
Status Mapper::function(const wire::FunctionProto& f, const wire::NodeProto& n, const Values& inputs, int depth) {
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
    CHECK_OK(define(f.input(i), static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : Value{}));
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
    lines.push_back(fmt::format("{}{}: {}", r.op, r.node.empty() ? "" : fmt::format(" ('{}')", r.node), r.why));
  }
  const size_t all = lines.size();
  if (all > kMostRefusals) lines.resize(kMostRefusals), lines.push_back("...");
  return {.message = fmt::format("{} op{} cannot be imported:\n  {}", all, all == 1 ? "" : "s",
                                 fmt::join(lines, "\n  ")),
          .remedy = "nothing was written"};
}

Result<MapResult> Mapper::finish() {
  const auto& outputs = file_.model().graph().output();
  std::vector<std::string> names;
  for (const auto& output : outputs) names.push_back(output.name());
  std::string wanted = options_.output;
  if (wanted.empty() && names.size() == 1) wanted = names[0];
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    return Error{.message = names.empty() ? "the model has no output"
                            : wanted.empty()
                                ? fmt::format("the model has {} outputs: {}", names.size(), fmt::join(names, ", "))
                                : fmt::format("the model has no output '{}'; it has {}", wanted, fmt::join(names, ", ")),
                 .remedy = names.empty() ? "" : "--output NAME chooses the one that the loss compares"};
  }
  TRY(result_.output, look_up(wanted));
  result_.output_name = wanted;
  if (result_.output.is_graph()) {
    std::set<std::string> used;
    for (const GraphNode* one : graph.live(result_.output.name)) {
      result_.text += "  " + graph.line(*one) + "\n";
      result_.ops.emplace_back(one->op, one->source + (one->where.empty() ? "" : " ('" + one->where + "')"));
      for (const auto& [slot, name] : one->params) {
        if (used.insert(name).second) result_.parameters.push_back(graph.parameters().at(name));
      }
    }
  }
  std::vector<std::string> frozen;
  for (const GraphParameter& p : result_.parameters) {
    if (p.frozen && !p.source.empty()) frozen.push_back(p.source);
    if (p.frozen || p.source.empty()) continue;
    std::string source = p.source;  // of a part: "name.forward"
    while (!initialisers_.contains(source) && source.rfind('.') != std::string::npos) source.resize(source.rfind('.'));
    result_.trained_sources.insert(source);
  }
  if (!frozen.empty()) {
    if (frozen.size() > 8) frozen.resize(8), frozen.push_back("...");
    notes.insert(fmt::format("constants that are not trained: {}", fmt::join(frozen, ", ")));
  }
  if (!ops_seen_.contains("Dropout"))
    notes.insert("the file has no dropout: exporters leave it out unless they export in training mode");
  if (ops_seen_.contains("Conv") && !ops_seen_.contains("BatchNormalization"))
    notes.insert("the file has no batch norm: exporters fold it into convolutions unless they export in training mode");
  result_.notes.assign(notes.begin(), notes.end());
  result_.values = std::move(mapped_);
  if (added) result_.batch = 1;
  if (!added && sizes[0] == sizes[1]) result_.batch = sizes[0];
  return std::move(result_);
}

// ---- for the rows

Value Mapper::make(const std::string& op, std::vector<std::string> inputs, Layout layout, Attributes attributes,
                   Params params, Kind kind) {
  const Shape shape = ir_shape(layout);
  return Value{.name = graph.node(op, std::move(inputs), shape, std::move(attributes), std::move(params)),
               .kind = kind,
               .layout = std::move(layout)};
}

Value Mapper::reshaped(const Value& v, const Layout& layout) {
  return Value{.name = graph.reshape(v.name, ir_shape(layout)), .kind = v.kind, .layout = layout};
}

Value Mapper::transposed_value(const Value& v, const Ints& perm) {
  Layout out = v.layout;
  Ints axes = {0};
  for (size_t i = 0; i < perm.size(); ++i) {
    const auto from = static_cast<size_t>(perm[i]);
    out.dims[i] = v.layout.dims[from];
    if (!v.layout.holds_batch(from)) {
      axes.push_back(ir_axis(v.layout, from));
      continue;
    }
    out.n = static_cast<int>(i);
    int64_t at = static_cast<int64_t>(from) + 1;
    if (v.layout.before > 1) axes.push_back(at++);
    if (v.layout.after > 1) axes.push_back(at++);
  }
  return Value{.name = graph.transpose(v.name, axes), .kind = v.kind, .layout = out};
}

Result<Layout> Mapper::broadcast_layout(const Values& operands) const {
  size_t rank = 0;
  for (const Value& v : operands) rank = std::max(rank, v.is_const() ? v.at[0]->shape.size() : v.layout.rank());
  Layout out{.dims = Shape(rank, 1), .n = kAdded};
  bool found = false;
  for (const Value& v : operands) {
    if (!v.is_graph() || v.layout.n == kAdded) continue;
    const int n = v.layout.n + static_cast<int>(rank - v.layout.rank());
    if (found && (n != out.n || v.layout.before != out.before || v.layout.after != out.after))
      return refused("rows of the batch meet: N lies on different axes of the inputs");
    found = true;
    out.n = n;
    out.before = v.layout.before;
    out.after = v.layout.after;
  }
  for (const Value& v : operands) {
    const Shape& dims = v.is_const() ? v.at[0]->shape : v.layout.dims;
    for (size_t i = 0; i < dims.size(); ++i) {
      const size_t axis = rank - dims.size() + i;
      if (out.holds_batch(axis)) continue;
      if (dims[i] != 1 && out.dims[axis] != 1 && dims[i] != out.dims[axis])
        return refused("the sizes of the inputs do not broadcast");
      if (dims[i] != 1) out.dims[axis] = dims[i];
    }
  }
  if (out.n != kAdded) out.dims[static_cast<size_t>(out.n)] = out.before * out.after;
  return out;
}

namespace {

// One row of a constant along the batch axis of `out`, where all rows are equal; before and after apart.
Result<ArrayPtr> one_row(const ArrayPtr& array, const Layout& out, int64_t batch) {
  Shape shape(out.rank() - array->shape.size(), 1);
  shape.insert(shape.end(), array->shape.begin(), array->shape.end());
  if (out.n == kAdded) return shaped(*array, shape);
  const auto n = static_cast<size_t>(out.n);
  Shape split(shape.begin(), shape.begin() + out.n);
  const bool whole = shape[n] == out.before * batch * out.after && !(shape[n] == 1 && batch != 1);
  if (shape[n] != 1 && !whole) return refused("a constant has several rows where the batch is");
  const int64_t rows = whole ? batch : 1;
  const int64_t before = whole ? out.before : 1, after = whole ? out.after : 1;
  split.insert(split.end(), {before, rows, after});
  split.insert(split.end(), shape.begin() + out.n + 1, shape.end());
  const ArrayPtr all = shaped(*array, split);
  const ArrayPtr first = sliced(*all, n + 1, 0, 1);
  if (rows > 1) {
    TRY(const ArrayPtr again, expanded(first, split));
    if (*again != *all) return refused("a constant differs between rows of the batch");
  }
  Shape kept(split.begin(), split.begin() + out.n);
  if (out.before > 1) kept.push_back(before);
  if (out.after > 1) kept.push_back(after);
  kept.insert(kept.end(), shape.begin() + out.n + 1, shape.end());
  return shaped(*first, kept);
}

}  // namespace

std::string Mapper::scalar(double number) {
  return graph.node("constant", {}, {}, {{"value", real_text(number)}});
}

Result<std::string> Mapper::frozen(const std::string& wanted, ArrayPtr array) {
  return graph.parameter(wanted, array, true, "");
}

Result<std::string> Mapper::operand(const Value& v, const Layout& out) {
  if (v.is_graph()) {
    Layout padded = out;
    std::fill(padded.dims.begin(), padded.dims.end(), 1);
    std::copy(v.layout.dims.begin(), v.layout.dims.end(), padded.dims.end() - static_cast<int64_t>(v.layout.rank()));
    return graph.reshape(v.name, ir_shape(padded));
  }
  TRY(const ArrayPtr a, one_row(v.at[0], out, sizes[0]));
  TRY(const ArrayPtr b, one_row(v.at[1], out, sizes[1]));
  if (*a != *b) return refused("a constant depends on the batch size");
  if (a->kind == Kind::kBool) return refused("a constant of booleans has no counterpart here");
  if (a->size() == 1 && v.source.empty()) return scalar(a->real(0));
  Shape shape = a->shape;
  shape.insert(shape.begin(), 1);
  ArrayPtr whole = shaped(*a, shape);
  if (!whole->is_float()) {
    Array reals{.kind = Kind::kFloat, .shape = shape};
    for (const int64_t i : whole->ints) reals.reals.push_back(static_cast<double>(i));
    whole = std::make_shared<Array>(std::move(reals));
  }
  // Rows that an exporter has repeated are no parameter.
  const bool trained = given_name(v.source) && a->size() > 1 && a->size() == v.at[0]->size();
  if (a->size() == 1) return scalar(a->real(0));
  TRY(const std::string name, graph.parameter(v.source.empty() ? graph.base + ".constant" : v.source, whole, !trained,
                                              v.source));
  return graph.node("parameter", {}, shape, {}, {{"weight", name}});
}

Result<Value> Mapper::elementwise(const std::string& op, const Values& operands, Attributes attributes, Kind kind) {
  TRY(const Layout out, broadcast_layout(operands));
  std::vector<std::string> names;
  for (const Value& v : operands) {
    TRY(std::string name, operand(v, out));
    names.push_back(std::move(name));
  }
  return make(op, std::move(names), out, std::move(attributes), {}, kind);
}

Result<Value> Mapper::scalar_op(const std::string& op, const Value& x, double number) {
  return elementwise(op, {x, constant(of_real(number))});
}

std::string Mapper::weight_name(const Value& v, const std::string& slot) const {
  if (given_name(v.source)) return v.source;
  // "/layers.0/fc1/MatMul" is the layer "layers.0.fc1".
  std::string node = current_ == nullptr ? "" : current_->name();
  if (node.starts_with('/') && node.rfind('/') > 0) {
    node = node.substr(1, node.rfind('/') - 1);
    std::replace(node.begin(), node.end(), '/', '.');
    return node + "." + slot;
  }
  if (!v.source.empty() && !v.source.starts_with("onnx::")) return v.source;
  return graph.base + "." + slot;
}

Result<std::string> Mapper::weight(const Value& v, const std::string& slot, bool trained) {
  if (!v.is_const()) return refused(fmt::format("its {} is computed from the inputs", slot));
  if (!v.fixed()) return refused(fmt::format("its {} depends on the batch size", slot));
  if (!v.at[0]->is_float()) return refused(fmt::format("its {} holds integers", slot));
  const Array& array = *v.at[0];
  const bool level = array.shape.size() == 1 && array.size() > 1 &&
                     std::all_of(array.reals.begin(), array.reals.end(), [&](double x) { return x == array.reals[0]; });
  const bool own = !v.source.empty() && (options_.given.contains(v.source) ? options_.unshared.contains(v.source) : level);
  std::string name = weight_name(v, slot);
  if (own) result_.unshared.insert(v.source);
  if (own && !weights_seen_.insert(v.source).second) {
    Value nameless = v;
    nameless.source = "onnx::";
    name = weight_name(nameless, slot);
    notes.insert("weights of equal numbers that the file shares between layers are apart in the workload");
  }
  return graph.parameter(name, v.at[0], !trained || v.source.empty(), v.source, !own);
}

Result<Value> Mapper::rows_first(const Value& v) {
  if (!v.is_graph()) return refused("its first input is a constant");
  Layout out = v.layout;
  if (v.layout.n == kAdded) {
    if (v.layout.rank() == 0 || v.layout.dims[0] != 1)
      return refused("a row of the file has several samples");
    out.n = 0;
    return reshaped(v, out);
  }
  if (v.layout.n != 0 || !v.layout.plain())
    return refused("the batch is not alone on axis 0");
  return v;
}

Value Mapper::as_before(const Value& rows, const Value& like) {
  if (like.layout.n != kAdded) return rows;
  Layout out = rows.layout;
  out.n = kAdded;
  return reshaped(rows, out);
}

Result<ArrayPtr> Mapper::fixed(const Call& call, size_t input, const char* what) const {
  const Value& v = call.in(input);
  if (!v.is_const()) return refused(fmt::format("its {} is computed from the inputs", what));
  if (!v.fixed()) return refused(fmt::format("its {} depends on the batch size", what));
  return v.at[0];
}

Result<Ints> Mapper::fixed_ints(const Call& call, size_t input, const char* what) const {
  TRY(const ArrayPtr array, fixed(call, input, what));
  if (array->is_float()) return refused(fmt::format("its {} are no integers", what));
  return array->ints;
}

Result<double> Mapper::fixed_real(const Call& call, size_t input, const char* what) const {
  TRY(const ArrayPtr array, fixed(call, input, what));
  if (array->size() != 1) return refused(fmt::format("its {} is no scalar", what));
  return array->real(0);
}

Shape Mapper::shape_at(const Value& v, int which) const {
  if (v.is_const()) return v.at[which]->shape;
  Shape shape = v.layout.dims;
  if (v.layout.n != kAdded) shape[static_cast<size_t>(v.layout.n)] *= sizes[which];
  return shape;
}

Result<Layout> Mapper::regrouped(const Layout& from, const Shape& a, const Shape& b) const {
  Layout out{.dims = a, .n = kAdded};
  if (from.n == kAdded) {
    if (a != b) return refused("a size depends on the batch size");
    return out;
  }
  int64_t outer = from.before, inner = from.after;
  for (size_t i = 0; i < from.rank(); ++i) {
    if (static_cast<int>(i) < from.n) outer *= from.dims[i];
    if (static_cast<int>(i) > from.n) inner *= from.dims[i];
  }
  std::optional<Layout> best;
  int64_t ahead = 1;
  for (size_t j = 0; j < a.size() && ahead <= outer; ahead *= a[j], ++j) {
    int64_t behind = 1;
    for (size_t i = j + 1; i < a.size(); ++i) behind *= a[i];
    if (a[j] % sizes[0] != 0 || b[j] % sizes[1] != 0 || a[j] / sizes[0] != b[j] / sizes[1]) continue;
    const int64_t factor = a[j] / sizes[0];
    if (outer % ahead != 0 || inner % behind != 0 || outer / ahead * (inner / behind) != factor) continue;
    const Layout one{.dims = a, .n = static_cast<int>(j), .before = outer / ahead, .after = inner / behind};
    if (!best || one.plain() > best->plain() || (one.before == 1 && best->before > 1)) best = one;
  }
  if (!best) {
    return refused(fmt::format("a reshape from {} to {} cuts the batch (of {})",
                               tensor::to_text(from.dims), tensor::to_text(a), sizes[0]));
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (static_cast<int>(i) != best->n && a[i] != b[i]) return refused("a size depends on the batch size");
  }
  best->dims[static_cast<size_t>(best->n)] = best->before * best->after;
  return *best;
}

const std::string& Mapper::current_input(size_t i) const { return current_->input(static_cast<int>(i)); }

bool Mapper::read_once(const std::string& onnx) const {
  const auto found = readers_.find(scope_ + onnx);
  return found != readers_.end() && found->second == 1;
}

Value* Mapper::any_input() {
  for (auto& [name, value] : values_) {
    if (value.is_graph() && value.name == first_input_) return &value;
  }
  return nullptr;
}

}  // namespace bakeoff::onnx
