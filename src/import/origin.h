#pragma once

// The framework that a model comes from, in a process of its own (runners/bakeoff_import): exports the
// model, then computes with it in float64. Ends when this object does, with everything that it started.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/type.h"

namespace bakeoff {

struct ImportInput {
  std::string name = {};  // a parameter of the model's forward function; empty: by position
  ir::Type type = {};     // with the batch size that the recipe gets at axis 0; bool: i32 in the workload
  int64_t below = 0;      // integers are in [0, below); 0: what the ops that read them allow
};

// "f32[8,3,32,32]", "ids=i32[16,128]", "t=i32[16]<1000" or "mask=bool[16,128]". The error says what is wrong with it.
Result<ImportInput> parse_import_input(const std::string& text);

struct ImportRequest {
  std::filesystem::path file = {};
  std::string function = {};  // what the file makes the model with, or the model itself
  std::vector<ImportInput> inputs = {};
  std::string loss = {};              // name of a loss op of the IR
  std::string output = {};            // which of several outputs the loss compares; empty: the only one
  std::filesystem::path out = {};     // the IR file; weights and recipe lie next to it
  bool force = false;                 // replaces files that are there
  std::filesystem::path python = {};  // interpreter of the framework's environment
  // Where a process listens that has the model already (a notebook): it computes in the child's place. `file`
  // is then but a name.
  std::filesystem::path socket = {};
  std::filesystem::path runner = {};  // folder of the packages (environments/runner_files.h)
  std::string child = {};             // option of the child, by which it knows the model's framework
  bool knows_inputs = false;          // the model may say its inputs and loss itself
  bool count = false;    // of a model whose parameters take no memory; nothing is proven or written
  double seconds = 600;  // time limit of each step of the child

  bool is_onnx() const { return file.extension() == ".onnx"; }
  // "model.py:make"; "model.onnx"
  std::string title() const { return file.filename().string() + (function.empty() ? "" : ":" + function); }
};

// A value of the IR and where it comes from.
struct OriginLine {
  std::string value = {};
  std::string op = {};      // of the IR
  std::string where = {};   // "model.py:12"
  std::string source = {};  // "aten.conv2d"
};

// Numbers of the original model, each counted once.
struct OriginNumbers {
  int64_t trained = 0;   // that training moves
  int64_t frozen = 0;    // that the output reads, and training does not move; running statistics among them
  int64_t left_out = 0;  // that the output does not depend on
  bool operator==(const OriginNumbers&) const = default;
};

// What the origin exports.
struct OriginModel {
  std::string text = {};                                         // IR
  std::string target = {};                                       // the input that the loss compares with
  std::map<std::string, std::vector<std::string>> targets = {};  // parameter of the IR -> the origin's names
  std::vector<OriginLine> lines = {};                            // in order of evaluation
  std::vector<std::string> notes = {};
  std::vector<std::string> unused = {};  // tensors of the origin that the output does not depend on
  OriginNumbers numbers = {};
  std::string version = {};
  int64_t batch = 0;             // of the recipe; 0: that of the inputs which the user gave
  bool biased_variance = false;  // enters the running variance (divisor n, not n - 1)
};

class Origin {
 public:
  // `folder`: an existing folder for the files that travel.
  static Result<Origin> start(const ImportRequest& request, const std::filesystem::path& folder);
  Origin(Origin&&) noexcept;
  ~Origin();

  // Any request of the child's, with fields of text.
  Status request(const std::string& op, const std::map<std::string, std::string>& fields);
  // Exports and maps the model; its weights go to weights(). Errors name the user's file and line; ops
  // without a counterpart are all in one.
  Result<OriginModel> export_model();
  std::filesystem::path weights() const;

  // Computes with these weights (empty: its own) and inputs, safetensors files, in training mode without
  // dropout, or in inference mode. The tensors of `out`: "output"; in training "gradient:NAME" and "running:NAME".
  // False: a mask among these inputs leaves an attention no key, where torch gives 0 or nan.
  Result<bool> compute(const std::filesystem::path& weights, const std::filesystem::path& inputs, bool train,
                       const std::filesystem::path& out);
  // Its values by the names of the IR, with the weights of the last compute(), in training mode.
  Status trace(const std::filesystem::path& inputs, const std::filesystem::path& out);

 private:
  struct Impl;
  explicit Origin(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace bakeoff
