#include "environments/runner_files.h"

#include "base/embedded.h"
#include "base/files.h"
#include "base/sha256.h"

namespace bakeoff::embedded {
const std::vector<File>& runner();
}

namespace bakeoff {

Result<fs::path> unpack_runner(const fs::path& home) {
  Sha256 hash;
  for (const embedded::File& file : embedded::runner()) {
    hash.add(file.path);
    hash.add(file.text);
  }
  const fs::path folder = home / "runner" / hash.hex().substr(0, 16);
  for (const embedded::File& file : embedded::runner()) {
    const fs::path path = folder / file.path;
    if (const auto there = read_file(path); there && *there == file.text) continue;
    CHECK_OK(write_file(path, file.text));
  }
  return folder;
}

}  // namespace bakeoff
