#include "emit/keras/model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "emit/keras/blocks.h"
#include "emit/keras/ops.h"
#include "emit/precision.h"
#include "ir/spelled_ops.h"
#include "ir/verify.h"

namespace bakeoff::emit::keras {
namespace {

using ir::Op;

// Values that the prediction depends on.
std::vector<bool> reaching_prediction(const ir::Workload& workload) {
  std::vector<bool> live(static_cast<size_t>(workload.value_count()), false);
  live[static_cast<size_t>(workload.prediction())] = true;
  for (size_t n = workload.nodes.size(); n-- > 0;) {
    if (!live[static_cast<size_t>(workload.output_of(static_cast<int>(n)))]) continue;
    for (const ir::ValueId id : workload.nodes[n].inputs) live[static_cast<size_t>(id)] = true;
  }
  return live;
}

std::vector<int> model_inputs(const ir::Workload& workload) {
  const std::vector<bool> live = reaching_prediction(workload);
  std::vector<int> inputs;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    if (live[static_cast<size_t>(id)]) inputs.push_back(id);
  }
  return inputs;
}

Status check(const ir::Workload& workload) {
  const ir::ValueId target = workload.nodes.back().inputs[1];
  if (!workload.is_input(target)) {
    return Error{
        .message = fmt::format("Keras takes the target of a loss from the data, but '{}' is computed by the "
                               "workload '{}'",
                               workload.value_name(target), workload.name)};
  }
  if (model_inputs(workload).empty()) {
    return Error{.message =
                     fmt::format("the prediction of workload '{}' depends on no input", workload.name)};
  }
  return Done{};
}

// Prints `name = value` for one array of the data file, in the order the model reads it.
void print_array(CodeWriter& out, const std::string& name, const ir::Input& input, double divisor,
                 Order order) {
  const bool real = input.type.dtype == ir::DType::kF32;
  std::string value = fmt::format("tensors[\"{}\"].astype(np.{})", input.name, real ? "float32" : "int32");
  if (real && divisor != 1) value += " / " + python_real(divisor);
  out.line(fmt::format("{} = {}", name, value));
  if (order == Order::kChannelsLast) {
    const size_t rank = input.type.shape.size();
    const auto perm = conversion_perm(Order::kCanonical, Order::kChannelsLast, rank);
    const char* axes[] = {"N, W, C", "N, H, W, C", "N, D, H, W, C"};
    out.line(fmt::format("{0} = np.ascontiguousarray({0}.transpose({1}))  # {2}", name, fmt::join(perm, ", "),
                         axes[rank - 3]));
  }
}

std::string load_data_text(const Request& request, const LayoutPlan& plan, const std::vector<int>& inputs) {
  const ir::Workload& workload = request.workload;
  const ir::ValueId target = workload.nodes.back().inputs[1];
  Namer names({"tensors", "path", "np"});
  CodeWriter out;
  out.line("def load_data(path):");
  const auto body = out.indent();
  const bool predicts = request.training.predicts();
  out.print("\"\"\"Returns $what$$targets$.\"\"\"\ntensors = load_file(path)\n",
            {{"what", inputs.size() == 1 ? "the model's input" : "the list of the model's inputs"},
             {"targets", predicts ? "" : " and the targets"}});
  std::vector<std::string> xs;
  const double divisor = request.training.input_divisor;
  for (const int id : inputs) {
    const ir::Input& input = workload.inputs[static_cast<size_t>(id)];
    xs.push_back(names.name("input " + input.name, input.name));
    print_array(out, xs.back(), input, divisor, plan.values[static_cast<size_t>(id)]);
  }
  if (predicts) {
    if (xs.size() == 1) out.line("return " + xs[0]);
    if (xs.size() > 1) print_list(out, "return ", xs);
    return out.text();
  }
  const ir::Input& input = workload.inputs[static_cast<size_t>(target)];
  const bool shared = std::find(inputs.begin(), inputs.end(), target) != inputs.end();
  const Order order = plan.reads.back()[1];
  std::string y = names.name((shared ? "input " : "target ") + input.name, input.name);
  if (!shared || order != plan.values[static_cast<size_t>(target)]) {
    y = names.name("target " + input.name, shared ? input.name + "_target" : input.name);
    print_array(out, y, input, divisor, order);
  }
  if (xs.size() == 1) {
    out.line(fmt::format("return {}, {}", xs[0], y));
  } else {
    print_list(out, "return ", xs, ", " + y);
  }
  return out.text();
}

// keras.Input lines of the model's inputs. Functions of Keras 2 do not mix dtypes.
void print_inputs(Printer& p, const std::vector<int>& inputs) {
  for (const int id : inputs) {
    const ir::Input& input = p.workload.inputs[static_cast<size_t>(id)];
    const ir::Shape shape = physical_shape(p.plan.values[static_cast<size_t>(id)], input.type.shape);
    std::vector<std::string> args = {
        python_tuple({shape.begin() + 1, shape.end()}),
        fmt::format("name=\"{}\"", p.layer_names.name("input " + input.name, input.name))};
    const std::string dtype = input.type.dtype == ir::DType::kI32 ? "int32" : p.half;
    if (!dtype.empty()) args.push_back(fmt::format("dtype=\"{}\"", dtype));
    p.out.call(p.value_name(id) + " = keras.Input", args);
  }
}

void print_return(Printer& p, const std::vector<int>& inputs) {
  const ir::Node& loss = p.workload.nodes.back();
  p.node = static_cast<int>(p.workload.nodes.size()) - 1;
  std::string output = p.input(loss, 0);
  const ir::ValueId prediction = p.workload.prediction();
  // Keras on TensorFlow looks for the logits behind a softmax and takes those instead.
  if (!p.training.predicts() && loss.op == Op::kSoftmaxCrossEntropy && !p.workload.is_input(prediction) &&
      p.workload.producer(prediction).op == Op::kSoftmax) {
    const std::string copy = p.fresh(output + "_copy");
    p.out.line(
        fmt::format("{} = {}({})  # keeps Keras from using the softmax's input", copy, p.op("copy"), output));
    output = copy;
  }
  // Keras 2 computes a loss in the prediction's dtype, where a scaled one soon is infinite.
  if (!p.half.empty()) {
    const std::string full = p.fresh(output + "_float32");
    p.out.line(fmt::format("{} = tf.cast({}, \"float32\")  # for the loss", full, output));
    output = full;
  }
  std::vector<std::string> names;
  for (const int id : inputs) names.push_back(p.value_name(id));
  const std::string name = fmt::format("name=\"{}\"", identifier(p.workload.name));
  if (names.size() == 1) return p.out.call("return keras.Model", {names[0], output, name});
  print_list(p.out, "inputs = ", names);
  p.out.call("return keras.Model", {"inputs", output, name});
}

constexpr const char* kSmoothed = R"(def smoothed_cross_entropy(y_true, y_pred):
    """Cross entropy of integer labels that give away a share to all classes."""
    log_p = ops.log_softmax(y_pred)
    labels = ops.reshape(y_true, (-1, *y_pred.shape[1:-1], 1))
    label = ops.take_along_axis(log_p, ops.cast(labels, "int32"), -1)[..., 0]
    mean = ops.mean(log_p, -1)
)";
constexpr const char* kSmoothed2 = R"(def smoothed_cross_entropy(y_true, y_pred):
    """Cross entropy of integer labels that give away a share to all classes."""
    log_p = tf.nn.log_softmax(y_pred)
    labels = tf.reshape(tf.cast(y_true, tf.int32), (-1, *y_pred.shape[1:-1]))
    label = tf.gather(log_p, labels, batch_dims=y_pred.shape.rank - 1)
    mean = tf.reduce_mean(log_p, -1)
)";

