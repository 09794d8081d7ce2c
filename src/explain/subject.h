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
  // By which this script becomes the other one (differences.h); none where they use different frameworks.
  std::vector<Changes> exchanges = {};

  // The framework that trains: the one that reports parameters, else the first.
  std::string framework() const;
  // Whether it trains with this framework, in any of its generations, or on it; "" is any.
  bool uses(const std::string& wanted) const;
  // Its facts; an empty object if it has none.
  const nlohmann::json& facts() const;
  double number(const char* fact, double otherwise = 0) const;
  std::string text(const char* fact) const;
  bool flag(const char* fact) const;
  // It came to its end without steps, or is compared with such a script: nothing is known per step.
  bool stepless() const { return profile.steps == 0; }
  // Samples of one counted step; 1 where the batch is not known. By step: training steps of it.
  double samples() const;
  double step_with_waits_s() const;
  // Share of its steps that they wait for data, or that a pipeline which a graph reads needs for as many batches.
  double input_share() const;
  // Mean time of a sample, or step, with the starts of epochs; of a whole run what compared_s() says. Seconds.
  double mean_s() const;
  // Time that looks at its stack are shares of, in s of what is compared.
  double looked_at_s() const;
  // Time that is compared, s: of a sample, of a training step or of a whole run.
  double compared_s() const;
};

// A script by its file, with the text of that; no file: a module that is not here. `spec` has the interpreter, the
// runner and the working directory; arguments are left to the caller. Error: the file cannot be read.
Result<Subject> subject_of_file(const std::filesystem::path& file, ScriptSpec spec);

// By how much longer each phase takes in the first script, s of what is compared: of a whole run all phases; of a
// sample or step those that come with every step, from the observed runs.
std::vector<Phase> gap_by_phase(const Subject& first, const Subject& second);

// Adds the files that it was seen to import to its source; unreadable files are left out.
void read_files(Subject& s);
// The text of a line, without spaces at its ends; empty where it is not known.
std::string trimmed_line(const Subject& s, int64_t line);
// "slow.py:12"; empty where the line is not known.
std::string place_of(const Subject& s, int64_t line);

std::vector<LineTime> line_times(const Subject& s);
// By how much longer a line takes than the same line of the other script, s of what is compared.
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
