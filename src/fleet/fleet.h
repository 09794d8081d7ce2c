#pragma once

// A race on many machines. Waves of blocks are planned from the records, handed to an engine, and merged into the run
// directory, from which every report is made as ever. Each verb below starts from what the folder holds, so it may run
// later, again, twice at a time, or on another machine; the front end may vanish between any two.

#include <map>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "environments/interpreters.h"
#include "fleet/admission.h"
#include "fleet/board.h"
#include "fleet/engine.h"

namespace bakeoff::fleet {

// The merged results of all settled blocks.
struct Merged {
  std::map<std::string, NodeState> nodes = {};
  int settled = 0;                         // blocks with a heat
  int apart = 0;                           // of them on nodes that are kept apart
  std::vector<std::string> given_up = {};  // "block 7: ..."
  std::vector<std::string> damaged = {};   // results that could not be read, and run again
  bool changed = false;                    // whether the run directory was another one before
};

// Writes trials.jsonl, run.json's host and peak.json from the settled blocks, in the order of their numbers: the same
// blocks give the same bytes, on every machine and at every call.
Result<Merged> collect(const Board& board, const Interpreters& interpreters);

// What no other run has: a result that was copied from one is not merged.
std::string race_of(const Manifest& manifest);

// Where the blocks are; those that are given up are settled, too.
struct Overview {
  int blocks = 0, settled = 0, running = 0, waiting = 0, lost = 0;
  std::vector<std::string> notes = {};  // why blocks wait, where they run, why attempts failed
  bool over() const { return running + waiting == 0; }
};
Result<Overview> overview(const Board& board, const Engine& engine);

struct Submitted {
  int fresh = 0;                           // blocks of a new wave
  int again = 0;                           // blocks whose attempts failed
  std::vector<std::string> given_up = {};  // blocks whose tries are used up, with the reason
  std::vector<std::string> jobs = {};      // what the engine calls the new jobs
  // Everything is decided and confirmed, or the most blocks are run: nothing was submitted.
  bool finished = false;
};
// Submits what is lost again; where nothing is unsettled, plans the next wave and submits it, unless the time is over:
// then the first wave alone. `held`: Board::lock().
enum class Time { kLeft, kOver };
Result<Submitted> submit(const Board& board, const Engine& engine, const Interpreters& interpreters,
                         const FileLock& held, Time time = Time::kLeft);

// Cancels all jobs and waits until they have left the queue.
Status cancel(const Board& board, const Engine& engine);

// The number of blocks of a wave that the settings leave open: enough to decide wide gaps, and for each contender two.
size_t planned_blocks(size_t contenders, size_t live, double alpha);

}  // namespace bakeoff::fleet
