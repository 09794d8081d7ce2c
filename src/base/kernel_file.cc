#include "base/kernel_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

namespace bakeoff {
namespace {

// Files whose reader was abandoned and has not returned.
struct Hanging {
  std::mutex mutex;
  std::set<fs::path> files;
};

// Never destroyed: such a reader may come back while the program ends.
Hanging& hanging() {
  static auto* const all = new Hanging;
  return *all;
}

}  // namespace

Result<std::string> read_kernel_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  int code = fd < 0 ? errno : 0;
  struct stat about = {};
  if (fd >= 0 && ::fstat(fd, &about) != 0) code = errno;
  const bool regular = S_ISREG(about.st_mode);
  std::string text;
  char chunk[1 << 12];
  while (code == 0 && regular) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n == 0) break;
    if (n > 0)
      text.append(chunk, static_cast<size_t>(n));
    else if (errno != EINTR)
      code = errno;
  }
  if (fd >= 0) ::close(fd);
  const std::string name = path.filename().string();
  if (code != 0) return Error{.message = fmt::format("{}: {}", name, std::strerror(code))};
  if (!regular) return Error{.message = name + ": it is not a regular file"};
  return text;
}

Result<std::string> read_kernel_file_in_time(const fs::path& path, int64_t patience_ns,
                                             std::function<Result<std::string>(const fs::path&)> read) {
  Hanging& all = hanging();
  const Error late{.message = fmt::format("{}: it did not answer within {:g} s", path.filename().string(),
                                          static_cast<double>(patience_ns) / 1e9)};
  {
    const std::lock_guard lock(all.mutex);
    if (all.files.contains(path)) return late;
  }
  const auto promise = std::make_shared<std::promise<Result<std::string>>>();
  auto answer = promise->get_future();
  std::thread([&all, promise, path, read = std::move(read)] {
    Result<std::string> text = read(path);
    const std::lock_guard lock(all.mutex);
    all.files.erase(path);
    promise->set_value(std::move(text));
  }).detach();
  constexpr auto kReady = std::future_status::ready;
  if (answer.wait_for(std::chrono::nanoseconds(patience_ns)) == kReady) return answer.get();
  const std::lock_guard lock(all.mutex);
  if (answer.wait_for(std::chrono::seconds(0)) == kReady) return answer.get();
  all.files.insert(path);
  return late;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string kernel_line(const fs::path& path) {
  const auto text = read_kernel_file_in_time(path);
  return text ? first_line(*text) : "";
}

}  // namespace bakeoff
