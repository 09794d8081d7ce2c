#include "proc/ring.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "proc/fd.h"

namespace bakeoff::proc {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_size;
  uint64_t capacity;
  uint64_t count;
  uint64_t reserved[4];
};
static_assert(sizeof(Header) == 64);

size_t file_size(int64_t capacity) {
  return sizeof(Header) + sizeof(int64_t) * static_cast<size_t>(capacity);
}

uint64_t load_count(void* memory) {
  return std::atomic_ref<uint64_t>(static_cast<Header*>(memory)->count).load(std::memory_order_acquire);
}

}  // namespace

Result<MarkRing> MarkRing::create(const std::filesystem::path& path, int64_t capacity) {
  const std::string what = fmt::format("cannot make the ring of step marks '{}'", path.string());
  if (capacity < 1) return Error{.message = what + ": no capacity"};
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return system_error(what, errno);
  // posix_fallocate and not ftruncate: a full disk is an error now rather than a SIGBUS later.
  const int code = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(file_size(capacity)));
  void* memory = MAP_FAILED;
  if (code == 0) {
    memory = ::mmap(nullptr, file_size(capacity), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  }
  if (memory == MAP_FAILED) {
    const Error error = system_error(what, code == 0 ? errno : code);
    ::unlink(path.c_str());
    return error;
  }
  auto* header = new (memory) Header{.magic = {'B', 'K', 'O', 'F', 'R', 'I', 'N', 'G'},
                                     .version = 1,
                                     .header_size = sizeof(Header),
                                     .capacity = static_cast<uint64_t>(capacity),
                                     .count = 0,
                                     .reserved = {}};
  return MarkRing(path, header, capacity);
}

MarkRing::MarkRing(MarkRing&& other) noexcept
    : path_(std::move(other.path_)),
      memory_(std::exchange(other.memory_, nullptr)),
      capacity_(other.capacity_) {}

MarkRing& MarkRing::operator=(MarkRing&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(memory_, other.memory_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

MarkRing::~MarkRing() {
  if (memory_ == nullptr) return;
  ::munmap(memory_, file_size(capacity_));
  unlink();
}

void MarkRing::unlink() {
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

int64_t MarkRing::count() const { return static_cast<int64_t>(load_count(memory_)); }

Marks MarkRing::since(int64_t first) const {
  int64_t* slots = reinterpret_cast<int64_t*>(static_cast<char*>(memory_) + sizeof(Header));
  const int64_t end = count();
  Marks marks{.first = std::max({first, end + 1 - capacity_, int64_t{0}}), .ns = {}};
  for (int64_t number = marks.first; number < end; ++number) {
    marks.ns.push_back(std::atomic_ref<int64_t>(slots[number % capacity_]).load(std::memory_order_acquire));
  }
  // What was written meanwhile has overwritten the oldest, and so may have the mark being written now.
  const int64_t lost =
      std::clamp<int64_t>(count() + 1 - capacity_ - marks.first, 0, static_cast<int64_t>(marks.ns.size()));
  marks.ns.erase(marks.ns.begin(), marks.ns.begin() + lost);
  marks.first += lost;
  return marks;
}

}  // namespace bakeoff::proc
