#pragma once

// Options that several commands have, and how their values are read.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace bakeoff::cli {

// Limits that replace the recipe's [budget]; 0: as the recipe says.
struct Budget {
  double minutes = 0;
  int64_t pairs = 0;  // number of heats; each heat gives one pair for every two of its members
  bool until_decided = false;
};
// "6", "6min", "6m", "90s", "1h", "20pairs". Null: it is none of these, or not above 0.
std::optional<Budget> parse_budget(const std::string& text);

// --format text, json, markdown or csv.
void add_format(CLI::App& sub, std::string& format);
// --profile, the file of `bakeoff calibrate`; empty: that of the bakeoff home, if any; "none".
void add_profile(CLI::App& sub, std::string& profile);
// --baseline, the id of a contender.
void add_baseline(CLI::App& sub, std::string& baseline);

// --margin 5%, --alpha 0.01: above 0 and below `most`.
void add_share(CLI::App& sub, const std::string& name, double& into, double most, const std::string& doc);
// --budget 90s of `gate` and `bisect`, in seconds.
void add_time(CLI::App& sub, double& seconds, const std::string& doc);
// --framework and --python, which say what runs a script.
void add_interpreter(CLI::App& sub, std::string& framework, std::filesystem::path& python);

// The least time that gives answers worth having. Tests, whose answers are obvious, take less.
double at_least(double time);

}  // namespace bakeoff::cli
