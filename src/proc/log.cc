#include "proc/log.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace bakeoff::proc {
namespace {

std::atomic_ref<uint64_t> counter_in(void* memory) {
  return std::atomic_ref<uint64_t>(*static_cast<uint64_t*>(memory));
}

// The last bytes of a ring of `capacity` bytes into which `total` bytes went.
std::string last_bytes(const char* ring, size_t capacity, uint64_t total) {
  const size_t size = static_cast<size_t>(std::min<uint64_t>(total, capacity));
  const size_t begin = static_cast<size_t>((total - size) % capacity);
  const size_t first = std::min(size, capacity - begin);
  std::string text(ring + begin, first);
  text.append(ring, size - first);
  return text;
}

// Length of the UTF-8 sequence at the front of `bytes`; 0 if there is none.
size_t sequence_length(std::string_view bytes) {
  const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U; };
  const auto follows = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
    return follows(1) && follows(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool outside = (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) >= 0x90);
    return follows(1) && follows(2) && follows(3) && !outside ? 4 : 0;
  }
  return 0;
}

}  // namespace

Result<LogTail> LogTail::create(size_t capacity) {
  const size_t size = kLogHeaderBytes + std::max<size_t>(capacity, 1);
  TRY(UniqueFd fd, make_memory_file("bakeoff-log", size));
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return system_error("cannot map a log's memory", errno);
  return LogTail(std::move(fd), memory, size);
}

LogTail::LogTail(LogTail&& other) noexcept
    : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, nullptr)), size_(other.size_) {}

LogTail& LogTail::operator=(LogTail&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  std::swap(size_, other.size_);
  return *this;
}

LogTail::~LogTail() {
  if (memory_ != nullptr) ::munmap(memory_, size_);
}

int64_t LogTail::total_bytes() const {
  return static_cast<int64_t>(counter_in(memory_).load(std::memory_order_acquire));
}

std::string LogTail::text() const {
  const size_t capacity = size_ - kLogHeaderBytes;
  const uint64_t total = static_cast<uint64_t>(total_bytes());
  std::string text = last_bytes(static_cast<const char*>(memory_) + kLogHeaderBytes, capacity, total);
  if (total > capacity) {
    const size_t line = text.find('\n');
    if (line != std::string::npos && line + 1 < text.size()) text.erase(0, line + 1);
  }
  return valid_utf8(text);
}

LogDrain::LogDrain(int tail_fd, int file_fd, int64_t file_cap) : file_fd_(file_fd) {
  struct stat info = {};
  if (::fstat(tail_fd, &info) == 0) {
    const size_t size = static_cast<size_t>(info.st_size);
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, tail_fd, 0);
    if (memory != MAP_FAILED) {
      memory_ = static_cast<char*>(memory);
      capacity_ = size - kLogHeaderBytes;
    }
  }
  head_cap_ = std::max<int64_t>(0, file_cap - static_cast<int64_t>(capacity_));
}

void LogDrain::add(std::string_view bytes) {
  if (file_fd_ >= 0 && in_file_ < head_cap_) {
    const size_t room = static_cast<size_t>(head_cap_ - in_file_);
    const std::string_view head = bytes.substr(0, room);
    const ssize_t n = ::write(file_fd_, head.data(), head.size());
    in_file_ = n == static_cast<ssize_t>(head.size()) ? in_file_ + n : head_cap_;
  }
  uint64_t at = static_cast<uint64_t>(total_);
  total_ += static_cast<int64_t>(bytes.size());
  if (memory_ == nullptr) return;
  if (bytes.size() > capacity_) {
    at += bytes.size() - capacity_;
    bytes.remove_prefix(bytes.size() - capacity_);
  }
  const size_t begin = static_cast<size_t>(at % capacity_);
  const size_t first = std::min(bytes.size(), capacity_ - begin);
  char* ring = memory_ + kLogHeaderBytes;
  std::memcpy(ring + begin, bytes.data(), first);
  std::memcpy(ring, bytes.data() + first, bytes.size() - first);
  counter_in(memory_).store(static_cast<uint64_t>(total_), std::memory_order_release);
}

void LogDrain::finish() {
  if (file_fd_ < 0 || memory_ == nullptr || total_ <= head_cap_) return;
  const int64_t missing = total_ - head_cap_;
  const int64_t kept = std::min<int64_t>(missing, static_cast<int64_t>(capacity_));
  std::string end;
  if (missing > kept) end = fmt::format("\n[... {} bytes left out ...]\n", missing - kept);
  const std::string tail = last_bytes(memory_ + kLogHeaderBytes, capacity_, static_cast<uint64_t>(total_));
  end += tail.substr(tail.size() - static_cast<size_t>(kept));
  [[maybe_unused]] const ssize_t n = ::write(file_fd_, end.data(), end.size());
}

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = sequence_length(bytes);
    if (length == 0) {
      text += "\xEF\xBF\xBD";
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(std::max<size_t>(length, 1));
  }
  return text;
}

}  // namespace bakeoff::proc
