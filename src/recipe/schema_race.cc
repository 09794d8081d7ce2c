// The keys of [race], and the settings that every contender may state in their place.

#include "recipe/schema.h"

namespace bakeoff::recipe {
namespace {

constexpr const char* kAllocatorDoc =
    "tuned: glibc's malloc keeps freed pages. jemalloc, mimalloc, tcmalloc: preloaded, where the system has "
    "the "
    "library";
constexpr const char* kPinDoc =
    "CPUs to run on. auto: as many as there are threads, the first of those allowed. none: any. Or a list "
    "such "
    "as 0,2-3";

constexpr const char* kDeviceDoc =
    "cpu, cuda: a contender that computes elsewhere is a row that says so. auto: where its framework "
    "computes";

std::vector<std::string> devices() { return {"auto", "cpu", "cuda"}; }

std::vector<std::string> allocators() { return {"default", "tuned", "jemalloc", "mimalloc", "tcmalloc"}; }

}  // namespace

std::vector<Key> keys_of_the_race() {
  return {
      {.section = "race",
       .name = "threads",
       .kind = Kind::kInt,
       .fallback = "the CPUs allowed",
       .least = 1,
       .most = 4096,
       .doc = "threads of every contender"},
      {.section = "race",
       .name = "live",
       .kind = Kind::kInt,
       .fallback = "8",
       .least = 2,
       .most = 64,
       .doc = "workers alive at once in a heat"},
      {.section = "race",
       .name = "warmup_steps",
       .kind = Kind::kInt,
       .fallback = "5",
       .least = 1,
       .most = 100000,
       .doc = "steps after the first one that are not counted; more where they are too short to tell how "
              "long a burst is"},
      {.section = "race",
       .name = "bursts",
       .kind = Kind::kInt,
       .fallback = "4",
       .least = 2,
       .most = 1000,
       .doc = "bursts of each contender in a heat"},
      {.section = "race",
       .name = "burst_seconds",
       .kind = Kind::kReal,
       .fallback = "0.5",
       .least = 0.001,
       .most = 600,
       .doc = "a burst has as many steps as fit into this time, at least two"},
      {.section = "race",
       .name = "allocator",
       .kind = Kind::kWord,
       .fallback = "default",
       .words = allocators(),
       .doc = kAllocatorDoc},
      {.section = "race", .name = "pin", .kind = Kind::kWord, .fallback = "auto", .doc = kPinDoc},
      {.section = "race",
       .name = "huge_pages",
       .kind = Kind::kWord,
       .fallback = "default",
       .words = {"default", "off", "malloc"},
       .doc = "transparent huge pages. default: as the system has it. off: none for the workers. malloc: "
              "glibc's malloc asks for them"},
      {.section = "race",
       .name = "randomise_addresses",
       .kind = Kind::kFlag,
       .fallback = "true",
       .doc = "false: every worker has the same memory layout"},
      {.section = "race",
       .name = "cooldown_seconds",
       .kind = Kind::kReal,
       .fallback = "0",
       .least = 0,
       .most = 60,
       .doc = "pause before every burst"},
      {.section = "race",
       .name = "device",
       .kind = Kind::kWord,
       .fallback = "auto",
       .words = devices(),
       .doc = kDeviceDoc},
      {.section = "race",
       .name = "gpu_clock_mhz",
       .kind = Kind::kInt,
       .fallback = "0",
       .least = 0,
       .most = 10000,
       .doc = "NVIDIA's GPUs are held at this clock for the run (root only), and given back however it ends; "
              "0: they are left alone"},
      {.section = "race",
       .name = "sample_ms",
       .kind = Kind::kInt,
       .fallback = "100",
       .least = 0,
       .most = 1000,
       .doc = "pace of the thread that reads sensors during bursts, 10 to 1000 milliseconds; 0: none"},
      {.section = "race",
       .name = "nvtx",
       .kind = Kind::kFlag,
       .fallback = "false",
       .doc =
           "Python workers name every burst and step as a range for NVIDIA's profilers (libnvToolsExt.so.1)"},
      {.section = "race",
       .name = "confirm_heats",
       .kind = Kind::kInt,
       .fallback = "3",
       .least = 0,
       .most = 1000,
       .doc = "heats after the decision, that measure the winner and those tied with it again; 0: none"},
      {.section = "race",
       .name = "noise_ceiling",
       .kind = Kind::kReal,
       .fallback = "0",
       .least = 0,
       .most = 10,
       .doc =
           "your own promise that the noise of one heat in a ratio is no wider (standard deviation; "
           "identical workers differ by 0.01 to 0.08 on a quiet machine): contenders many ceilings behind "
           "are out after two heats. The report says that verdicts rest on it, and the race's own data may "
           "withdraw it. 0: no promise, except what a profile of this machine measured"},
      {.section = "race",
       .name = "parity_steps",
       .kind = Kind::kInt,
       .fallback = "10",
       .least = 1,
       .most = 1000,
       .doc = "float32 losses that must agree"},
      {.section = "race",
       .name = "stage_seconds",
       .kind = Kind::kReal,
       .fallback = "300",
       .least = 0.05,
       .most = 86400,
       .doc = "a worker that takes longer for one stage is ended; its row says so"},
      {.section = "race",
       .name = "max_steal",
       .kind = Kind::kReal,
       .fallback = "0.05",
       .least = 0,
       .most = 1,
       .doc = "a round of bursts is disturbed when the hypervisor or a CPU quota takes more of the "
              "processors' time"},
      {.section = "race",
       .name = "max_others",
       .kind = Kind::kReal,
       .fallback = "0.1",
       .least = 0,
       .most = 1,
       .doc = "or when other processes use more of the processors' time"},
      {.section = "race",
       .name = "max_pressure",
       .kind = Kind::kReal,
       .fallback = "0.1",
       .least = 0,
       .most = 1,
       .doc = "or when tasks wait for memory or a disk for more of the time"},
      {.section = "race",
       .name = "max_clock_change",
       .kind = Kind::kReal,
       .fallback = "0.1",
       .least = 0,
       .most = 10,
       .doc = "or when the processor's speed changes by more from start to end"},
      {.section = "race",
       .name = "max_reruns",
       .kind = Kind::kInt,
       .fallback = "2",
       .least = 0,
       .most = 1000,
       .doc = "disturbed rounds of a heat that are run again, whole, by that rule alone"},
      {.section = "race",
       .name = "max_busy",
       .kind = Kind::kReal,
       .fallback = "0.5",
       .least = 0,
       .most = 1,
       .doc =
           "with more than this share of the rounds disturbed, or with fewer than 4 rounds of which it can "
           "be told, the verdict is refused (exit code 3). 1: a verdict is given whatever the host did"},
  };
}

const std::vector<emit::Setting>& common_settings() {
  static const std::vector<emit::Setting> all = {
      {"allocator", allocators(), "race.allocator", kAllocatorDoc},
      {"threads", {}, "race.threads", "threads of this contender"},
      {"pin", {}, "race.pin", kPinDoc},
      {"device", devices(), "race.device", kDeviceDoc},
  };
  return all;
}

}  // namespace bakeoff::recipe
