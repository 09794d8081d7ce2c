#include "emit/libtorch/forward.h"

#include <fmt/format.h>

#include <algorithm>

#include "emit/libtorch/cpp.h"
#include "emit/libtorch/network_ops.h"

namespace bakeoff::emit::libtorch {
namespace {

using ir::Op;

bool symmetric(const std::vector<int64_t>& pad) { return pad[0] == pad[1] && pad[2] == pad[3]; }
bool any(const std::vector<int64_t>& pad) {
  return std::any_of(pad.begin(), pad.end(), [](int64_t n) { return n != 0; });
}

// torch::constant_pad_nd wants left, right, top, bottom.
std::string padded(const std::string& x, const std::vector<int64_t>& pad, const std::string& value) {
  return fmt::format("torch::constant_pad_nd({}, {}, {})", x, braces({pad[2], pad[3], pad[0], pad[1]}),
                     value);
}

// The module's call, or that of a function.
bool module_call(ForwardPrinter& p, const ir::Node& node, const std::string& x) {
  const std::string& module = p.module_of(node);
  if (!module.empty()) p.call(module, {x});
  return !module.empty();
}

void conv2d(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  std::string x = p.use(node.inputs[0]);
  if (!symmetric(pad)) x = padded(x, pad, "0");
  if (module_call(p, node, x)) return;
  const auto inside = symmetric(pad) ? std::vector<int64_t>{pad[0], pad[2]} : std::vector<int64_t>{0, 0};
  p.call("torch::conv2d",
         {x, p.param(node, "weight"), p.param(node, "bias"), pair(node.integers("stride")), pair(inside),
          pair(node.integers("dilation")), std::to_string(node.integer("groups"))});
}

void linear(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  std::vector<std::string> arguments = {x, p.param(node, "weight")};
  if (node.has("bias")) arguments.push_back(p.param(node, "bias"));
  p.call("torch::linear", arguments);
}

void batch_norm(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  p.call("torch::batch_norm", {x, p.param(node, "weight"), p.param(node, "bias"), p.param(node, "mean"),
                               p.param(node, "var"), "is_training()", python_real(node.real("momentum")),
                               python_real(node.real("eps")), "at::globalContext().userEnabledCuDNN()"});
}

void layer_norm(ForwardPrinter& p, const ir::Node& node) {
  const ir::Shape& shape = p.shape(node.inputs[0]);
  const std::string x = p.use(node.inputs[0]);
  if (module_call(p, node, x)) return;
  const ir::Shape tail(shape.end() - node.integer("dims"), shape.end());
  p.call("torch::layer_norm",
         {x, braces(tail), p.param(node, "weight"), p.param(node, "bias"), python_real(node.real("eps"))});
}

void embedding(ForwardPrinter& p, const ir::Node& node) {
  const std::string x = p.use(node.inputs[0]);
  if (!module_call(p, node, x)) p.call("torch::embedding", {p.param(node, "weight"), x});
}

void dropout(ForwardPrinter& p, const ir::Node& node) { p.call(p.module_of(node), {p.use(node.inputs[0])}); }

void relu(ForwardPrinter& p, const ir::Node& node) { p.call("torch::relu", {p.use(node.inputs[0])}); }
void sigmoid(ForwardPrinter& p, const ir::Node& node) { p.call("torch::sigmoid", {p.use(node.inputs[0])}); }
void tanh(ForwardPrinter& p, const ir::Node& node) { p.call("torch::tanh", {p.use(node.inputs[0])}); }

void gelu(ForwardPrinter& p, const ir::Node& node) {
  const std::string form = node.word("form") == "tanh" ? "tanh" : "none";
  p.call("torch::gelu", {p.use(node.inputs[0]), quote(form)});
}

void softmax(ForwardPrinter& p, const ir::Node& node) {
  p.call("torch::softmax", {p.use(node.inputs[0]), std::to_string(node.integer("axis"))});
}

void pool2d(ForwardPrinter& p, const ir::Node& node, const std::string& function, const std::string& filler,
            std::vector<std::string> tail) {
  const auto& kernel = node.integers("kernel");
  const auto& stride = node.integers("stride");
  const auto& pad = node.integers("pad");
  std::string x = p.use(node.inputs[0]);
  if (!symmetric(pad)) x = padded(x, pad, filler);
  std::vector<std::string> arguments = {x, pair(kernel)};
  const bool pads = symmetric(pad) && any(pad);
  if (stride != kernel || pads) arguments.push_back("/*stride=*/" + pair(stride));
  if (pads) {
    arguments.push_back("/*padding=*/" + pair(pad[0], pad[2]));
    arguments.insert(arguments.end(), tail.begin(), tail.end());
  }
  p.call(function, arguments);
}

void max_pool2d(ForwardPrinter& p, const ir::Node& node) {
  pool2d(p, node, "torch::max_pool2d", "-INFINITY", {});
}

void avg_pool2d(ForwardPrinter& p, const ir::Node& node) {
  const auto& pad = node.integers("pad");
  const bool count = node.flag("count_include_pad");
  if (symmetric(pad) || count) {
    const std::string flag = std::string("/*count_include_pad=*/") + (count ? "true" : "false");
    return pool2d(p, node, "torch::avg_pool2d", "0", {"/*ceil_mode=*/false", flag});
  }
  p.call("avg_pool2d_uneven", {p.use(node.inputs[0]), braces(node.integers("kernel")),
                               braces(node.integers("stride")), braces({pad[2], pad[3], pad[0], pad[1]})});
}

void global_avg_pool2d(ForwardPrinter& p, const ir::Node& node) {
  p.call(p.use(node.inputs[0]) + ".mean", {"{2, 3}"});
}

void flatten(ForwardPrinter& p, const ir::Node& node) { p.call(p.use(node.inputs[0]) + ".flatten", {"1"}); }

// The batch size is -1 to the IR and to torch alike.
void reshape(ForwardPrinter& p, const ir::Node& node) {
  p.call(p.use(node.inputs[0]) + ".reshape", {braces(node.integers("shape"))});
}

void transpose(ForwardPrinter& p, const ir::Node& node) {
  p.call(p.use(node.inputs[0]) + ".permute", {braces(node.integers("perm"))});
}

void pad(ForwardPrinter& p, const ir::Node& node) {
  const auto& pads = node.integers("pad");
  std::vector<int64_t> reversed;  // torch starts from the last axis
  for (size_t axis = pads.size() / 2; axis-- > 0;) {
    reversed.push_back(pads[2 * axis]);
    reversed.push_back(pads[2 * axis + 1]);
  }
  while (reversed.size() > 2 && reversed.back() == 0 && reversed[reversed.size() - 2] == 0) {
    reversed.resize(reversed.size() - 2);
  }
  const double value = node.real("value");
  p.call("torch::constant_pad_nd",
         {p.use(node.inputs[0]), braces(reversed), value == 0 ? "0" : python_real(value)});
}

void concat(ForwardPrinter& p, const ir::Node& node) {
  std::vector<std::string> parts;
  for (const ir::ValueId input : node.inputs) parts.push_back(p.use(input));
  p.call("torch::cat", {fmt::format("{{{}}}", fmt::join(parts, ", ")), std::to_string(node.integer("axis"))});
}

void add(ForwardPrinter& p, const ir::Node& node) { p.sum_or_product(node, '+'); }
void mul(ForwardPrinter& p, const ir::Node& node) { p.sum_or_product(node, '*'); }

// The loss is part of train_step.
void loss(ForwardPrinter&, const ir::Node&) {}

}  // namespace

const OpFunctions<ForwardPrinter>& forward_functions() {
  static const OpFunctions<ForwardPrinter> functions = {
      {Op::kConv2d, conv2d},
      {Op::kLinear, linear},
      {Op::kBatchNorm, batch_norm},
      {Op::kLayerNorm, layer_norm},
      {Op::kEmbedding, embedding},
      {Op::kDropout, dropout},
      {Op::kRelu, relu},
      {Op::kGelu, gelu},
      {Op::kSigmoid, sigmoid},
      {Op::kTanh, tanh},
      {Op::kSoftmax, softmax},
      {Op::kMaxPool2d, max_pool2d},
      {Op::kAvgPool2d, avg_pool2d},
      {Op::kGlobalAvgPool2d, global_avg_pool2d},
      {Op::kFlatten, flatten},
      {Op::kReshape, reshape},
      {Op::kTranspose, transpose},
      {Op::kPad, pad},
      {Op::kConcat, concat},
      {Op::kAdd, add},
      {Op::kMul, mul},
      {Op::kLrn, lrn},
      {Op::kPositionEmbedding, position_embedding},
      {Op::kAttention, attention},
      {Op::kLstm, lstm},
      {Op::kSoftmaxCrossEntropy, loss},
      {Op::kMse, loss},
  };
  return functions;
}

ForwardPrinter::ForwardPrinter(CodeWriter& out, const Request& request, const Modules& modules,
                               const std::vector<ir::Type>& types, const std::vector<std::string>& inputs,
                               Namer names)
    : out_(out),
      workload_(request.workload),
      modules_(modules),
      types_(types),
      inputs_(inputs),
      names_(std::move(names)) {}

void ForwardPrinter::print() {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < forward_arity(workload_); ++i) {
    const auto id = static_cast<ir::ValueId>(i);
    if (!read_by_model(workload_, id)) {
      parameters.push_back("const Tensor& /*" + inputs_[i] + "*/");
      continue;
    }
    variables_[id] = inputs_[i];
    order_.push_back(inputs_[i]);
    parameters.push_back((inputs_[i] == "x" ? "Tensor " : "const Tensor& ") + inputs_[i]);
  }
  const bool both = workload_.computes_target();
  libtorch::call(out_, both ? "std::tuple<Tensor, Tensor> forward" : "Tensor forward", parameters, " {");
  {
    const auto body = out_.indent();
    const auto& functions = forward_functions();
    for (node_ = 0; node_ + 1 < static_cast<int>(workload_.nodes.size()); ++node_) {
      const ir::Node& node = workload_.nodes[static_cast<size_t>(node_)];
      if (pending_ && !may_fold(node)) flush();
      functions.at(node.op)(*this, node);
    }
    if (pending_ && pending_->value == workload_.prediction() && !both) {
      statement(out_, "return " + pending_->text + ";");
    } else {
      if (pending_) flush();
      const std::string prediction = variables_.at(workload_.prediction());
      out_.line(both ? fmt::format("return {{{}, {}}};", prediction,
                                   variables_.at(workload_.nodes.back().inputs[1]))
                     : "return " + prediction + ";");
    }
  }
  out_.line("}");
}

