#pragma once

// Threads that do not change the result: the pieces of work do not depend on the number of threads, each
// piece writes to its own place, and sums over pieces are computed in their order.

#include <algorithm>
#include <cstdint>
#include <functional>

namespace bakeoff::referee {

// As many as there are processors that this process may run on, but at least 2 and at most 64.
int usual_threads();

// Calls work(0), ..., work(pieces - 1), each once, on at most `threads` threads; returns when all are done.
void for_each_piece(int64_t pieces, int threads, const std::function<void(int64_t)>& work);

// `threads`, or 1 where so few multiplications or additions are to be done that starting a thread costs more.
inline int threads_for(int64_t operations, int threads) { return operations < 1'000'000 ? 1 : threads; }

// Calls work(begin, end) over [0, count) in ranges of `grain`.
template <typename Work>
void for_each_range(int64_t count, int64_t grain, int threads, const Work& work) {
  const int64_t pieces = (count + grain - 1) / grain;
  for_each_piece(pieces, threads,
                 [&](int64_t piece) { work(piece * grain, std::min(count, (piece + 1) * grain)); });
}

}  // namespace bakeoff::referee
