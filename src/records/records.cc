#include "records/records.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "base/files.h"

namespace nlohmann {
template <typename T>
struct adl_serializer<std::optional<T>> {
  static void to_json(ordered_json& j, const std::optional<T>& value) {
    if (value)
      j = *value;
    else
      j = nullptr;
  }
  static void from_json(const ordered_json& j, std::optional<T>& value) {
    if (j.is_null())
      value.reset();
    else
      value = j.get<T>();
  }
};
}  // namespace nlohmann

namespace bakeoff {

using Json = nlohmann::ordered_json;

// A number that does not fit into the integer that it is read into is an error, never another number.
template <typename T>
static void read_value(const Json& j, T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!j.is_number_integer() ||
        (j.is_number_unsigned() ? !std::in_range<T>(j.get<uint64_t>()) : !std::in_range<T>(j.get<int64_t>())))
      throw Json::other_error::create(500, "no integer of its range: " + j.dump().substr(0, 40), &j);
  }
  j.get_to(value);
}

template <typename T>
requires std::is_integral_v<T>
static void read_value(const Json& j, std::vector<T>& values) {
  values.clear();
  for (const Json& each : j.get_ref<const Json::array_t&>()) read_value(each, values.emplace_back());
}

// NLOHMANN_DEFINE_TYPE_... for ordered_json: every field is written; a missing one keeps its default.
#define BAKEOFF_WRITE(field) j[#field] = v.field;
#define BAKEOFF_READ(field) \
  if (const auto it = j.find(#field); it != j.end()) read_value(*it, v.field);
#define BAKEOFF_RECORD(Type, ...)                                                            \
  static void to_json(Json& j, const Type& v) {                                              \
    [[maybe_unused]] const auto& [__VA_ARGS__] = v; /* compiles where no field is missing */ \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_WRITE, __VA_ARGS__))                    \
  }                                                                                          \
  static void from_json(const Json& j, Type& v) {                                            \
    j.get_ref<const Json::object_t&>(); /* throws where it is no object */                   \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_READ, __VA_ARGS__))                     \
  }

BAKEOFF_RECORD(Failure, stage, reason, log_tail)
BAKEOFF_RECORD(BatchWait, ns, batches, first_ns, firsts)
BAKEOFF_RECORD(Transfer, of, ns, bytes)
BAKEOFF_RECORD(Burst, ns, steps, late_ns, switches, asked, went_by_ns, losses, used, wait, lead_steps,
               lead_ns)
BAKEOFF_RECORD(Audit, burst, steps, loss_error, loss_limit, moved_error, moved_limit, differs)
BAKEOFF_RECORD(HostRound, wall_ns, seen, absent, busy, rerun, stretch)
BAKEOFF_RECORD(ParityCheck, what, tensor, error, tolerance, passed)
BAKEOFF_RECORD(Parity, contender, failure, checks, diverges_at, divergence, explanation, losses,
               referee_losses, first_step_cold_ns, effective, versions, proven, reused)
BAKEOFF_RECORD(Trial, contender, heat, started, failure, invalid, dropped, behind_leader, look_disturbed,
               confirms, start_ns, import_ns, build_ns, first_step_ns, start_up_ns, cold, alone, transfer,
               warmup_ns, bursts, step_ns, warmup_step_ns, warmup_bursts, steadiness, drift, rounds,
               void_bursts, audits, last_loss, user_s, system_s, peak_rss_bytes, involuntary_switches, memory,
               not_sampled, sensors_lost, effective, versions)
BAKEOFF_RECORD(BatchTrial, batch, trial)
BAKEOFF_RECORD(LargestTrial, contender, batch, started, limit_bytes, failure, peak_bytes, on_gpu)
BAKEOFF_RECORD(TargetLook, steps, ns, loss, accuracy)
BAKEOFF_RECORD(TargetTrial, contender, seed, started, failure, start_up_ns, looks, reached, rounds, effective)
BAKEOFF_RECORD(FitTrial, contender, seed, started, failure, start_up_ns, stretches, rounds, on_trained,
               on_held, effective)
BAKEOFF_RECORD(LatencyTrial, contender, round, rate, started, failure, arrival_ns, start_ns, end_ns, ns,
               went_by_ns, step_ms, host, effective)
BAKEOFF_RECORD(Contender, id, framework, environment, settings, controls, stated, script, own_script,
               compile_ns, compiler)
