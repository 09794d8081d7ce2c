// The keys of [race], and the settings that every contender may state in their place.

#include "recipe/schema.h"
#include "recipe/schema_rows.h"

namespace bakeoff::recipe {
namespace {

constexpr const char* kAllocatorDoc =
    "memory allocator of the worker process. default: the system's. tuned: glibc malloc keeps freed pages. "
    "jemalloc, mimalloc, tcmalloc: that library is preloaded; the system must have it";
constexpr const char* kPinDoc =
    "CPUs that the worker process may use. auto: the first allowed CPUs, one for each thread. none: all "
    "CPUs. Or a list such as 0,2-3";

constexpr const char* kDeviceDoc =
    "device that must compute. cpu, cuda: a contender that computes on another device fails, and its row "
    "says so. auto: the device that its framework chooses";

std::vector<std::string> devices() { return {"auto", "cpu", "cuda"}; }

std::vector<std::string> allocators() { return {"default", "tuned", "jemalloc", "mimalloc", "tcmalloc"}; }

std::vector<Key> keys_of_a_heat() {
  return {
      example("2", integer_key("threads", "the number of allowed CPUs", from(1, 4096),
                               "number of threads of every contender")),
      integer_key("live", "8", from(2, 64), "maximum number of workers that are alive at the same time"),
      integer_key("warmup_steps", "5", from(1, 100000),
                  "number of steps after the first one that are run but not counted; more are run if the "
                  "steps are too short to choose the number of steps of a burst"),
      integer_key(
          "bursts", "0", from(0, 1000),
          "number of bursts of each contender in one heat. 0: planned before each heat from the heats "
          "that are over, so that the verdict comes soonest"),
      real_key("burst_seconds", "0", from(0, 600),
               "duration of a burst in seconds. 0: planned after the first heat, 0.2 to 0.5"),
      word_key("allocator", "default", allocators(), kAllocatorDoc),
      word_key("pin", "auto", {}, kPinDoc),
      word_key("huge_pages", "default", {"default", "off", "malloc"},
               "transparent huge pages. default: the system's setting. off: workers use none. malloc: glibc "
               "malloc requests them"),
      flag_key("randomise_addresses", "true",
               "true: the system randomises the memory layout of each worker. false: every worker has the "
               "same memory layout"),
      real_key("cooldown_seconds", "0", from(0, 60), "pause before every burst, in seconds"),
      word_key("device", "auto", devices(), kDeviceDoc),
      integer_key("gpu_clock_mhz", "0", from(0, 10000),
                  "clock in MHz at which NVIDIA GPUs are locked during the run (root only); the lock is "
                  "released however the run ends. 0: clocks are not changed"),
      integer_key("sample_ms", "100", from(0, 1000),
                  "interval at which sensors are read during bursts, 10 to 1000 milliseconds; 0: sensors are "
                  "not read"),
      flag_key("nvtx", "false",
               "true: Python workers mark every burst and step as a range for NVIDIA's profilers "
               "(libnvToolsExt.so.1)"),
      integer_key("confirm_heats", "3", from(0, 1000),
                  "number of heats after the decision that measure the winner, and the contenders tied with "
                  "it, again"),
      real_key("noise_ceiling", "0", from(0, 10),
               "your promise: what restarting the processes adds to a ratio has at most this standard "
               "deviation, beside what a heat's own bursts vary by (identical workers differ by 0.01 to 0.08 "
               "on a quiet machine, bursts included). Contenders that are many ceilings slower then leave "
               "after two heats. The report says that verdicts rest on the "
               "promise, and the data of the race may withdraw it. 0: no promise, except the one that a "
               "profile of this machine has measured"),
      integer_key("parity_steps", "10", from(1, 1000),
                  "number of training steps whose float32 losses must agree with the reference"),
      real_key("stage_seconds", "300", from(0.05, 86400),
               "time limit of one stage of a worker (start, import, build, ...), in seconds. A worker that "
               "exceeds it is ended, and its row says so"),
  };
}

std::vector<Key> keys_of_the_host_rule() {
  return {
      real_key("max_steal", "0.05", from(0, 1),
               "a round of bursts counts as disturbed if the hypervisor or a CPU quota takes more than this "
               "share of the processors' time"),
      real_key("max_others", "0.1", from(0, 1),
               "a round counts as disturbed if other processes use more than this share of the processors' "
               "time"),
      real_key("max_pressure", "0.1", from(0, 1),
               "a round counts as disturbed if tasks wait for memory or a disk for more than this share of "
               "the time"),
      real_key("max_clock_change", "0.1", from(0, 10),
               "a round counts as disturbed if the processor's speed changes by more than this share from "
               "its start to its end"),
      real_key("max_busy", "0.5", from(0, 1),
               "the verdict is refused (exit code 3) if more than this share of the rounds was disturbed, "
               "or if fewer than 4 rounds could be judged. 1: a verdict is given even on a busy host"),
  };
}

}  // namespace

std::vector<Key> keys_of_the_race() {
  return in("race", joined({keys_of_a_heat(), keys_of_the_host_rule()}));
}

const std::vector<emit::Setting>& common_settings() {
  static const std::vector<emit::Setting> all = {
      {"allocator", allocators(), "race.allocator", kAllocatorDoc},
      {"threads", {}, "race.threads", "number of threads of this contender"},
      {"pin", {}, "race.pin", kPinDoc},
      {"device", devices(), "race.device", kDeviceDoc},
  };
  return all;
}

}  // namespace bakeoff::recipe
