#pragma once

// What a word costs in the scenario "generate". The race times whole answers, in which a framework may run ahead of its
// device. Here each word is awaited before the next one is asked for, as somebody who reads along would have it: the time
// to the first word (the prompt is read), and the time of each later one.

#include "base/result.h"
#include "study/study.h"

namespace bakeoff {

// The recipe's own batch and prompt, then every other pair of `generate.batches` and `generate.prompts`.
std::vector<Sizes> measured_sizes(const recipe::Recipe& recipe);

// `generate.processes` processes of every contender, one after the other in an order drawn for each round, each of which
// gives `generate.answers` answers after those of the warm-up: first at the recipe's own batch and prompt, then at every
// other pair of `generate.batches` and `generate.prompts`, by scripts that differ in these numbers alone.
Status measure_generation(const Afterwards& race);

}  // namespace bakeoff
