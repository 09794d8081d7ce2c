#include "summary/verdicts.h"

#include <array>

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

}  // namespace bakeoff
