#pragma once

// The work that calibration times: the MNIST CNN on random data in an installed framework or, if none is
// installed, a small C++ kernel inside this program.

#include <filesystem>
#include <optional>
#include <string>

#include "calibrate/calibrate.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "records/controls.h"
#include "worker/grants.h"

namespace bakeoff {

// Frameworks whose environment is ready, in the order in which calibration prefers them.
std::vector<std::string> ready_frameworks(const Interpreters& interpreters);

class CalibrationWork {
 public:
  // Works in a temporary folder below `home`, which is removed with the object. `framework`: "" for the
  // first that is ready, else the kernel. Errors: unknown framework; its environment is not ready.
  static Result<CalibrationWork> create(const std::string& framework, const std::filesystem::path& home,
                                        const Interpreters& interpreters, const Progress& progress);
  CalibrationWork(CalibrationWork&&) = default;
  ~CalibrationWork();

  const std::string& framework() const { return framework_; }
  std::string description() const;

  // RunBlock of calibrate.h.
  Result<std::vector<Trial>> run(const Controls& controls, int block, const Machine& machine,
                                 const Watch& watch, const Happening& happening);

 private:
  CalibrationWork() = default;
  struct Folder;
  std::shared_ptr<Folder> folder_;
  std::string framework_;
  std::optional<Plan> plan_;  // two identical lanes
  WorkerSpec bare_ = {};      // both workers without controls
};

// The built-in worker: speaks the runner protocol on `in` and `out`, by default descriptors 3 and 4, until
// the stream ends. Each step fills and combines fresh blocks of a few MB on every thread, so that
// allocator, page tables and caches affect it as they affect a training step. Returns exit code 0.
int serve_kernel(int in = 3, int out = 4);

}  // namespace bakeoff
