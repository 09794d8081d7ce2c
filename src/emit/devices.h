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

// The same contender on one device.
Settings on_one_device(Settings settings);

// Whether the request is to train on more than one.
bool on_devices(const Request& request);

// Of a framework whose devices share one process unless it says otherwise. `how`: what connects the processes.
Setting processes_setting(const std::string& how);
// Whether each device has a process of its own, by that setting.
bool over_processes(const Request& request);
// Refuses another number of processes than 1 or that of the devices.
Status check_processes(const Request& request, const std::string& title);
// "PROCESS=0 python train.py & PROCESS=1 ...": how a shell starts them all, for Python's source; `given` is what each is
// given, where it is of `$i`.
std::string process_loop(const Request& request, const std::string& given);

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
