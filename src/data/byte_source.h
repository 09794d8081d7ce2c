#pragma once

// Bytes that are read from the beginning to the end: of a file, compressed by gzip or not, or of an entry of
// a zip archive.
//
//   TRY(const auto source, open_bytes("train-images-idx3-ubyte.gz", spec.expansion));
//   TRY(const size_t n, source->read(buffer, sizeof buffer));

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace bakeoff {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fewer bytes than `size` are the last ones. Errors name the file: damaged, truncated, unreadable.
  virtual Result<size_t> read(char* to, size_t size) = 0;
};

// What is compressed may become `expansion` times as large, and 256 MiB in any case: a file of 1 MB that holds 1 GB
// of zeros would fill memory and disk. Beyond it the file is refused, with the key that raises it.

// A file; what gzip has compressed is expanded.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path, double expansion);

// The names of the entries of a zip archive.
Result<std::vector<std::string>> zip_entries(const std::filesystem::path& archive);
// An entry. Never gives more bytes than the archive's directory promises, and checks its CRC at the end.
Result<std::unique_ptr<ByteSource>> open_zip_entry(const std::filesystem::path& archive,
                                                   const std::string& entry, double expansion);

}  // namespace bakeoff
