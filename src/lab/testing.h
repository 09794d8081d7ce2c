#pragma once

// For this room's tests: a folder of one's own, workers of the fake framework
// (runners/bakeoff_runner/adapters/fake_adapter.py), and runs made by hand of them.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "ir/builder.h"
#include "lab/plan.h"
#include "proc/process_tree.h"
#include "tensor/rng.h"
#include "tensor/safetensors.h"

#ifndef BAKEOFF_SOURCE_DIR  // set by bakeoff_room(); here so that the header compiles alone
#define BAKEOFF_SOURCE_DIR "."
#endif

namespace bakeoff::lab::testing {

// Removed with the object.
class TestFolder {
 public:
  TestFolder() {
    std::string name = ::testing::TempDir() + "bakeoff-lab-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

inline double now_s() { return static_cast<double>(monotonic_clock().now_ns()) / 1e9; }

inline bool alive(pid_t pid) {
  const char state = proc::process_state(pid);
  return state != '\0' && state != 'Z';
}

// Whether `condition` comes true within `seconds`.
inline bool soon(const std::function<bool()>& condition, double seconds = 5) {
  for (const double deadline = now_s() + seconds; now_s() < deadline; ::usleep(5000)) {
    if (condition()) return true;
  }
  return condition();
}

// Living processes below this one that run the runner for `framework`.
inline std::vector<pid_t> workers_alive(const std::string& framework = "fake") {
  std::vector<pid_t> found;
  for (const pid_t pid : proc::descendants(::getpid())) {
    const auto command = read_file(fs::path("/proc") / std::to_string(pid) / "cmdline");
    if (command && command->find("bakeoff_runner") != std::string::npos &&
        command->find(framework) != std::string::npos && alive(pid)) {
      found.push_back(pid);
    }
  }
  return found;
}

inline WorkerSpec fake_spec(std::map<std::string, std::string> options = {}) {
  return {.python = fs::exists("/usr/bin/python3") ? "/usr/bin/python3" : "python3",
          .runner = std::string(BAKEOFF_SOURCE_DIR) + "/runners",
          .framework = "fake",
          .options = std::move(options),
          .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}},
          .stage_seconds = 20};
}

// A small network with every op whose conventions differ between frameworks, and what may be left out of it.
struct Network {
  bool conv2_bias = true;
  bool fc2_bias = true;
  bool relu2 = true;
  bool softmax = false;  // before the loss
  bool operator==(const Network&) const = default;
};
inline ir::Workload network(const Network& with = {}) {
  using ir::Op;
  using Ints = std::vector<int64_t>;
  ir::Builder b("network");
  const auto x = b.input("x", {ir::DType::kF32, {ir::kBatch, 2, 8, 8}});
  const auto y = b.input("y", {ir::DType::kI32, {ir::kBatch}});
  auto h = b.conv2d(x, "conv1", {.channels = 3, .stride = {2, 2}, .pad = {1, 1, 1, 1}});
  h = b.named(b.relu(b.batch_norm(h, "bn1")), "act1");
  h = b.conv2d(h, "conv2", {.channels = 4, .pad = {1, 1, 1, 1}, .bias = with.conv2_bias});
  if (with.relu2) h = b.named(b.relu(h), "act2");
  h = b.apply(Op::kAvgPool2d, {h},
              {{"kernel", Ints{3, 3}}, {"stride", Ints{2, 2}}, {"pad", Ints{1, 1, 1, 1}}});
  h = b.linear(b.apply(Op::kFlatten, {h}), "fc1", 6);
  h = b.layer_norm(b.apply(Op::kGelu, {h}), "ln");
  h = b.linear(h, "fc2", 3, with.fc2_bias);
  if (with.softmax) h = b.apply(Op::kSoftmax, {h});
  return b.finish(b.softmax_cross_entropy(h, y)).value();
}

// Uniform numbers in [-1, 1) and labels in [0, classes).
inline Status write_random_data(const ir::Workload& workload, int64_t rows, int64_t classes,
                                const fs::path& file) {
  tensor::Rng rng(5);
  tensor::NamedTensors named;
  for (const ir::Input& input : workload.inputs) {
    const tensor::Shape shape = ir::with_batch(input.type.shape, rows);
    if (input.type.dtype == ir::DType::kI32) {
      tensor::IntTensor labels{shape, {}};
      for (int64_t i = 0; i < tensor::elements(shape); ++i)
        labels.data.push_back(rng.integer(0, classes - 1));
      TRY(auto raw, tensor::encode(labels, tensor::DType::kI32));
      named.emplace_back(input.name, std::move(raw));
    } else {
      tensor::Tensor numbers = tensor::zeros(shape);
      for (double& number : numbers.data) number = rng.uniform(-1, 1);
      TRY(auto raw, tensor::encode(numbers, tensor::DType::kF32));
      named.emplace_back(input.name, std::move(raw));
    }
  }
  return tensor::write_safetensors(file, named);
}

// What the gate proves about `network()`; data and the gate's files lie in `folder`.
inline GateJob gate_job(const fs::path& folder, const ir::Optimizer& optimizer = {}) {
  GateJob job{.workload = network(), .rows = 32, .steps = 5};
  job.training.optimizer = optimizer;
  job.training.batch = 8;
  job.data = folder / "data.safetensors";
  job.folder = folder;
  EXPECT_TRUE(write_random_data(job.workload, job.rows, 3, job.data));
  return job;
}

}  // namespace bakeoff::lab::testing
