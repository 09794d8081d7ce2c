#pragma once

// fit(model, x, y, epochs, callbacks), and before it what makes batches of x and y (setting `input`):
//
// | input      | fit gets                                                                                 |
// |------------|------------------------------------------------------------------------------------------|
// | numpy      | the arrays of whole batches                                                              |
// | tf_data    | make_dataset(x, y): a tf.data.Dataset with cache, in the as-is track shuffle, and prefetch |
// | py_dataset | Batches(x, y): a keras.utils.PyDataset; in the as-is track its batches come in any order |

#include <cstddef>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::keras {

// How many arrays x and y are.
void print_input(CodeWriter& out, const Request& request, size_t inputs, size_t targets);

}  // namespace bakeoff::emit::keras
