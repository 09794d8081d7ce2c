#pragma once

// What an emitter gets, what it gives, and what a framework declares about itself. One Framework value per
// folder src/emit/<framework>; src/emit/all lists them.
//
// The emitted script runs alone: `python train_torch.py [--data F] [--weights F] [--steps N]`; by default it
// reads data.safetensors (one tensor per input of the workload, rows first, raw values) and, in the equalised
// track, weights.safetensors (canonical names and layouts) from its own folder, trains, prints losses.
//
// In the scenario "predict" it is predict_torch.py, prints the mean of the outputs of every tenth batch, and
// loads only the inputs that the prediction depends on.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "ir/workload.h"

namespace bakeoff::emit {

// Execution settings of a contender, validated against Framework::settings: every setting is present.
using Settings = std::map<std::string, std::string>;

// The value of a setting, `otherwise` where a map made by hand lacks it.
std::string setting_or(const Settings& settings, const std::string& name, const std::string& otherwise);

struct Framework;
struct Setting;
// Every setting at the framework's own default.
Settings defaults_of(const Framework& framework);
// Whether it means something in this scenario.
bool concerns(const Setting& setting, ir::Scenario scenario);
// The settings that are always named, in every combination of their values: {{"backend", "jax"}}, ... One empty
// map where there are none.
std::vector<Settings> named_variants(const Framework& framework);

// What a contender computes in: "float32", "bfloat16", "float16", with "+tf32" where float32 products may be
// rounded. Contenders are ranked within such a group alone.
std::string precision_group(const Settings& settings);
inline constexpr const char* kFullPrecision = "float32";
// The same contender in float32 throughout: what a precision variant is held against.
Settings float32_twin(Settings settings);

struct Setting {
  std::string name;                 // "compile"
  std::vector<std::string> values;  // allowed; empty: any integer from `least` on
  std::string fallback;             // the framework's own default
  std::string doc;
  std::vector<ir::Scenario> scenarios = {};  // in which it means something; empty: all
  int64_t least = 1;                         // where any integer is allowed, those from here on
  bool steps_per_call = false;               // its value is the number of training steps that one call does
  bool always_named = false;  // part of a contender's name at its default, too: Keras's backend
  // Values that `bakeoff tune` tries: everywhere, and where there is a GPU.
  std::vector<std::string> tuned = {}, tuned_on_gpus = {};
  // An environment variable by which scripts of users choose it before they import the framework; workers
  // set it themselves.
  std::string variable = {};
};

struct Request {
  const ir::Workload& workload;
  const ir::Training& training;
  Settings settings;
  std::string script_name;  // "train_torch.py"; the layout file is named after it
};

// A program that lies next to a script: it predicts with the script's functions and compares with
// expected.safetensors, which holds "output" of the first batch.
struct Example {
  std::string file = {};  // "example.py"
  std::string text = {};
  std::string commands = {};  // of a shell, which run it in its folder
};
// Its bound: the norm of the difference, relative to the norm of what is expected.
inline constexpr const char* kExampleTolerance = "5e-5";

struct Emitted {
  std::string source;  // formatted as the ecosystem's formatter would
  // How canonical weights become the framework's (see docs/runner_protocol.md); empty: they are the same.
  std::string layout_json = {};
  // Further files of its folder, by name, the same for all scripts of the framework there: what builds them.
  std::map<std::string, std::string> beside = {};
  Example example = {};  // of a script that can predict
};

// One line of the fairness diff: what a framework does where the user says nothing.
struct Default {
  std::string topic;  // one of the names in namespace topic, so that lines of frameworks meet
  std::string value;
  bool operator==(const Default&) const = default;
};

namespace topic {
inline constexpr const char* kWeightInit = "initialiser of conv and linear weights";
inline constexpr const char* kBiasInit = "initialiser of biases";
inline constexpr const char* kTableInit = "initialiser of embeddings";
inline constexpr const char* kLstmInit = "initialiser of LSTM weights";
inline constexpr const char* kGruInit = "initialiser of GRU weights";
inline constexpr const char* kEps = "optimizer epsilon";
inline constexpr const char* kEpsForm = "where epsilon sits";
inline constexpr const char* kRho = "RMSprop decay of the squared gradient";
inline constexpr const char* kWeightDecay = "weight decay";
inline constexpr const char* kBatchNormEps = "BatchNorm epsilon";
inline constexpr const char* kBatchNormMomentum = "BatchNorm momentum (weight of the new batch)";
inline constexpr const char* kRunningVar = "BatchNorm running variance";
inline constexpr const char* kLayerNormEps = "LayerNorm epsilon";
}  // namespace topic

// What is asked of the environment that has the framework's name.
struct Packages {
  // Pip's name of the framework: an interpreter of the user's has it, or another build of it ("<name>-cpu").
  std::string framework = {};
  std::vector<std::string> shown = {};  // worth a place in a table where they are installed
};

// A folder in which a framework keeps what it has compiled, for later processes.
struct CompilerCache {
  std::string variable = {};  // the environment variable that names the folder
  std::string folder = {};    // its name in the run's folder cache/
  bool (*used)(const Settings&) = nullptr;
};

// A library among its packages with a matrix product that can be called from C.
struct GemmLibrary {
  std::string file = {};   // the beginning of its name: "libtorch_cpu.so"
  std::string title = {};  // "MKL of torch"
};

// A variable of the environment that changes what the framework computes with.
struct Variable {
  std::string name = {};
  std::string meaning = {};  // what it means that the variable is set: "XLA is told how to compile"
};

// What `bakeoff selftest` appends to a script as a fault that it has to find.
struct Faults {
  // Every `every`-th step does its work twice; null: the loop over steps is not in the script.
  std::string (*repeated_steps)(int every) = nullptr;
  // Takes the completion barrier away. Empty: without a barrier a CPU's work would be done all the same.
  std::string no_barrier = {};
  std::string unread_loss = {};  // behind it: the loss is not waited for, either
};

struct Framework {
  std::string name;   // "torch": also the runner's adapter
  std::string title;  // "PyTorch"
  std::vector<Setting> settings;
  std::vector<ir::Scenario> scenarios = {ir::Scenario::kTrain};
  // File name extension of scripts; those in ".cc" are compiled (worker/compiled_contender.h).
  std::string extension = ".py";
  // The Python module that its scripts import; where they are C++, the folder of the headers they include. A
  // user's script is recognised by it.
  std::string module = {};
  std::vector<std::string> also_imported = {};  // further texts of a user's script that mean the same
  // Frameworks that such a script may import besides, as backends or for its data.
  std::vector<std::string> imports_besides = {};
  // The environment a contender runs in. It has the name of a framework, perhaps of another one.
  std::string (*environment)(const Settings&) = nullptr;
  Packages packages = {};  // where there is an environment of its name
  bool (*supports)(ir::Op) = nullptr;
  Result<Emitted> (*emit)(const Request&) = nullptr;
  // Defaults that matter for this workload and optimizer; null: it has none of its own.
  std::vector<Default> (*defaults)(const Request&) = nullptr;
  // True where running variances are updated with the unbiased batch variance (torch).
  bool (*unbiased_running_var)(const Settings&) = nullptr;
  // Batches that the data must have for its script to train at all; null: one.
  int64_t (*least_batches)(const Request&) = nullptr;
  // What it compiles has the weights as constants: they cannot change between two steps.
  bool weights_are_constants = false;
  // What does work of its own between two epochs, which counts in every step: "Keras's fit". Empty: nothing.
  std::string between_epochs = {};
  // About how long the gate takes to prove a contender: of MNIST CNN, on two processors. Those that take
  // least are proven first.
  double proof_s = 60;
  CompilerCache cache = {};
  std::string calls_compiler = {};  // what of it calls this machine's C++ compiler: "torch.compile"
  GemmLibrary gemm = {};
  // Environment variables that every worker is started with; the names of those that get the number of
  // threads; those that keep a worker on the CPU.
  std::map<std::string, std::string> worker_variables = {};
  std::vector<std::string> thread_variables = {};
  std::map<std::string, std::string> cpu_variables = {};
  std::vector<Variable> watched_variables = {};  // that a user may have set
  Faults faults = {};
  // Its program is the workload alone, without a library: what a machine can do, which frameworks are held against.
  bool limit = false;
  std::map<std::string, std::string> lacks = {};  // settings of others that it does not have, and why
};

bool can(const Framework& framework, ir::Scenario scenario);

// How many training steps a call does under these settings.
int64_t steps_per_call(const Framework& framework, const Settings& settings);

// Fails with the name of the workload's first op that the framework has no emitter for.
Status check_supported(const Framework& framework, const ir::Workload& workload);

}  // namespace bakeoff::emit
