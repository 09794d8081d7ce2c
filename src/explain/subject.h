#pragma once

// One of the scripts that are compared, and what was seen of it.

#include <filesystem>
#include <string>
#include <vector>

#include "explain/differences.h"
#include "explain/observed.h"
#include "explain/phases.h"

namespace bakeoff::explain {

// What a line takes, in s of what is compared, as looks at the stack tell.
struct LineTime {
  HotLine line = {};
  std::string text = {};  // trimmed_line
  double seconds = 0;
  double within_s = 0;  // the same, with what it calls
  double share = 0;     // of the looks
  bool start = false;   // before the first steps, which count in a whole run
};
// Where the texts of two scripts differ, and by how much longer that takes than in the other script.
struct CodeTime {
  Difference text = {};
  double more_s =
      0;  // s of what is compared: of its own lines with what they call, or of all lines that run them
  double nearest_s = 0;    // the same, without lines that run another difference before it
  LineTime line = {};      // of its own lines, or of lines that run them, the slowest
  double line_more_s = 0;  // of that line
  bool own = false;        // it is one of its own lines
};

struct Subject {
  std::string name = {};              // as the user named it
  std::string file = {};              // name of its file, without folders; empty if unknown
  std::filesystem::path folder = {};  // of its file
  Source source = {};                 // its text; empty for a module that was not found
  ScriptSpec spec = {};
  Report seen = {};  // its first steps, from the start of the process on
  Profile profile = {};
  double output_bytes = 0;  // that it prints for each step
  bool by_step = false;     // times are those of a training step, as the batch of a script is not known
  double faults = 0;        // minor page faults of a step
  // Steps after the first few, in which compilations and calls were counted, and what they took; 0: it made none.
  int64_t watched_steps = 0;
  double watched_s = 0;
  // From the start of Python until its first steps were made, s: all of it, and what was traced or compiled in it.
  double start_s = 0, start_compile_s = 0;
  std::vector<HotLine> start_lines = {};     // in which it was seen then
  std::vector<PythonLoop> start_loops = {};  // that JAX unrolled then
  std::string why_whole = "no steps were seen, or too few";
  bool unlike = false;  // a step is not the same in the other script (observe_whole)
  bool whole = false;   // times are those of a run from start to end, as it makes few steps
  nlohmann::json other = nlohmann::json::object();  // facts of the script that it is compared with
  // Lines of that script by their texts, in s of its mean_s(), and that itself.
  std::map<std::string, double> other_lines = {};
  std::map<std::string, double> other_within = {};  // the same, with what these lines call
  double other_s = 0;
  std::map<std::string, double> other_accounts = {};  // the same, of its accounts
  std::map<std::string, OpTime> other_ops = {};       // its op_times, by their names
  double other_loop_s = 0;                            // the same, of the loop that takes most
  double other_eager = 0;           // share of its looks that are in ops of JAX outside of compiled functions
  double other_compile_s = 0;       // its start_compile_s
  double other_running = 0;         // its Report::children_running
  bool other_grows = false;         // its steps become longer, too
  Source other_source = {};         // its text
  std::vector<CodeTime> code = {};  // code_times of the two
  // Changes that make this script the other one (differences.h); empty if they use different frameworks.
  std::vector<Changes> exchanges = {};

  // The framework that trains: the one that reports parameters, else the first.
  std::string framework() const;
  // Whether it trains with this framework, in any of its generations, or on it; "" is any.
  bool uses(const std::string& wanted) const;
  // Facts that the hooks of its framework reported; an empty object without any.
  const nlohmann::json& facts() const;
  double number(const char* fact, double otherwise = 0) const;
  std::string text(const char* fact) const;
  bool flag(const char* fact) const;
  // No steps were seen of it, or of the script that it is compared with: nothing is known per step.
  bool stepless() const { return profile.steps == 0; }
  // Samples of one counted step, 1 if the batch is not known; if by_step, its training steps.
  double samples() const;
  double step_with_waits_s() const;
  // Share of its steps in which they wait for data, or for which a pipeline inside a graph works.
  double input_share() const;
  // Mean seconds of a sample, or of a step, with the starts of epochs; of a whole run compared_s().
  double mean_s() const;
  // Seconds of what is compared during which its stack was looked at: shares of looks are shares of these.
  double looked_at_s() const;
  // Time that is compared, s: of a sample, of a training step or of a whole run.
  double compared_s() const;
};

// A script from its file. Without a file it is a module that was not found here. `spec` has the interpreter, the
// runner and the working directory; the caller adds arguments. Error: the file cannot be read.
Result<Subject> subject_of_file(const std::filesystem::path& file, ScriptSpec spec);

// By how many seconds each phase is longer in the first script, in the observed runs: all phases of a whole run;
// of a sample or step, the phases that come with every step.
std::vector<Phase> gap_by_phase(const Subject& first, const Subject& second);

// Adds the files that it was seen to import to its source; unreadable files are left out.
void read_files(Subject& s);
// The text of a line, without spaces at its ends; empty where it is not known.
std::string trimmed_line(const Subject& s, int64_t line);
// "slow.py:12"; empty where the line is not known.
std::string place_of(const Subject& s, int64_t line);

std::vector<LineTime> line_times(const Subject& s);
// By how many seconds a line takes longer than the same line of the other script, of what is compared.
double more_of_line(const Subject& s, const LineTime& line);
// Of a script that knows its other_source and other_lines.
std::vector<CodeTime> code_times(const Subject& s);

// Ops as the profiler saw them, in s of what is compared: together they take no more than its steps.
std::vector<OpTime> op_times(const Subject& s);

// Samples, or by step training steps, of one counted step by these facts of a report.
double samples_of(const nlohmann::json& facts, bool by_step);
// Those of the framework that trains.
const nlohmann::json& facts_of(const Report& report);

}  // namespace bakeoff::explain
