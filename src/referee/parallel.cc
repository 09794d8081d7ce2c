#include "referee/parallel.h"

#include <atomic>
#include <thread>
#include <vector>

namespace bakeoff::referee {

int usual_threads() {
  static const int threads = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 2, 64);
  return threads;
}

void for_each_piece(int64_t pieces, int threads, const std::function<void(int64_t)>& work) {
  std::atomic<int64_t> next{0};
  const auto run = [&] {
    for (int64_t piece = next++; piece < pieces; piece = next++) work(piece);
  };
  std::vector<std::thread> helpers;
  const int64_t useful = std::min<int64_t>(threads, pieces);
  for (int64_t i = 1; i < useful; ++i) helpers.emplace_back(run);
  run();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace bakeoff::referee
