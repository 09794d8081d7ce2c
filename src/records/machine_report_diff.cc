#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "records/machine_report.h"

namespace bakeoff {
namespace {

constexpr double kNoteworthy = 0.05;
constexpr const char* kAbsent = "absent";

// Topics that are known to change step times, by the beginning of their names.
struct Known {
  const char* topic;
  const char* why;
};
constexpr Known kKnown[] = {
    {"processor flags", "libraries choose their kernels by these flags"},
    {"processor", "another processor"},
    {"microcode", "it changes mitigations and frequencies"},
    {"hypervisor", "virtual CPUs share the processor with others"},
    {"frequency", "frequencies follow it"},
    {"highest frequency", "it limits the clock"},
    {"turbo", "it allows frequencies above the base frequency"},
    {"transparent huge pages", "page faults and address translation of large tensors"},
    {"simultaneous multithreading", "two threads share a core's units"},
    {"CPUs", "the CPUs that threads run on"},
    {"NUMA", "memory may lie far from the thread that uses it"},
    {"cgroup", "a quota or limit stops threads during a step"},
    {"mitigations", "they cost system calls, page faults and indirect jumps"},
    {"kernel", "scheduler and memory management"},
    {"C library", "malloc, memcpy and the mathematical functions"},
    {"allocator", "whether freed pages go back to the system: a fifth of a step in some frameworks"},
    {"variable", "it changes allocator, threads, precision or compilation"},
    {"clock source", "the cost of reading time"},
    {"address randomisation", "layout of code and data differs from process to process"},
    {"memory overcommit", "whether large allocations are granted"},
    {"GPU driver", "kernels and clocks of the device"},
    {"BLAS", "the matrix product itself"},
    {"environment", "the framework itself"},
    {"number of CPUs", "the number of threads"},
    {"limit: ", "measured: the machine is faster or slower"},
};

std::string why(const std::string& topic) {
  for (const Known& known : kKnown) {
    if (topic.starts_with(known.topic)) return known.why;
  }
  // "<environment>: <fact>"
  return topic.find(": ") == std::string::npos ? "" : "the framework itself";
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  std::set<std::string> all;
  for (std::string word; words >> word;) all.insert(word);
  return all;
}

// Of two long lists of words, only the words that the other list lacks.
std::string without(const std::string& text, const std::string& other) {
  const std::set<std::string> known = words_of(other);
  std::string left;
  for (const std::string& word : words_of(text)) {
    if (!known.contains(word)) left += (left.empty() ? "" : " ") + word;
  }
  return left.empty() ? "(nothing that the other lacks)" : left;
}

class Differ {
 public:
  void texts(const Texts& before, const Texts& after) {
    std::set<std::string> topics;
    for (const auto* all : {&before, &after}) {
      for (const auto& [topic, value] : *all) topics.insert(topic);
    }
    for (const std::string& topic : topics) {
      const auto then = before.find(topic), now = after.find(topic);
      text(topic, then == before.end() ? kAbsent : then->second, now == after.end() ? kAbsent : now->second);
    }
  }

  void text(const std::string& topic, const std::string& before, const std::string& after) {
    if (before == after) return;
    const bool words = topic == "processor flags" && before != kAbsent && after != kAbsent;
    changes_.push_back(
        {topic, words ? without(before, after) : before, words ? without(after, before) : after, why(topic)});
  }

  // A measured rate; `scale` and `unit` for people.
  void rate(const std::string& topic, double before, double after, double scale, const char* unit) {
    if (before <= 0 && after <= 0) return;
    if (std::abs(after - before) <= kNoteworthy * std::max(before, after)) return;
    const auto shown = [&](double v) { return v > 0 ? fmt::format("{:.4g} {}", v / scale, unit) : kAbsent; };
    const std::string change =
        before > 0 && after > 0 ? fmt::format(" ({:+.0f}%)", 100 * (after / before - 1)) : "";
    changes_.push_back({"limit: " + topic, shown(before), shown(after) + change, why("limit: ")});
  }

  std::vector<MachineChange> done() {
    std::stable_partition(changes_.begin(), changes_.end(),
                          [](const MachineChange& c) { return !c.matters.empty(); });
    return std::move(changes_);
  }

 private:
  std::vector<MachineChange> changes_;
};

// All rates of a report by name, each with one core and all cores.
std::map<std::string, std::pair<double, bool>> rates(const roofline::Limits& limits) {
  std::map<std::string, std::pair<double, bool>> all;  // rate, whether in bytes
  const auto add = [&](const std::string& name, const roofline::Rate& rate, bool bytes) {
    all[name + ", one core"] = {rate.one, bytes};
    all[name + ", all cores"] = {rate.all, bytes};
  };
  for (const roofline::Peak& peak : limits.peaks) add("peak " + peak.dtype + " " + peak.isa, peak.ops, false);
  for (const roofline::Level& level : limits.levels) add("bandwidth " + level.name, level.best(), true);
  for (const roofline::Gemm& gemm : limits.gemms)
    add("product " + gemm.dtype + " " + gemm.library, gemm.ops, false);
  return all;
}

void compare_limits(const roofline::Limits& before, const roofline::Limits& after, Differ& differ) {
  auto then = rates(before), now = rates(after);
  for (const auto& [name, rate] : then) now.try_emplace(name, std::pair{0.0, rate.second});
  for (const auto& [name, rate] : now)
    differ.rate(name, then[name].first, rate.first, 1e9, rate.second ? "GB/s" : "Gop/s");
  differ.rate("scalar frequency", before.scalar_hz.one, after.scalar_hz.one, 1e9, "GHz");
  differ.rate("vector frequency", before.vector_hz.one, after.vector_hz.one, 1e9, "GHz");
  differ.rate("page fault", before.page_fault_s, after.page_fault_s, 1e-9, "ns");
  differ.rate("process start", before.process_start_s, after.process_start_s, 1e-6, "us");
  differ.rate("link between processes", before.link, after.link, 1e9, "GB/s");
}

}  // namespace

std::vector<MachineChange> diff(const MachineReport& before, const MachineReport& after) {
  Differ differ;
  differ.text("host", before.host.name, after.host.name);
  differ.text("system", before.host.os, after.host.os);
  differ.text("number of CPUs", std::to_string(before.host.cpus), std::to_string(after.host.cpus));
  differ.text("memory, MiB", std::to_string(before.host.memory_bytes >> 20),
              std::to_string(after.host.memory_bytes >> 20));
  differ.texts(before.facts, after.facts);
  compare_limits(before.limits, after.limits, differ);
  return differ.done();
}

}  // namespace bakeoff