std::string ForwardPrinter::use(ir::ValueId id) {
  if (pending_ && pending_->value == id) {
    std::string text = pending_->text;
    pending_.reset();
    return text;
  }
  const std::string name = variables_.at(id);
  const bool reusable = !workload_.is_input(id) || name == "x";
  if (reusable && !escapes(id) && last_use(id) == node_ &&
      std::find(free_.begin(), free_.end(), name) == free_.end()) {
    free_.push_back(name);
  }
  return name;
}

std::string ForwardPrinter::param(const ir::Node& node, std::string_view slot) const {
  return node.has(slot) ? modules_.parameter(node.param(slot)) : "{}";
}

void ForwardPrinter::call(const std::string& head, const std::vector<std::string>& arguments) {
  finish(fmt::format("{}({})", head, fmt::join(arguments, ", ")), false);
}

std::string ForwardPrinter::once(const std::string& key, const std::string& wish,
                                 const std::string& expression) {
  if (const auto found = once_.find(key); found != once_.end()) return found->second;
  const std::string variable = names_.name("once:" + key, wish);
  statement(out_, fmt::format("const Tensor {} = {};", variable, expression));
  return once_[key] = variable;
}

void ForwardPrinter::sum_or_product(const ir::Node& node, char symbol) {
  const auto operand = [&](ir::ValueId id) {
    const bool binary = pending_ && pending_->value == id && pending_->binary;
    const std::string text = use(id);
    return binary ? "(" + text + ")" : text;
  };
  const std::string a = operand(node.inputs[0]);
  const std::string b = operand(node.inputs[1]);
  binary(a, symbol, b);
}

