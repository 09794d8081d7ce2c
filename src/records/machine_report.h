#pragma once

// The machine as one record: its measured limits (roofline/limits.h), and everything else that shapes a
// number. Kept in $BAKEOFF_HOME/machine/<host>.json; a run directory gets a copy as machine.json, so that a
// report is recomputed from what was known when the race was run.
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
  std::string disturbed = {};  // what went on beside the measurement; empty: it had the machine to itself
  Texts facts = {};            // by topic: "microcode", "mitigations: spectre v2", "BLAS of torch", ...
  roofline::Limits limits = {};
  bool operator==(const MachineReport&) const = default;
};

std::string to_json(const MachineReport& report);
// Errors name `file` and, for damaged text, what is wrong with it.
Result<MachineReport> machine_from_json(const std::string& text, const std::string& file);
Result<MachineReport> read_machine(const std::filesystem::path& file);

std::filesystem::path machine_file(const std::filesystem::path& home, const Host& host);

// Why a report does not speak for `host`: "it is of another processor: ..."; empty if it does.
std::string stale(const MachineReport& report, const Host& host);

// The record kept in `file`, where it is worth more than `fresh`, which other work disturbed: one that speaks
// for the same machine and was not disturbed.
std::optional<MachineReport> better_kept(const std::filesystem::path& file, const MachineReport& fresh);

// Puts the report of this machine, where there is one that speaks for it, beside a run's records.
Status keep_machine(const std::filesystem::path& home, const Host& host, const std::filesystem::path& run);
// A run's: nothing where there is none, or where it is of another machine than `host`, which `note` then
// says.
std::optional<MachineReport> machine_of_run(const std::filesystem::path& run, const Host& host,
                                            std::string& note);

// What a run holds its contenders' FLOP/s against where it has no machine report that was undisturbed: peaks
// measured at its own start, on the CPUs of its race (roofline::measure_bounds). Kept in RUN/peak.json, so
// that a report is recomputed from it.
Status keep_run_peak(const std::filesystem::path& run, const Host& host, const roofline::Limits& limits);
std::optional<MachineReport> run_peak(const std::filesystem::path& run, const Host& host);

// One line of a comparison.
struct MachineChange {
  std::string what = {};
  std::string before = {}, after = {};  // "absent" where there is none
  std::string matters = {};             // why it is known to change step times; empty: not known to
  bool operator==(const MachineChange&) const = default;
};
// What is known to matter comes first. Measured rates count as changed from 5% on.
std::vector<MachineChange> diff(const MachineReport& before, const MachineReport& after);

// In what the machine that a record is of differs from `here`, in words that follow "the profile is"; empty:
// it is this machine, with the same processors and the same kernel.
std::string other_machine(const Host& then, const Host& here);

}  // namespace bakeoff
