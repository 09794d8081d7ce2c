// A C++ program is printed in the order in which a compiler must meet its parts, while what the head needs
// (which helpers, which includes) is known only once the rest is printed: text() prints everything below the
// head first and inserts the helpers that it calls. Names are given before anything is printed, from one
// Namer that knows every word of the program, since an input called `loss` or `data` would shadow ours.
// Modules are planned twice: flat, to know where each tensor of the weights file goes, and with the blocks
// that the model is printed in.

#include "emit/libtorch/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/texts.h"
#include "emit/generation.h"
#include "emit/helpers.h"
#include "emit/libtorch/autocast.h"
#include "emit/libtorch/cpp.h"
#include "emit/libtorch/forward.h"
#include "emit/libtorch/modules.h"
#include "emit/libtorch/network_ops.h"
#include "emit/libtorch/ops.h"
#include "emit/libtorch/optimizer.h"
#include "emit/losses.h"
#include "emit/namer.h"
#include "emit/precision.h"
#include "ir/dropout.h"

namespace bakeoff::embedded {
const std::vector<File>& libtorch_helpers();
}

namespace bakeoff::emit::libtorch {
namespace {

// What the functions of ops call.
const Helpers& helpers() {
  static const Helpers all(embedded::libtorch_helpers());
  return all;
}

// Everything else in the program that an input or a member must not be called.
std::set<std::string> reserved() {
  std::set<std::string> all = cpp_words();
  all.merge(helpers().names());
  all.merge(words(
      "torch at c10 nn F std Tensor Batch Batches kBatchSize kLearningRate kDevice model optimizer "
      "loss tensors path file data data_ first first_ rows order_ batches weights steps step forward "
      "parameters buffers modules children name clone apply train eval is_training to zero_grad save "
      "load pretty_print is_serializable as named_parameters named_buffers named_modules "
      "named_children shared_from_this load_data load_weights load_safetensors field train_step "
      "make_model make_optimizer next argc argv register_module register_parameter "
      "register_buffer unregister_module autocast Autocast RMSpropEpsInside AdamEpsInside AdamEpsHat "
      "DecoupledSGD "
      "DecoupledRMSprop abs exp log pow sin cos tan sqrt floor ceil round index INFINITY NULL EOF "
      "stdin stdout stderr errno assert linux unix learning_rate RecipeOptimizer kWarmupSteps kWarmupFrom "
      "kDecaySteps kFinalShare kStepEvery kStepFactor kClipNorm kClipValue kEmaDecay kAccumulate chunk chunks shares kNoDecay "
      "kPrompt kWords kCached decode_step likeliest Answer predict_step save_words"));
  return all;
}

bool is_buffer(const ir::Parameter& p) { return !ir::trainable(p) && p.role != ir::Role::kCache; }

class Program {
 public:
  Program(const Request& request, const std::vector<ir::Type>& types)
      : request_(request), workload_(request.workload), types_(types), names_(reserved()) {
    class_ = names_.name("class", camel_case(workload_.name));
    names_.name("impl", class_ + "Impl");
    for (const ir::Input& input : workload_.inputs) {
      inputs_.push_back(names_.name("input:" + input.name, std::string_view(input.name).substr(0, 20)));
      if (!generates() || loaded_.empty()) loaded_.push_back(inputs_.size() - 1);
    }
  }

  std::string text() {
    const Stretch whole{"", 0, workload_.model_end()};
    Namer flat_names = names_;
    const Modules flat(request_, types_, whole, no_blocks_, flat_names);
    cells_ = flat.cells();
    blocks_ =
        Blocks::plan(workload_, types_, {.names = names_},
                     [this](const Stretch& stretch, const Blocks& blocks) { return block(stretch, blocks); });
    header();
    const size_t head = out_.text().size();
    for (const Family& family : blocks_.families()) {
      names_.name("family " + family.name, family.name);
      block_class(family);
    }
    const Modules modules(request_, types_, whole, blocks_, names_);
    model_class(modules);
    if (!generates()) {
      print_optimizer_class(out_, request_.training);
      print_surrounding(out_, request_.training);
    }
    make_model();
    if (!generates()) print_make_optimizer(out_, request_.training, class_);
    print_autocast(out_, half_);
    generates() ? generate() : train_step();
    load_safetensors();
    load_data();
    if (equalised()) load_weights(flat);
    batches();
    main();
    std::string text = out_.text();
    return text.insert(head, helpers().used_by(text.substr(head)));
  }