BAKEOFF_RECORD(Host, name, kernel, cpu, os, cpus, memory_bytes, more)
BAKEOFF_RECORD(FairnessLine, topic, values, differs)
BAKEOFF_RECORD(FairnessDiff, frameworks, lines)
BAKEOFF_RECORD(Manifest, version, bakeoff_version, started, recipe_name, recipe_file, recipe_text,
               workload_text, published_text, weights_sha256, data_sha256, text_sha256, data_description,
               data_rows, host, contenders, not_started, referee_losses, fairness, worker_environment,
               controls, calibration, notes)

namespace {

// JSON has no infinities; an error that is not finite is stored as the largest number.
double finite(double value) { return std::isfinite(value) ? value : 1e308; }

// `key` is one that no record of this kind lacks.
template <typename T>
Result<T> record_from(std::string_view text, const std::string& where, const char* key) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object() || !json.contains(key)) {
    return Error{
        .message = "not a JSON record", .where = where, .remedy = "the file is damaged: start a new run"};
  }
  try {
    return json.get<T>();
  } catch (const nlohmann::json::exception& e) {
    return Error{.message = std::string("unexpected record: ") + e.what(),
                 .where = where,
                 .remedy = "the file is damaged or from another version"};
  }
}

// A name that cannot lead out of the folder that it is joined with.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

// All lines of a file but a torn last one.
template <typename T>
Result<std::vector<T>> read_lines(const fs::path& path,
                                  Result<T> (*parse)(std::string_view, const std::string&)) {
  std::vector<T> records;
  if (!fs::exists(fs::symlink_status(path))) return records;
  TRY(const std::string text, read_regular_file(path));
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    TRY(T record,
        parse(std::string_view(text).substr(begin, end - begin), fmt::format("{}:{}", path.string(), line)));
    records.push_back(std::move(record));
    begin = end + 1;
  }
  return records;
}

// Whether the last line has no end; false where there is no file.
bool is_torn(const fs::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

// Before appending: drops a torn last line, so that the next record starts a line of its own. Of a whole file
// only the last byte is read.
Status append_record(const fs::path& path, const std::string& line) {
  if (is_torn(path)) {
    TRY(const std::string text, read_file(path));
    CHECK_OK(write_file(path, std::string_view(text).substr(0, text.rfind('\n') + 1)));
  }
  return append_line(path, line);
}

// Counts that no race writes. What a worker said of itself is data, whatever it is.
Status check(const Trial& trial, const std::string& where) {
  const auto bursts = static_cast<int64_t>(trial.bursts.size());
  if (trial.heat >= 0 && trial.warmup_bursts >= 0 && trial.warmup_bursts <= bursts) return Done{};
  return Error{.message = fmt::format("heat {}, {} bursts, {} of them warm-up: not possible", trial.heat,
                                      bursts, trial.warmup_bursts),
               .where = where,
               .remedy = "the file is damaged or was edited: start a new run"};
}

std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Manifest copy = manifest;
  for (double& loss : copy.referee_losses) loss = finite(loss);
  return dump(Json(copy), 1) + "\n";
}

std::string to_json(const Parity& parity) {
  Parity copy = parity;
  copy.divergence = finite(copy.divergence);
  for (ParityCheck& check : copy.checks) check.error = finite(check.error);
  for (double& loss : copy.losses) loss = finite(loss);
  return dump(Json(copy));
}

std::string to_json(const Trial& trial) {
  Trial copy = trial;
  if (copy.last_loss && !std::isfinite(*copy.last_loss)) copy.last_loss.reset();
  for (Audit& audit : copy.audits) {
    audit.loss_error = finite(audit.loss_error), audit.loss_limit = finite(audit.loss_limit);
    audit.moved_error = finite(audit.moved_error), audit.moved_limit = finite(audit.moved_limit);
  }
  return dump(Json(copy));
}

std::string to_json(const TargetTrial& trial) {
  TargetTrial copy = trial;
  for (TargetLook& look : copy.looks) look.loss = finite(look.loss);
  return dump(Json(copy));
}

std::string to_json(const FitTrial& trial) {
  FitTrial copy = trial;
  for (auto* look : {&copy.on_trained, &copy.on_held}) {
    if (*look) (*look)->loss = finite((*look)->loss);
  }
  return dump(Json(copy));
}

