#pragma once

// What the referee says about words that a model of language chose one after the other.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ir/training.h"
#include "referee/evaluate.h"

namespace bakeoff::referee {

// The logits [N, words, vocabulary] at the places whose next words are chosen, of a prediction [N, T, vocabulary].
tensor::Tensor chosen_from(const tensor::Tensor& prediction, const ir::Generation& generation);

// How far the worst of the words is from being the likeliest one after all that stands before it: the largest
// (max(logits) - logit of the word) / root mean square of the logits. 0 for greedy words; infinite for numbers that are
// no words. `words`: N x generation.words, row by row, in answer to the prompts in `batch`. One pass over the rows judges
// all words: each is chosen anew from the words before it as they are, so one word that rounding decided excuses
// those after it.
Result<double> greedy_gap(const ir::Workload& workload, const Weights& weights, Inputs batch,
                          const std::vector<int64_t>& words, const ir::Generation& generation);

}  // namespace bakeoff::referee
