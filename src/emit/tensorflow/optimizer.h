#pragma once

// The optimizer class of a TensorFlow script: explicit updates of tf.Variables, exact for every
// ir::Optimizer.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::tensorflow {

// "RMSprop"
std::string optimizer_class(const ir::Optimizer& optimizer);
// "RHO = 0.9", ...: what the class reads beside LEARNING_RATE.
std::vector<std::string> optimizer_constants(const ir::Optimizer& optimizer);
// What the script uses: the recipe's values, in the as-is track only those that it states, otherwise those of
// TensorFlow's guide to its core API (rho 0.9, beta 0.9 and 0.999, epsilon 1e-7 outside the root).
ir::Optimizer effective_optimizer(const ir::Training& training);
// `sparse`: some gradients come as IndexedSlices and are made dense.
void print_optimizer(CodeWriter& out, const ir::Optimizer& optimizer, bool sparse);

}  // namespace bakeoff::emit::tensorflow