 private:
  bool equalised() const { return request_.training.equalised(); }
  bool generates() const { return request_.training.generates(); }
  bool channels_last() const { return request_.settings.at("channels_last") == "true"; }
  size_t rank(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape.size(); }
  // torch's cross entropy has the classes at axis 1.
  bool flattens(const ir::Node& loss) const {
    return loss.op == ir::Op::kSoftmaxCrossEntropy && rank(loss.inputs[0]) > 2;
  }
  // "x.to(kDevice)"
  std::string to_device(size_t input, const std::string& value) const {
    const ir::Type& type = workload_.inputs[input].type;
    const bool picture = type.dtype == ir::DType::kF32 && type.shape.size() == 4;
    return value + (channels_last() && picture ? ".to(kDevice).contiguous(torch::MemoryFormat::ChannelsLast)"
                                               : ".to(kDevice)");
  }
  // The inputs that the data has.
  std::string inputs() const {
    std::vector<std::string> names;
    for (const size_t i : loaded_) names.push_back(inputs_[i]);
    return join(names, ", ");
  }

  void header();
  std::optional<Printed> block(const Stretch& stretch, const Blocks& blocks) const;
  void print_constructor(const std::string& head, const std::vector<std::string>& members);
  void block_class(const Family& family);
  void model_class(const Modules& modules);
  void make_model();
  // Prints the call of the model where it cannot stand in the loss; gives what inputs and outputs are called.
  std::map<ir::ValueId, std::string> call_model();
  void print_losses();
  // log_p, frames and lengths for a ctc, and its terms.
  std::vector<std::string> ctc_terms(const ir::Node& loss, const std::string& logits,
                                     const std::string& labels);
  void train_step();
  void generate();
  void load_safetensors();
  void load_data();
  void load_weights(const Modules& modules);
  void batches();
  void main();
  void print_training_loop();
  void print_answers();

