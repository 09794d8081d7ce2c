#pragma once

// The parts of a script that predicts, beside build_model and load_weights: compile_model, predict_step,
// batches and main.

#include <string>

#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/keras/dialect.h"
#include "emit/keras/model.h"

namespace bakeoff::emit::keras {

// From compile_model to the end of the file.
void print_prediction(CodeWriter& out, const Request& request, const Dialect& dialect,
                      const ModelText& model);

}  // namespace bakeoff::emit::keras
