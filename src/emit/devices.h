#pragma once

// Contenders that train on several devices of one machine: settings of frameworks that have data parallelism.

#include <cstdint>
#include <string>

#include "emit/emit.h"

namespace bakeoff::emit {

// `how`: what of the framework spreads a batch over devices.
Setting devices_setting(const std::string& how);

// Of the setting; 1 where a framework has none.
int64_t devices_of(const Settings& settings);

// Whether the request is to train on more than one.
bool on_devices(const Request& request);

// "DEVICES = 2"
std::string devices_constant(const Request& request);

// Whether the loss is a mean over rows, or over places that are as many in every row: that of all devices is the mean of
// theirs. Else it is a sum.
bool means(const ir::Workload& workload);
// Refuses a loss that is neither: a mean over targets that count, of which a device may have more than another one, and
// a mean beside a sum.
Status check_means(const ir::Workload& workload, const std::string& title);

// Refuses what a step over several devices does not do: parts of a batch, where `parts` says why not.
Status check_devices(const Request& request, const std::string& parts);

}  // namespace bakeoff::emit
