#pragma once

// A training script of the user's, run as it is in a process of its own with hooks that count its steps
// (runners/bakeoff_observe). At the end of a step it can be made to stop until it is asked for more, so
// several scripts can alternate as the workers of a race do.

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/temporary_folder.h"
#include "base/texts.h"
#include "proc/child.h"

namespace bakeoff::explain {

// Settings thrown from outside, by the names of runners/bakeoff_observe: {"threads": 2, "compile": true}.
using Switches = nlohmann::json;

struct ScriptSpec {
  std::filesystem::path python = {};
  std::filesystem::path runner = {};        // folder that contains the package bakeoff_observe
  std::vector<std::string> arguments = {};  // script and its arguments, or "-m" and a module
  std::filesystem::path folder = {};        // working directory
  bool in_copy = true;                      // run in a copy of it (folders.h)
  std::map<std::string, std::string> texts =
      {};                  // of files in the copy, by their paths from the folder, in place of theirs
  Texts environment = {};  // variables added to ours; PYTHONPATH stands before ours
  std::filesystem::path log_file = {};  // what the script prints
  std::string kind = {};  // what its steps end with, as an earlier run told (Report::kind); empty: not known
  bool notebook = false;  // it asks for its notebook, and gets one that does nothing
};

// A line of the user's files that the script was in whenever its stack was looked at.
struct HotLine {
  int64_t line = 0;  // by number, as all lines of a report (source.h)
  std::string function = {};
  double share = 0;   // of all looks
  double eager = 0;   // the same, within ops of JAX that belong to no compiled function
  double input = 0;   // the same, within what a loader or pipeline called
  double within = 0;  // the same, with looks in what the line called
};

// A function of the user's files that returned the same array again, given the same.
struct ConstantCall {
  std::string function = {};
  int64_t line = 0;   // where it begins
  int64_t calls = 0;  // in two steps
  double share = 0;   // of all looks that are within it
};

// A loop of the user's files in Python, with the lines in it and what they call.
struct PythonLoop {
  int64_t line = 0;    // where it begins
  int64_t rounds = 0;  // in one step; 0: not counted
  double share = 0;    // of all looks
  double traced = 0;   // the same, while JAX traced a function that has the loop: it is unrolled
};

// What all calls of an op of the framework take in one step, by the framework's profiler.
struct OpTime {
  std::string name = {};  // "aten::sort"; empty: all ops that take less
  double seconds = 0;     // of all threads
  double calls = 0;
};

// One of several loops that the script, or a round of its outermost loop, consists of.
struct LoopBook {
  int64_t line = 0;  // where it begins
  // Report::accounts of the looks within it, as shares of all looks.
  std::map<std::string, double> accounts = {};
  double share() const;  // of all looks
};

// What a process reports when it stops. Times in ns; points in time are those of the monotonic clock.
struct Report {
  bool ended = false;                  // the script came to its own end
  std::string error = {}, where = {};  // the exception that ended it, and "file:line"
  std::string kind = {};               // what a step ends with; empty: no step was seen
  int64_t started = 0;                 // when Python was ready to run the script
  int64_t begun = 0;                   // when these steps began
  int64_t ns = 0;                      // duration of these steps, until all work was done
  std::vector<int64_t> marks = {};     // end of each step
  std::vector<int64_t> waits = {};     // wait for data in each step
  std::vector<int64_t> epochs = {};    // number of steps before each epoch that began
  struct Import {
    std::string name = {};
    int64_t begin = 0, end = 0;
    bool operator==(const Import&) const = default;
  };
  std::vector<Import> imports = {};
  int64_t compiles = 0, compile_ns = 0;     // during these steps
  std::vector<int64_t> compile_steps = {};  // numbers of the steps in which it compiled
  int64_t collections = 0;                  // full garbage collections during these steps
  int64_t cpu_ns = 0;                       // processor time of the process so far
  int64_t peak_rss_bytes = 0;
  int64_t minor_faults = 0;                   // page faults of the process so far that needed no disk
  std::vector<double> losses = {};            // of the first steps; NaN where it could not be read
  std::vector<std::string> thrown = {};       // switches that changed something
  std::vector<std::string> notes = {};        // what was seen and could not be followed
  nlohmann::json facts = {};                  // by framework; null unless asked for
  std::map<std::string, int64_t> files = {};  // the user's own that it imported: what their lines count from
  std::vector<HotLine> lines = {};            // with Watch::kLines: the greatest share first
  std::map<std::string, double> accounts =
      {};  // the same looks by what the script did: shares that add up to 1
  std::vector<ConstantCall> constants =
      {};  // the same, of functions that were seen in the steps with kRounds
  // The same, of loops that a step goes round 8 times or more, or that JAX unrolls.
  std::vector<PythonLoop> loops = {};
  std::vector<LoopBook> books = {};  // the same, the greatest first; none of a script that has one loop
  // Processes that the script started, and threads of them that ran at a time, in the mean; 0: none.
  int64_t children = 0;
  double children_running = 0;
  // What preparing a batch takes, s, where a graph reads batches and no step is seen to wait: read by themselves, at the
  // script's end or with Watch::kHooks; 0: nothing.
  double input_s = 0;
  std::vector<OpTime> ops = {};     // with kProfile: the greatest first
  nlohmann::json conversions = {};  // with kHooks or kRounds: what lines make arrays of; null: not looked at
  std::optional<double> hook_s = {};  // with Watch::kHooks: what the hooks take of a step, at most
  // Versions of packages and of Python, and variables that may matter; with the facts alone.
  std::map<std::string, std::string> environment = {};

  int64_t steps() const { return static_cast<int64_t>(marks.size()); }
  double step_s() const { return 1e-9 * static_cast<double>(ns) / static_cast<double>(steps()); }
};

Result<Report> parse_report(const std::string& line);

enum class Watch {
  kNothing,
  kLines,   // in which lines it spends its time, by looks at its stack
  kRounds,  // how often a step goes round each Python loop, and what lines make arrays of; steps become slower
  kProfile,  // of which ops a step consists; steps become slower
  kHooks,    // how often hooks are called in a step, and what lines make arrays of; steps become slower
};

struct RunRequest {
  int64_t steps = 1;       // further ones that it may make,
  double seconds = 60;     // for so long at most
  bool facts = false;      // collect them, which takes up to a second
  double patience_s = 60;  // so much longer a script without a step is waited for
  Watch watch = Watch::kNothing;
  bool whole = false;  // the first request: no steps are counted, and the script runs to its end
};

// A script as it would be run without Bakeoff, and the copy of its folder that it runs in.
struct Unobserved {
  std::optional<TemporaryFolder> copy = {};  // removed with this: after the process has ended
  proc::ChildOptions options = {};
};
Result<Unobserved> unobserved(const ScriptSpec& spec);

class Observed {
 public:
  // Starts the script; it stops at its first boundary that `run` asks for.
  static Result<Observed> start(const ScriptSpec& spec, const Switches& switches);
  Observed(Observed&&) noexcept;
  Observed& operator=(Observed&&) = delete;
  ~Observed();  // kills it and all that it left

  // Lets it make further steps.
  Result<Report> run(const RunRequest& request);
  Status freeze();
  Status thaw();
  std::string log_tail() const;
  int64_t log_bytes() const;  // that it has printed so far

 private:
  struct State;
  explicit Observed(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bakeoff::explain
