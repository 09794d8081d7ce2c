#pragma once

// What the scripts of all frameworks call the parts of a loss, and how they add up several losses.

#include <string>
#include <vector>

#include "emit/namer.h"
#include "ir/workload.h"

namespace bakeoff::emit {

// "h12": a name that the builder made up.
bool made_up(const std::string& name);

// A name that says no more than the op does ("add_2", "encoder_norm_mul"), or that is too long to be read.
bool says_little(const std::string& name);

// True where the workload's loss is one loss as it is, not a weighted sum.
bool one_loss(const ir::Workload& workload);

// Variables for the values of Workload::outputs(), in order: "prediction" and "target" where one loss reads them;
// of several losses the workload's own names.
std::vector<std::string> output_names(const ir::Workload& workload, Namer& names);

// The losses in order, each with its variable: "loss" where there is one alone.
struct NamedLoss {
  int node = 0;
  std::string name;
};
std::vector<NamedLoss> named_losses(const ir::Workload& workload, Namer& names);

// Statements that make `loss` of them, "loss = main + 0.3 * aux", as one right side each: several where one line is
// too long, and none where one loss is alone.
std::vector<std::string> weighted_sum(const ir::Workload& workload, const std::vector<NamedLoss>& losses);

}  // namespace bakeoff::emit
