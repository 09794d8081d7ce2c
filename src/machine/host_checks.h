#pragma once

// What on this machine would distort a race, each with its remedy. Reads /proc, /sys and environment
// variables; changes nothing.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bakeoff {

enum class Level {
  kOk,
  kNote,     // worth knowing
  kWarning,  // numbers will be noisier or other than they could be
  kProblem,  // something will not work
};

std::string name(Level level);  // "ok", "note", "warning", "problem"

struct Finding {
  Level level = Level::kOk;
  std::string topic;        // "frequency governor"
  std::string text;         // one line: what was found
  std::string remedy = {};  // what to do; empty for kOk
  bool operator==(const Finding&) const = default;
};

// The kernel's side, `root` standing for "/": governor and boost, transparent huge pages, load, cgroup quota
// against `cpus` (those that we may run on), memory. What a virtual machine hides is a note.
std::vector<Finding> check_host(const std::filesystem::path& root, int cpus);

// Variables that change what frameworks do and that every worker would inherit: allocator, threads,
// precision. `variable` gives the value of a variable, or null.
std::vector<Finding> check_variables(const std::function<const char*(const char*)>& variable);

}  // namespace bakeoff
