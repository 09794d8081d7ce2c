#pragma once

// What the index keeps of one run, as plain values: rows of its tables (docs/store.md).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "records/marks.h"
#include "records/trial.h"
#include "summary/summary.h"

namespace bakeoff::store {

// What makes two measurements comparable. `line` is the fingerprint without the versions of packages: the series of
// one line follow each other in time, and one history shows them.
struct Series {
  std::string id = {};    // fingerprint: 16 hexadecimal digits
  std::string line = {};  // the same without `packages`
  std::string name = {};  // for people: "mnist_cnn torch[channels_last]"
  std::string recipe = {}, contender = {}, framework = {};
  std::string settings = {};                 // JSON: settings and controls
  std::string workload = {}, training = {};  // hashes
  std::string machine = {};                  // its class: "AMD EPYC, 2 CPUs, 24 GiB"
  std::string packages = {};                 // JSON: versions
  std::string measured = {};                 // "seconds per step: train, equalised, float32"
  bool operator==(const Series&) const = default;
};

// One contender of one run.
struct Indexed {
  Series series = {};
  // Of a step, with the interval of the report's ms/step; absent: it has no time of its own, for `reason`.
  std::optional<double> seconds = {}, low = {}, high = {};
  std::string verdict = {};  // "leader", "materially slower", "undecided", ...; "not ranked"
  int64_t heats = 0;
  std::string reason = {};
  std::string script = {};                    // SHA-256 of its script, 16 digits
  std::optional<AcceptedStep> accepted = {};  // the last mark
  bool operator==(const Indexed&) const = default;
};

struct IndexedRun {
  std::string id = {};         // 26 characters, in the order of time
  std::string directory = {};  // absolute, as stored_path() writes it
  std::string stamp = {};      // sizes and times of its files: equal ones need not be read again
  std::string started = {};    // UTC
  std::string host = {}, machine = {}, bakeoff_version = {};
  std::string commit = {}, branch = {};
  bool dirty = false;
  std::string recipe = {}, recipe_hash = {};
  std::string outcome = {};  // "decided", "undecided", "no verdict", "nothing ranked"
  std::string note = {};     // "the clock was set back during the run"
  std::vector<Indexed> results = {};
  bool operator==(const IndexedRun&) const = default;
};

// From the records of a run. `first_trial`: the first line of trials.jsonl, which with `manifest_text` makes the id.
// `now`: UTC. Error: `started` is no time.
Result<IndexedRun> indexed_run(const Summary& summary, const std::vector<Commit>& commits,
                               const std::vector<AcceptedStep>& accepted, const std::string& manifest_text,
                               const std::string& first_trial, const std::string& now);

// "mnist_cnn torch".
std::string series_name(const std::string& recipe, const std::string& contender);

// The class of a machine: machines of one class are expected to be equally fast. A host's name is no part of it.
std::string machine_class(const Host& host);

// Sorts by time, and is the same for the same content: 10 characters of the time and 16 of the hash, in Crockford's
// base 32 (the layout of a ULID).
std::string run_id(int64_t unix_ms, const std::string& hash);

// Seconds since 1970 of "2026-11-21T08:00:00Z"; nothing for anything else.
std::optional<int64_t> unix_seconds(const std::string& utc);

}  // namespace bakeoff::store
