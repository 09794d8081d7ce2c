#pragma once

// Bytes that are read from the beginning to the end: of a file, compressed by gzip or not, or of an entry of
// a zip archive.
//
//   TRY(const auto source, open_bytes("train-images-idx3-ubyte.gz"));
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

// A file; what gzip has compressed is expanded.
Result<std::unique_ptr<ByteSource>> open_bytes(const std::filesystem::path& path);

// The names of the entries of a zip archive.
Result<std::vector<std::string>> zip_entries(const std::filesystem::path& archive);
// An entry. Never gives more bytes than the archive's directory promises, and checks its CRC at the end.
Result<std::unique_ptr<ByteSource>> open_zip_entry(const std::filesystem::path& archive,
                                                   const std::string& entry);

}  // namespace bakeoff
