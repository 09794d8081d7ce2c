#pragma once

// One record of the machine: its measured limits (roofline/limits.h), and every fact that can change a
// result. It is kept in $BAKEOFF_HOME/machine/<host>.json; a run directory gets a copy as machine.json, so
// that a report can be computed again from what was known when the race was run.
//
//   TRY(const MachineReport machine, read_machine(file));
//   if (const std::string why = stale(machine, read_host()); !why.empty()) ...      // measure again

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "records/trial.h"
#include "roofline/limits.h"

namespace bakeoff {

inline constexpr int kMachineVersion = 1;

struct MachineReport {
  int version = kMachineVersion;
  std::string bakeoff_version = {};
  std::string measured = {};  // UTC
  Host host = {};
  std::string disturbed = {};  // other work during the measurement, in words; empty: there was none
  Texts facts = {};            // by topic: "microcode", "mitigations: spectre v2", "BLAS of torch", ...
  roofline::Limits limits = {};
  bool operator==(const MachineReport&) const = default;
};

std::string to_json(const MachineReport& report);
// Errors name `file` and, for damaged text, what is wrong with it.
Result<MachineReport> machine_from_json(const std::string& text, const std::string& file);
Result<MachineReport> read_machine(const std::filesystem::path& file);

std::filesystem::path machine_file(const std::filesystem::path& home, const Host& host);

// Why a report does not apply to `host`: "it is of another processor: ..."; empty if it applies.
std::string stale(const MachineReport& report, const Host& host);

// The record kept in `file`, if it is better than `fresh`: `fresh` was disturbed by other work, and the kept
// record is of the same machine and was not disturbed.
std::optional<MachineReport> better_kept(const std::filesystem::path& file, const MachineReport& fresh);

// Copies the report of this machine, if there is a valid one, into the run directory.
Status keep_machine(const std::filesystem::path& home, const Host& host, const std::filesystem::path& run);
// The machine report of a run. Nothing if there is none, or if it is of another machine than `host`; `note`
// then says so.
std::optional<MachineReport> machine_of_run(const std::filesystem::path& run, const Host& host,
                                            std::string& note);

// Peaks that a run measures itself if it has no undisturbed machine report: at its start, on the CPUs of its
// race (roofline::measure_bounds). The FLOP/s of its contenders are compared with them. They are kept in
// RUN/peak.json, so that a report can be computed again.
Status keep_run_peak(const std::filesystem::path& run, const Host& host, const roofline::Limits& limits);
std::optional<MachineReport> run_peak(const std::filesystem::path& run, const Host& host);

// One line of a comparison.
struct MachineChange {
  std::string what = {};
  std::string before = {}, after = {};  // "absent" if it has no value
  std::string matters = {};             // why it changes step times; empty: it is not known to change them
  bool operator==(const MachineChange&) const = default;
};
// Changes that are known to matter come first. A measured rate counts as changed from 5% on.
std::vector<MachineChange> diff(const MachineReport& before, const MachineReport& after);

// How the machine of a record differs from `here`, as words that follow "the profile is"; empty: it is the
// same machine, with the same processors and the same kernel.
std::string other_machine(const Host& then, const Host& here);

}  // namespace bakeoff
