#pragma once

// What a fleet keeps in the folder fleet/ of a run directory, as plain values. A race of a fleet is cut into blocks. A
// block is one heat: an order (race/heat_order.h) and, once it is settled, a result. It runs on one machine, a node,
// in fresh processes, and needs the run directory alone.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "records/machine_report.h"
#include "records/trial.h"

namespace bakeoff::fleet {

// How blocks reach nodes, as `bakeoff fleet plan` was told: fleet.json.
struct Settings {
  int version = 1;
  std::string engine = {};                   // "slurm", "ssh", "local"
  std::vector<std::string> hosts = {};       // engine ssh
  std::vector<std::string> ssh = {"ssh"};    // engine ssh: the command and its options
  std::string partition = {}, account = {};  // engine slurm; empty: the site's default
  std::vector<std::string> sbatch = {};      // engine slurm: further options of sbatch
  bool exclusive = true;                     // engine slurm: blocks have their nodes alone
  int64_t wave = 0;           // blocks that are planned at once; 0: as many as planned_blocks() says
  int64_t most = 1000;        // blocks in all
  double block_minutes = 30;  // time limit of a block
  int64_t tries = 3;          // of a block, until it is given up
  // Share by which a node may be slower or faster than the others; a fifth of it is how much equal work may differ.
  double out_of_line = 0.15;
  std::string program = {};  // path of the program on the nodes
  std::string home = {};     // $BAKEOFF_HOME on the nodes
  std::string config = {};   // --config on the nodes; empty: the default
  bool operator==(const Settings&) const = default;
};

// Blocks that were handed to an engine together: jobs/N.json.
struct Job {
  int number = 0;  // of the run's jobs, from 1
  std::vector<int> blocks = {};
  double minutes = 0;          // time limit of each of them
  std::string submitted = {};  // UTC
  // What the engine calls it: Slurm's job id; or "HOST PID" of each process that works on the blocks. Empty: it was
  // being submitted when the program ended.
  std::vector<std::string> ids = {};
  bool cancelled = false;
  bool operator==(const Job&) const = default;
};

// A machine as it was when it ran a block.
struct Node {
  std::string name = {};
  Host host = {};
  std::string where = {};  // what the engine says: "Slurm job 12, task 3"; with the job's nodes
  bool shared = false;     // other jobs may have run beside it; unknown counts as shared
  double clock_ghz = 0;    // by a chain of dependent instructions (sample/clock_probe.h); 0: not measured
  double speed = 0;        // iterations of that chain in a nanosecond, over 8 ms, the median; 0: not measured
  double noise = 0;        // sd of log(a / b) of identical work in turns (probe.h); 0: not measured
  MachineReport peak = {};  // limits that no program exceeds (roofline::measure_bounds)
  bool operator==(const Node&) const = default;
};

// What came of a block: result.json, a line of JSON and below it the lines that trials.jsonl gets, as the node made them:
// collectors copy them unread. A block that is given up has a reason and no trials.
struct BlockResult {
  int block = 0;
  std::string attempt = {};  // name of the attempt that settled it
  std::string race = {};     // whose it is (race_of()); empty: unknown
  std::string given_up = {};
  Node node = {};
  int64_t bytes = 0;        // of `trials`: a file that was cut is noticed
  std::string trials = {};  // a Trial in each line
  bool operator==(const BlockResult&) const = default;
};

// An attempt that settled nothing.
struct FailedAttempt {
  int block = 0, job = 0;
  std::string node = {};
  std::string reason = {};
  // Contenders that failed in it. One that fails on one machine alone is that machine's fault: it counts once it
  // failed in two attempts.
  std::vector<std::string> contenders = {};
};

// What a node computed, by an audit of a timed burst (audit/audit.h): of the first block there in which the contender
// ran, and of whatever other bursts were audited.
struct Check {
  std::string node = {}, contender = {};
  std::string differs = {};  // from the referee, in words; empty: it computes what was proven
  bool operator==(const Check&) const = default;
};

std::string to_json(const Settings&);
std::string to_json(const Job&);
std::string to_json(const BlockResult&);
std::string to_json(const FailedAttempt&);
std::string to_json(const Check&);
// Errors: no such record, or values of another kind; `where` names the file.
Result<Settings> settings_from_json(std::string_view text, const std::string& where);
Result<Job> job_from_json(std::string_view text, const std::string& where);
Result<BlockResult> block_result_from_json(std::string_view text, const std::string& where);
Result<FailedAttempt> failed_attempt_from_json(std::string_view text, const std::string& where);
Result<Check> check_from_json(std::string_view text, const std::string& where);

}  // namespace bakeoff::fleet
