#pragma once

// The C++ side of pairing/bursts.py: each line on standard input asks for a burst of so many steps; each is
// answered by a line of JSON with its time and the loss of its last step.
//
//   for (Bursts bursts; bursts.wait();) {
//     for (int i = 0; i < bursts.steps(); ++i) ...
//     bursts.done(loss.item<double>());
//   }

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

// 0 where losses are compared, which cannot be done with masks drawn at random.
inline double dropout(double rate) {
  const char* word = std::getenv("PLAIN_DROPOUT");
  return word != nullptr && std::string_view(word) == "off" ? 0 : rate;
}

class Bursts {
 public:
  bool wait() {
    std::string line;
    if (!std::getline(std::cin, line)) return false;
    steps_ = std::stoi(line);
    begin_ = Clock::now();
    return true;
  }
  int steps() const { return steps_; }
  void done(double loss) {
    const std::chrono::nanoseconds took = Clock::now() - begin_;
    std::printf("{\"ns\": %lld, \"loss\": %.9g, \"kind\": \"last\"}\n", static_cast<long long>(took.count()),
                loss);
    std::fflush(stdout);
  }

 private:
  using Clock = std::chrono::steady_clock;
  int steps_ = 0;
  Clock::time_point begin_;
};
