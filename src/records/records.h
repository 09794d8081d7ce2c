#pragma once

// The run directory: where each record lies, and the JSON text of each.
//
//   run.json       Manifest, written once before the first worker starts
//   parity.jsonl   one Parity per line, in the order of the contenders
//   trials.jsonl   one Trial per line, flushed to disk after every heat
//   latency.jsonl  one LatencyTrial per line, if the recipe has [latency]
//   batches.jsonl  one BatchTrial per line, if the recipe has [search]
//   largest.jsonl  one LargestTrial per line, if the recipe has [largest_batch]
//   target.jsonl   one TargetTrial per line, if the recipe has [target]
//   fit.jsonl      one FitTrial per line, if the recipe has [fit]
//   scripts/       the emitted (or copied) scripts, data.safetensors, weights.safetensors: they run alone
//   logs/          what the workers printed
//   report.html
//
// File names in a record are plain names without a folder, and only regular files are read: no record leads
// out of the directory. Files are append-only. A torn last line (the writer was killed) is ignored; any
// other damage is an error that names file and line.

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
  // Opens an existing run, to read it or to continue it.
  static Result<RunDirectory> open(const std::filesystem::path& path);
  // Creates a new run and its folders. Error: the folder holds anything.
  static Result<RunDirectory> create(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path scripts() const { return path_ / "scripts"; }
  std::filesystem::path logs() const { return path_ / "logs"; }

  // Lets one process write at a time: fails, with a remedy, while another process holds the lock. The lock is
  // held until the last copy of this object is destroyed.
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
  // The text of a contender's script; nothing if there is no such file.
  Result<std::optional<std::string>> script(const std::string& name) const;
  Result<std::vector<Parity>> parities() const;
  Result<std::vector<Trial>> trials() const;
  Result<std::vector<LatencyTrial>> latencies() const;       // empty if there is no such file
  Result<std::vector<TargetTrial>> targets() const;          // the same
  Result<std::vector<FitTrial>> fits() const;                // the same
  Result<std::vector<BatchTrial>> batch_trials() const;      // the same
  Result<std::vector<LargestTrial>> largest_trials() const;  // the same

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
  std::shared_ptr<const FileLock> lock_ = {};  // shared by all copies made after lock()
};

}  // namespace bakeoff