std::string loss_expression(const Request& request, const Dialect& dialect, std::string& function) {
  const ir::Node& loss = request.workload.nodes.back();
  const bool sum = loss.word("reduction") == "sum";
  const bool explicit_all = request.training.track == ir::Track::kEqualised || sum;
  const std::string reduction = sum ? "\"sum\"" : "\"sum_over_batch_size\"";
  const ir::LossSpelling& spelling = ir::loss_spelling(loss.op);
  if (const double smooth = ir::label_smoothing(loss); smooth != 0) {
    std::string text = dialect.second ? kSmoothed2 : kSmoothed;
    text += fmt::format("    losses = -(1 - {0}) * label - {0} * mean\n", python_real(smooth));
    text += sum ? dialect.translate("    return ops.sum(losses)\n") : std::string("    return losses\n");
    function = text;
    return "smoothed_cross_entropy";
  }
  if (!sum || spelling.keras_terms.empty()) {
    std::string text = "keras.losses." + spelling.keras;
    if (!explicit_all) return text;
    text.pop_back();
    return text + (text.ends_with("(") ? "" : ", ") + "reduction=" + reduction + ")";
  }
  function = dialect.translate(
      "def summed_error(y_true, y_pred):\n"
      "    \"\"\"The sum over all elements; Keras's own losses average over the last axis.\"\"\"\n"
      "    return ops.sum(" +
      spelling.keras_terms + ")\n");
  return "summed_error";
}

