#include "ir/training.h"

namespace bakeoff::ir {

std::string name(Scenario scenario) { return scenario == Scenario::kTrain ? "train" : "predict"; }
std::string name(Track track) { return track == Track::kEqualised ? "equalised" : "as-is"; }

std::string name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kRmsprop:
      return "rmsprop";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kAdamW:
      return "adamw";
  }
  return "";
}

std::string name(EpsForm form) {
  switch (form) {
    case EpsForm::kOutside:
      return "outside";
    case EpsForm::kInside:
      return "inside";
    case EpsForm::kHat:
      return "hat";
  }
  return "";
}

std::string name(DecayForm form) { return form == DecayForm::kL2 ? "l2" : "decoupled"; }

}  // namespace bakeoff::ir
