// A control counts only if the machine grants it, and containers refuse some without an error until a process
// is started. So granted() starts /bin/true with each control before the race. A control that is refused is
// left out with a note, unless the recipe states it: then it is an error, because the user asked for numbers
// that this machine cannot give.
//
// What a worker really has is read from /proc while it lives: observe() for the report, and taken() for what
// it took beyond its grant. A contender on more processors than it was given, or with a better priority,
// would win by that alone.

#include "worker/grants.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/kernel_file.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "proc/run.h"
#include "sample/machine_limits.h"

namespace bakeoff {
namespace {

struct Preloaded {
  const char* name;
  std::vector<const char*> files;
  const char* package;
};

const std::vector<Preloaded>& preloaded() {
  static const std::vector<Preloaded> all = {
      {"jemalloc", {"libjemalloc.so.2"}, "libjemalloc2"},
      {"mimalloc", {"libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"}, "libmimalloc2.0"},
      {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4"}, "libtcmalloc-minimal4"},
  };
  return all;
}

// glibc: no page is returned to the system, and no large block gets its own mapping.
const Texts& tuned_malloc() {
  static const Texts all = {{"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                            {"MALLOC_TRIM_THRESHOLD_", "4294967296"},
                            {"MALLOC_TOP_PAD_", "268435456"}};
  return all;
}

// A process with the worker's controls that does nothing.
std::optional<std::string> start_true(const WorkerSpec& spec) {
  const auto ran = proc::run_command({.child = {.argv = {"/bin/true"},
                                                .env = spec.environment,
                                                .cpus = spec.cpus,
                                                .randomise_addresses = spec.randomise_addresses,
                                                .huge_pages = spec.huge_pages},
                                      .timeout_ns = 10'000'000'000});
  if (!ran) return ran.error().message;
  if (!ran->ok()) return ran->text();
  return std::nullopt;
}

// The CPUs of `pin` for `threads` threads.
Result<std::vector<int>> cpus_of(const Controls& controls, const std::vector<int>& allowed) {
  if (controls.pin == "none") return std::vector<int>{};
  if (controls.pin == "auto") {
    const size_t count = std::min(static_cast<size_t>(std::max(controls.threads, 1)), allowed.size());
    return std::vector<int>(allowed.begin(), allowed.begin() + static_cast<long>(count));
  }
  TRY(std::vector<int> cpus, recipe::parse_cpus(controls.pin));
  for (const int cpu : cpus) {
    if (std::find(allowed.begin(), allowed.end(), cpu) != allowed.end()) continue;
    return Error{
        .message = fmt::format("pin = \"{}\": this process may not run on CPU {}", controls.pin, cpu),
        .remedy = fmt::format("choose among {}", join(allowed, ","))};
  }
  return cpus;
}

std::string field(const std::string& text, const std::string& key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const size_t begin = text.find_first_not_of(" \t", at + key.size());
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

Controls control_set(const recipe::Recipe& recipe, const Texts& stated, size_t allowed) {
  const recipe::Race& race = recipe.race;
  const Controls all{
      .allocator = race.allocator,
      .threads = static_cast<int>(race.threads > 0 ? static_cast<size_t>(race.threads) : allowed),
      .pin = race.pin,
      .huge_pages = race.huge_pages,
      .randomise_addresses = race.randomise_addresses,
      .cooldown_s = race.cooldown_seconds,
      .device = race.device};
  return controls_from(stated, all);
}

Machine this_machine() { return {.cpus = sample::allowed_cpus(), .root = "/", .refusal = start_true}; }

Result<fs::path> allocator_library(const std::string& allocator, const fs::path& root) {
  for (const Preloaded& library : preloaded()) {
    if (library.name != allocator) continue;
    for (const char* folder : {"usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64",
                               "usr/lib", "usr/local/lib", "lib/x86_64-linux-gnu"}) {
      for (const char* file : library.files) {
        std::error_code code;
        if (fs::exists(root / folder / file, code)) return root / folder / file;
      }
    }
    return Error{.message = fmt::format("allocator '{}' is not installed: there is no {}", allocator,
                                        library.files.front()),
                 .remedy = fmt::format("apt-get install {}", library.package)};
  }
  return Error{.message = fmt::format("allocator '{}' is no library", allocator)};
}

void set_threads(int threads, WorkerSpec& spec) {
  const std::string n = std::to_string(threads);
  spec.threads = threads;
  for (const char* name :
       {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"}) {
    spec.environment[name] = n;
  }
  for (const emit::Framework* framework : emit::frameworks()) {
    for (const std::string& name : framework->thread_variables) spec.environment[name] = n;
  }
}

Status apply(const Controls& controls, const Machine& machine, WorkerSpec& spec) {
  set_threads(controls.threads, spec);
  TRY(spec.cpus, cpus_of(controls, machine.cpus));
  if (controls.allocator == "tuned") {
    for (const auto& [name, value] : tuned_malloc()) spec.environment[name] = value;
  } else if (controls.allocator != "default") {
    TRY(const fs::path library, allocator_library(controls.allocator, machine.root));
    const char* before = std::getenv("LD_PRELOAD");
    spec.environment["LD_PRELOAD"] =
        library.string() + (before != nullptr && *before != '\0' ? std::string(":") + before : "");
  }
  if (controls.huge_pages == "malloc") spec.environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1";
  spec.huge_pages = controls.huge_pages != "off";
  spec.randomise_addresses = controls.randomise_addresses;
  spec.device = controls.device;
  if (controls.device == "cpu") {
    spec.environment["CUDA_VISIBLE_DEVICES"] = "";
    for (const emit::Framework* framework : emit::frameworks()) {
      for (const auto& [name, value] : framework->cpu_variables) spec.environment[name] = value;
    }
  }
  return Done{};
}

Result<Controls> granted(const Controls& wanted, const std::set<std::string>& stated, const Machine& machine,
                         std::vector<std::string>& notes) {
  Controls given = wanted;
  const auto settle = [&](const char* key, const WorkerSpec& spec, const std::string& what,
                          const std::function<void()>& give_up) -> Status {
    const auto why = machine.refusal ? machine.refusal(spec) : std::nullopt;
    if (!why) return Done{};
    if (stated.contains(key)) {
      return Error{.message = fmt::format("race.{} is not possible here: {}", key, *why),
                   .remedy = fmt::format("remove '{}' from the recipe, or allow it to the container", key)};
    }
    give_up();
    notes.push_back(fmt::format("{} is refused here ({}); the run does without it.", what, *why));
    return Done{};
  };
  TRY(const std::vector<int> cpus, cpus_of(wanted, machine.cpus));
  if (!cpus.empty()) {
    CHECK_OK(settle("pin", {.cpus = cpus}, "Pinning to CPUs", [&] { given.pin = "none"; }));
  }
  if (!wanted.randomise_addresses) {
    CHECK_OK(settle("randomise_addresses", {.randomise_addresses = false},
                    "Turning address randomisation off", [&] { given.randomise_addresses = true; }));
  }
  if (wanted.huge_pages == "off") {
    CHECK_OK(settle("huge_pages", {.huge_pages = false}, "Turning huge pages off",
                    [&] { given.huge_pages = "default"; }));
  }
  return given;
}

Texts observe(pid_t pid, const fs::path& proc) {
  Texts seen;
  const fs::path folder = proc / std::to_string(pid);
  const auto maps = read_kernel_file_in_time(folder / "maps");
  const auto variables = read_kernel_file_in_time(folder / "environ");
  if (maps && variables) {
    seen["allocator"] = variables->find("MALLOC_TRIM_THRESHOLD_=") != std::string::npos ? "tuned" : "default";
    if (variables->find("glibc.malloc.hugetlb=1") != std::string::npos) seen["huge pages"] = "malloc";
    for (const Preloaded& library : preloaded()) {
      if (maps->find(std::string("/lib") + library.name) != std::string::npos)
        seen["allocator"] = library.name;
    }
  }
  if (const auto status = read_kernel_file_in_time(folder / "status")) {
    if (const std::string cpus = field(*status, "Cpus_allowed_list:"); !cpus.empty()) seen["cpus"] = cpus;
    if (const std::string huge = field(*status, "THP_enabled:"); huge == "0") seen["huge pages"] = "off";
    if (!seen.contains("huge pages") && status->find("THP_enabled:") != std::string::npos)
      seen["huge pages"] = "default";
  }
  if (const auto text = read_kernel_file_in_time(folder / "personality")) {
    unsigned long bits = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), bits, 16);
    constexpr unsigned long kNoRandomize = 0x40000;
    if (code == std::errc() && end != text->data())
      seen["address randomisation"] = (bits & kNoRandomize) != 0 ? "off" : "on";
  }
  return seen;
}

namespace {

// CPUs of a list as the kernel writes it: "0-2,5".
std::vector<int> cpus_in(const std::string& list) {
  std::vector<int> cpus;
  const char* at = list.c_str();
  while (*at >= '0' && *at <= '9') {
    char* end = nullptr;
    const long first = std::strtol(at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long cpu = first; cpu <= last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    at = *end == ',' ? end + 1 : end;
  }
  return cpus;
}

// Field 19 of proc(5) stat: 0 the usual one, -20 the best.
std::optional<long> niceness_of(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  const char* at = stat.c_str() + name_end + 1;
  for (int field = 3; field < 19; ++field) {
    while (*at == ' ') ++at;
    while (*at != ' ' && *at != '\0') ++at;
  }
  char* end = nullptr;
  const long nice = std::strtol(at, &end, 10);
  return end == at ? std::nullopt : std::optional(nice);
}

}  // namespace

std::string taken(pid_t pid, const WorkerSpec& spec, const fs::path& proc) {
  const auto own = read_kernel_file_in_time(proc / "self/stat");
  const std::optional<long> ours = own ? niceness_of(*own) : std::nullopt;
  std::error_code code;
  for (const auto& task : fs::directory_iterator(proc / std::to_string(pid) / "task", code)) {
    if (const auto status = read_kernel_file_in_time(task.path() / "status"); status && !spec.cpus.empty()) {
      const std::string list = field(*status, "Cpus_allowed_list:");
      for (const int cpu : cpus_in(list)) {
        if (std::find(spec.cpus.begin(), spec.cpus.end(), cpu) == spec.cpus.end())
          return fmt::format("a thread of it may run on CPUs {}, it was granted {}", list,
                             join(spec.cpus, ","));
      }
    }
    const auto stat = read_kernel_file_in_time(task.path() / "stat");
    const auto nice = stat ? niceness_of(*stat) : std::nullopt;
    if (nice && ours && *nice < *ours)
      return fmt::format("a thread of it has priority {}, it was started with {}", *nice, *ours);
  }
  return "";
}

}  // namespace bakeoff
