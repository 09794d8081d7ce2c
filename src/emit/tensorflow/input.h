#pragma once

// batches(arrays): what feeds the training step, or all steps of one call.
//
// | input     | a batch is                                                                                  |
// |-----------|---------------------------------------------------------------------------------------------|
// | preloaded | tensors on the device; with steps_per_call all of them, and which comes next                |
// | tf_data   | of a tf.data.Dataset, shuffled as-is; with steps_per_call all batches of a call, which are  |
// |           | cut from every epoch anew where it is shuffled                                              |

#include <cstdint>
#include <string>

#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::tensorflow {

// "preloaded" or "tf_data": what the setting `input` comes to.
std::string input_of(const Request& request);
bool streams(const Request& request);  // tf_data
// loops: a call runs several training steps. resident: such a call picks its batches on the device itself.
bool loops(const Request& request);
bool resident(const Request& request);

// Batches that the data must have: one, or for shuffled tf_data all those of a call.
int64_t least_batches(const Request& request);

void print_batches(CodeWriter& out, const Request& request);

}  // namespace bakeoff::emit::tensorflow