  const Request& request_;
  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  Namer names_;
  std::string class_;
  Blocks blocks_;
  const Blocks no_blocks_;
  std::vector<Cell> cells_;
  std::vector<std::string> inputs_;
  std::vector<size_t> loaded_;
  std::string half_ = precision_of(request_).half;  // "bfloat16"; empty: float32
  CodeWriter out_{2};
};

void Program::header() {
  const std::string stem = request_.script_name.substr(0, request_.script_name.rfind('.'));
  out_.line(
      fmt::format("// {} {} with LibTorch.", generates() ? "Generates with" : "Trains", workload_.name));
  out_.line("//");
  out_.line(fmt::format("//   ./{} data.safetensors{} [steps{}]", stem,
                        equalised() ? " weights.safetensors" : "",
                        generates() ? " [words.safetensors]" : ""));
  out_.blank();
  if (!half_.empty()) out_.line("#include <ATen/autocast_mode.h>");
  const bool ends = !generates() && request_.training.optimizer.schedule.steps > 0;
  out_.print(ends ? "#include <torch/torch.h>\n\n#include <algorithm>\n" : "#include <torch/torch.h>\n\n");
  out_.print(
      "#include <cmath>\n#include <cstdint>\n#include <cstdio>\n#include "
      "<fstream>\n");
  if (generates()) out_.line("#include <functional>");
  out_.print("#include <map>\n#include <memory>\n");
  if (workload_.has(ir::Op::kAttention)) out_.line("#include <optional>");
  if (!generates() && !request_.training.optimizer.no_decay.empty()) out_.line("#include <set>");
  out_.print(
      "#include <sstream>\n#include <string>\n#include <tuple>\n#include <utility>\n#include <vector>\n\n"
      "namespace F = torch::nn::functional;\nnamespace nn = torch::nn;\nusing torch::Tensor;\n");
  std::vector<std::string> each(loaded_.size(), "Tensor");
  statement(out_, fmt::format("using Batch = std::tuple<{}>;  // {}", join(each, ", "), inputs()));
  out_.blank();
  out_.line(fmt::format("constexpr int64_t kBatchSize = {};", request_.training.batch));
  if (generates()) {
    const ir::Generation& g = request_.training.generation;
    out_.line("// Words of each row that are read first, and those that are chosen in answer.");
    out_.line(fmt::format("constexpr int64_t kPrompt = {};", g.prompt));
    out_.line(fmt::format("constexpr int64_t kWords = {};", g.words));
  } else {
    out_.line(
        fmt::format("constexpr double kLearningRate = {};", python_real(request_.training.optimizer.lr)));
    print_update_constants(out_, request_);
  }
  out_.blank();
  out_.print("const torch::Device kDevice = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;\n\n");
  if (generates() && keeps_words(request_.settings) && !half_.empty()) {
    out_.line(fmt::format("const auto kCached = torch::dtype({}).device(kDevice);", half_type(half_)));
    out_.blank();
  }
}

// What a stretch is as a module of its own: registration, an empty line, members; and the body of forward().
std::optional<Printed> Program::block(const Stretch& stretch, const Blocks& blocks) const {
  if (is_cell(cells_, stretch)) return std::nullopt;
  Namer names(reserved());
  const Modules modules(request_, types_, stretch, blocks, names);
  CodeWriter layers(2, true), body(2, true);
  modules.print_registration(layers);
  layers.blank();
  modules.print_members(layers);
  Printed printed = ForwardPrinter(body, request_, modules, blocks, types_, inputs_, names)
                        .print(forward_functions(), stretch);
  printed.layers = std::move(layers);
  printed.body = std::move(body);
  return printed;
}

// "Block(int64_t width_) : width(width_) {", broken as clang-format does.
void Program::print_constructor(const std::string& head, const std::vector<std::string>& members) {
  const std::string list = fmt::format(": {} {{", join(members, ", "));
  const auto fits = [this](size_t more) { return static_cast<size_t>(out_.column()) + more <= kColumns; };
  if (members.empty()) return statement(out_, head + " {");
  if (fits(head.size() + 1 + list.size())) return out_.line(head + " " + list);
  statement(out_, head);
  if (fits(4 + list.size())) return out_.line("    " + list);
  for (size_t i = 0; i < members.size(); ++i) {
    out_.line(
        fmt::format("    {} {}{}", i == 0 ? ":" : " ", members[i], i + 1 < members.size() ? "," : " {"));
  }
}

void Program::block_class(const Family& family) {
  const auto print = [this](const Statement& s) {
    statement(out_, std::string(static_cast<size_t>(s.level) * 2, ' ') + s.head);
  };
  const auto& layers = family.text.layers.statements();
  const auto divide =
      std::find_if(layers.begin(), layers.end(), [](const Statement& s) { return s.head.empty(); });
  out_.line(fmt::format("struct {}Impl : nn::Module {{", family.name));
  {
    const auto inside = out_.indent();
    std::vector<std::string> parameters, members;
    for (const Parameter& p : family.parameters) {
      parameters.push_back(fmt::format("{} {}_", p.real ? "double" : "int64_t", p.name));
      members.push_back(fmt::format("{0}({0}_)", p.name));
    }
    print_constructor(fmt::format("{}{}Impl({})", parameters.size() == 1 ? "explicit " : "", family.name,
                                  join(parameters, ", ")),
                      members);
    {
      const auto constructor = out_.indent();
      std::for_each(layers.begin(), divide, print);
    }
    out_.line("}");
    out_.blank();
    call(out_, "Tensor forward", family.text.formals, " {");
    {
      const auto body = out_.indent();
      for (const Statement& s : family.text.body.statements()) print(s);
    }
    out_.line("}");
    out_.blank();
    for (const Parameter& p : family.parameters)
      out_.line(fmt::format("{} {};", p.real ? "double" : "int64_t", p.name));
    std::for_each(divide + 1, layers.end(), print);
  }
  out_.line("};");
  out_.line(fmt::format("TORCH_MODULE({});", family.name));
  out_.blank();
}

void Program::model_class(const Modules& modules) {
  out_.line(fmt::format("struct {}Impl : nn::Module {{", class_));
  {
    const auto body = out_.indent();
    if (!modules.empty()) {
      out_.line(fmt::format("{}Impl() {{", class_));
      {
        const auto constructor = out_.indent();
        modules.print_registration(out_);
      }
      out_.line("}");
      out_.blank();
    }
    ForwardPrinter(out_, request_, modules, blocks_, types_, inputs_, names_).print(forward_functions());
    if (!modules.empty()) out_.blank();
    modules.print_members(out_);
  }
  out_.line("};");
  out_.line(fmt::format("TORCH_MODULE({});", class_));
  out_.blank();
}

void Program::make_model() {
  out_.line(fmt::format("{} make_model() {{", class_));
  {
    const auto body = out_.indent();
    if (equalised()) {
      out_.print(
          "at::globalContext().setAllowTF32CuBLAS(false);  // no TF32 on GPUs\n"
          "at::globalContext().setAllowTF32CuDNN(false);\n");
    }
    if (!equalised() || ir::drops(workload_)) {
      out_.line(fmt::format("torch::manual_seed({});", request_.training.seed));
    }
    out_.line(fmt::format("{} model;", class_));
    out_.line("model->to(kDevice);");
    if (channels_last()) {
      out_.print(
          "for (Tensor& p : model->parameters()) {\n"
          "  if (p.dim() == 4) p.set_data(p.contiguous(torch::MemoryFormat::ChannelsLast));\n"
          "}\n");
    }
    if (generates()) out_.line("model->eval();");
    out_.line("return model;");
  }
  out_.line("}");
  out_.blank();
}

std::map<ir::ValueId, std::string> Program::call_model() {
  std::map<ir::ValueId, std::string> values;
  for (size_t i = 0; i < inputs_.size(); ++i) values[static_cast<ir::ValueId>(i)] = inputs_[i];
  const std::vector<std::string> read(inputs_.begin(),
                                      inputs_.begin() + static_cast<long>(forward_arity(workload_)));
  const std::vector<ir::ValueId> outputs = workload_.outputs();
  const ir::Node& loss = workload_.first_loss();
  const std::string call = fmt::format("model({})", join(read, ", "));
  const bool inside = one_loss(workload_) && outputs.size() == 1 && workload_.is_input(loss.inputs[1]) &&
                      !flattens(loss) && call.size() + values[loss.inputs[1]].size() <= 40;
  const std::vector<std::string> names =
      inside ? std::vector<std::string>{call} : output_names(workload_, names_);
  if (!inside)
    statement(out_, fmt::format("const {} = {};",
                                outputs.size() > 1 ? fmt::format("auto [{}]", join(names, ", "))
                                                   : "Tensor " + names[0],
                                call));
  for (size_t i = 0; i < outputs.size(); ++i) values[outputs[i]] = names[i];
  return values;
}

std::vector<std::string> Program::ctc_terms(const ir::Node& loss, const std::string& logits,
                                            const std::string& labels) {
  const std::string name = ir::loss_terms(workload_).size() == 1 ? "" : loss.output;
  const std::string log_p = names_.name("ctc log_p" + name, "log_p"),
                    frames = names_.name("ctc frames" + name, "frames"),
                    lengths = names_.name("ctc lengths" + name, "lengths");
  call(out_, fmt::format("const Tensor {} = torch::log_softmax", log_p), {logits, "-1"}, ".transpose(0, 1);");
  statement(out_, fmt::format("const Tensor {} = ({} >= 0).sum(1);", lengths, labels));
  statement(out_, fmt::format("const Tensor {} = torch::full_like({}, {});", frames, lengths,
                              types_[static_cast<size_t>(loss.inputs[0])].shape[1]));
  return {log_p, labels, frames, lengths};
}

void Program::print_losses() {
  const std::map<ir::ValueId, std::string> values = call_model();
  const std::vector<NamedLoss> losses = named_losses(workload_, names_);
  const bool declared = !half_.empty();  // before the scope of the autocast
  for (const NamedLoss& loss : losses) {
    const ir::Node& node = workload_.nodes[static_cast<size_t>(loss.node)];
    const ir::LossSpelling& spelling = ir::loss_spelling(node.op);
    const auto ignored = ir::ignore_index(node);
    const bool mean = node.word("reduction") == "mean", ctc = node.op == ir::Op::kCtc;
    const std::string& target = values.at(node.inputs[1]);
    std::vector<std::string> terms = {values.at(node.inputs[0]), target};
    if (ctc) terms = ctc_terms(node, terms[0], target);
    if (flattens(node)) {
      terms[0] += fmt::format(".flatten(0, {})", rank(node.inputs[0]) - 2);
      terms[1] += ".flatten()";
    }
    std::string options;
    if (ignored) options += fmt::format(".ignore_index({})", *ignored);
    if (!mean || ignored || ctc) options += ".reduction(torch::kSum)";
    if (const double smooth = ir::label_smoothing(node); smooth != 0)
      options += fmt::format(".label_smoothing({})", python_real(smooth));
    if (!options.empty()) terms.push_back("F::" + spelling.options + "()" + options);
    const char* type = declared && one_loss(workload_) ? "" : mean && ignored ? "Tensor " : "const Tensor ";
    call(out_, fmt::format("{}{} = F::{}", type, loss.name, spelling.libtorch), terms,
         mean && ctc ? fmt::format(" / {}.size(0);", target) : ";");
    if (mean && ignored)  // torch's own mean of no targets is NaN
      statement(out_,
                fmt::format("{0} = {0} / ({1} != {2}).sum().clamp_min(1);", loss.name, target, *ignored));
  }
  const std::vector<std::string> sums = weighted_sum(workload_, losses);
  for (size_t i = 0; i < sums.size(); ++i) {
    const char* type = declared || i > 0 ? "" : sums.size() > 1 ? "Tensor " : "const Tensor ";
    statement(out_, fmt::format("{}loss = {};", type, sums[i]));
  }
}

void Program::train_step() {
  std::vector<std::string> parameters = {class_ + "& model", "torch::optim::Optimizer& optimizer"};
  for (const std::string& name : inputs_) parameters.push_back("const Tensor& " + name);
  call(out_, "Tensor train_step", parameters, " {");
  {
    const auto body = out_.indent();
    out_.line("optimizer.zero_grad();");
    const bool parts = request_.training.optimizer.accumulate > 1;
    std::optional<CodeWriter::Scope> parted, rounded;
    if (parts) {
      out_.line("std::vector<Tensor> shares;");
      std::vector<std::string> chunks;
      for (const std::string& name : inputs_) chunks.push_back(name + ".chunk(kAccumulate)");
      statement(out_,
                fmt::format("const std::vector<std::vector<Tensor>> chunks = {{{}}};", join(chunks, ", ")));
      out_.line("for (int64_t chunk = 0; chunk < kAccumulate; ++chunk) {");
      parted.emplace(out_);
      for (size_t i = 0; i < inputs_.size(); ++i)
        out_.line(fmt::format("const Tensor& {} = chunks[{}][chunk];", inputs_[i], i));
    }
    if (!half_.empty()) {
      out_.print("Tensor loss;\n{\n");
      rounded.emplace(out_);
      out_.line("const Autocast autocast;");
    }
    print_losses();
    rounded.reset();
    if (!half_.empty()) out_.line("}");
    if (parts) {
      out_.print(
          "const Tensor share = loss / kAccumulate;\nshare.backward();\nshares.push_back(share.detach());\n");
      parted.reset();
      out_.print("}\noptimizer.step();\nreturn torch::stack(shares).sum();\n");
    } else {
      out_.print("loss.backward();\noptimizer.step();\nreturn loss.detach();\n");
    }
  }
  out_.line("}");
  out_.blank();
}

// An answer is an object that gives word by word, as a generator is in Python.
constexpr const char* kAnswer = R"(Tensor likeliest(const Tensor& logits) { return logits.argmax(-1); }

// kWords words in answer to the first kPrompt of each row, one after the other.
class Answer {
 public:
$constructor$

