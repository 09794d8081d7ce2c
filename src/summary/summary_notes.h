#pragma once

// What a report says in words about a whole run: the verdict in one or two sentences, and the notes below the
// table. Pure functions of a summary whose rows are filled in, and of the records.

#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "records/trial.h"
#include "summary/summary.h"

namespace bakeoff {

// Which contender leads, which are tied with it or not distinguished from it yet, and the error rate of all
// that.
std::string verdict_sentence(const Summary& s);

// "of these 3 nodes": what verdicts are.
std::string spoken_of_text(const SpokenOf& of);

// What disturbed the race, what it spared, what was reused, and what every contender ran under.
std::vector<std::string> notes_of(const Summary& s, const recipe::Recipe& recipe,
                                  const std::vector<Parity>& parities, const std::vector<Trial>& trials);

}  // namespace bakeoff
