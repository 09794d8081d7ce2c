#include "planted_load.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <sstream>
#include <thread>

namespace bakeoff::bench {
namespace {

namespace fs = std::filesystem;

double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void burn(double seconds) {
  volatile unsigned sink = 0;
  for (const double end = now_s() + seconds; now_s() < end;) {
    for (unsigned i = 0; i < 10'000; ++i) sink = sink + i;
  }
}

void write_memory() {
  std::vector<char> block(size_t{64} << 20);
  for (char fill = 0;; ++fill) {
    std::memset(block.data(), fill, block.size());
    asm volatile("" : : "r"(block.data()) : "memory");
  }
}

// Exponential times of these means.
void come_and_go(double busy_s, double idle_s, unsigned seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<double> busy(1 / busy_s), idle(1 / idle_s);
  for (;;) {
    burn(busy(random));
    std::this_thread::sleep_for(std::chrono::duration<double>(idle(random)));
  }
}

pid_t in_a_process(const std::function<void()>& work) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent) work();
  ::_exit(0);
}

bool put(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  return out.good();
}

}  // namespace

std::string name(Load load) {
  switch (load) {
    case Load::kNone:
      return "none";
    case Load::kLoop:
      return "a busy loop";
    case Load::kLoops:
      return "a busy loop a processor";
    case Load::kMemory:
      return "memory traffic";
    case Load::kRegimes:
      return "busy for seconds";
    case Load::kShort:
      return "busy for 50 ms";
    case Load::kMild:
      return "a mild neighbour";
    case Load::kQuota:
      break;
  }
  return "cgroup quota";
}

PlantedLoad::PlantedLoad(Load load, unsigned seed) {
  const auto forever = [] { burn(1e9); };
  const unsigned cpus = std::max(1U, std::thread::hardware_concurrency());
  if (load == Load::kLoop) processes_.push_back(in_a_process(forever));
  for (unsigned i = 0; load == Load::kLoops && i < cpus; ++i) processes_.push_back(in_a_process(forever));
  if (load == Load::kMemory) processes_.push_back(in_a_process(write_memory));
  if (load == Load::kRegimes) processes_.push_back(in_a_process([&] { come_and_go(3, 3, seed); }));
  if (load == Load::kShort) processes_.push_back(in_a_process([&] { come_and_go(0.05, 0.05, seed); }));
  if (load == Load::kMild) processes_.push_back(in_a_process([&] { come_and_go(0.015, 0.285, seed); }));
  if (load == Load::kQuota) limit_ourselves();
}

// cgroup v2, else v1. Workers are born into the group of their parent.
void PlantedLoad::limit_ourselves() {
  const std::string name = fmt::format("bakeoff-busy-{}", ::getpid());
  for (const char* root : {"/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/cpu"}) {
    std::error_code error;
    const fs::path group = fs::path(root) / name;
    if (!fs::create_directory(group, error)) continue;
    const bool two = put(group / "cpu.max", "50000 100000");
    const bool one = !two && put(group / "cpu.cfs_quota_us", "50000");
    if ((two || one) && put(group / "cgroup.procs", std::to_string(::getpid()))) {
      group_ = group;
      before_ = root;
      return;
    }
    fs::remove(group, error);
  }
  why_not_ = "no cgroup can be written here";
}

PlantedLoad::~PlantedLoad() {
  for (const pid_t pid : processes_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  if (group_.empty()) return;
  std::error_code ignored;
  put(before_ / "cgroup.procs", std::to_string(::getpid()));
  fs::remove(group_, ignored);
}

}  // namespace bakeoff::bench