  // The next word of each row: what `choose` makes of the logits.
  Tensor next(const std::function<Tensor(const Tensor&)>& choose = likeliest) {
    const c10::InferenceMode inference;
    const Tensor logits = decode_step(model_, $read$words_, first_);
    first_ += words_.size(1);
    words_ = choose(logits).unsqueeze(1);
    return words_;
  }

 private:
  $model$ model_;
  Tensor words_$held$;
  int64_t first_ = 0;
};

Tensor predict_step(const $model$& model, const Tensor& rows) {
  Answer answer(model, rows);
  std::vector<Tensor> parts;
  for (int64_t n = 0; n < kWords; ++n) parts.push_back(answer.next());
  return torch::cat(parts, 1);
}

// A safetensors file with the tensor `words`.
void save_words(const Tensor& words, const std::string& path) {
  std::stringstream header;
  header << "{\"words\":{\"dtype\":\"I64\",\"shape\":[" << words.size(0) << "," << words.size(1)
         << "],\"data_offsets\":[0," << words.nbytes() << "]}}";
  const int64_t length = header.str().size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << header.str();
  file.write(static_cast<const char*>(words.data_ptr()), words.nbytes());
  TORCH_CHECK(file.flush(), "cannot write ", path);
}

)";

void Program::generate() {
  const bool keeps = keeps_words(request_.settings);
  out_.print(keeps ? R"(// Logits of the word that follows `words`, the first of which stands at `first`.
Tensor decode_step($model$& model, const Tensor& words, int64_t first) {
  const Tensor positions = torch::arange(first, first + words.size(1), words.options());
)"
                   : R"(// Logits of the word that follows `words`, which join the others at `first`.
Tensor decode_step($model$& model, Tensor& read, const Tensor& words, int64_t first) {
  const int64_t end = first + words.size(1);
  read.slice(1, first, end).copy_(words);
  const Tensor positions = torch::arange(end - 1, end, words.options());
)",
             {{"model", class_}});
  if (!half_.empty()) out_.line("  const Autocast autocast;");
  out_.print(fmt::format("  return model({}, positions).select(1, -1){};\n}}\n\n", keeps ? "words" : "read",
                         half_.empty() ? "" : ".to(torch::kFloat32)"));
  const std::string head = fmt::format("  Answer(const {}& model, const Tensor& rows)", class_);
  const std::string start = fmt::format(": model_(model), words_(rows.slice(1, 0, kPrompt)){} {{}}",
                                        keeps ? "" : ", read_(torch::zeros_like(rows))");
  out_.print(kAnswer,
             {{"model", class_},
              {"read", keeps ? "" : "read_, "},
              {"constructor", head + (head.size() + start.size() < kColumns ? " " : "\n      ") + start},
              {"held", keeps ? "" : ", read_"}});
}

void Program::load_safetensors() {
  out_.print(R"(// What stands between `open` and `close` in an entry of the header below.
std::string field(const std::string& entry, const std::string& open, char close) {
  const size_t begin = entry.find(open) + open.size();
  const size_t end = entry.find(close, begin);
  TORCH_CHECK(begin >= open.size() && end != std::string::npos, "no ", open, " in ", entry);
  return entry.substr(begin, end - begin);
}

// A safetensors file: 8 bytes with the length of a JSON header, the header
// {"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},...}, then the tensors' bytes.
std::map<std::string, Tensor> load_safetensors(const std::string& path) {
  static const std::map<std::string, torch::ScalarType> kTypes = {
      {"U8", torch::kUInt8},    {"I32", torch::kInt32},   {"I64", torch::kInt64},
      {"F32", torch::kFloat32}, {"F64", torch::kFloat64},
  };
  std::ifstream file(path, std::ios::binary);
  int64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof length);
  TORCH_CHECK(file && length < 100'000'000, path, " is not there, or no safetensors file");
  std::string header(length, ' ');
  file.read(header.data(), length);

  std::map<std::string, Tensor> tensors;
  for (size_t at = 1; header[at] == '"';) {
    const size_t colon = header.find("\":{", at), end = header.find('}', colon);
    TORCH_CHECK(end != std::string::npos, "the header of ", path, " is damaged");
    const std::string name = header.substr(at + 1, colon - at - 1);
    const std::string entry = header.substr(colon, end - colon);
    at = end + 2;  // behind "},"
    if (name == "__metadata__") continue;
    std::vector<int64_t> shape;
    std::stringstream sizes(field(entry, "\"shape\":[", ']'));
    for (std::string size; std::getline(sizes, size, ',');) shape.push_back(std::stoll(size));
    const Tensor tensor = torch::empty(shape, kTypes.at(field(entry, "\"dtype\":\"", '"')));
    file.seekg(8 + length + std::stoll(field(entry, "\"data_offsets\":[", ',')));
    file.read(static_cast<char*>(tensor.data_ptr()), tensor.nbytes());
    tensors[name] = tensor;
  }
  TORCH_CHECK(file, path, " ends before its data");
  return tensors;
}

)");
}

