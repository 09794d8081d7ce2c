#include "records/records.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <set>
#include <utility>

#include "base/files.h"
#include "records/record_json.h"

namespace bakeoff {

namespace {

// Of a record that was written before causes were: by the words of the reason.
Cause former_cause(const std::string& reason) {
  const auto says = [&reason](const char* words) { return reason.find(words) != std::string::npos; };
  if (says("above its limit of")) return Cause::kLimit;
  if (says("likely out of memory")) return Cause::kKilled;
  return says("timed out") ? Cause::kTime : Cause::kOther;
}

}  // namespace

void to_json(RecordJson& j, const Stage& stage) { j = name(stage); }
void from_json(const RecordJson& j, Stage& stage) { stage = stage_named(j.get_ref<const std::string&>()); }
void to_json(RecordJson& j, const Cause& cause) { j = name(cause); }
void from_json(const RecordJson& j, Cause& cause) { cause = cause_named(j.get_ref<const std::string&>()); }

void to_json(RecordJson& j, const Failure& v) {
  [[maybe_unused]] const auto& [stage, reason, log_tail, cause] = v;
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_WRITE, stage, reason, log_tail, cause))
}
void from_json(const RecordJson& j, Failure& v) {
  j.get_ref<const RecordJson::object_t&>();
  NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_READ, stage, reason, log_tail))
  v.cause = former_cause(v.reason);
  BAKEOFF_READ(cause)
}

BAKEOFF_RECORD(BatchWait, ns, batches, first_ns, firsts)
BAKEOFF_RECORD(Transfer, of, ns, bytes)
BAKEOFF_RECORD(Burst, ns, steps, late_ns, switches, asked, elapsed_ns, losses, used, wait, lead_steps,
               lead_ns, woken_ns, awake_ns)
BAKEOFF_RECORD(Audit, burst, steps, loss_error, loss_limit, moved_error, moved_limit, differs)
BAKEOFF_RECORD(HostRound, wall_ns, seen, absent, busy, rerun, stretch)
BAKEOFF_RECORD(ParityCheck, what, tensor, error, tolerance, passed)
BAKEOFF_RECORD(Parity, contender, failure, checks, diverges_at, divergence, explanation, losses, loss_limits,
               referee_losses, first_step_cold_ns, effective, versions, proven, reused)
BAKEOFF_RECORD(Trial, contender, heat, node, started, heat_ns, failure, invalid, dropped, behind_leader,
               look_disturbed, confirms, start_ns, import_ns, build_ns, first_step_ns, start_up_ns, cold,
               alone, transfer, warmup_ns, bursts, step_ns, warmup_step_ns, warmup_bursts, steadiness, drift,
               rounds, void_bursts, audits, not_audited, last_loss, user_s, system_s, peak_rss_bytes,
               involuntary_switches, memory, not_sampled, sensors_lost, effective, versions)
BAKEOFF_RECORD(Contender, id, framework, environment, settings, controls, stated, script, own_script,
               compile_ns, compiler)
BAKEOFF_RECORD(Host, name, kernel, cpu, os, cpus, memory_bytes, more)
BAKEOFF_RECORD(FairnessLine, topic, values, differs)
BAKEOFF_RECORD(FairnessDiff, frameworks, lines)
BAKEOFF_RECORD(Manifest, version, bakeoff_version, started, recipe_name, recipe_file, recipe_text,
               workload_text, published_text, weights_sha256, data_sha256, source_sha256, data_description,
               data_rows, host, contenders, not_started, referee_losses, fairness, worker_environment,
               controls, calibration, notes, baseline)

BAKEOFF_KEPT(Parity)

Status check(const Trial& trial, const std::string& where) {
  const auto bursts = static_cast<int64_t>(trial.bursts.size());
  if (trial.heat >= 0 && trial.warmup_bursts >= 0 && trial.warmup_bursts <= bursts) return Done{};
  return Error{.message = fmt::format("heat {}, {} bursts, {} of them warm-up: not possible", trial.heat,
                                      bursts, trial.warmup_bursts),
               .where = where,
               .remedy = "the file is damaged or was edited: start a new run"};
}

namespace {

// Nearly all of a trial's line are its step times, a million of them in a fleet's run, and as JSON values they would
// cost more than everything else of a report. So they are taken out of the line, as the writer wrote them: an empty list
// is left. No text of JSON can hold these letters unescaped, and no other object of a trial has this key. Whatever else
// stands there (signs, fractions, spaces, numbers that do not fit) is left to the parser, which takes it or says what is
// wrong.
std::vector<int64_t> cut_times(std::string& line, const std::string& key) {
  const std::string begins = ",\"" + key + "\":[";
  const size_t found = line.find(begins);
  if (found == std::string::npos) return {};
  const size_t first = found + begins.size();
  const char *at = line.data() + first, *end = line.data() + line.size();
  std::vector<int64_t> times;
  while (at < end && *at >= '1' && *at <= '9') {
    const auto [after, error] = std::from_chars(at, end, times.emplace_back());
    if (error != std::errc() || after == end) return {};
    at = after;
    if (*at == ']') {
      line.erase(first, static_cast<size_t>(at - line.data()) - first);
      return times;
    }
    if (*at++ != ',') return {};
  }
  return {};
}

}  // namespace

template std::string to_json(const Trial&);
template <>
Result<Trial> from_json(std::string_view text, const std::string& where) {
  std::string line(text);
  std::vector<int64_t> steps = cut_times(line, "step_ns"), warm_up = cut_times(line, "warmup_step_ns");
  TRY(Trial trial, record_from<Trial>(line, where, Kept<Trial>::kKey));
  if (!steps.empty()) trial.step_ns = std::move(steps);
  if (!warm_up.empty()) trial.warmup_step_ns = std::move(warm_up);
  CHECK_OK(check(trial, where));
  return trial;
}

