#pragma once

// The work that calibration times: the MNIST CNN on drawn data in an installed framework, or, where none is
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

// The frameworks, in the order in which calibration prefers them, whose environment is ready.
std::vector<std::string> ready_frameworks(const Interpreters& interpreters);

class CalibrationWork {
 public:
  // In a temporary folder below `home` that goes with the object. `framework`: "" for the first that is
  // ready, else the kernel. Errors: unknown framework, its environment is not ready.
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
  std::optional<Plan> plan_;  // two lanes, alike
  WorkerSpec bare_ = {};      // of both, without controls
};

// The built-in worker: the runner protocol on `in` and `out`, by default 3 and 4; ends with the stream. Each
// step fills and combines fresh blocks of a few MB on every thread, so that the allocator, the page tables
// and the caches have a part in it, as in a training step. Exit code 0.
int serve_kernel(int in = 3, int out = 4);

}  // namespace bakeoff
