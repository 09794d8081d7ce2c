#pragma once

// The optimizer class of a TensorFlow script: explicit updates of tf.Variables, exact for every
// ir::Optimizer.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::tensorflow {

// "RHO = 0.9", ...: what the class reads beside LEARNING_RATE.
std::vector<std::string> optimizer_constants(const ir::Optimizer& optimizer);
// `sparse`: some gradients come as IndexedSlices and are made dense.
void print_optimizer(CodeWriter& out, const ir::Optimizer& optimizer, bool sparse);
// def make_optimizer(model), where some parameters do not decay. `targets`: paths of variables, by ParamId.
void print_make_optimizer(CodeWriter& out, const ir::Optimizer& optimizer,
                          const std::vector<std::string>& targets);

}  // namespace bakeoff::emit::tensorflow
