#pragma once

// Parts of a script that JAX and TensorFlow share: reading data and weights, the command line.

#include <set>
#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/forward_printer.h"
#include "emit/precision.h"

namespace bakeoff::emit {

// "train_jax.py" -> "train_jax.layout.json"
std::string layout_file_name(const std::string& script_name);

// How a loop of the model is spelled: unrolled by Python, or given to the framework as `how`.
Setting loops_setting(const std::string& how);
// Sets graph.trace_loops. Refuses what a traced loop cannot carry.
Status choose_loops(const Request& request, Graph& graph);
// After the script was printed: refuses one that was to have a traced loop and has none.
Status check_loops(const Request& request, const Graph& graph);

// BATCH_SIZE, where the script trains LEARNING_RATE, `more` ("RHO = 0.9") and the dropout rates.
void print_constants(CodeWriter& out, const Request& request, const Graph& graph,
                     const std::vector<std::string>& more);
// def load_data(path): float inputs float32, scaled, in the order the model reads them; integers int32. A
// graph that predicts has only the inputs of its forward pass.
void print_load_data(CodeWriter& out, const Request& request, const Graph& graph);
// def load_weights(path): the arrays of the weights file, by the script's names and in its layouts;
// `casts`: in float32, for a framework that takes the type of an array.
void print_load_weights(CodeWriter& out, const Request& request, bool has_layout, bool casts = false);
// The variants of helpers.h: "mixed" and the type of half precision, "predicts".
std::set<std::string> helper_variants(const Precision& precision, bool predicts);
// Takes `definition` out of a script that has no `use` ("in_float32(") beside it.
void drop_unused(std::string& text, const std::string& definition, const std::string& use);

// At the head of a forward pass in half precision: "x = half(x)" for every real input.
void print_half_inputs(CodeWriter& out, const Graph& graph);
// What a forward pass gives: "return a, b", with a `tail` "return (a, b), stats".
void print_return(CodeWriter& out, const std::vector<std::string>& values, const std::string& tail = "");
// The arguments of main(): --data, --weights (equalised track) and --steps.
void print_arguments(CodeWriter& out, const Request& request);
// Raises where `array` has fewer rows than a batch; with `call` than the STEPS_PER_CALL batches of one call.
void print_rows_guard(CodeWriter& out, const std::string& array, bool call = false);
// "from safetensors.numpy import load_file", of a script that predicts save_file too
std::string load_file_import(bool predicts);
// The argument --out of a script that predicts.
inline constexpr const char* kOutArgument =
    "parser.add_argument(\"--out\", help=\"saves what is predicted of each full batch\")";

// How main() of a script that predicts goes through its data.
struct PredictLoop {
  std::string step;  // "predict_step(params, *next(data))"
  std::string mean = "output.mean()";
  std::string to_numpy = {};       // ".numpy()", where np.asarray(output) needs it
  std::string turn = {};           // of a numpy array of the output (output_turn)
  std::string args = "args";       // what parse_args gave
  std::string rows = "arrays[0]";  // one of the arrays that load_data gives
};
// Of a workload that predicts several values their names; else none.
std::vector<std::string> output_names(const ir::Workload& workload);
// Loads data and predicts --steps batches, or with --out each batch once, which saves all outputs. A line "batch 10: mean
// output 0.012345" for every tenth; of a script that generates "batch 10: first answer [3, 1]".
void print_predict_loop(CodeWriter& out, const Request& request, const PredictLoop& loop);

bool equalised(const Request& request);

// The example of a script that predicts. `predict`: the body of a function predict(weights, data) that gets
// the paths of both files, calls the script's functions as those of the module `script`, and returns what a
// step of it gives. `turn`: output_turn. `to_numpy`: ".cpu()", where np.asarray(output) needs it.
Example python_example(const Request& request, const std::string& predict, const std::string& turn = "",
                       const std::string& to_numpy = "");

}  // namespace bakeoff::emit
