#include "fleet/probe.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/files.h"
#include "base/version.h"
#include "machine/host.h"
#include "proc/interrupt.h"
#include "records/records.h"
#include "roofline/measure.h"
#include "sample/clock_probe.h"
#include "sample/machine_limits.h"
#include "stats/trimmed.h"

namespace bakeoff::fleet {
namespace {

constexpr int kTurns = 16;
constexpr double kSdOfMedian = 1.4826;      // sd over the median magnitude, of normal values
constexpr int64_t kIterations = 6'000'000;  // about 8 ms

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

double nanoseconds_of_work() {
  const int64_t begin = monotonic_clock().now_ns();
  volatile uint64_t kept = sample::dependent_chain(kIterations);
  (void)kept;
  return static_cast<double>(monotonic_clock().now_ns() - begin);
}

// The same work in turns, as two contenders that are equal: what they differ by is noise. Neither the clock alone nor
// the fastest turn shows a neighbour that takes a share of the processor; the median turn does.
void time_turns(Node& node) {
  std::vector<double> all, differences;
  for (int turn = 0; turn < kTurns && !proc::interrupted(); ++turn) {
    const double first = nanoseconds_of_work(), second = nanoseconds_of_work();
    differences.push_back(std::log(turn % 2 == 0 ? first / second : second / first));
    all.push_back(first);
    all.push_back(second);
  }
  if (all.empty()) return;
  // By the median: one turn that was interrupted says nothing of the node.
  for (double& d : differences) d = std::abs(d);
  node.noise = kSdOfMedian * stats::median(differences);
  node.speed = static_cast<double>(kIterations) / stats::median(all);
}

Result<MachineReport> peak_of(const Board& board, const Node& node, const Sensed& sensed) {
  const fs::path file = board.run() / kFleetFolder / "nodes" / (node.name + ".json");
  if (const auto kept = read_machine(file); kept && stale(*kept, node.host).empty()) return *kept;
  const std::vector<int> cpus = sample::allowed_cpus();
  MachineReport report{.bakeoff_version = kVersion, .measured = utc_now(), .host = node.host};
  report.limits = sensed.measure_peak ? sensed.measure_peak(cpus)
                                      : roofline::measure_bounds({.cpus = cpus, .stop = proc::interrupted});
  if (!proc::interrupted()) CHECK_OK(write_file(file, to_json(report)));
  return report;
}

// What Slurm says of the job that this process belongs to.
void ask_slurm(Node& node) {
  const std::string job = variable("SLURM_JOB_ID");
  if (job.empty()) return;
  const std::string array = variable("SLURM_ARRAY_JOB_ID"), task = variable("SLURM_ARRAY_TASK_ID");
  node.where = fmt::format("Slurm job {}{}, nodes {}", array.empty() ? job : array,
                           task.empty() ? "" : ", task " + task, variable("SLURM_JOB_NODELIST"));
  // A job that has all processors of its node has it alone.
  const int given = std::atoi(variable("SLURM_JOB_CPUS_PER_NODE").c_str());
  node.shared =
      given == 0 || given < std::atoi(variable("SLURM_CPUS_ON_NODE").c_str()) || given < node.host.cpus;
}

}  // namespace

std::string node_name() {
  std::string name = variable("SLURMD_NODENAME");
  if (name.empty()) name = read_host().name;
  for (char& c : name)
    if (c == '/' || c == '\0') c = '_';
  return name.empty() || name.front() == '.' ? "node" + name : name;
}

Result<Node> probe_node(const Board& board, const Sensed& sensed) {
  Node node{.name = node_name(), .host = read_host(), .shared = true};
  ask_slurm(node);
  if (const sample::Reading clock = sample::clock_probe()) node.clock_ghz = *clock;
  time_turns(node);
  TRY(node.peak, peak_of(board, node, sensed));
  return node;
}

}  // namespace bakeoff::fleet
