#pragma once

// Properties of this machine that could distort a race, each with a remedy. Reads /proc, /sys and environment
// variables; changes nothing.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bakeoff {

enum class Level {
  kOk,
  kNote,     // worth knowing
  kWarning,  // measurements will be noisier or different than they could be
  kProblem,  // something will not work
};

std::string name(Level level);  // "ok", "note", "warning", "problem"

struct Finding {
  Level level = Level::kOk;
  std::string topic;        // "frequency governor"
  std::string text;         // what was found, in one line
  std::string remedy = {};  // what to do; empty for kOk
  bool operator==(const Finding&) const = default;
};

// Checks of the kernel and hardware, with `root` instead of "/": frequency governor and boost, transparent
// huge pages, load, cgroup quota compared with `cpus` (the CPUs that we may run on), memory. Something that
// a virtual machine hides is a note.
std::vector<Finding> check_host(const std::filesystem::path& root, int cpus);

// Environment variables that every worker would inherit and that change what frameworks do: allocator,
// threads, precision. `variable` returns the value of a variable, or null.
std::vector<Finding> check_variables(const std::function<const char*(const char*)>& variable);

}  // namespace bakeoff
