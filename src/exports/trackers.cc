#include "exports/trackers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/embedded.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/temporary_folder.h"
#include "proc/child.h"
#include "proc/run.h"
#include "table/text.h"

namespace bakeoff::embedded {
const std::vector<File>& trackers();
}

namespace bakeoff::exports {
namespace {

constexpr int64_t kLongest = 1800 * kSecond;

const char* name_of(Tracker tracker) { return tracker == Tracker::kWandb ? "wandb" : "mlflow"; }

// That of the virtual environment into which pip put this program, or the first of PATH.
Result<fs::path> python_of(const TrackerExport& what) {
  if (!what.python.empty()) return what.python;
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  const fs::path beside = program.parent_path() / "python3";
  if (!code && ::access(beside.c_str(), X_OK) == 0) return beside;
  const char* path = std::getenv("PATH");
  if (auto found = proc::find_program("python3", path == nullptr ? "/usr/bin:/bin" : path)) return *found;
  return Error{.message = "there is no python3 beside this program or in PATH",
               .remedy = fmt::format("name an interpreter that has the package {} with --python",
                                     name_of(what.tracker))};
}

// What the helper wrote as its answer.
Result<std::vector<std::string>> answer_of(const fs::path& file, const proc::CommandResult& result,
                                           const fs::path& python) {
  const auto text = read_file(file);
  const auto json = text ? parse_json<nlohmann::json>(*text) : nlohmann::json();
  if (json.is_object() && json.contains("error") && json["error"].is_string())
    return Error{.message = json["error"].get<std::string>(), .remedy = json.value("remedy", "")};
  if (json.is_object() && json.contains("made") && result.ok())
    return json["made"].get<std::vector<std::string>>();
  std::string tail;
  for (const std::string& line : table::last_lines(result.output_tail, 5)) tail += "\n  " + line;
  return Error{.message = fmt::format("the export by {} failed: {}{}", python.string(), result.text(), tail)};
}

}  // namespace

Result<std::vector<std::string>> export_to_tracker(const Experiment& experiment, const TrackerExport& what) {
  TRY(const fs::path python, python_of(what));
  const fs::path out = fs::absolute(what.out).lexically_normal();
  const fs::path parent = what.tracker == Tracker::kWandb ? out : out.parent_path();
  std::error_code code;
  const bool was_there = fs::exists(parent, code);
  CHECK_OK(make_folder(parent));
  const auto run = [&]() -> Result<std::vector<std::string>> {
    TRY(const TemporaryFolder scratch, TemporaryFolder::in(parent, ".bakeoff_export_"));
    const fs::path helper = scratch.path() / "export.py";
    CHECK_OK(write_file(helper, embedded::trackers().at(0).text));
    CHECK_OK(write_file(scratch.path() / "experiment.json", dump(to_json(experiment))));
    proc::CommandOptions options;
    options.child.argv = {python.string(),         "-B",        helper.string(), name_of(what.tracker),
                          scratch.path().string(), out.string()};
    options.child.cwd = scratch.path();
    options.timeout_ns = kLongest;
    TRY(const auto result, proc::run_command(options));
    return answer_of(scratch.path() / "answer.json", result, python);
  };
  auto made = run();
  if (!made && !was_there) fs::remove(parent, code);  // empty then
  return made;
}

}  // namespace bakeoff::exports
