#include "summary/verdicts.h"

#include <fmt/format.h>

#include <array>

#include "summary/summary.h"

namespace bakeoff {
namespace {

constexpr std::array kOfRows = {
    "",         "leader", "faster", "same", "undecided", "slower", "materially slower", "behind another",
    "at least", "refused"};
constexpr std::array kOfPairs = {"",       "undecided", "faster",     "same",
                                 "slower", "baseline",  "not judged", "not ranked"};
static_assert(kOfRows.size() == static_cast<size_t>(RowVerdict::kRefused) + 1);
static_assert(kOfPairs.size() == static_cast<size_t>(PairVerdict::kNotRanked) + 1);

}  // namespace

std::string word(RowVerdict verdict) { return kOfRows[static_cast<size_t>(verdict)]; }
std::string word(PairVerdict verdict) { return kOfPairs[static_cast<size_t>(verdict)]; }

std::string verdict_of(const Row& row) {
  return row.verdict == RowVerdict::kAtLeast
             ? fmt::format("at least {:g} times slower", row.at_least.value_or(1))
             : word(row.verdict);
}

}  // namespace bakeoff
