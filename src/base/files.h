#pragma once

// Whole files and folders. Every error names the path and the system's reason.

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bakeoff {

namespace fs = std::filesystem;

// A descriptor to read a file by, for the caller to close. Errors: not a regular file, such as a pipe, a device
// or a folder: a read of those may wait for ever, or never end.
Result<int> open_regular(const fs::path& path);

Result<std::string> read_file(const fs::path& path);

// Reads a file in a folder that another user may have filled. A link could lead out of the folder and a
// pipe would never end, so both are errors.
Result<std::string> read_regular_file(const fs::path& path);

// Writes a temporary file next to `path`, flushes it to disk and renames it: a reader sees the old text or
// the new one, and a full disk leaves the old one. Creates missing parent folders.
Status write_file(const fs::path& path, std::string_view text);

// Digits that nobody else draws, on no machine: numbers of processes are used by several at once.
std::string own_name();

// The same in pieces. Until finish() the old file stays as it is; without it the temporary is removed.
//
//   TRY(FileWriter file, FileWriter::create(path));
//   CHECK_OK(file.append(header));
//   CHECK_OK(file.append(rows));
//   return file.finish();
class FileWriter {
 public:
  static Result<FileWriter> create(const fs::path& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Status append(std::string_view text);
  // Replaces bytes that were appended before.
  Status replace(size_t at, std::string_view text);
  // Flushes to disk and renames.
  Status finish();

 private:
  FileWriter(fs::path path, fs::path temporary, int fd);
  fs::path path_, temporary_;
  int fd_;
};

// Appends `line` and a newline in one write and flushes it to disk.
Status append_line(const fs::path& path, std::string_view line);

// Creates missing parents too. The home below is created with mode 0700, and files are written in it with 0600: it is
// its owner's alone.
Status make_folder(const fs::path& path);

// $BAKEOFF_HOME, else $XDG_DATA_HOME/bakeoff, else ~/.local/share/bakeoff: environments, data, unpacked
// runner.
fs::path bakeoff_home();

}  // namespace bakeoff