void Program::load_data() {
  out_.line("Batch load_data(const std::string& path) {");
  {
    const auto body = out_.indent();
    out_.line("const auto tensors = load_safetensors(path);");
    std::vector<std::string> items;
    for (const size_t i : loaded_) {
      const ir::Input& input = workload_.inputs[i];
      const bool whole = input.type.dtype == ir::DType::kI32;
      const double divisor = request_.training.input_divisor;
      statement(out_, fmt::format("const Tensor {} = tensors.at({}).to({}){};", inputs_[i], quote(input.name),
                                  whole ? "torch::kInt64" : "torch::kFloat32",
                                  !whole && divisor != 1 ? " / " + python_real(divisor) : ""));
      items.push_back(equalised() ? to_device(i, inputs_[i]) : inputs_[i]);
    }
    statement(out_, fmt::format("return {{{}}};", join(items, ", ")));
  }
  out_.line("}");
  out_.blank();
}

void Program::load_weights(const Modules& modules) {
  out_.line(fmt::format("void load_weights({}& model, const std::string& path) {{", class_));
  {
    const auto body = out_.indent();
    out_.print(R"(const torch::NoGradGuard no_grad;
const auto tensors = load_safetensors(path);
)");
    out_.print(
        modules.freezes_biases()
            ? R"(for (auto& item : model->named_parameters()) {
  // The LSTMs' second biases are not in the file.
  if (item.value().requires_grad()) item.value().copy_(tensors.at(item.key()));
}
)"
            : R"(for (auto& item : model->named_parameters()) item.value().copy_(tensors.at(item.key()));
)");
    const bool counts = workload_.has(ir::Op::kBatchNorm);
    if (counts || std::ranges::any_of(workload_.parameters, is_buffer)) {
      out_.line("for (auto& item : model->named_buffers()) {");
      if (counts) out_.line("  // BatchNorm's num_batches_tracked is not in the file.");
      out_.line(counts ? "  if (tensors.contains(item.key())) item.value().copy_(tensors.at(item.key()));"
                       : "  item.value().copy_(tensors.at(item.key()));");
      out_.line("}");
    }
  }
  out_.line("}");
  out_.blank();
}