void ForwardPrinter::binary(const std::string& a, char symbol, const std::string& b) {
  finish(fmt::format("{} {} {}", a, symbol, b), true);
}

// Keeps the expression of the present node until it is known who reads it.
void ForwardPrinter::finish(std::string text, bool binary) {
  pending_ = Pending{workload_.output_of(node_), std::move(text), binary};
}

// Activations, normalisations and sums take the expression they follow as their argument.
bool ForwardPrinter::may_fold(const ir::Node& consumer) const {
  const ir::ValueId value = pending_->value;
  if (escapes(value) || std::count(consumer.inputs.begin(), consumer.inputs.end(), value) != 1) return false;
  if (ir::consumers(workload_, value).size() != 1) return false;
  const Op op = consumer.op;
  const bool around = op == Op::kRelu || op == Op::kGelu || op == Op::kSigmoid || op == Op::kTanh ||
                      op == Op::kBatchNorm || op == Op::kAdd;
  const Op inner = workload_.producer(value).op;
  const bool layer = inner == Op::kConv2d || inner == Op::kLinear || inner == Op::kBatchNorm ||
                     inner == Op::kAdd || inner == Op::kLayerNorm;
  const bool named = consumer.params.empty() || !modules_.module_of(consumer).empty();
  return around && layer && named && 50 + pending_->text.size() <= kColumns;
}

