#include "import/import.h"

#include <fmt/format.h>

#include <sstream>

#include "base/files.h"
#include "cli/command.h"
#include "cli/console.h"
#include "cli/import_options.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "environments/runner_files.h"
#include "ir/type.h"
#include "proc/launcher.h"
#include "recipe/contenders.h"

namespace bakeoff::cli {

namespace {

constexpr const char* kKerasEnvironments[] = {"torch", "jax", "tensorflow"};  // each has Keras 3

// Whether a Python file imports this module, or one below it.
bool imports(const fs::path& file, const std::string& module) {
  const auto text = read_file(file);
  if (!text) return false;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    for (const std::string& name : recipe::imported_modules(line))
      if (name == module || name.starts_with(module + ".")) return true;
  return false;
}

// The framework that the user names; else that of the file's imports.
bool is_keras(const std::string& named, const fs::path& file) {
  if (!named.empty()) return named == "keras";
  return (imports(file, "keras") || imports(file, "tensorflow")) && !imports(file, "torch");
}

// The environment whose framework the file imports itself; else the first that is ready.
std::string keras_environment(const fs::path& file, const Interpreters& interpreters) {
  for (const char* name : kKerasEnvironments) {
    if (imports(file, name)) return name;
  }
  for (const char* name : kKerasEnvironments) {
    if (interpreters.at(name).why_not.empty()) return name;
  }
  return kKerasEnvironments[0];
}

Result<fs::path> interpreter_of(const ImportRequest& request, bool keras, const fs::path& config) {
  TRY(const auto interpreters, find_interpreters(config));
  const std::string environment = request.is_onnx() ? "onnxruntime"
                                  : keras           ? keras_environment(request.file, interpreters)
                                                    : "torch";
  const Interpreter& interpreter = interpreters.at(environment);
  if (interpreter.why_not.empty()) return interpreter.python;
  return Error{.message =
                   fmt::format("the environment '{}' is not ready: {}", environment, interpreter.why_not)};
}

}  // namespace

Result<ImportRequest> import_request(const ImportOptions& options, const fs::path& config) {
  const bool onnx = fs::path(options.model).extension() == ".onnx", live = !options.socket.empty();
  const size_t colon = onnx || live ? options.model.size() : options.model.rfind(':');
  const bool keras = !onnx && (live ? options.framework == "keras"
                                    : is_keras(options.framework, options.model.substr(0, colon)));
  if (!onnx && !keras && options.inputs.empty())
    return Error{.message = "--input is missing", .remedy = "give the type of each input: 'f32[8,3,32,32]'"};
  if (!onnx && !live && (colon == std::string::npos || colon + 1 == options.model.size())) {
    return Error{.message = fmt::format("'{}' does not name what makes the model", options.model),
                 .remedy = "write FILE.py:NAME, for example model.py:make, or name an ONNX file"};
  }
  ImportRequest request{.file = options.model.substr(0, colon),
                        .function = onnx || live ? "" : options.model.substr(colon + 1),
                        .loss = options.loss,
                        .output = options.output,
                        .out = options.out,
                        .force = options.force,
                        .child = onnx             ? "--onnx"
                                 : keras && !live ? "--keras"
                                                  : "",
                        .knows_inputs = keras,
                        .count = options.count,
                        .seconds = options.seconds};
  for (const std::string& text : options.inputs) {
    TRY(ImportInput input, parse_import_input(text));
    request.inputs.push_back(std::move(input));
  }
  request.socket = options.socket;
  request.python = options.python;
  if (request.python.empty()) {
    TRY(request.python, interpreter_of(request, keras, config));
  }
  TRY(request.runner, unpack_runner(bakeoff_home()));
  return request;
}

// Of the options that fit together or not.
Status check_options(const ImportOptions& options, const ImportRequest& request) {
  if (request.loss.empty() && !request.knows_inputs)
    return Error{.message = "--loss is missing", .remedy = "for example softmax_cross_entropy or mse"};
  if (options.out.empty() && !request.count)
    return Error{.message = "--out is missing", .remedy = "name the IR file: --out my.ir"};
  if (request.count && (request.is_onnx() || request.knows_inputs || !options.socket.empty()))
    return Error{.message = "--count makes a torch module without memory, from its file",
                 .remedy = "leave --count out: an import says how many numbers the model has"};
  return Done{};
}

int import(const ImportOptions& options, const fs::path& config) {
  if (const auto started = proc::start_launcher(); !started) return fail(started.error());
  auto request = import_request(options, config);
  if (!request) return fail(request.error());
  if (const auto good = check_options(options, *request); !good) return fail(good.error());
  if (options.out.empty()) request->out = request->function + ".ir";  // a name that nothing is written to
  const auto report = [&] {
    ConsoleProgress progress;
    return import_model(*request, progress.lines());
  }();
  if (!report) return fail(report.error());
  print(fmt::format("{}: {} inputs, constants and ops in its graph\n", report->workload.name,
                    report->workload.nodes.size()));
  const auto& [trained, frozen, left_out] = report->numbers;
  print(fmt::format("of the model's numbers {} are trained, {} frozen, {} left out\n", trained, frozen,
                    left_out));
  if (request->count) {
    print("counted from its graph, not proven; nothing was written\n");
    return 0;
  }
  if (request->is_onnx()) {
    print(fmt::format(
        "proven against the file: outputs differ from ONNX Runtime's in float32 by {:.1e}, from those of ONNX's "
        "reference in float64 by {:.1e}; slopes of {} parameters together by {:.1e}\n",
        report->proof.float32, report->proof.outputs, report->proof.parameters, report->proof.gradients));
  } else
    print(fmt::format(
        "proven against the model in float64: outputs differ by {:.1e} at most, running statistics by "
        "{:.1e}, gradients of {} parameters by {:.1e}\n",
        report->proof.outputs, report->proof.running, report->proof.parameters, report->proof.gradients));
  for (const std::string& note : report->notes) print("note: " + note + "\n");
  for (const fs::path& file : {report->ir, report->weights, report->recipe}) print(file.string() + "\n");
  print(fmt::format("next: bakeoff run {}\n", report->recipe.string()));
  return 0;
}

void add_model_options(CLI::App& sub, ImportOptions& options, const std::string& others) {
  sub.add_option(
         "model", options.model,
         "FILE.py:NAME: a function without arguments that makes the model, its class, or the model; " +
             others)
      ->required();
  sub.add_option("--input", options.inputs,
                 "type of an input, the batch first: 'f32[8,3,32,32]'; by the name of a parameter of the "
                 "forward function: 'ids=i32[16,128]'; once for each input. A Keras model may know its own")
      ->allow_extra_args(false);
  sub.add_option(
         "--output", options.output,
         "name or number of the output that the loss compares, where the model has several; or several of them, with "
         "commas between them: scripts that predict give them one by one")
      ->type_name("NAME");
  sub.add_option("--framework", options.framework,
                 "framework that the model is of; where it is not named that which the file imports")
      ->check(one_of({"torch", "keras"}));
  sub.add_option("--python", options.python,
                 "interpreter that has the framework and what the model's file imports; default: that of the "
                 "framework's environment");
  sub.add_option("--socket", options.socket)->group("");  // python/bakeoff
  sub.add_option("--seconds", options.seconds, "time limit of each step of the framework's process")
      ->check(number_from(1.0, 1e6))
      ->capture_default_str();
  sub.add_flag("--force", options.force, "replace what exists");
  sub.add_option(
      "--loss", options.loss,
      "loss of the training, an op of `bakeoff ops` with its attributes: mse, or "
      "softmax_cross_entropy,label_smoothing=0.1,ignore_index=-100; a Keras model may be compiled with its "
      "own");
}

namespace {

Action add_import_command(CLI::App& sub) {
  const auto options = std::make_shared<ImportOptions>();
  add_model_options(sub, *options, "or an ONNX file");
  sub.add_option("--out", options->out, "IR file; weights and recipe are written next to it")
      ->type_name("FILE");
  sub.add_flag(
      "--count", options->count,
      "only say how many numbers a torch module has: parameters take no memory, nothing is proven or written");
  return [options](const Invocation& line) { return import(*options, line.config); };
}

}  // namespace

const Command kImport = {
    "import", "Import a model of your own: proven against its origin, written as IR, weights and a recipe",
    "bakeoff import model.py:make --input 'f32[8,3,32,32]' --loss softmax_cross_entropy --out my.ir",
    add_import_command};

}  // namespace bakeoff::cli
