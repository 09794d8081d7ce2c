#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "roofline/measure.h"

extern char** environ;

namespace bakeoff::roofline {
namespace {

constexpr int kCostRounds = 5;
constexpr int kStarts = 40;
constexpr size_t kPages = 8192;

// Seconds of the first touch of a page; 0 where there is no memory.
double page_fault() {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  double best = 0;
  for (int round = 0; round < kCostRounds; ++round) {
    void* got = ::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) return 0;
    ::madvise(got, kPages * page, MADV_NOHUGEPAGE);
    auto* bytes = static_cast<volatile char*>(got);
    const double begin = now_s();
    for (size_t i = 0; i < kPages; ++i) bytes[i * page] = 1;
    const double each = (now_s() - begin) / static_cast<double>(kPages);
    ::munmap(got, kPages * page);
    best = round == 0 ? each : std::min(best, each);
  }
  return best;
}

// Median seconds from posix_spawn to the end of a program that does nothing; 0 with `why` where that fails.
double process_start(std::string& why) {
  std::vector<double> seconds;
  for (int i = 0; i < kStarts; ++i) {
    char name[] = "true";
    char* const argv[] = {name, nullptr};
    pid_t pid = 0;
    const double begin = now_s();
    if (const int error = ::posix_spawnp(&pid, "true", nullptr, nullptr, argv, environ); error != 0) {
      why = std::string("cannot start `true`: ") + std::strerror(error);
      return 0;
    }
    int status = 0;
    if (::waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      why = "`true` did not end well";
      return 0;
    }
    seconds.push_back(now_s() - begin);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kStarts / 2, seconds.end());
  return seconds[kStarts / 2];
}

}  // namespace

void measure_costs(const MeasureOptions& options, Limits& limits) {
  report_progress(options, "page faults and process start");
  limits.page_fault_s = page_fault();
  if (limits.page_fault_s <= 0) limits.absent.push_back({"page fault", "no memory"});
  std::string why;
  limits.process_start_s = process_start(why);
  if (limits.process_start_s <= 0) limits.absent.push_back({"process start", why});
}

}  // namespace bakeoff::roofline
