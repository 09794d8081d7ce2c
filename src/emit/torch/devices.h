#pragma once

// Scripts for several devices: one process each, which torchrun starts, on its rows of every batch.

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/devices.h"
#include "emit/emit.h"

namespace bakeoff::emit::torch {

// Fails where the devices' means of gradients would not be the recipe's, or the script is not written.
Status check_devices(const Request& request);

// Whether parameters are split among them, too.
bool splits_parameters(const Request& request);

// def distribute(model), which makes what train_step calls. `blocks`: classes of parts of the model that repeat.
void print_distribute(CodeWriter& out, const Request& request, const std::vector<std::string>& blocks);

}  // namespace bakeoff::emit::torch
