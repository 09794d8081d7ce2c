#pragma once

// What an undecided race shows so far: which contenders may still be the fastest, how sure their order is, and how
// long it takes to decide. Pure functions of the records, shared by the race's progress and the report.

#include <optional>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"
#include "stats/outlook.h"
#include "table/numbers.h"

namespace bakeoff {

// The ratio with the ends that table::bounded_below and _above find within this factor; the others are open. After two
// heats on a noisy host, intervals such as [0.07, 14] around 1 are usual.
inline constexpr double kFarEnd = 10;
Estimate with_known_ends(const Estimate& ratio);

// A contender that is not decided against the leader: it may still be the fastest.
struct Rival {
  std::string contender = {};
  size_t heats = 0;     // with the leader
  Estimate ratio = {};  // to the leader, with the interval that is valid at any look
  // Confidence of this look alone that it is slower than the leader, and than the rival before it in the list; for
  // the first one these are the same. Empty: not known yet.
  std::optional<double> slower = {}, slower_than_previous = {};
  // The half-width of its interval that decides if the gap is as seen: then the interval lies within the margin
  // (`as_same`), or excludes a ratio of 1. 0.02 = 2%.
  double deciding = 0;
  bool as_same = false;
  bool operator==(const Rival&) const = default;
};

struct Outlook {
  std::string leader = {};
  std::vector<Rival> rivals = {};         // by their estimate, fastest first
  std::vector<std::string> waiting = {};  // take part, and have met none of these yet
  // Until all rivals are decided; waiting rivals excluded. Empty: no rival has met the leader in two heats.
  std::optional<stats::Rest> rest = {};
  // Where the rest is long: a larger margin that takes at most half an hour, and what it takes.
  std::optional<double> wider_margin = {};
  stats::Rest rest_of_wider = {};
  bool operator==(const Outlook&) const = default;
};

inline constexpr double kLongRest = 2 * 3600;  // seconds; a race of more is better stated otherwise

// Of a group (evidence/groups.h): `contenders` are the ids of its members, `alpha` is its share. Nothing if there
// is no leader yet, or nothing is open.
std::optional<Outlook> outlook(const recipe::Recipe& recipe, const std::vector<Trial>& trials,
                               const std::vector<std::string>& contenders, double alpha);

// "about 40 more seconds (3 heats)", "about 6 more minutes (5 heats)", "more than 9 hours (5,000 heats)".
std::string in_words(const stats::Rest& rest);
// "About 6 more minutes (5 heats) decide it.", or what else is to be said of it.
std::string rest_in_words(const Outlook& outlook);
// "93%", "99.5%", ">99.9%", "<0.1%", rounded down; "not yet" known.
std::string sure_in_words(const std::optional<double>& sure);

}  // namespace bakeoff
