#pragma once

// The part of a Keras script that depends on the graph: load_data, build_model and the loss.

#include <string>
#include <vector>

#include "base/result.h"
#include "emit/emit.h"
#include "emit/keras/dialect.h"

namespace bakeoff::emit::keras {

struct ModelText {
  std::string load_data;                    // the function
  std::string build_model;                  // the function, with the helpers it calls before it
  std::vector<std::string> losses;          // expressions of loss objects, one for each output
  std::vector<std::string> weights;         // of the losses; none where one is alone
  std::vector<std::string> loss_functions;  // that the expressions name
  size_t inputs = 1;                        // of the model
  bool embeddings = false;
  std::vector<std::string> targets = {};  // paths of Keras variables, by ParamId
  std::string output_turn;                // of the first output
  std::string layout_json;                // targets are paths of Keras variables, "conv1/kernel"
};

Result<ModelText> model_text(const Request& request, const Dialect& dialect);
bool has_op(ir::Op op);

}  // namespace bakeoff::emit::keras