// A table that is a linear weight too stays as the embedding has it.
Status keep_tables(const ir::Workload& workload, LayoutPlan& plan) {
  for (const ir::Node& node : workload.nodes) {
    if (node.op != Op::kEmbedding) continue;
    ParamLayout& layout = plan.params[static_cast<size_t>(node.param("weight"))];
    if (!layout.view.empty()) {
      return Error{.message =
                       fmt::format("Keras cannot tie the embedding '{}' to a linear layer behind a flatten",
                                   node.output)};
    }
    layout = {};
  }
  return Done{};
}

}  // namespace

bool has_op(ir::Op op) { return op_functions().contains(op); }

Result<ModelText> model_text(const Request& request, const Dialect& dialect) {
  const ir::Workload& workload = request.workload;
  CHECK_OK(check(workload));
  TRY(const std::vector<ir::Type> types, ir::infer(workload));
  LayoutPlan plan = plan_layout(workload, types, {.plain_values = false});
  CHECK_OK(keep_tables(workload, plan));
  const std::vector<int> inputs = model_inputs(workload);

  ModelNeeds needs;
  Printer p(workload, types, plan, request.training, dialect, dialect.backend(request.settings), needs);
  if (dialect.second) {
    p.half = precision_of(request).half;
  } else {
    p.mixed = precision_of(request).mixed();
  }
  CHECK_OK(p.plan_layers());
  for (const int id : inputs) p.value_name(id);  // before blocks take names
  const Blocks blocks = plan_blocks(p);
  p.out.line("def build_model():");
  {
    const auto body = p.out.indent();
    p.out.line(plan.values[static_cast<size_t>(inputs[0])] == Order::kChannelsLast
                   ? "\"\"\"Builds the model; pictures are N, H, W, C.\"\"\""
                   : "\"\"\"Builds the model.\"\"\"");
    print_inputs(p, inputs);
    print_nodes(p, blocks);
    print_return(p, inputs);
  }

  ModelText text;
  text.build_model = p.helpers() + functions_text(blocks) + p.out.text();
  text.load_data = load_data_text(request, plan, inputs);
  if (!request.training.predicts()) text.loss = loss_expression(request, dialect, text.loss_function);
  text.inputs = inputs.size();
  text.embeddings = workload.has(Op::kEmbedding);
  text.layout_json = layout_json(workload, plan, needs.targets);
  if (text.layout_json.empty()) text.layout_json = "{}\n";  // load_weights reads it
  return text;
}

}  // namespace bakeoff::emit::keras
