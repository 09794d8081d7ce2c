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
  std::string name;  // name of the environment: "torch"
  std::string text;
};
// Every environment has the name of a framework, in the order of emit::frameworks(), or extends one.
const std::vector<Requirements>& shipped_requirements();

// One package at one version, "absl-py==2.5.1"; the name is normalised.
struct Pin {
  std::string package;
  std::string version;
  bool operator==(const Pin&) const = default;
};

// Reads lines "name==version"; comments and blank lines are allowed. Any other line is an error: an
// environment whose packages are not all pinned cannot be compared with another.
Result<std::vector<Pin>> parse_pins(const Requirements& requirements);

// Whether the text has a line "# pip: --no-deps": pip then installs the pins and nothing that they depend on.
// tf-keras needs it: it depends on the package tensorflow, and the pin is tensorflow-cpu.
bool without_dependencies(const Requirements& requirements);

// "torch" of a line "# extends: torch": what it holds and more, which is made only where it is named. Empty: no line.
std::string extended(const Requirements& requirements);

// The words of a line "# import: KERAS_BACKEND=torch torch keras": variables and modules. Importing them once compiles
// what every worker imports, and nothing else of a gigabyte of packages. Empty where there is no such line.
std::vector<std::string> imported_once(const Requirements& requirements);

// Normalises a name by PEP 503: lower case, and one '-' for each run of '-', '_' and '.'.
std::string normalised(std::string_view package);

// Whether an installed version satisfies "==pinned" (PEP 440): it is equal, or differs only by a local label
// that the pin does not have ("2.13.0+cpu" for "2.13.0").
bool satisfies(std::string_view installed, std::string_view pinned);

// Versions, by normalised name, of the packages that pip has completely installed below `environment`:
// folders *.dist-info with a RECORD, which pip writes last.
Texts installed_packages(const std::filesystem::path& environment);

// "numpy is 2.4.5, not 2.4.6" for the first pin that is not installed; empty: all are.
std::string first_misfit(const std::vector<Pin>& pins, const Texts& installed);

}  // namespace bakeoff
