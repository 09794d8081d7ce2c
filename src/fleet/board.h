#pragma once

// The folder fleet/ of a run directory, which all machines see: the only thing that they share.
//
//   fleet.json                    Settings
//   blocks/00012/order.json       HeatOrder
//   blocks/00012/result.json      BlockResult: the block is settled
//   blocks/00012/failed-NAME.json FailedAttempt
//   blocks/00012/taken-3          an attempt of job 3 has begun; its text is the node
//   jobs/3.json                   Job
//   checks/NODE/HASH-sound.json   Check of a contender; or HASH-differs.json
//   logs/                         what attempts printed
//
// No process waits for another one, and none asks who is there. What must happen once rests on one promise of file
// systems, those of networks too: of several links to the same new name, one is made. So a block that two attempts
// finish has the result of the first, for ever; a late one changes nothing. Files are written beside their place,
// flushed and renamed: a reader sees all of a file or none.

#include <filesystem>
#include <string>
#include <vector>

#include "base/file_lock.h"
#include "base/result.h"
#include "fleet/records.h"
#include "race/heat_order.h"

namespace bakeoff::fleet {

class Board {
 public:
  // Errors: the run is no fleet's, or its settings are damaged.
  static Result<Board> open(const std::filesystem::path& run);
  // Makes the folder in a new run.
  static Result<Board> create(const std::filesystem::path& run, const Settings& settings);
  // One that is not made: for an engine that is asked before there is a run.
  Board(const std::filesystem::path& run, Settings settings);

  const std::filesystem::path& run() const { return run_; }
  const Settings& settings() const { return settings_; }
  std::filesystem::path logs() const { return folder_ / "logs"; }

  // Numbers of all blocks, ascending.
  Result<std::vector<int>> blocks() const;
  Status write(const HeatOrder& order) const;
  Result<HeatOrder> order(int block) const;
  std::filesystem::path order_file(int block) const { return block_folder(block) / "order.json"; }

  bool settled(int block) const;
  // Settles the block unless it is; false: it was, by another attempt.
  Result<bool> settle(const BlockResult& result) const;
  // Error: the file is damaged. set_aside() then lets the block run again.
  Result<BlockResult> result(int block) const;
  Status set_aside(int block) const;

  Status write(const FailedAttempt& failed, const std::string& attempt) const;
  std::vector<FailedAttempt> failures(int block) const;

  // For an attempt of a job whose processes share its blocks: false if another one has taken this block.
  Result<bool> take(int block, int job, const std::string& node) const;
  // The node of the attempt of this job; empty: none has begun.
  std::string taken_by(int block, int job) const;

  Status write(const Check& check) const;  // once for each node, contender and outcome
  std::vector<Check> checks() const;

  Status write(const Job& job) const;
  Result<std::vector<Job>> jobs() const;  // by number

  // Settings name commands that engines run. A folder that somebody sent must not run any, so `plan` notes in the bakeoff
  // home which settings are ours, and verbs that ask an engine want that note.
  Status note_ours() const;
  Status check_ours() const;

  // Held by the one process that plans and submits. Error: another one does, or is about to.
  Result<FileLock> lock() const;

 private:
  std::filesystem::path block_folder(int block) const;
  std::filesystem::path run_, folder_;
  Settings settings_;
};

}  // namespace bakeoff::fleet
