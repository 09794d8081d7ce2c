#pragma once

// What emitters share about an update's surroundings: the schedule of the learning rate, clipping, parameters
// that do not decay, the average of weights (ir/training.h). None of it has a framework's own default: a
// recipe that is silent has none, in both tracks.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit {

// "WARMUP_STEPS = 100", ..., of a Python script: what its update needs beside the learning rate.
std::vector<std::string> update_constants(const ir::Optimizer& optimizer);

// NO_DECAY = ("fc1.bias", ...): `names`, by ParamId, of the parameters that do not decay.
void print_no_decay(CodeWriter& out, const ir::Optimizer& optimizer, const std::vector<std::string>& names);
// Canonical names of all parameters, by ParamId.
std::vector<std::string> canonical_names(const ir::Workload& workload);

// How a library's functions are spelled in learning_rate(step).
struct RateSpelling {
  std::string cast = {};  // a line that makes `step` a float of the library's; empty: a Python number
  std::string where = {}, minimum = {}, cos = {}, pi = {};
};
inline const RateSpelling kPythonRate = {"", "", "min", "math.cos", "math.pi"};

// def learning_rate(step), by the formula of ir::Schedule; steps are counted from 0.
void print_learning_rate(CodeWriter& out, const ir::Optimizer& optimizer, const RateSpelling& spelling);

// "WARMUP_STEPS" -> "kWarmupSteps": what C++ calls a constant.
std::string cpp_constant(const std::string& name);
// The same function in C++: double learning_rate(int64_t step).
void print_learning_rate_cpp(CodeWriter& out, const ir::Optimizer& optimizer);

// An error where the recipe clips gradients, and those of an embedding are sparse: their repeated rows count
// apart in a norm. `who`: "keras".
Status check_dense_clipping(const Request& request, const std::string& who, const std::string& remedy);

}  // namespace bakeoff::emit
