#include "prove/mutants.h"

#include <array>
#include <utility>

namespace bakeoff::prove {
namespace {

constexpr std::array<std::pair<std::string_view, Mutant>, 13> kMutants = {{
    {"iid", Mutant::kIid},
    {"pooled", Mutant::kPooled},
    {"peeking", Mutant::kPeeking},
    {"slopes", Mutant::kSlopes},
    {"rerun", Mutant::kRerun},
    {"lengthened", Mutant::kLengthened},
    {"whole-burst", Mutant::kWholeBurst},
    {"unshared", Mutant::kUnshared},
    {"pooled-variance", Mutant::kPooledVariance},
    {"trimmed-alone", Mutant::kTrimmedAlone},
    {"waves-of-one", Mutant::kWavesOfOne},
    {"nodes-forgotten", Mutant::kNodesForgotten},
    {"nodes-veto", Mutant::kNodesVeto},
}};

}  // namespace

std::optional<Mutant> mutant(std::string_view name) {
  for (const auto& [its_name, its] : kMutants) {
    if (its_name == name) return its;
  }
  return std::nullopt;
}

std::vector<std::string> mutants() {
  std::vector<std::string> names;
  for (const auto& [name, its] : kMutants) names.emplace_back(name);
  return names;
}

}  // namespace bakeoff::prove
