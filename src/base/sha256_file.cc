#include "base/sha256_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/files.h"
#include "base/sha256.h"

namespace bakeoff {

Result<std::string> sha256_file(const std::filesystem::path& path) {
  TRY(const int fd, open_regular(path));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(::fdopen(fd, "rb"), &std::fclose);
  if (!file) return Error{.message = "cannot read '" + path.string() + "': " + std::strerror(errno)};
  Sha256 sum;
  std::string chunk(size_t{1} << 20, '\0');
  while (const size_t n = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    sum.add(std::string_view(chunk).substr(0, n));
  }
  if (std::ferror(file.get()))
    return Error{.message = "cannot read '" + path.string() + "': " + std::strerror(errno)};
  return sum.hex();
}

}  // namespace bakeoff
