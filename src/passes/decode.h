#pragma once

// From a causal language model, which reads N,T words and says for each place which word comes next, to a step of
// decoding: it reads L words (L = ir::kSteps) at given positions, keeps their keys and values in caches, and says which
// word follows the last of them. All words of a prompt in one step, then one word a step, give what the whole model
// gives, without reading again what was read.
//
//   input ids: i32[N,T]        ->  ids: i32[N,L], positions: i32[L]
//   attention(q, k, v) causal  ->  attention(q, k, v, positions; keys=..., values=...) with caches of N,T,heads,D
//   tables of T places         ->  take(table, positions)
//   logits: f32[N,T,V]         ->  f32[N,1,V]
//
// Without caches the rows of words are all that is kept: the model stays as it is, reads all T places, and says which word
// follows the one at each of `positions`. No place sees a later one, so what stands there does not matter.
//
//   (ids: i32[N,T], positions: i32[L])  ->  f32[N,L,V]
//
//   TRY(const ir::Workload step, passes::decode(workload, caches));

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::passes {

// What is neither causal attention nor computed at each position by itself is refused by its name, as are networks of
// several inputs and those whose loss is not softmax_cross_entropy at each place. Names stay; the caches of an attention
// are called after it. Dropout is left out.
Result<ir::Workload> decode(const ir::Workload& workload, bool caches = true);

// The number of words that it can read, prompt and answer together: T.
int64_t decoding_positions(const ir::Workload& workload);

}  // namespace bakeoff::passes