namespace {

// A name that cannot lead out of the folder that it is joined with.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

// Whether the last line has no end; false where there is no file.
bool is_torn(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

}  // namespace

std::string to_json(const Manifest& manifest) { return dump(RecordJson(manifest), 1) + "\n"; }

Result<Manifest> manifest_from_json(std::string_view text, const std::string& file) {
  TRY(Manifest manifest, record_from<Manifest>(text, file, "version"));
  if (manifest.version != kRecordVersion) {
    return Error{
        .message = fmt::format("record version {}, this program reads {}", manifest.version, kRecordVersion),
        .where = file,
        .remedy = "use the bakeoff version that wrote it: " + manifest.bakeoff_version};
  }
  if (manifest.not_started.size() != manifest.contenders.size()) {
    return Error{.message = fmt::format("{} contenders, but {} entries of not_started",
                                        manifest.contenders.size(), manifest.not_started.size()),
                 .where = file,
                 .remedy = "the file is damaged: start a new run"};
  }
  std::set<std::string> ids;
  for (size_t i = 0; i < manifest.contenders.size(); ++i) {
    const Contender& contender = manifest.contenders[i];
    const auto damaged = [&](const char* key, const std::string& value, const char* why) {
      return Error{.message = fmt::format("contenders[{}].{} {} {}", i, key, dump(RecordJson(value)), why),
                   .where = file,
                   .remedy = "the file is damaged or was edited: start a new run"};
    };
    if (!contender.script.empty() && !is_plain_file_name(contender.script))
      return damaged("script", contender.script, "is no plain file name");
    if (!ids.insert(contender.id).second) return damaged("id", contender.id, "occurs twice");
  }
  return manifest;
}

Result<RunDirectory> RunDirectory::open(const fs::path& path) {
  if (!fs::exists(path / "run.json")) {
    if (fs::exists(path / "suite.json"))
      return Error{
          .message = fmt::format("'{}' is a suite, no run directory", path.string()),
          .remedy = fmt::format("`bakeoff suite --report {0}` shows it; its runs are the folders in it",
                                path.string())};
    return Error{
        .message = fmt::format("'{}' is no run directory: it has no run.json", path.string()),
        .remedy = "name the folder that `bakeoff run` wrote, for example runs/mnist_cnn-20261121-080000"};
  }
  return RunDirectory(fs::absolute(path));
}

Result<RunDirectory> RunDirectory::create(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code) && !fs::is_empty(path, code)) {
    return Error{
        .message = fmt::format("'{}' already holds something", path.string()),
        .remedy = fmt::format("name another --out, or go on with `bakeoff run --resume {}`", path.string())};
  }
  CHECK_OK(make_folder(path));
  RunDirectory directory(fs::absolute(path));
  CHECK_OK(make_folder(directory.scripts()));
  CHECK_OK(make_folder(directory.logs()));
  return directory;
}

Status RunDirectory::lock() {
  if (::access(path_.c_str(), W_OK) != 0)
    return Error{.message = fmt::format("cannot write into '{}'", path_.string()),
                 .remedy = "check its permissions and the free space"};
  auto taken = FileLock::attempt(path_ / "lock");
  if (!taken)
    return Error{
        .message = fmt::format("another run is writing into '{}'", path_.string()),
        .remedy = fmt::format("wait for it, or name another folder with --out ({})", taken.error().message)};
  lock_ = std::make_shared<const FileLock>(std::move(taken).value());
  return Done{};
}

Status RunDirectory::write(const Manifest& manifest) const {
  return write_file(path_ / "run.json", to_json(manifest));
}
Result<Manifest> RunDirectory::manifest() const {
  const fs::path file = path_ / "run.json";
  TRY(const std::string text, read_regular_file(file));
  return manifest_from_json(text, file.string());
}
Result<std::optional<std::string>> RunDirectory::script(const std::string& name) const {
  if (!is_plain_file_name(name)) return std::optional<std::string>();
  for (const fs::path& path : {scripts(), scripts() / name}) {
    if (!fs::exists(fs::symlink_status(path))) return std::optional<std::string>();
    if (path == scripts() && fs::is_symlink(path)) {
      return Error{.message = "a link, no folder",
                   .where = path.string(),
                   .remedy = "a run directory holds its files itself: put the folder in its place"};
    }
  }
  TRY(std::string text, read_regular_file(scripts() / name));
  return std::optional(std::move(text));
}

// Drops a torn last line first, so that the next record starts a line of its own. Of a file that is not torn
// only the last byte is read.
Status RunDirectory::append_to(const char* file, const std::string& line) const {
  const fs::path path = path_ / file;
  if (fs::exists(fs::symlink_status(path)) && !fs::is_regular_file(fs::symlink_status(path)))
    return Error{.message = "cannot be added to: it is a link or no file",
                 .where = path.string(),
                 .remedy = "a run directory holds its files itself: put the file in its place"};
  if (is_torn(path)) {
    TRY(const std::string text, read_regular_file(path));
    CHECK_OK(write_file(path, std::string_view(text).substr(0, text.rfind('\n') + 1)));
  }
  return append_line(path, line);
}

Status RunDirectory::each_line(
    const char* file,
    const std::function<Status(std::string_view line, const std::string& where)>& take) const {
  const fs::path path = path_ / file;
  if (!fs::exists(fs::symlink_status(path))) return Done{};
  TRY(const std::string text, read_regular_file(path));
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    CHECK_OK(
        take(std::string_view(text).substr(begin, end - begin), fmt::format("{}:{}", path.string(), line)));
    begin = end + 1;
  }
  return Done{};
}

}  // namespace bakeoff
