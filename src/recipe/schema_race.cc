// The keys of [race], and the settings that every contender may state in their place.

#include "recipe/schema.h"
#include "recipe/schema_rows.h"

namespace bakeoff::recipe {
namespace {

constexpr const char* kAllocatorDoc =
    "tuned: glibc's malloc keeps freed pages. jemalloc, mimalloc, tcmalloc: preloaded, where the system has "
    "the library";
constexpr const char* kPinDoc =
    "CPUs to run on. auto: as many as there are threads, the first of those allowed. none: any. Or a list "
    "such as 0,2-3";

constexpr const char* kDeviceDoc =
    "cpu, cuda: a contender that computes elsewhere is a row that says so. auto: where its framework "
    "computes";

std::vector<std::string> devices() { return {"auto", "cpu", "cuda"}; }

std::vector<std::string> allocators() { return {"default", "tuned", "jemalloc", "mimalloc", "tcmalloc"}; }

std::vector<Key> keys_of_a_heat() {
  return {
      integer_key("threads", "the CPUs allowed", from(1, 4096), "threads of every contender"),
      integer_key("live", "8", from(2, 64), "workers alive at once in a heat"),
      integer_key("warmup_steps", "5", from(1, 100000),
                  "steps after the first one that are not counted; more where they are too short to "
                  "tell how long a burst is"),
      integer_key("bursts", "4", from(2, 1000), "bursts of each contender in a heat"),
      real_key("burst_seconds", "0.5", from(0.001, 600),
               "a burst has as many steps as fit into this time, at least two"),
      word_key("allocator", "default", allocators(), kAllocatorDoc),
      word_key("pin", "auto", {}, kPinDoc),
      word_key("huge_pages", "default", {"default", "off", "malloc"},
               "transparent huge pages. default: as the system has it. off: none for the workers. "
               "malloc: glibc's malloc asks for them"),
      flag_key("randomise_addresses", "true", "false: every worker has the same memory layout"),
      real_key("cooldown_seconds", "0", from(0, 60), "pause before every burst"),
      word_key("device", "auto", devices(), kDeviceDoc),
      integer_key("gpu_clock_mhz", "0", from(0, 10000),
                  "NVIDIA's GPUs are held at this clock for the run (root only), and given back however "
                  "it ends; 0: they are left alone"),
      integer_key("sample_ms", "100", from(0, 1000),
                  "pace of the thread that reads sensors during bursts, 10 to 1000 milliseconds; 0: none"),
      flag_key("nvtx", "false",
               "Python workers name every burst and step as a range for NVIDIA's profilers "
               "(libnvToolsExt.so.1)"),
      integer_key("confirm_heats", "3", from(0, 1000),
                  "heats after the decision, that measure the winner and those tied with it again; 0: "
                  "none"),
      real_key("noise_ceiling", "0", from(0, 10),
               "your own promise that the noise of one heat in a ratio is no wider (standard deviation; "
               "identical workers differ by 0.01 to 0.08 on a quiet machine): contenders many ceilings "
               "behind are out after two heats. The report says that verdicts rest on it, and the "
               "race's own data may withdraw it. 0: no promise, except what a profile of this machine "
               "measured"),
      integer_key("parity_steps", "10", from(1, 1000), "float32 losses that must agree"),
      real_key("stage_seconds", "300", from(0.05, 86400),
               "a worker that takes longer for one stage is ended; its row says so"),
  };
}

std::vector<Key> keys_of_the_host_rule() {
  return {
      real_key("max_steal", "0.05", from(0, 1),
               "a round of bursts is disturbed when the hypervisor or a CPU quota takes more of the "
               "processors' time"),
      real_key("max_others", "0.1", from(0, 1), "or when other processes use more of the processors' time"),
      real_key("max_pressure", "0.1", from(0, 1),
               "or when tasks wait for memory or a disk for more of the time"),
      real_key("max_clock_change", "0.1", from(0, 10),
               "or when the processor's speed changes by more from start to end"),
      integer_key("max_reruns", "2", from(0, 1000),
                  "disturbed rounds of a heat that are run again, whole, by that rule alone"),
      real_key("max_busy", "0.5", from(0, 1),
               "with more than this share of the rounds disturbed, or with fewer than 4 rounds of which "
               "it can be told, the verdict is refused (exit code 3). 1: a verdict is given whatever "
               "the host did"),
  };
}

}  // namespace

std::vector<Key> keys_of_the_race() {
  return in("race", joined({keys_of_a_heat(), keys_of_the_host_rule()}));
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
