#include "recipe/schema.h"

#include <utility>

#include "ir/op_table.h"
#include "zoo/zoo.h"

namespace bakeoff::recipe {
namespace {

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const ir::OpInfo& row : ir::op_table()) {
    if (row.loss) names.push_back(row.name);
  }
  return names;
}

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

std::vector<Key> make_keys() {
  return {
      {.section = "",
       .name = "name",
       .kind = Kind::kWord,
       .fallback = "the file's name",
       .doc = "how the run is called in reports"},
      {.section = "",
       .name = "workload",
       .kind = Kind::kPath,
       .fallback = "",
       .required = true,
       .doc = "a workload that ships (`bakeoff ops --workloads`) or the path of an IR text, relative to the "
              "recipe"},
      {.section = "",
       .name = "scenario",
       .kind = Kind::kWord,
       .fallback = "train",
       .words = {"train", "predict"},
       .doc = "train: a step is forward, backward and one update. predict: a step is one batch forward, in "
              "inference mode; [optimizer] is not needed"},
      {.section = "",
       .name = "track",
       .kind = Kind::kWord,
       .fallback = "equalised",
       .words = {"equalised", "as-is"},
       .doc = "equalised: the same mathematics everywhere, proven. as-is: each framework's defaults, "
              "differences "
              "listed"},
      {.section = "",
       .name = "loss",
       .kind = Kind::kWord,
       .fallback = "the workload's",
       .words = loss_names(),
       .doc = "if given, must be the loss that ends the workload"},
      {.section = "",
       .name = "batch",
       .kind = Kind::kInt,
       .fallback = "32",
       .least = 1,
       .most = 1e6,
       .doc = "rows a step"},
      {.section = "",
       .name = "precision",
       .kind = Kind::kWord,
       .fallback = "float32",
       .words = {"float32"},
       .doc = "of weights, activations, gradients"},
      {.section = "",
       .name = "seed",
       .kind = Kind::kInt,
       .fallback = "1",
       .least = 0,
       .most = 9e15,
       .doc = "of initial weights, orders and synthetic data"},
      {.section = "",
       .name = "margin",
       .kind = Kind::kReal,
       .fallback = "0.03",
       .least = 0,
       .most = 1,
       .least_excluded = true,
       .doc = "differences smaller than this are of no interest (0.03 = 3%)"},
      {.section = "",
       .name = "alpha",
       .kind = Kind::kReal,
       .fallback = "0.01",
       .least = 0,
       .most = 0.5,
       .least_excluded = true,
       .doc = "probability, at most, that any statement of the run is wrong"},
      {.section = "data",
       .name = "kind",
       .kind = Kind::kWord,
       .fallback = "synthetic",
       .words = {"mnist", "digits", "text", "synthetic", "file"},
       .doc =
           "mnist: 60,000 train pictures. digits: 1,797 of scikit-learn. text: words, for a language model. "
           "synthetic: normal numbers, uniform labels. file: a safetensors file"},
      {.section = "data",
       .name = "path",
       .kind = Kind::kPath,
       .fallback = "",
       .doc =
           "kind = file: one tensor for each input of the workload, rows first. text: a text, or a folder of "
           "them; default: the licences in Debian's base-files"},
      {.section = "data",
       .name = "samples",
       .kind = Kind::kInt,
       .fallback = "1000",
       .least = 1,
       .most = 1e8,
       .doc = "rows of synthetic data"},
      {.section = "data",
       .name = "divisor",
       .kind = Kind::kReal,
       .fallback = "1",
       .least = 0,
       .least_excluded = true,
       .doc = "float inputs are divided by this on loading (255 for bytes)"},
      {.section = "data",
       .name = "shuffle",
       .kind = Kind::kFlag,
       .fallback = "false",
       .doc = "true: one order drawn from the seed, the same for every contender and in every epoch; false: "
              "the order of the file. In the as-is track every framework shuffles in its own way"},
      {.section = "optimizer",
       .name = "kind",
       .kind = Kind::kWord,
       .fallback = "",
       .required = true,
       .words = {"sgd", "rmsprop", "adam", "adamw"},
       .doc = "formulas in src/ir/training.h"},
      {.section = "optimizer",
       .name = "lr",
       .kind = Kind::kReal,
       .fallback = "",
       .required = true,
       .least = 0,
       .doc = "learning rate"},
      {.section = "optimizer",
       .name = "momentum",
       .kind = Kind::kReal,
       .fallback = "0",
       .least = 0,
       .most = 1,
       .doc = "sgd, rmsprop"},
      {.section = "optimizer", .name = "nesterov", .kind = Kind::kFlag, .fallback = "false", .doc = "sgd"},
      {.section = "optimizer",
       .name = "rho",
       .kind = Kind::kReal,
       .fallback = "0.9",
       .least = 0,
       .most = 1,
       .doc = "rmsprop: decay of the squared gradient"},
      {.section = "optimizer",
       .name = "beta1",
       .kind = Kind::kReal,
       .fallback = "0.9",
       .least = 0,
       .most = 1,
       .doc = "adam, adamw"},
      {.section = "optimizer",
       .name = "beta2",
       .kind = Kind::kReal,
       .fallback = "0.999",
       .least = 0,
       .most = 1,
       .doc = "adam, adamw"},
      {.section = "optimizer",
       .name = "eps",
       .kind = Kind::kReal,
       .fallback = "1e-7",
       .least = 0,
       .doc = "rmsprop, adam, adamw"},
      {.section = "optimizer",
       .name = "eps_form",
       .kind = Kind::kWord,
       .fallback = "outside",
       .words = {"outside", "inside", "hat"},
       .doc = "outside: sqrt(v) + eps. inside: sqrt(v + eps). hat: adam without bias correction of eps"},
      {.section = "optimizer",
       .name = "weight_decay",
       .kind = Kind::kReal,
       .fallback = "0",
       .least = 0,
       .doc = ""},
      {.section = "optimizer",
       .name = "decay_form",
       .kind = Kind::kWord,
       .fallback = "l2 (adamw: decoupled)",
       .words = {"l2", "decoupled"},
       .doc = "l2: added to the gradient. decoupled: p -= lr decay p"},
      {.section = "budget",
       .name = "minutes",
       .kind = Kind::kReal,
       .fallback = "10",
       .least = 0,
       .least_excluded = true,
       .doc = "the race ends after this long even if undecided; the heat under way is finished"},
      {.section = "budget",
       .name = "heats",
       .kind = Kind::kInt,
       .fallback = "40",
       .least = 1,
       .most = 10000,
       .doc = "at most this many heats"},
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
       .doc = "steps after the first one that are not counted"},
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
       .fallback = "0.15",
       .least = 0,
       .most = 10,
       .doc =
           "a promise that one heat's noise in a ratio is no wider (standard deviation; identical workers "
           "differ by 0.01 to 0.08): contenders many ceilings behind are out after one heat. 0: no promise"},
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
       .doc = "with more than this share of the rounds disturbed, the verdict is refused (exit code 3)"},
      {.section = "published",
       .name = "file",
       .kind = Kind::kPath,
       .fallback = "",
       .doc =
           "CSV file of a published table with columns contender and seconds; the report puts its order and "
           "ratios beside the measured ones"},
      {.section = "cost",
       .name = "per_hour",
       .kind = Kind::kReal,
       .fallback = "",
       .least = 0,
       .least_excluded = true,
       .doc = "price of an hour of this machine; the report then shows that of an epoch, at the steady rate"},
      {.section = "cost",
       .name = "currency",
       .kind = Kind::kWord,
       .fallback = "",
       .doc = "of that price, as shown: \"USD\""},
      {.section = "cost",
       .name = "grams_per_kwh",
       .kind = Kind::kReal,
       .fallback = "",
       .least = 0,
       .least_excluded = true,
       .doc = "CO2 of the power that the machine runs on; shown of an epoch where energy can be measured"},
  };
}

}  // namespace

const std::vector<emit::Setting>& common_settings() {
  static const std::vector<emit::Setting> all = {
      {"allocator", allocators(), "race.allocator", kAllocatorDoc},
      {"threads", {}, "race.threads", "threads of this contender"},
      {"pin", {}, "race.pin", kPinDoc},
      {"device", devices(), "race.device", kDeviceDoc},
  };
  return all;
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> made = make_keys();
    for (Key& key : keys_beside_the_race()) made.push_back(std::move(key));
    return made;
  }();
  return all;
}

std::vector<std::string> sections() {
  std::vector<std::string> all;
  for (const Key& key : keys()) {
    if (all.empty() || all.back() != key.section) all.push_back(key.section);
  }
  return all;
}

std::vector<std::string> names_in(const std::string& section) {
  std::vector<std::string> names;
  for (const Key& key : keys()) {
    if (key.section == section) names.push_back(key.name);
  }
  return names;
}

}  // namespace bakeoff::recipe
