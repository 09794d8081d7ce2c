// A functional model of Keras gives one output for each loss, and compile() pairs outputs and losses by their
// order. So an output that two losses read is copied, and so is a softmax in front of a cross entropy, behind
// which Keras on TensorFlow would look for the logits. Keras' own losses are used wherever they compute what
// the recipe says; a comment at each function that replaces one says what Keras' own does differently.

#include "emit/keras/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/keras/blocks.h"
#include "emit/keras/ops.h"
#include "emit/losses.h"
#include "emit/precision.h"
#include "ir/spelled_ops.h"
#include "ir/verify.h"

namespace bakeoff::emit::keras {
namespace {

using ir::Op;

// Indices of the losses whose predictions the model gives, one output for each; of a model that predicts the first.
std::vector<int> losses_of(const ir::Workload& workload, bool predicts) {
  std::vector<int> all;
  for (int n = workload.model_end(); n < static_cast<int>(workload.nodes.size()); ++n) {
    if (ir::is_loss(workload.nodes[static_cast<size_t>(n)].op)) all.push_back(n);
  }
  if (predicts) all.resize(1);
  return all;
}

// Inputs that the predictions of these losses depend on.
std::vector<int> model_inputs(const ir::Workload& workload, const std::vector<int>& losses) {
  std::vector<bool> live(static_cast<size_t>(workload.value_count()), false);
  for (const int loss : losses)
    live[static_cast<size_t>(workload.nodes[static_cast<size_t>(loss)].inputs[0])] = true;
  for (size_t n = workload.nodes.size(); n-- > 0;) {
    if (!live[static_cast<size_t>(workload.output_of(static_cast<int>(n)))]) continue;
    for (const ir::ValueId id : workload.nodes[n].inputs) live[static_cast<size_t>(id)] = true;
  }
  std::vector<int> inputs;
  for (int id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    if (live[static_cast<size_t>(id)]) inputs.push_back(id);
  }
  return inputs;
}

Status check(const ir::Workload& workload, const std::vector<int>& losses, bool predicts) {
  for (const int loss : predicts ? std::vector<int>() : losses) {
    const ir::ValueId target = workload.nodes[static_cast<size_t>(loss)].inputs[1];
    if (workload.is_input(target)) continue;
    return Error{
        .message = fmt::format("Keras takes the target of a loss from the data, but '{}' is computed by the "
                               "workload '{}'",
                               workload.value_name(target), workload.name)};
  }
  if (model_inputs(workload, losses).empty()) {
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
    out.call(fmt::format("{} = np.ascontiguousarray", name),
             {fmt::format("{}.transpose({})", name, join(perm, ", "))},
             fmt::format("  # {}", axes[rank - 3]));
  }
}

std::string load_data_text(const Request& request, const LayoutPlan& plan, const std::vector<int>& inputs,
                           const std::vector<int>& losses) {
  const ir::Workload& workload = request.workload;
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
  std::vector<std::string> ys;
  std::set<std::string> printed;
  for (const int loss : losses) {
    const ir::ValueId target = workload.nodes[static_cast<size_t>(loss)].inputs[1];
    const ir::Input& input = workload.inputs[static_cast<size_t>(target)];
    const bool shared = std::find(inputs.begin(), inputs.end(), target) != inputs.end();
    const Order order = plan.reads[static_cast<size_t>(loss)][1];
    if (shared && order == plan.values[static_cast<size_t>(target)]) {
      ys.push_back(names.name("input " + input.name, input.name));
      continue;
    }
    ys.push_back(names.name(fmt::format("target {} {}", input.name, static_cast<int>(order)),
                            shared ? input.name + "_target" : input.name));
    if (printed.insert(ys.back()).second) print_array(out, ys.back(), input, divisor, order);
  }
  const std::string y = ys.size() == 1 ? ys[0] : fmt::format("[{}]", join(ys, ", "));
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
    // A step of decoding has as many rows as its caches, and any number of words.
    const std::string sizes = computed(input) ? "batch_shape=(None,)"
                              : std::ranges::count(shape, ir::kSteps)
                                  ? "batch_shape=(BATCH_SIZE, None)"
                                  : python_tuple({shape.begin() + 1, shape.end()});
    std::vector<std::string> args = {
        sizes, fmt::format("name=\"{}\"", p.layer_names.name("input " + input.name, input.name))};
    const std::string dtype = input.type.dtype == ir::DType::kI32 ? "int32" : p.half;
    if (!dtype.empty()) args.push_back(fmt::format("dtype=\"{}\"", dtype));
    p.out.call(p.value_name(id) + " = keras.Input", args);
  }
}

// What the model gives a loss, or as value `i` of a join. `given`: the outputs before it.
std::string output_of(Printer& p, int reader, const std::vector<std::string>& given, size_t i = 0) {
  const ir::Node& loss = p.workload.nodes[static_cast<size_t>(reader)];
  p.node = reader;
  std::string output = p.input(loss, i);
  const ir::ValueId prediction = loss.inputs[0];
  // Keras on TensorFlow looks for the logits behind a softmax and takes those instead.
  const bool softmax = !p.training.predicts() && loss.op == Op::kSoftmaxCrossEntropy &&
                       !p.workload.is_input(prediction) && p.workload.producer(prediction).op == Op::kSoftmax;
  const bool again = std::find(given.begin(), given.end(), output) != given.end();
  if (softmax || again) {
    const std::string copy = p.fresh(output + "_copy");
    p.out.line(fmt::format("{} = {}({}){}", copy, p.op("copy"), output,
                           softmax ? "  # keeps Keras from using the softmax's input" : ""));
    output = copy;
  }
  // Keras 2 computes a loss in the prediction's dtype, where a scaled one soon is infinite.
  if (!p.half.empty()) {
    const std::string full = p.fresh(output + "_float32");
    p.out.line(fmt::format("{} = tf.cast({}, \"float32\"){}", full, output,
                           p.training.predicts() ? "" : "  # for the loss"));
    output = full;
  }
  return output;
}

void print_return(Printer& p, const std::vector<int>& inputs, const std::vector<int>& losses) {
  std::vector<std::string> outputs, names;
  if (const int last = p.workload.join(); p.training.predicts() && last >= 0) {
    const size_t count = p.workload.predictions().size();
    for (size_t i = 0; i < count; ++i) outputs.push_back(output_of(p, last, outputs, i));
  } else {
    for (const int loss : losses) outputs.push_back(output_of(p, loss, outputs));
  }
  for (const int id : inputs) names.push_back(p.value_name(id));
  const std::string name = fmt::format("name=\"{}\"", identifier(p.workload.name));
  if (outputs.size() > 1) print_list(p.out, "outputs = ", outputs);
  const std::string output = outputs.size() > 1 ? "outputs" : outputs[0];
  if (names.size() == 1) return p.out.call("return keras.Model", {names[0], output, name});
  print_list(p.out, "inputs = ", names);
  p.out.call("return keras.Model", {"inputs", output, name});
}

constexpr const char* kCrossEntropy = R"(def $name$(y_true, y_pred):
    """Cross entropy of integer labels$doc$."""
    log_p = ops.log_softmax(y_pred)
    labels = ops.cast(ops.reshape(y_true, (-1, *y_pred.shape[1:-1], 1)), "int32")
$kept$    losses = -$of_label$ops.take_along_axis(log_p, labels, -1)[..., 0]
$smooth$$reduce$)";
constexpr const char* kCrossEntropy2 = R"(def $name$(y_true, y_pred):
    """Cross entropy of integer labels$doc$."""
    log_p = tf.nn.log_softmax(y_pred)
    labels = tf.reshape(tf.cast(y_true, tf.int32), (-1, *y_pred.shape[1:-1]))
