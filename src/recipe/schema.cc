#include "recipe/schema.h"

#include "ir/op_table.h"
#include "recipe/schema_rows.h"
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

std::vector<Key> keys_of_the_top_level() {
  return in(
      "",
      {
          word_key("name", "the file's name", {}, "how the run is called in reports"),
          required(path_key("workload",
                            "a workload that ships (`bakeoff ops --workloads`) or the path of an IR text, "
                            "relative to the recipe")),
          word_key("scenario", "train", {"train", "predict"},
                   "train: a step is forward, backward and one update. predict: a step is one batch "
                   "forward, in inference mode; [optimizer] is not needed"),
          word_key("track", "equalised", {"equalised", "as-is"},
                   "equalised: the same mathematics everywhere, proven. as-is: each framework's defaults, "
                   "differences listed"),
          word_key("loss", "the workload's", loss_names(),
                   "if given, must be the loss that ends the workload"),
          integer_key("batch", "32", from(1, 1e6), "rows a step"),
          word_key("precision", "float32", {"float32"}, "of weights, activations, gradients"),
          integer_key("seed", "1", from(0, 9e15), "of initial weights, orders and synthetic data"),
          real_key("margin", "0.03", above(0, 1),
                   "differences smaller than this are of no interest (0.03 = 3%)"),
          real_key("alpha", "0.01", above(0, 0.5),
                   "probability, at most, that any statement of the run is wrong"),
      });
}

std::vector<Key> keys_of_the_data() {
  return in(
      "data",
      {
          word_key("kind", "synthetic", {"mnist", "digits", "text", "synthetic", "file"},
                   "mnist: 60,000 train pictures. digits: 1,797 of scikit-learn. text: words, for a "
                   "language model. synthetic: normal numbers, uniform labels. file: a safetensors file"),
          path_key("path",
                   "kind = file: one tensor for each input of the workload, rows first. text: a text, or a "
                   "folder of them; default: the licences in Debian's base-files"),
          integer_key("samples", "1000", from(1, 1e8), "rows of synthetic data"),
          real_key("divisor", "1", above(0), "float inputs are divided by this on loading (255 for bytes)"),
          flag_key(
              "shuffle", "false",
              "true: one order drawn from the seed, the same for every contender and in every epoch; "
              "false: the order of the file. In the as-is track every framework shuffles in its own way"),
      });
}

std::vector<Key> keys_of_the_optimizer() {
  return in(
      "optimizer",
      {
          required(
              word_key("kind", "", {"sgd", "rmsprop", "adam", "adamw"}, "formulas in src/ir/training.h")),
          required(real_key("lr", "", from(0), "learning rate")),
          real_key("momentum", "0", from(0, 1), "sgd, rmsprop"),
          flag_key("nesterov", "false", "sgd"),
          real_key("rho", "0.9", from(0, 1), "rmsprop: decay of the squared gradient"),
          real_key("beta1", "0.9", from(0, 1), "adam, adamw"),
          real_key("beta2", "0.999", from(0, 1), "adam, adamw"),
          real_key("eps", "1e-7", from(0), "rmsprop, adam, adamw"),
          word_key("eps_form", "outside", {"outside", "inside", "hat"},
                   "outside: sqrt(v) + eps. inside: sqrt(v + eps). hat: adam without bias correction of eps"),
          real_key("weight_decay", "0", from(0), ""),
          word_key("decay_form", "l2 (adamw: decoupled)", {"l2", "decoupled"},
                   "l2: added to the gradient. decoupled: p -= lr decay p"),
      });
}

std::vector<Key> keys_of_the_budget() {
  return in(
      "budget",
      {
          real_key("minutes", "10", above(0),
                   "the race ends after this long even if undecided; the heat under way is finished. What "
                   "is left of it is for trainings to a target; whole trainings come on top"),
          integer_key("heats", "40", from(1, 10000), "at most this many heats"),
      });
}

std::vector<Key> keys_of_the_published() {
  return in(
      "published",
      {
          path_key("file",
                   "CSV file of a published table with columns contender and seconds; the report puts its "
                   "order and ratios beside the measured ones"),
      });
}

std::vector<Key> keys_of_the_cost() {
  return in(
      "cost",
      {
          real_key("per_hour", "", above(0),
                   "price of an hour of this machine; the report then shows that of an epoch, at the steady "
                   "rate"),
          word_key("currency", "", {}, "of that price, as shown: \"USD\""),
          real_key("grams_per_kwh", "", above(0),
                   "CO2 of the power that the machine runs on; shown of an epoch where energy can be "
                   "measured"),
      });
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all =
      joined({keys_of_the_top_level(), keys_of_the_data(), keys_of_the_optimizer(), keys_of_the_budget(),
              keys_of_the_race(), keys_of_the_published(), keys_of_the_cost(), keys_beside_the_race()});
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
