#pragma once

// What emitters share about optimizers: which of their keys a script says, and with which values it runs.

#include <string>
#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit {

// "SGD", "RMSprop", "Adam", "AdamW": what every framework calls its class.
std::string optimizer_name(ir::OptimizerKind kind);

// RMSprop with epsilon "hat" is an error: the form corrects a bias that RMSprop has not.
Status check_eps_form(const ir::Training& training);

// The recipe's optimizer; in the as-is track what the recipe leaves open is as in `defaults`, whose kind and
// learning rate mean nothing.
ir::Optimizer effective_optimizer(const ir::Training& training, ir::Optimizer defaults);

// Collects the arguments of an optimizer: those stated in the recipe, and the mandatory ones.
class Arguments {
 public:
  Arguments(const ir::Training& training, std::vector<std::string> first)
      : training_(training), list_(std::move(first)) {}

  // `argument` ("b1=0.9") where the script says the recipe's key ("beta1"), or else `always`.
  void add(const std::string& key, const std::string& argument, bool always = false) {
    if (always || training_.says(key)) list_.push_back(argument);
  }
  void always(const std::string& argument) { list_.push_back(argument); }
  const std::vector<std::string>& list() const { return list_; }

 private:
  const ir::Training& training_;
  std::vector<std::string> list_;
};

}  // namespace bakeoff::emit
