#include "data/byte_source.h"

#include <fmt/format.h>
#include <minizip/unzip.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadAtOnce = size_t{1} << 20;

Error damaged_file(const fs::path& path, const std::string& what) {
  return {.message = fmt::format("'{}' {}", path.string(), what),
          .remedy = "it is truncated or damaged: make it or get it again"};
}

constexpr double kAlwaysExpanded = 256.0 * (1 << 20);  // bytes

// `what`: the file, or an array of an archive.
Status check_expansion(const std::string& what, double bytes, double compressed, double most) {
  if (bytes <= kAlwaysExpanded || bytes <= most * compressed) return Done{};
  return Error{.message = fmt::format("{} expands to more than {:.0f} times its size, to {:.0f} MiB or more",
                                      what, most, bytes / (1 << 20)),
               .remedy = fmt::format("if it is meant to, raise data.expansion, which is {:.0f}", most)};
}

// zlib reads files that are not compressed as they are.
class GzipSource : public ByteSource {
 public:
  GzipSource(fs::path path, gzFile file, double expansion)
      : path_(std::move(path)), file_(file), expansion_(expansion) {}
  ~GzipSource() override { gzclose_r(file_); }
  Result<size_t> read(char* to, size_t size) override {
    size_t done = 0;
    while (done < size) {
      const int n = gzread(file_, to + done, static_cast<unsigned>(std::min(kReadAtOnce, size - done)));
      int code = Z_OK;
      const char* what = gzerror(file_, &code);
      if (n < 0 || (code != Z_OK && code != Z_STREAM_END))
        return damaged_file(path_,
                            fmt::format("cannot be read: {}", code == Z_ERRNO ? std::strerror(errno) : what));
      if (n == 0) break;
      done += static_cast<size_t>(n);
      expanded_ += n;
      CHECK_OK(check_expansion(fmt::format("'{}'", path_.string()), expanded_,
                               static_cast<double>(std::max<int64_t>(1, gzoffset(file_))), expansion_));
    }
    return done;
  }

 private:
  fs::path path_;
  gzFile file_;
  double expansion_, expanded_ = 0;  // bytes
};

using Zip = std::unique_ptr<void, int (*)(unzFile)>;

Result<Zip> open_zip(const fs::path& path) {
  std::error_code code;
  if (!fs::is_regular_file(path, code))
    return Error{.message = fmt::format("there is no file '{}'", path.string()), .remedy = "check the path"};
  Zip zip(unzOpen64(path.c_str()), &unzClose);
  if (!zip) return damaged_file(path, "is no whole zip archive, which an npz file is");
  return zip;
}

class ZipEntry : public ByteSource {
 public:
  ZipEntry(fs::path path, std::string entry, Zip zip, uint64_t size)
      : path_(std::move(path)), entry_(std::move(entry)), zip_(std::move(zip)), left_(size) {}
  Result<size_t> read(char* to, size_t size) override {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(size, left_));
    for (size_t done = 0; done < wanted;) {
      const int n = unzReadCurrentFile(zip_.get(), to + done,
                                       static_cast<unsigned>(std::min(kReadAtOnce, wanted - done)));
      if (n <= 0) return damaged_file(path_, fmt::format("has the damaged array '{}'", entry_));
      done += static_cast<size_t>(n);
      left_ -= static_cast<uint64_t>(n);
    }
    if (left_ == 0 && !checked_) {
      checked_ = true;
      if (unzCloseCurrentFile(zip_.get()) == UNZ_CRCERROR)
        return damaged_file(path_, fmt::format("has the damaged array '{}': its checksum differs", entry_));
    }
    return wanted;
  }

 private:
  fs::path path_;
  std::string entry_;
  Zip zip_;
  uint64_t left_;
  bool checked_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_bytes(const fs::path& path, double expansion) {
  std::error_code code;
  if (!fs::exists(path, code)) {
    return Error{.message = fmt::format("there is no file '{}'", path.string()),
                 .remedy = "check the path; in a recipe it is relative to the recipe's folder"};
  }
  TRY(const int fd, open_regular(path));
  const gzFile file = gzdopen(fd, "rb");
  if (file == nullptr)
    return Error{.message = fmt::format("cannot open '{}': {}", path.string(), std::strerror(errno))};
  gzbuffer(file, 1 << 18);
  return std::unique_ptr<ByteSource>(std::make_unique<GzipSource>(path, file, expansion));
}

Result<std::vector<std::string>> zip_entries(const fs::path& archive) {
  TRY(const Zip zip, open_zip(archive));
  std::vector<std::string> names;
  for (int code = unzGoToFirstFile(zip.get()); code == UNZ_OK; code = unzGoToNextFile(zip.get())) {
    char name[1024] = {};
    if (unzGetCurrentFileInfo64(zip.get(), nullptr, name, sizeof name - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
      return damaged_file(archive, "has a damaged directory");
    names.emplace_back(name);
  }
  return names;
}

Result<std::unique_ptr<ByteSource>> open_zip_entry(const fs::path& archive, const std::string& entry,
                                                   double expansion) {
  TRY(Zip zip, open_zip(archive));
  if (unzLocateFile(zip.get(), entry.c_str(), 1) != UNZ_OK)
    return damaged_file(archive, "has no '" + entry + "'");
  unz_file_info64 info = {};
  if (unzGetCurrentFileInfo64(zip.get(), &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK)
    return damaged_file(archive, "has a damaged directory");
  CHECK_OK(check_expansion(fmt::format("'{}': '{}'", archive.string(), entry),
                           static_cast<double>(info.uncompressed_size),
                           static_cast<double>(info.compressed_size), expansion));
  if (unzOpenCurrentFile(zip.get()) != UNZ_OK)
    return damaged_file(archive, fmt::format("keeps '{}' encrypted, or in a way that cannot be read", entry));
  return std::unique_ptr<ByteSource>(
      std::make_unique<ZipEntry>(archive, entry, std::move(zip), info.uncompressed_size));
}

}  // namespace bakeoff