std::string to_json(const BatchTrial& trial) {
  BatchTrial copy = trial;
  if (copy.trial.last_loss && !std::isfinite(*copy.trial.last_loss)) copy.trial.last_loss.reset();
  return dump(Json(copy));
}

std::string to_json(const LargestTrial& trial) { return dump(Json(trial)); }

std::string to_json(const LatencyTrial& trial) { return dump(Json(trial)); }

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
      return Error{.message = fmt::format("contenders[{}].{} {} {}", i, key, dump(Json(value)), why),
                   .where = file,
                   .remedy = "the file is damaged or was edited: start a new run"};
    };
    if (!contender.script.empty() && !is_plain_file_name(contender.script))
      return damaged("script", contender.script, "is no plain file name");
    if (!ids.insert(contender.id).second) return damaged("id", contender.id, "occurs twice");
  }
  return manifest;
}
Result<Parity> parity_from_json(std::string_view text, const std::string& where) {
  return record_from<Parity>(text, where, "contender");
}
Result<Trial> trial_from_json(std::string_view text, const std::string& where) {
  TRY(Trial trial, record_from<Trial>(text, where, "contender"));
  CHECK_OK(check(trial, where));
  return trial;
}

Result<LatencyTrial> latency_from_json(std::string_view text, const std::string& where) {
  return record_from<LatencyTrial>(text, where, "contender");
}

Result<TargetTrial> target_from_json(std::string_view text, const std::string& where) {
  return record_from<TargetTrial>(text, where, "contender");
}

Result<FitTrial> fit_from_json(std::string_view text, const std::string& where) {
  return record_from<FitTrial>(text, where, "contender");
}

Result<BatchTrial> batch_trial_from_json(std::string_view text, const std::string& where) {
  TRY(BatchTrial batch, record_from<BatchTrial>(text, where, "batch"));
  CHECK_OK(check(batch.trial, where));
  return batch;
}

Result<LargestTrial> largest_trial_from_json(std::string_view text, const std::string& where) {
  return record_from<LargestTrial>(text, where, "batch");
}

Result<RunDirectory> RunDirectory::open(const fs::path& path) {
  if (!fs::exists(path / "run.json")) {
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
Status RunDirectory::append(const Parity& parity) const {
  return append_record(path_ / "parity.jsonl", to_json(parity));
}
Status RunDirectory::append(const Trial& trial) const {
  return append_record(path_ / "trials.jsonl", to_json(trial));
}

Status RunDirectory::append(const LatencyTrial& trial) const {
  return append_record(path_ / "latency.jsonl", to_json(trial));
}

Status RunDirectory::append(const TargetTrial& trial) const {
  return append_record(path_ / "target.jsonl", to_json(trial));
}
Status RunDirectory::append(const FitTrial& trial) const {
  return append_record(path_ / "fit.jsonl", to_json(trial));
}
Status RunDirectory::append(const BatchTrial& trial) const {
  return append_record(path_ / "batches.jsonl", to_json(trial));
}
Status RunDirectory::append(const LargestTrial& trial) const {
  return append_record(path_ / "largest.jsonl", to_json(trial));
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
Result<std::vector<Parity>> RunDirectory::parities() const {
  return read_lines<Parity>(path_ / "parity.jsonl", parity_from_json);
}
Result<std::vector<Trial>> RunDirectory::trials() const {
  return read_lines<Trial>(path_ / "trials.jsonl", trial_from_json);
}
Result<std::vector<TargetTrial>> RunDirectory::targets() const {
  return read_lines<TargetTrial>(path_ / "target.jsonl", target_from_json);
}
Result<std::vector<FitTrial>> RunDirectory::fits() const {
  return read_lines<FitTrial>(path_ / "fit.jsonl", fit_from_json);
}
Result<std::vector<BatchTrial>> RunDirectory::batch_trials() const {
  return read_lines<BatchTrial>(path_ / "batches.jsonl", batch_trial_from_json);
}
Result<std::vector<LargestTrial>> RunDirectory::largest_trials() const {
  return read_lines<LargestTrial>(path_ / "largest.jsonl", largest_trial_from_json);
}
Result<std::vector<LatencyTrial>> RunDirectory::latencies() const {
  return read_lines<LatencyTrial>(path_ / "latency.jsonl", latency_from_json);
}

}  // namespace bakeoff
