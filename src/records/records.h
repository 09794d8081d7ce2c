#pragma once

// The run directory: JSON text of the records, and where each lies.
//
//   run.json       Manifest, written once before the first worker starts
//   parity.jsonl   one Parity a line, in order of contenders
//   trials.jsonl   one Trial a line, flushed to disk after every heat
//   latency.jsonl  one LatencyTrial a line, where the recipe asks for latencies
//   batches.jsonl  one BatchTrial a line, where the recipe asks for a search
//   largest.jsonl  one LargestTrial a line, where the recipe asks for the largest batch
//   target.jsonl   one TargetTrial a line, where the recipe states a target
//   fit.jsonl      one FitTrial a line, where the recipe asks for whole trainings
//   scripts/       the emitted (or copied) scripts, data.safetensors, weights.safetensors: they run alone
//   logs/          what the workers printed
//   report.html
//
// Names in a record are plain file names, and files that are read are regular ones: nothing leads out of the
// directory. Files are append-only; a torn last line (killed writer) is ignored, any other damage is an error
// naming file and line.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_lock.h"
#include "base/result.h"
#include "records/batch_trial.h"
#include "records/fit_trial.h"
#include "records/largest_trial.h"
#include "records/latency_trial.h"
#include "records/target_trial.h"
#include "records/trial.h"

namespace bakeoff {

std::string to_json(const TargetTrial&);  // one line
std::string to_json(const FitTrial&);     // one line
std::string to_json(const Manifest&);
std::string to_json(const Parity&);        // one line
std::string to_json(const Trial&);         // one line
std::string to_json(const LatencyTrial&);  // one line
std::string to_json(const BatchTrial&);    // one line
std::string to_json(const LargestTrial&);  // one line
Result<Manifest> manifest_from_json(std::string_view text, const std::string& file);
Result<Parity> parity_from_json(std::string_view text, const std::string& where);
Result<Trial> trial_from_json(std::string_view text, const std::string& where);
Result<LatencyTrial> latency_from_json(std::string_view text, const std::string& where);
Result<TargetTrial> target_from_json(std::string_view text, const std::string& where);
Result<FitTrial> fit_from_json(std::string_view text, const std::string& where);
Result<BatchTrial> batch_trial_from_json(std::string_view text, const std::string& where);
Result<LargestTrial> largest_trial_from_json(std::string_view text, const std::string& where);

class RunDirectory {
 public:
  // For reading, and to go on with.
  static Result<RunDirectory> open(const std::filesystem::path& path);
  // A new one: refuses a folder that holds anything. Writes run.json.
  static Result<RunDirectory> create(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path scripts() const { return path_ / "scripts"; }
  std::filesystem::path logs() const { return path_ / "logs"; }

  // One writer at a time: fails, naming the remedy, while another process holds the lock. Held until the last
  // copy of this object is gone.
  Status lock();

  Status write(const Manifest& manifest) const;
  Status append(const Parity& parity) const;
  Status append(const Trial& trial) const;
  Status append(const LatencyTrial& trial) const;
  Status append(const BatchTrial& trial) const;
  Status append(const LargestTrial& trial) const;
  Status append(const TargetTrial& trial) const;
  Status append(const FitTrial& trial) const;
  Result<Manifest> manifest() const;
  // The text of a contender's script; none where there is no such file.
  Result<std::optional<std::string>> script(const std::string& name) const;
  Result<std::vector<Parity>> parities() const;
  Result<std::vector<Trial>> trials() const;
  Result<std::vector<LatencyTrial>> latencies() const;       // none where there is no such file
  Result<std::vector<TargetTrial>> targets() const;          // the same
  Result<std::vector<FitTrial>> fits() const;                // the same
  Result<std::vector<BatchTrial>> batch_trials() const;      // the same
  Result<std::vector<LargestTrial>> largest_trials() const;  // the same

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::shared_ptr<const FileLock> lock_ = {};  // with all copies that were made since it was taken
};

}  // namespace bakeoff
