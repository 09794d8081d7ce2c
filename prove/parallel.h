#pragma once

// One call for each of n seeds, on all processors; results in the order of the seeds, so that they do not
// depend on the number of threads.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace bakeoff::prove {

// work(index): R, callable from several threads at once; not bool, whose vector shares bytes.
template <typename Work>
auto for_each_seed(int n, const Work& work) {
  using R = decltype(work(0));
  static_assert(!std::is_same_v<R, bool>);
  std::vector<R> results(static_cast<size_t>(n));
  std::atomic<int> next{0};
  const auto loop = [&] {
    for (int i = next++; i < n; i = next++) results[static_cast<size_t>(i)] = work(i);
  };
  std::vector<std::thread> threads;
  const unsigned others = std::max(1u, std::thread::hardware_concurrency()) - 1;
  for (unsigned t = 0; t < others; ++t) threads.emplace_back(loop);
  loop();
  for (std::thread& thread : threads) thread.join();
  return results;
}

}  // namespace bakeoff::prove
