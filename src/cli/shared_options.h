#pragma once

// Options that several commands have, and how their values are read.

#include <cstdint>
#include <filesystem>
#include <functional>
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
// --budget, in the form that the command takes.
struct BudgetForm {
  const char* type;   // in the help
  bool pairs;         // "20pairs", too
  const char* wrong;  // what is said of others
};
inline constexpr BudgetForm kTime = {"TIME", false, "must be a time above 0: 90s, 10m, 1h"};
inline constexpr BudgetForm kTimeOrPairs = {"", true,
                                            "must be a time above 0, or whole pairs: 90s, 3m, 1h, 20pairs"};
void add_budget(CLI::App& sub, const std::function<void(const Budget&)>& take, const BudgetForm& form,
                const std::string& doc);

// --format text, json, markdown or csv.
void add_format(CLI::App& sub, std::string& format);
// --profile, the file of `bakeoff calibrate`; empty: that of the bakeoff home, if any; "none".
void add_profile(CLI::App& sub, std::string& profile);
// --baseline, the id of a contender.
void add_baseline(CLI::App& sub, std::string& baseline);

// --margin 5%, --alpha 0.01: above 0 and below `most`.
void add_share(CLI::App& sub, const std::string& name, double& into, double most, const std::string& doc);
// --framework and --python, which say what runs a script.
void add_interpreter(CLI::App& sub, std::string& framework, std::filesystem::path& python);

// The least time that gives answers worth having. Tests, whose answers are obvious, take less.
double at_least(double time);

}  // namespace bakeoff::cli
