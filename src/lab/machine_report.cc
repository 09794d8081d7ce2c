#include "lab/machine_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/version.h"

namespace bakeoff::lab {
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

// Files of `folder` and the folders in it, `depth` levels deep, whose names begin with one of `prefixes`.
void find_files(const fs::path& folder, int depth, const std::vector<std::string>& prefixes,
                std::vector<fs::path>& found) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error)) {
      if (depth > 0) find_files(entry.path(), depth - 1, prefixes, found);
      continue;
    }
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](const std::string& prefix) { return name.starts_with(prefix); });
    if (wanted && name.find(".so") != std::string::npos) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
}

void add_library(std::vector<roofline::GemmLibrary>& all, std::set<std::string>& seen,
                 const std::string& name, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  // The same file in several environments counts once.
  if (!error && seen.insert(real.filename().string()).second) all.push_back({name, real});
}

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

std::optional<MachineReport> machine_of_run(const fs::path& run, const Host& host, std::string& note) {
  if (!fs::exists(run / kInRun)) return std::nullopt;
  const auto report = read_machine(run / kInRun);
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
  const auto report = read_machine(run / kPeak);
  if (!report || !stale(*report, host).empty()) return std::nullopt;
  return *report;
}

std::vector<roofline::GemmLibrary> find_gemms(const fs::path& root, const Workshop& shop) {
  std::vector<roofline::GemmLibrary> all;
  std::set<std::string> seen;
  for (const char* folder : {"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib"}) {
    std::vector<fs::path> found;
    find_files(root / folder, 0, {"libopenblas", "libdnnl.so", "libmkl_rt"}, found);
    for (const fs::path& path : found) {
      const std::string name = path.filename().string();
      add_library(all, seen, name[3] == 'o' ? "OpenBLAS" : name[3] == 'd' ? "oneDNN" : "MKL", path);
    }
  }
  for (const std::string& name : environment_names()) {
    std::vector<fs::path> blas, torch;
    const fs::path packages = environment_folder(shop, name) / "lib";
    find_files(packages, 3, {"libscipy_openblas", "libopenblas"}, blas);
    for (const fs::path& path : blas)
      add_library(all, seen, "OpenBLAS of " + path.parent_path().stem().string(), path);
    if (name == "torch") find_files(packages, 4, {"libtorch_cpu.so"}, torch);
    for (const fs::path& path : torch) add_library(all, seen, "MKL of torch", path);
  }
  return all;
}

}  // namespace bakeoff::lab
