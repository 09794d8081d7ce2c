#pragma once

// Pinned requirement files and what is installed, read without running anything.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/texts.h"

namespace bakeoff {

// envs/<name>.txt of this repository, embedded in the program.
struct Requirements {
  std::string name;  // of the environment: "torch"
  std::string text;
};
// Every environment has the name of a framework; they are in the order of emit::frameworks().
const std::vector<Requirements>& shipped_requirements();

// "absl-py==2.5.1", with the name normalised.
struct Pin {
  std::string package;
  std::string version;
  bool operator==(const Pin&) const = default;
};

// Lines "name==version", comments and blank lines. Anything else is an error: an environment that is not
// pinned to the last package cannot be compared with another.
Result<std::vector<Pin>> parse_pins(const Requirements& requirements);

// Whether there is a line "# pip: --no-deps": pip then installs the pins and nothing else, whatever they ask
// for. For a package that asks for another build of what is pinned: tf-keras for tensorflow, beside
// tensorflow-cpu.
bool without_dependencies(const Requirements& requirements);

// PEP 503: lower case, runs of '-', '_' and '.' as one '-'.
std::string normalised(std::string_view package);

// PEP 440: whether an installed version satisfies "==pinned": equal, or equal but for a local label that the
// pin leaves out ("2.13.0+cpu" for "2.13.0").
bool satisfies(std::string_view installed, std::string_view pinned);

// Versions by normalised name of what pip has finished installing below `environment` (dist-info folders with
// a RECORD, which is written last).
Texts installed_packages(const std::filesystem::path& environment);

// "numpy is 2.4.5, not 2.4.6" for the first pin that does not hold; empty: all hold.
std::string first_misfit(const std::vector<Pin>& pins, const Texts& installed);

}  // namespace bakeoff