void Program::batches() {
  out_.print(equalised()
                 ? "// Endless batches in the order of the file; a partial last one is left out.\n"
                 : "// Endless batches, shuffled anew in each epoch; a partial last one is left out.\n");
  out_.print(R"(class Batches {
 public:
  explicit Batches(Batch data) : data_(std::move(data)) {
    TORCH_CHECK(std::get<0>(data_).size(0) >= kBatchSize, "the data has fewer rows than one batch");
  }

  Batch next() {
)");
  {
    const auto level = out_.indent();
    const auto body = out_.indent();
    statement(out_, fmt::format("const auto& [{}] = data_;", inputs()));
    std::vector<std::string> items;
    for (const size_t i : loaded_) {
      items.push_back(equalised() ? inputs_[i] + ".narrow(0, first, kBatchSize)"
                                  : to_device(i, inputs_[i] + ".index_select(0, rows)"));
    }
    const std::string end = fmt::format("first_ + kBatchSize > {}.size(0)", inputs_[0]);
    if (equalised()) {
      out_.line(fmt::format("if ({}) first_ = 0;", end));
      out_.print("const int64_t first = first_;\nfirst_ += kBatchSize;\n");
    } else {
      out_.line(fmt::format("if (!order_.defined() || {}) {{", end));
      out_.line(fmt::format("  order_ = torch::randperm({}.size(0));", inputs_[0]));
      out_.print(
          "  first_ = 0;\n}\nconst Tensor rows = order_.narrow(0, first_, kBatchSize);\n"
          "first_ += kBatchSize;\n");
    }
    statement(out_, fmt::format("return {{{}}};", join(items, ", ")));
  }
  out_.print("  }\n\n private:\n  Batch data_;\n");
  if (!equalised()) out_.line("  Tensor order_;");
  out_.print("  int64_t first_ = 0;\n};\n\n");
}

void Program::main() {
  out_.line("int main(int argc, char** argv) {");
  {
    const auto body = out_.indent();
    out_.line("const std::string data = argc > 1 ? argv[1] : \"data.safetensors\";");
    if (equalised()) out_.line("const std::string weights = argc > 2 ? argv[2] : \"weights.safetensors\";");
    const int at = equalised() ? 3 : 2;
    out_.line(fmt::format("const int steps = argc > {} ? std::stoi(argv[{}]) : 100;", at, at));
    out_.blank();
    out_.line(fmt::format("{} model = make_model();", class_));
    if (equalised()) out_.line("load_weights(model, weights);");
    generates() ? print_answers() : print_training_loop();
  }
  out_.line("}");
}

void Program::print_training_loop() {
  out_.print(
      "auto optimizer = make_optimizer(model);\nBatches batches(load_data(data));\n"
      "for (int step = 0; step < steps; ++step) {\n");
  {
    const auto loop = out_.indent();
    statement(out_, fmt::format("const auto [{}] = batches.next();", inputs()));
    std::vector<std::string> arguments = {"model", "optimizer"};
    arguments.insert(arguments.end(), inputs_.begin(), inputs_.end());
    call(out_, "const Tensor loss = train_step", arguments, ";");
    out_.print("if (step % 10 == 0) std::printf(\"step %5d  loss %.6f\\n\", step, loss.item<double>());\n");
  }
  out_.line("}");
}

void Program::print_answers() {
  out_.print(R"(Batches batches(load_data(data));
std::vector<Tensor> answers;
for (int step = 0; step < steps; ++step) {
  const auto [rows] = batches.next();
  answers.push_back(predict_step(model, rows).cpu());
  if (step % 10 != 0) continue;
  std::printf("batch %5d  first answer", step);
  for (int64_t n = 0; n < kWords; ++n) std::printf(" %d", answers.back()[0][n].item<int>());
  std::printf("\n");
}
if (argc > 4) save_words(torch::cat(answers).contiguous(), argv[4]);
)");
}

}  // namespace