void ForwardPrinter::flush() {
  const Pending pending = *pending_;
  pending_.reset();
  if (!escapes(pending.value) && last_use(pending.value) < 0) {  // nobody reads it
    return statement(out_, pending.text + ";");
  }
  const size_t before = order_.size();
  const std::string target = pick_variable(pending.value);
  variables_[pending.value] = target;
  const bool declares = order_.size() > before;
  statement(out_, fmt::format("{}{} = {};", declares ? "Tensor " : "", target, pending.text));
}

std::string ForwardPrinter::pick_variable(ir::ValueId value) {
  for (const std::string& name : order_) {
    const auto dead = std::find(free_.begin(), free_.end(), name);
    if (dead == free_.end()) continue;
    free_.erase(dead);
    return name;
  }
  // The names people use; a variable serves a chain of values, so the values' own names would mislead.
  const std::string key = "value:" + std::to_string(value);
  std::string name;
  for (const char* wish : {"x", "h", "u", "v", "w"}) {
    Namer attempt = names_;
    if (attempt.name(key, wish) != wish) continue;
    name = names_.name(key, wish);
    break;
  }
  if (name.empty()) name = names_.name(key, "h");
  order_.push_back(name);
  return name;
}

bool ForwardPrinter::escapes(ir::ValueId value) const {
  return value == workload_.prediction() ||
         (workload_.computes_target() && value == workload_.nodes.back().inputs[1]);
}

int ForwardPrinter::last_use(ir::ValueId value) const {
  const std::vector<int> readers = ir::consumers(workload_, value);
  return readers.empty() ? -1 : readers.back();
}

bool read_by_model(const ir::Workload& workload, ir::ValueId input) {
  const std::vector<int> readers = ir::consumers(workload, input);
  const int loss_node = static_cast<int>(workload.nodes.size()) - 1;
  return (!readers.empty() && readers.front() < loss_node) || input == workload.prediction();
}

size_t forward_arity(const ir::Workload& workload) {
  size_t arity = workload.inputs.size();
  while (arity > 1 && !read_by_model(workload, static_cast<ir::ValueId>(arity) - 1)) --arity;
  return arity;
}

}  // namespace bakeoff::emit::libtorch
