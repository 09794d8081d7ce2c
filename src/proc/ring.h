#pragma once

// The ring of step marks: a small file that a worker and its supervisor map into memory. The worker writes
// CLOCK_MONOTONIC nanoseconds at the end of every training step; neither waits for the other.
//
// Layout, little-endian (docs/runner_protocol.md):
//
//   0 magic "BKOFRING" | 8 u32 version 1 | 12 u32 header size 64 | 16 u64 capacity | 24 u64 count
//   64 i64 slots
//
// Mark number k, from 0, is in slot k % capacity; the slot is written before the count.
//
//   TRY(MarkRing ring, MarkRing::create(run_dir / "marks", 1 << 16));
//   const int64_t before = ring.count();
//   ... the worker runs n steps ...
//   std::vector<int64_t> ends = ring.since(before).ns;

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/result.h"

namespace bakeoff::proc {

struct Marks {
  int64_t first = 0;        // number of the first mark in `ns`; larger than requested if older marks are lost
  std::vector<int64_t> ns;  // in the order in which they were written
};

class MarkRing {
 public:
  // Makes the file, which must not exist, with room for `capacity` marks (>= 1). A folder in memory such as
  // /dev/shm avoids disk writes. The destructor removes the file.
  static Result<MarkRing> create(const std::filesystem::path& path, int64_t capacity);

  MarkRing(MarkRing&& other) noexcept;
  MarkRing& operator=(MarkRing&& other) noexcept;
  ~MarkRing();

  // Removes the file now; processes that have mapped it keep it. After the worker has mapped it, a
  // supervisor that is killed leaves nothing behind.
  void unlink();

  const std::filesystem::path& path() const { return path_; }
  int64_t capacity() const { return capacity_; }

  // Number of marks written so far.
  int64_t count() const;

  // Marks number `first` and later that still exist: the last capacity - 1 do.
  Marks since(int64_t first) const;

 private:
  MarkRing(std::filesystem::path path, void* memory, int64_t capacity)
      : path_(std::move(path)), memory_(memory), capacity_(capacity) {}

  std::filesystem::path path_;
  void* memory_ = nullptr;
  int64_t capacity_ = 0;
};

}  // namespace bakeoff::proc
