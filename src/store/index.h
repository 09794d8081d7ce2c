#pragma once

// The index: what is known of all runs, in a database. Run directories are the truth, and all of it can be made
// again from them.
//
//   TRY(Index index, Index::open(bakeoff_home(), database_url()));
//   CHECK_OK(index.put(runs));
//   TRY(auto lines, index.lines());

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"
#include "store/indexed_run.h"

namespace bakeoff::store {

// A row of `bakeoff store list`.
struct ListedRun {
  std::string id = {}, directory = {}, started = {}, host = {}, recipe = {}, outcome = {}, commit = {};
  std::string bakeoff_version = {}, note = {};
  int64_t contenders = 0;
  bool operator==(const ListedRun&) const = default;
};

// A directory that looked like a run and could not be read.
struct Skipped {
  std::string directory = {}, reason = {}, seen = {};
  bool operator==(const Skipped&) const = default;
};

// A contender on a class of machines under unchanged conditions but for versions of packages.
struct Line {
  std::string id = {}, name = {}, recipe = {}, contender = {}, framework = {}, machine = {}, measured = {};
  int64_t runs = 0, series = 0;
  std::string first = {}, latest = {};
  bool operator==(const Line&) const = default;
};

// A point of a line's history.
struct LinePoint {
  std::string run = {}, started = {}, series = {};
  double seconds = 0;
  std::optional<double> low = {}, high = {};
  std::string verdict = {}, host = {}, commit = {}, branch = {}, bakeoff_version = {}, script = {};
  bool dirty = false;
  std::string packages = {}, directory = {}, note = {};
  std::optional<std::string> accepted = {};  // the note of an accepted step that begins here
  bool operator==(const LinePoint&) const = default;
};

struct Tally {
  int64_t runs = 0, results = 0, series = 0, skipped = 0;
};

class Index {
 public:
  // The database `url` names, or where it is empty index.sqlite in `home`. `stop`: ends a wait for other processes.
  static Result<Index> open(
      const std::filesystem::path& home, const std::string& url,
      std::function<bool()> stop = [] { return false; });

  // Adds runs, or replaces what was known of the same run and of the same directory. One transaction. Returns how
  // many were left out as copies: the index has the run from another directory, which is still there.
  Result<int64_t> put(std::span<const IndexedRun> runs);
  Status skip(std::span<const Skipped> skipped);
  // Forgets runs and skipped directories by directory.
  Status forget(std::span<const std::string> directories);

  // The stamp of every indexed directory.
  Result<std::map<std::string, std::string>> stamps();
  Result<std::vector<ListedRun>> runs(int64_t most);  // latest first
  Result<std::vector<Skipped>> skipped(int64_t most);
  Result<Tally> tally();
  Result<std::vector<Line>> lines();
  // The latest `most`, oldest first.
  Result<std::vector<LinePoint>> points(const std::string& line, int64_t most);
  // The run of this host with the latest start, where that is after `utc`: the clock was set back since.
  Result<std::optional<ListedRun>> later_run(const std::string& host, const std::string& utc);

  std::string where() const { return database_->where(); }

 private:
  explicit Index(std::unique_ptr<Database> database);
  Status put_run(const IndexedRun& run, const std::string& now);
  Status put_result(const IndexedRun& run, const Indexed& result);
  Status remove(const Found& runs);
  Status remove_directory(const std::string& directory);
  Result<bool> is_copy(const IndexedRun& run);
  Status recount();

  std::unique_ptr<Database> database_;
  std::string kept_on_;  // of a shared database this machine's name, to which its directories belong
  // Of the transaction at hand: series with new runs, and series that must be counted again.
  struct Counted {
    int64_t runs = 0;
    std::string first = {}, latest = {};
  };
  std::map<std::string, Counted> added_ = {};
  std::map<std::string, bool> again_ = {};
};

// $BAKEOFF_DB; empty if not set. Error: it is no address of PostgreSQL.
Result<std::string> database_url();
// index.sqlite of a home.
std::filesystem::path index_file(const std::filesystem::path& home);

}  // namespace bakeoff::store
