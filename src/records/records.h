#pragma once

// The run directory: where each record lies, and the JSON text of each.
//
//   run.json       Manifest, written once before the first worker starts
//   parity.jsonl   one Parity per line, in the order in which contenders were proven
//   trials.jsonl   one Trial per line, flushed to disk after every heat
//   fit.jsonl ...  one record of a study per line, if the recipe asks for it (study/study.h)
//   scripts/       the emitted (or copied) scripts, data.safetensors, weights.safetensors: they run alone
//   logs/          what the workers printed
//   report.html
//
//   CHECK_OK(directory.append(trial));
//   TRY(const std::vector<Trial> trials, directory.read<Trial>());
//
// File names in a record are plain names without a folder, and only regular files are read: no record leads
// out of the directory. Files are append-only. A torn last line (the writer was killed) is ignored; any
// other damage is an error that names file and line.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file_lock.h"
#include "base/result.h"
#include "records/kept.h"
#include "records/trial.h"

namespace bakeoff {

std::string to_json(const Manifest&);
Result<Manifest> manifest_from_json(std::string_view text, const std::string& file);

// Where a fleet keeps its blocks in a run directory; it writes trials.jsonl anew from them (fleet/board.h).
inline constexpr const char* kFleetFolder = "fleet";

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
  Result<Manifest> manifest() const;
  // The text of a contender's script; nothing if there is no such file.
  Result<std::optional<std::string>> script(const std::string& name) const;

  template <IsKept R>
  Status append(const R& record) const {
    return append_to(Kept<R>::kFile, to_json(record));
  }
  // Empty if there is no such file.
  template <IsKept R>
  Result<std::vector<R>> read() const {
    std::vector<R> records;
    CHECK_OK(each_line(Kept<R>::kFile, [&](std::string_view line, const std::string& where) -> Status {
      TRY(R record, from_json<R>(line, where));
      records.push_back(std::move(record));
      return Done{};
    }));
    return records;
  }

 private:
  explicit RunDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  Status append_to(const char* file, const std::string& line) const;
  // Takes all lines of a file except a torn last one; `where` is file and line.
  Status each_line(const char* file,
                   const std::function<Status(std::string_view line, const std::string& where)>& take) const;
  std::filesystem::path path_;
  std::shared_ptr<const FileLock> lock_ = {};  // shared by all copies made after lock()
};

}  // namespace bakeoff
