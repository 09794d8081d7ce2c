#pragma once

// Which batch gives a contender its best throughput. A larger batch spreads what a step costs at any
// size (calls, launches, synchronisation) over more samples, until arithmetic or memory is what limits.
//
// Every batch has a script of its own, the same but for that number, and fresh processes: a heat of one
// member each (race/race.h), with warm-up, bursts and the host watched as in the race. Batches are those of
// the recipe, or are doubled from `least` until two doublings in a row have not paid, or the memory that the
// next one would take is not there. Several processes for each batch, all pairs of contender and batch in
// random order.
//
// Throughput is all that is searched for: another batch is another training, with other losses.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "study/batches/batch_rows.h"
#include "study/study.h"

namespace bakeoff {

// The next batch of a search by doubling; nothing when it is over.
std::optional<int64_t> next_batch(const SearchRow& so_far, const recipe::Search& asked, double margin);

// Why a step of `batch` rows is not tried: it would take more memory than is available, judged by the two
// largest batches so far (what a process takes grows with the batch, on top of what it takes anyway). Empty:
// it may be. `available`: bytes; 0: not known.
std::string too_large(const SearchRow& so_far, int64_t batch, int64_t available);

// A contender of the plan, by index, at another batch; with a failure where there is no such thing.
using LaneAt = std::function<Lane(size_t lane, int64_t batch)>;

// Emits its script (and compiles it, where it is a program) into the run directory.
LaneAt emitted_lanes(const Plan& plan, const Progress& progress);

// Study::run of the search, into batches.jsonl.
Status search_batches(const Afterwards& race, const LaneAt& lane_at);

}  // namespace bakeoff
