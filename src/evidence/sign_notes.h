#pragma once

// Notes of a report on signs in the race's own data that its verdicts may be wrong more often than stated
// (stats/signs.h), and on work that falls into few bursts (stats/heat_value.h).

#include <string>
#include <vector>

#include "stats/pair_table.h"

namespace bakeoff {

// One note for each kind of sign that some pair shows, with its figures, and one on the consequence; one on
// pairs whose verdicts rest on all bursts because their stalls differ. Empty if no pair shows any.
// `contenders`: ids, by the table's index.
std::vector<std::string> sign_notes(const stats::PairTable& table,
                                    const std::vector<std::string>& contenders);

}  // namespace bakeoff
