#pragma once

// For tests: what the gate proves about the small network of data/testing.h.

#include "data/testing.h"
#include "plan/lane.h"
#include "plan/plan.h"
#include "worker/testing.h"

namespace bakeoff::testing {

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

}  // namespace bakeoff::testing