$kept$    losses = -$of_label$tf.gather(log_p, labels, batch_dims=y_pred.shape.rank - 1)
$smooth$$reduce$)";

// Keras's own class takes class 0 for padding, and labels padded with it.
constexpr const char* kCtc = R"(def $name$(y_true, y_pred):
    """CTC of rows of labels, padded with -1, in all frames; class 0 is blank."""
    labels = ops.cast(y_true, "int32")
    lengths = ops.sum(ops.cast(labels >= 0, "int32"), 1)
    frames = ops.full_like(lengths, y_pred.shape[1])
    losses = ops.ctc_loss(ops.maximum(labels, 0), y_pred, lengths, frames)
    return $reduce$
)";
constexpr const char* kCtc2 = R"(def $name$(y_true, y_pred):
    """CTC of rows of labels, padded with -1, in all frames; class 0 is blank."""
    labels = tf.cast(y_true, tf.int32)
    lengths = tf.reduce_sum(tf.cast(labels >= 0, tf.int32), 1)
    losses = tf.nn.ctc_loss(
        labels=tf.maximum(labels, 0),
        logits=y_pred,
        label_length=lengths,
        logit_length=tf.fill(tf.shape(lengths), y_pred.shape[1]),
        logits_time_major=False,
        blank_index=0,
    )
    return $reduce$
)";

std::string ctc_text(const ir::Node& loss, const Dialect& dialect, const std::string& name) {
  const std::string reduce = loss.word("reduction") == "mean" ? "losses" : "ops.sum(losses)";
  CodeWriter out;
  out.print(dialect.second ? kCtc2 : kCtc, {{"name", name}, {"reduce", dialect.translate(reduce)}});
  return out.text();
}

