// A worker whose model is one number: the loss of step n is 1 / n. Options make it misbehave.

#include <csignal>
#include <cstdio>
#include <limits>

#include "worker.h"

namespace {

class Fake : public bakeoff::Adapter {
 public:
  bakeoff::Json import_framework(const bakeoff::ImportRequest& request) override {
    for (const auto& [name, value] : request.options) {
      if (name != "fault") throw bakeoff::AdapterError("unknown option '" + name + "'", "the stack");
      fault_ = value;
    }
    bakeoff::Json effective = {{"threads", request.threads}};
    return {{"versions", {{"fake", "1.0 \"quoted\""}}}, {"device", "cpu"}, {"effective", effective}};
  }
  bakeoff::Json build(const bakeoff::BuildRequest& request) override {
    if (fault_ == "build") throw std::runtime_error("first line\nsecond line");
    steps_ = 0;
    return {{"script", request.script},
            {"dropout", request.dropout},
            {"float64", request.float64},
            {"weights", request.weights}};
  }
  std::vector<std::string> parity(const bakeoff::ParityRequest& request) override {
    return {"loss", request.out + " " + std::to_string(request.first) + " " + std::to_string(request.count)};
  }
  bakeoff::Losses losses(int64_t steps) override {
    bakeoff::Losses found{.first_ns = 5, .ns = 9};
    for (int64_t n = 0; n < steps; ++n) found.losses.push_back(1.0 / static_cast<double>(++steps_));
    if (fault_ == "nan") found.losses.back() = std::numeric_limits<double>::quiet_NaN();
    return found;
  }
  bakeoff::Burst run(int64_t steps, bakeoff::Ring& ring) override {
    if (fault_ == "crash") std::raise(SIGSEGV);
    const int64_t start = bakeoff::now_ns();
    for (int64_t n = 0; n < steps; ++n) {
      ++steps_;
      while (bakeoff::now_ns() < start + 200'000 * (n + 1)) {
      }
      ring.mark();
    }
    std::printf("trained\n");
    return {bakeoff::now_ns() - start, 1.0 / static_cast<double>(steps_), bakeoff::BatchWait{70, 2, 50, 1}};
  }
  void restore() override { steps_ = 0; }
  void nudge(const std::string& changes) override {
    if (changes == "broken") throw bakeoff::AdapterError("the model trains no 'w'");
    std::printf("nudged by '%s'\n", changes.c_str());
  }
  // Says what it was asked.
  std::vector<std::string> batch_hashes(int64_t count,
                                        const std::vector<std::vector<int64_t>>& row_shapes) override {
    std::vector<std::string> all;
    for (int64_t n = 0; n < count; ++n) {
      all.push_back(std::to_string(n) + ":");
      for (const auto& shape : row_shapes) all.back() += " " + std::to_string(shape.size());
    }
    return all;
  }
  std::vector<std::string> write_state(const std::string& out) override {
    return {out + " after " + std::to_string(steps_)};
  }
  std::vector<double> rates(const std::vector<int64_t>& steps) override {
    std::vector<double> all;
    for (const int64_t step : steps) all.push_back(1.0 / static_cast<double>(1 + step));
    return all;
  }

 private:
  std::string fault_;
  int64_t steps_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Fake fake;
  return bakeoff::serve(argc, argv, fake);
}
