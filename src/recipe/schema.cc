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

std::vector<Key> keys_before_the_race() {
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
       .doc =
           "the race ends after this long even if undecided; the heat under way is finished. What is left of "
           "it is for trainings to a target; whole trainings come on top"},
      {.section = "budget",
       .name = "heats",
       .kind = Kind::kInt,
       .fallback = "40",
       .least = 1,
       .most = 10000,
       .doc = "at most this many heats"},
  };
}

std::vector<Key> keys_after_the_race() {
  return {
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

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> made = keys_before_the_race();
    for (const auto& more : {keys_of_the_race(), keys_after_the_race(), keys_beside_the_race()})
      made.insert(made.end(), more.begin(), more.end());
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
