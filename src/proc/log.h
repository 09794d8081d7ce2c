#pragma once

// The log of a child: everything that it wrote to stdout and stderr, in order. The guardian process drains
// the pipe continuously (LogDrain) into a file of limited size and into a ring in shared memory. The
// supervisor reads the tail from the ring at any time (LogTail), even after the guardian has ended.

#include <cstdint>
#include <string>
#include <string_view>

#include "proc/fd.h"

namespace bakeoff::proc {

inline constexpr size_t kLogHeaderBytes = 64;  // a u64 count of all bytes so far, then the ring

// The reader's end.
class LogTail {
 public:
  // Makes the shared memory for a tail of `capacity` bytes.
  static Result<LogTail> create(size_t capacity);
  LogTail(LogTail&& other) noexcept;
  LogTail& operator=(LogTail&& other) noexcept;
  ~LogTail();

  int fd() const { return fd_.get(); }
  int64_t total_bytes() const;  // bytes written by the child so far
  std::string text() const;     // its last bytes, valid UTF-8, from the start of a line if it was cut

 private:
  LogTail(UniqueFd fd, void* memory, size_t size) : fd_(std::move(fd)), memory_(memory), size_(size) {}

  UniqueFd fd_;
  void* memory_ = nullptr;
  size_t size_ = 0;
};

// The writer's end, in the guardian. Never fails: a full disk only loses the file.
class LogDrain {
 public:
  // `tail_fd` is LogTail::fd(). `file_fd` < 0: no file. The file gets the first bytes, up to `file_cap`
  // minus the tail; finish() appends the tail; bytes in between are left out.
  LogDrain(int tail_fd, int file_fd, int64_t file_cap);

  void add(std::string_view bytes);
  void finish();

 private:
  char* memory_ = nullptr;
  size_t capacity_ = 0;
  int file_fd_;
  int64_t head_cap_ = 0;
  int64_t total_ = 0;
  int64_t in_file_ = 0;
};

// `bytes` with everything that is not UTF-8, and NUL, replaced by U+FFFD.
std::string valid_utf8(std::string_view bytes);

}  // namespace bakeoff::proc