// A function of its own: Keras has no smoothed loss of integer labels, and its mean over those that are not ignored
// adds its epsilon to their number.
std::string cross_entropy(const ir::Node& loss, const Dialect& dialect, const std::string& name) {
  const double smooth = ir::label_smoothing(loss);
  const auto ignored = ir::ignore_index(loss);
  const bool mean = loss.word("reduction") == "mean";
  Variables parts = {{"name", name}, {"of_label", ""}, {"smooth", ""}, {"kept", ""}};
  std::string doc = smooth != 0 ? " that give away a share" : "";
  std::string reduce = mean ? "    return losses\n" : "    return ops.sum(losses)\n";
  if (smooth != 0) {
    parts["of_label"] = fmt::format("(1 - {}) * ", python_real(smooth));
    parts["smooth"] = fmt::format("    losses -= {} * {}(log_p, -1)\n", python_real(smooth),
                                  dialect.second ? "tf.reduce_mean" : "ops.mean");
  }
  if (ignored) {
    doc = fmt::format(" other than {}{}", *ignored, doc);
    parts["kept"] = fmt::format(
        "    kept = ops.not_equal(labels, {})\n    labels = ops.where(kept, labels, 0)\n", *ignored);
    reduce = fmt::format("    kept = ops.cast({}, losses.dtype)\n", dialect.second ? "kept" : "kept[..., 0]");
    reduce += mean ? "    return ops.sum(losses * kept) / ops.maximum(ops.sum(kept), 1)\n"
                   : "    return ops.sum(losses * kept)\n";
  }
  parts["doc"] = doc;
  parts["kept"] = dialect.translate(parts["kept"]);
  parts["reduce"] = dialect.translate(reduce);
  CodeWriter out;
  out.print(dialect.second ? kCrossEntropy2 : kCrossEntropy, parts);
  return out.text();
}

// The expression of a loss object; `function`: one that the expression calls by `name`, mostly empty.
std::string loss_expression(const Request& request, const ir::Node& loss, const Dialect& dialect,
                            const std::string& suffix, std::string& function) {
  const bool sum = loss.word("reduction") == "sum";
  const bool explicit_all = request.training.track == ir::Track::kEqualised || sum;
  const std::string reduction = sum ? "\"sum\"" : "\"sum_over_batch_size\"";
  const ir::LossSpelling& spelling = ir::loss_spelling(loss.op);
  const bool smooth = ir::label_smoothing(loss) != 0;
  if (loss.op == Op::kCtc) {
    function = ctc_text(loss, dialect, "ctc" + suffix);
    return "ctc" + suffix;
  }
  if (smooth || ir::ignore_index(loss)) {
    const std::string name = (smooth ? "smoothed_cross_entropy" : "masked_cross_entropy") + suffix;
    function = cross_entropy(loss, dialect, name);
    return name;
  }
  if (!sum || spelling.keras_terms.empty()) {
    std::string text = "keras.losses." + spelling.keras;
    if (!explicit_all) return text;
    text.pop_back();
    return text + (text.ends_with("(") ? "" : ", ") + "reduction=" + reduction + ")";
  }
  const std::string name = "summed_error" + suffix;
  function = dialect.translate(
      "def " + name +
      "(y_true, y_pred):\n"
      "    \"\"\"The sum over all elements; Keras's own losses average over the last axis.\"\"\"\n"
      "    return ops.sum(" +
      spelling.keras_terms + ")\n");
  return name;
}

// What compile_model says of the losses.
void add_losses(const Request& request, const Dialect& dialect, const std::vector<int>& losses,
                ModelText& text) {
  const std::vector<ir::LossTerm> terms = ir::loss_terms(request.workload);
  std::map<std::string, std::string> functions;  // by name
  for (size_t i = 0; i < losses.size(); ++i) {
    const ir::Node& loss = request.workload.nodes[static_cast<size_t>(losses[i])];
    std::string name, function;
    for (int n = 1; n == 1 || (functions.contains(name) && functions.at(name) != function); ++n) {
      function.clear();
      name = loss_expression(request, loss, dialect, n == 1 ? "" : fmt::format("_{}", n), function);
    }
    if (!function.empty() && functions.emplace(name, function).second)
      text.loss_functions.push_back(function);
    text.losses.push_back(name);
    text.weights.push_back(python_real(terms[i].weight));
  }
  if (one_loss(request.workload)) text.weights.clear();
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
  const std::vector<int> losses = losses_of(workload, request.training.predicts());
  CHECK_OK(check(workload, losses, request.training.predicts()));
  TRY(const std::vector<ir::Type> types, ir::infer(workload));
  LayoutPlan plan = plan_layout(workload, types, {.plain_values = false});
  CHECK_OK(keep_tables(workload, plan));
  const std::vector<int> inputs = model_inputs(workload, losses);

  ModelNeeds needs;
  Printer p(workload, types, plan, request.training, dialect, dialect.backend(request.settings), needs);
  p.in_half = stored_in_half(request);
  p.policy = precision_of(request).half;
  if (dialect.second) {
    p.half = p.policy;
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
    print_return(p, inputs, losses);
  }

  ModelText text;
  const std::string script = functions_text(blocks) + p.out.text();
  text.build_model = p.helpers(script) + script;
  const std::vector<int> loaded = read_from_data(workload, inputs);
  text.load_data = load_data_text(request, plan, loaded, losses);
  if (!request.training.predicts()) add_losses(request, dialect, losses, text);
  text.inputs = loaded.size();
  text.embeddings = workload.has(Op::kEmbedding);
  text.output_turn = output_turn(workload, plan);
  text.layout_json = layout_json(workload, plan, needs.targets);
  text.targets = needs.targets;
  if (text.layout_json.empty()) text.layout_json = "{}\n";  // load_weights reads it
  return text;
}

}  // namespace bakeoff::emit::keras
