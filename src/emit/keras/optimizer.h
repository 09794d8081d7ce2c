#pragma once

// The optimizer of a Keras script: a stock class where Keras has the very update, else a subclass of it.

#include <string>
#include <vector>

#include "base/result.h"
#include "emit/keras/dialect.h"
#include "ir/training.h"

namespace bakeoff::emit::keras {

struct OptimizerText {
  std::string subclass = {};  // class definition, empty for a stock optimizer
  std::string name;           // "keras.optimizers.Adam" or the subclass
  std::vector<std::string> arguments = {};
  // The class of the schedule and its function; empty: the rate is constant.
  std::string schedule = {};
  bool l2 = false;     // the subclass reads the constant WEIGHT_DECAY
  bool torch = false;  // the subclass needs `import torch`
};

// Stock forms: RMSprop sqrt(v + eps); Adam(W) "epsilon hat", in Keras 2 Adam the paper's too; weight_decay
// decoupled. On TensorFlow gradients of `embeddings` come as IndexedSlices. Keras 3 makes them dense first in
// the equalised track; Keras 2, which adds up repeated rows itself, only in a subclass.
Result<OptimizerText> optimizer_text(const ir::Training& training, const Dialect& dialect,
                                     const std::string& backend, bool embeddings);

}  // namespace bakeoff::emit::keras
