#include "records/machine_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/version.h"

namespace bakeoff {
namespace {

// A host's name as a file name.
std::string file_name(const std::string& host) {
  std::string name = host.empty() ? "machine" : host;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    if (!plain && (c != '.' || &c == &name.front())) c = '_';
  }
  return name + ".json";
}

constexpr const char* kInRun = "machine.json";
constexpr const char* kPeak = "peak.json";

}  // namespace

Result<MachineReport> read_machine(const fs::path& file) {
  TRY(const std::string text, read_file(file));
  return machine_from_json(text, file.string());
}

fs::path machine_file(const fs::path& home, const Host& host) {
  return home / "machine" / file_name(host.name);
}

std::string stale(const MachineReport& report, const Host& host) {
  const auto differs = [](const char* what, const auto& then, const auto& now) {
    return fmt::format("it is of another {}: '{}', here '{}'", what, then, now);
  };
  if (report.version != kMachineVersion)
    return differs("version of the record", report.version, kMachineVersion);
  if (report.host.name != host.name) return differs("host", report.host.name, host.name);
  if (report.host.cpu != host.cpu) return differs("processor", report.host.cpu, host.cpu);
  if (report.host.cpus != host.cpus) return differs("number of CPUs", report.host.cpus, host.cpus);
  if (report.host.kernel != host.kernel) return differs("kernel", report.host.kernel, host.kernel);
  return "";
}

std::optional<MachineReport> better_kept(const fs::path& file, const MachineReport& fresh) {
  auto kept = read_machine(file);
  if (fresh.disturbed.empty() || !kept || !kept->disturbed.empty()) return std::nullopt;
  if (!stale(*kept, fresh.host).empty()) return std::nullopt;
  return std::move(*kept);
}

Status keep_machine(const fs::path& home, const Host& host, const fs::path& run) {
  const fs::path file = machine_file(home, host);
  const auto report = read_machine(file);
  if (!report || !stale(*report, host).empty()) return Done{};
  return write_file(run / kInRun, to_json(*report));
}

namespace {

Result<MachineReport> read_own_machine(const fs::path& file) {
  TRY(const std::string text, read_regular_file(file));
  return machine_from_json(text, file.string());
}

}  // namespace

std::optional<MachineReport> machine_of_run(const fs::path& run, const Host& host, std::string& note) {
  if (!fs::exists(fs::symlink_status(run / kInRun))) return std::nullopt;
  const auto report = read_own_machine(run / kInRun);
  if (!report) {
    note = "The machine's limits are not used: " + report.error().message + ".";
    return std::nullopt;
  }
  if (const std::string why = stale(*report, host); !why.empty()) {
    note = "The machine's limits are not used: " + why + ".";
    return std::nullopt;
  }
  return *report;
}

Status keep_run_peak(const fs::path& run, const Host& host, const roofline::Limits& limits) {
  const MachineReport report{
      .bakeoff_version = kVersion, .measured = utc_now(), .host = host, .limits = limits};
  return write_file(run / kPeak, to_json(report));
}

std::optional<MachineReport> run_peak(const fs::path& run, const Host& host) {
  const auto report = read_own_machine(run / kPeak);
  if (!report || !stale(*report, host).empty()) return std::nullopt;
  return *report;
}

std::string other_machine(const Host& then, const Host& here) {
  if (then.cpu != here.cpu)
    return fmt::format("of another machine: its processor is '{}', this one's '{}'", then.cpu, here.cpu);
  if (then.name != here.name)
    return fmt::format("of another machine: '{}', this one is '{}'", then.name, here.name);
  if (then.cpus != here.cpus) return fmt::format("of {} CPUs, but now {} may be used", then.cpus, here.cpus);
  if (then.kernel != here.kernel)
    return fmt::format("of another kernel: {}, but now it is {}", then.kernel, here.kernel);
  return "";
}

}  // namespace bakeoff
