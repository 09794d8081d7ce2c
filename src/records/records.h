#pragma once

// The run directory: JSON text of the records, and where each lies.
//
//   run.json       Manifest, written once before the first worker starts
//   parity.jsonl   one Parity a line, in order of contenders
//   trials.jsonl   one Trial a line, flushed to disk after every heat
//   fit.jsonl ...  one record of a study a line, where the recipe asks for it (study/study.h)
//   scripts/       the emitted (or copied) scripts, data.safetensors, weights.safetensors: they run alone
//   logs/          what the workers printed
//   report.html
//
//   CHECK_OK(directory.append(trial));
//   TRY(const std::vector<Trial> trials, directory.read<Trial>());
//
// Names in a record are plain file names, and files that are read are regular ones: nothing leads out of the
// directory. Files are append-only; a torn last line (killed writer) is ignored, any other damage is an error
// naming file and line.

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
  Result<Manifest> manifest() const;
  // The text of a contender's script; none where there is no such file.
  Result<std::optional<std::string>> script(const std::string& name) const;

  template <IsKept R>
  Status append(const R& record) const {
    return append_to(Kept<R>::kFile, to_json(record));
  }
  // None where there is no such file.
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
  // All lines of a file but a torn last one; `where` is file and line.
  Status each_line(const char* file,
                   const std::function<Status(std::string_view line, const std::string& where)>& take) const;
  std::filesystem::path path_;
  std::shared_ptr<const FileLock> lock_ = {};  // with all copies that were made since it was taken
};

}  // namespace bakeoff
