// The built-in worker of the calibration (calibrate_work.h).

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/json_text.h"
#include "calibrate/calibrate_work.h"

namespace bakeoff {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kBlock = size_t{1} << 20;  // floats: 4 MB
constexpr int kPasses = 3;

// One thread's part of a step: fresh memory, streamed through, combined.
float work(float seed) {
  std::vector<float> sum(kBlock, seed);
  for (int pass = 0; pass < kPasses; ++pass) {
    std::vector<float> fresh(kBlock, 1e-3F * static_cast<float>(pass + 1));
    for (size_t i = 0; i < kBlock; ++i) sum[i] = sum[i] * 0.999F + fresh[i] * sum[i] + fresh[i];
  }
  return *std::max_element(sum.begin(), sum.end());
}

class Kernel {
 public:
  explicit Kernel(int out) : out_(out) {}

  bool hello() const {
    return send({{"id", 0},
                 {"ok", true},
                 {"event", "hello"},
                 {"protocol", 1},
                 {"pid", ::getpid()},
                 {"python", "none: a C++ kernel"},
                 {"framework", "kernel"}});
  }

  // False when the session is over.
  bool serve(const std::string& line) {
    const Json request = parse_json<Json>(line);
    if (!request.is_object() || !request.contains("id") || !request.contains("op") ||
        !request["op"].is_string()) {
      return send(
          {{"id", 0}, {"ok", false}, {"stage", "protocol"}, {"error", "no request"}, {"traceback", ""}});
    }
    const std::string op = request["op"].get<std::string>();
    Json answer = {{"id", request["id"]}, {"ok", true}};
    if (op == "import") {
      threads_ = std::clamp(request.value("threads", 1), 1, 256);
      answer.update({{"import_ns", 1},
                     {"versions", {{"kernel", "1"}}},
                     {"device", "cpu"},
                     {"effective", {{"threads", threads_}}}});
    } else if (op == "build") {
      answer.update({{"build_ns", 1}, {"effective", Json::object()}});
    } else if (op == "run" && request.contains("steps") && request["steps"].is_number_integer() &&
               request["steps"].get<int64_t>() > 0) {
      const int64_t steps = request["steps"].get<int64_t>();
      const int64_t ns = run(steps);
      answer.update({{"ns", ns}, {"wall_ns", ns}, {"steps", steps}, {"loss", loss_}});
    } else if (op != "close") {
      answer = {{"id", request["id"]},
                {"ok", false},
                {"stage", "protocol"},
                {"traceback", ""},
                {"error", "the kernel does not do '" + op + "'"}};
    }
    return send(answer) && op != "close";
  }

 private:
  int64_t run(int64_t steps) {
    const int64_t begin = monotonic_clock().now_ns();
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<float> found(static_cast<size_t>(threads_));
      std::vector<std::thread> others;
      for (size_t t = 1; t < found.size(); ++t)
        others.emplace_back([&found, t] { found[t] = work(static_cast<float>(t)); });
      found[0] = work(0);
      for (std::thread& other : others) other.join();
      loss_ = static_cast<double>(*std::max_element(found.begin(), found.end()));
    }
    return monotonic_clock().now_ns() - begin;
  }

  bool send(const Json& answer) const {
    const std::string line = dump(answer) + "\n";
    for (size_t at = 0; at < line.size();) {
      const ssize_t n = ::write(out_, line.data() + at, line.size() - at);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += static_cast<size_t>(n);
    }
    return true;
  }

  int out_;
  int threads_ = 1;
  double loss_ = 0;
};

}  // namespace

int serve_kernel(int in, int out) {
  Kernel kernel(out);
  if (!kernel.hello()) return 0;
  std::string pending;
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(in, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    pending.append(buffer, static_cast<size_t>(n));
    for (size_t end = pending.find('\n'); end != std::string::npos; end = pending.find('\n')) {
      const std::string line = pending.substr(0, end);
      pending.erase(0, end + 1);
      if (!kernel.serve(line)) return 0;
    }
  }
}

}  // namespace bakeoff
