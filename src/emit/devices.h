#pragma once

// Contenders that train on several devices of one machine: settings of frameworks that have data parallelism.

#include <string>

#include "emit/emit.h"

namespace bakeoff::emit {

// `how`: what of the framework spreads a batch over devices.
Setting devices_setting(const std::string& how);

// Whether the request is to train on more than one.
bool on_devices(const Request& request);

// "DEVICES = 2"
std::string devices_constant(const Request& request);

// Refuses what a step over several devices does not do: parts of a batch, where `parts` says why not.
Status check_devices(const Request& request, const std::string& parts);

}  // namespace bakeoff::emit