std::string program_text(const Request& request, const std::vector<ir::Type>& types) {
  return Program(request, types).text();
}

namespace {

constexpr const char* kExampleHead =
    R"(// Checks $program$.cc against what the original model predicts.
//
//   build/example FOLDER
//
// The exit code is 0 where both agree up to rounding in float32.

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

// The program as it is, its main() under another name.
#pragma GCC diagnostic ignored "-Wreturn-type"
#define main train
#$include$ "$program$.cc"
#undef main

// Norm of the difference, relative to that of the expected outputs.
constexpr double kTolerance = $tolerance$;

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  auto model = make_model();
  load_weights(model, folder + "/weights.safetensors");
  model->eval();
  const torch::NoGradGuard no_grad;
  const Batch batch = Batches(load_data(folder + "/data.safetensors")).next();
)";

constexpr const char* kExampleTail = R"(  const Tensor output = given.to(torch::kCPU, torch::kFloat64);
  const Tensor expected = load_safetensors(folder + "/expected.safetensors").at("output");
  TORCH_CHECK(output.sizes() == expected.sizes(), "the outputs are ", output.sizes(), ", the original's ",
              expected.sizes());
  const double norm = std::max<double>(expected.norm().item<double>(), std::numeric_limits<float>::min());
  const double distance = (output - expected).norm().item<double>() / norm;
  std::printf("outputs of %d rows differ from the original's by %.1e\n", static_cast<int>(output.size(0)),
              distance);
  return distance <= kTolerance ? 0 : 1;
}
)";

constexpr const char* kExampleCommands = R"sh(cmake -S . -B build \
  -DCMAKE_PREFIX_PATH="$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
cmake --build build
build/example .)sh";

}  // namespace

Example example(const Request& request) {
  const std::string stem = request.script_name.substr(0, request.script_name.rfind('.'));
  std::vector<std::string> read;
  for (size_t i = 0; i < forward_arity(request.workload); ++i)
    read.push_back(fmt::format("std::get<{}>(batch)", i));
  const std::string prediction = fmt::format("model({})", join(read, ", "));
  CodeWriter out{2};
  out.print(kExampleHead, {{"program", stem}, {"tolerance", kExampleTolerance}, {"include", "include"}});
  {
    const auto body = out.indent();
    statement(out, fmt::format("const Tensor given = {};", request.workload.outputs().size() > 1
                                                               ? fmt::format("std::get<0>({})", prediction)
                                                               : prediction));
  }
  out.print(kExampleTail);
  return {.file = "example.cc", .text = out.text(), .commands = kExampleCommands};
}

}  // namespace bakeoff::emit::libtorch
