// A key is described once, here, and parser, errors, `bakeoff recipe --schema`, `bakeoff help` and
// docs/recipe.md are made of it. So a doc string has two readers: one who looks at a table of all keys, and
// one who has made a mistake in this one. It says what a value does, in which scenario or kind it counts, and
// what the default means; ranges, words and types stand in the row's own fields and are not repeated.
//
// A row only bounds one value. What depends on several keys is checked where they are read together
// (updates.cc, recipe.cc), with the line of the key that is wrong.

#include "recipe/schema.h"

#include <algorithm>

#include "ir/op_table.h"
#include "recipe/schema_rows.h"
#include "zoo/zoo.h"

namespace bakeoff::recipe {
namespace {

std::vector<std::string> loss_names() {
  std::vector<std::string> names;
  for (const ir::OpInfo& row : ir::op_table()) {
    if (ir::is_loss(row.op)) names.push_back(row.name);
  }
  return names;
}

std::vector<Key> keys_of_the_top_level() {
  return in(
      "",
      {
          example("\"my_race\"", word_key("name", "the file's name", {}, "name of the run in reports")),
          example("\"mnist_cnn\"",
                  required(path_key(
                      "workload",
                      "name of a shipped workload (`bakeoff ops --workloads`), or path of an IR text "
                      "file (docs/ir.md; `bakeoff import` makes one of a model of yours), relative to "
                      "the recipe"))),
          example(
              "\"weights.safetensors\"",
              path_key("weights",
                       "safetensors file with the initial value of every parameter of the workload, by name, "
                       "relative to the recipe; default: they are drawn from the seed")),
          word_key(
              "scenario", "train", {"train", "predict", "generate"},
              "train: a step is one forward pass, one backward pass and one update. predict: a step is "
              "the forward pass of one batch in inference mode; [optimizer] is not needed. generate: a step "
              "answers each prompt of one batch word by word (docs/generate.md)"),
          example("[\"masks\", \"scores\"]",
                  listed(word_key("outputs", "what the first loss compares", {},
                                  "values of the workload that a model predicts, by name, where the scenario "
                                  "is predict"))),
          word_key("track", "equalised", {"equalised", "as-is"},
                   "equalised: all contenders compute the same mathematics, which is proven. as-is: each "
                   "framework uses its own defaults, and the report lists the differences"),
          word_key("loss", "the workload's", loss_names(),
                   "loss of the training; if given, it must be the workload's, of several its first"),
          integer_key("batch", "32", from(1, 1e6), "number of rows in one step"),
          word_key("precision", "float32", {"float32"},
                   "number format of weights, activations and gradients"),
          integer_key("seed", "1", from(0, 9e15),
                      "seed of the initial weights, of random orders and of synthetic data"),
          word_key(
              "baseline", "", {},
              "id of a contender, with its settings in brackets if it has any (JSON and CSV have it): the "
              "report also says how many times as fast as this one every other contender is"),
          real_key("margin", "0.03", above(0, 1),
                   "largest difference of step times that does not matter to you (0.03 = 3%)"),
          real_key("alpha", "0.01", above(0, 0.5),
                   "upper limit of the probability that any statement of the run is wrong"),
      });
}

std::vector<Key> keys_of_the_data() {
  return in(
      "data",
      {
          word_key(
              "kind", "synthetic",
              {"mnist", "digits", "text", "synthetic", "file", "npz", "npy", "idx", "image folder", "csv"},
              "mnist: the 60,000 training pictures of MNIST. digits: the 1,797 pictures of "
              "scikit-learn. text: the words of a text, for a language model. synthetic: normally "
              "distributed numbers and uniformly distributed labels. The others are data of your own "
              "(docs/data.md): a safetensors file, one npz file, an npy or IDX file for each input, a "
              "folder of PNG and JPEG pictures, or a CSV file"),
          example(
              "\"mine.npz\"",
              path_key(
                  "path",
                  "for kind = file: a safetensors file with one tensor for each input of the workload, "
                  "rows along the first axis. For kind = npz and csv: the file. For kind = image folder: a "
                  "folder with one folder of pictures for each class. For kind = text: a text file or a "
                  "folder of text files; default: the licences of Debian's package base-files")),
          table_key("inputs",
                    "where each input of the workload comes from. For kind = npy and idx: its file. For "
                    "kind = csv: its column or columns. For kind = npz: the name of its array; default: the "
                    "name of the input"),
          example("[\"colour\", \"shape\"]",
                  listed(word_key(
                      "categories", "", {},
                      "for kind = csv: columns whose texts are numbered from 0 in sorted order. An input of "
                      "integers takes the number, a float input one column of 0 and 1 for each text"))),
          word_key("delimiter", ",", {}, "for kind = csv: the character between two fields"),
          word_key(
              "resize", "none", {"none", "stretch", "crop"},
              "for kind = image folder: what happens to a picture of another size than the workload's. "
              "none: it is an error. stretch: the whole picture is resized. crop: the largest part around "
              "its middle with the workload's proportions is resized. Resizing is Pillow's, with "
              "its filter BILINEAR"),
          real_key(
              "expansion", "100", from(1),
              "for kind = npz, npy, idx and csv: how many times as large as it is a compressed file may "
              "become, where it becomes more than 256 MiB. One beyond it is refused: it would fill the disk"),
          integer_key("samples", "1000", from(1, 1e8), "number of rows of synthetic data"),
          real_key("divisor", "1", above(0),
                   "number by which float inputs are divided when they are loaded (255 for bytes)"),
          flag_key("shuffle", "false",
                   "true: the rows are read in one order that is drawn from the seed, the same for every "
                   "contender and in every epoch. false: they are read in the order of the file. In the "
                   "as-is track every framework shuffles in its own way"),
      });
}

std::vector<Key> keys_of_the_optimizer() {
  return in(
      "optimizer",
      {
          required(word_key("kind", "", {"sgd", "rmsprop", "adam", "adamw"},
                            "the optimizer; src/ir/training.h states the formulas")),
          example("0.01", required(real_key("lr", "", from(0), "learning rate"))),
          real_key("momentum", "0", from(0, 1), "sgd and rmsprop: momentum"),
          flag_key("nesterov", "false", "sgd: true uses Nesterov's momentum"),
          real_key("rho", "0.9", from(0, 1), "rmsprop: decay rate of the mean squared gradient"),
          real_key("beta1", "0.9", from(0, 1), "adam and adamw: decay rate of the mean gradient"),
          real_key("beta2", "0.999", from(0, 1), "adam and adamw: decay rate of the mean squared gradient"),
          real_key("eps", "1e-7", from(0),
                   "rmsprop, adam and adamw: epsilon in the denominator of the update"),
          word_key("eps_form", "outside", {"outside", "inside", "hat"},
                   "where epsilon is added. outside: sqrt(v) + eps. inside: sqrt(v + eps). hat: adam "
                   "without bias correction of eps"),
          real_key("weight_decay", "0", from(0), "factor of the weight decay"),
          word_key(
              "decay_form", "l2 (adamw: decoupled)", {"l2", "decoupled"},
              "how weights decay. l2: the decay is added to the gradient. decoupled: p -= lr * decay * p"),
          listed(
              word_key("no_decay", "", {},
                       "parameters that do not decay: \"bias\" (every bias), \"norm\" (scales and shifts "
                       "of normalisations), or patterns of names with * and ?, such as \"encoder.*.bias\"")),
          real_key("clip_norm", "0", from(0),
                   "largest norm of all gradients as one vector: before the update they are multiplied with "
                   "min(1, clip_norm / norm). 0: none"),
          real_key("clip_value", "0", from(0),
                   "largest size of an element of a gradient: before the update it is cut to "
                   "[-clip_value, clip_value]. 0: none"),
          integer_key(
              "accumulate", "1", from(1, 1e6),
              "number of equal parts of a batch that are worked off one after the other; the update is "
              "made from the mean of their gradients, which is the batch's own"),
          real_key("ema", "0", from(0, 0.9999999),
                   "decay of a moving average of the weights: after each update average = ema * average + "
                   "(1 - ema) * weight; the first update copies. [target] and [fit] evaluate the averages. "
                   "0: none"),
      });
}

std::vector<Key> keys_of_the_schedule() {
  return in(
      "schedule",
      {
          required(word_key("kind", "", {"constant", "step", "cosine", "linear"},
                            "how the learning rate changes after the warm-up, from optimizer.lr on. step: it "
                            "is multiplied with `factor` after every `every` steps. cosine, linear: it falls "
                            "to final * lr within `steps` steps and stays there. See docs/training.md")),
          integer_key("warmup_steps", "0", from(0, 1e9),
                      "number of steps in which the learning rate grows linearly to optimizer.lr"),
          real_key("warmup_from", "0", from(0, 1),
                   "learning rate of the first step of the warm-up, as a share of optimizer.lr"),
          example("1000", integer_key("steps", "", from(1, 1e9),
                                      "cosine and linear: number of steps after the warm-up until the end")),
          real_key("final", "0", from(0, 1),
                   "cosine and linear: learning rate at the end, as a share of optimizer.lr"),
          example("100", integer_key("every", "", from(1, 1e9), "step: number of steps between two changes")),
          real_key("factor", "0.1", above(0, 1), "step: what the learning rate is multiplied with"),
      });
}

std::vector<Key> keys_of_lora() {
  return in(
      "lora",
      {
          example(
              "8",
              required(integer_key(
                  "rank", "", from(1, 1e6),
                  "number of rows of A and of columns of B, the two small matrices beside each layer: y = "
                  "W x + alpha / rank * B (A x). They alone are trained (docs/lora.md)"))),
          example("16", real_key("alpha", "rank", above(0, 1e6),
                                 "size of what the matrices add: B (A x) is multiplied with alpha / rank")),
          example(
              "[\"q_proj\", \"v_proj\"]",
              required(listed(word_key(
                  "targets", "", {},
                  "linear layers beside which the matrices stand: patterns, with * and ?, of names of weights or "
                  "layers or of their last parts, such as \"q_proj\" or \"encoder.*.output.weight\"")))),
      });
}

std::vector<Key> keys_of_generation() {
  return in(
      "generate",
      {
          example("12",
                  integer_key(
                      "prompt", "half of the sequence", from(1, 1e6),
                      "scenario generate: number of words at the beginning of each row that are read before "
                      "the first one is chosen")),
          example(
              "12",
              integer_key(
                  "words", "the other half", from(1, 1e6),
                  "scenario generate: number of words that are chosen in answer, each the likeliest one")),
          listed(example(
              "[1, 32]",
              integer_key("batches", "the recipe's batch alone", from(1, 1e6),
                          "scenario generate: numbers of rows that are answered at a time in the table of "
                          "words, besides the recipe's own batch"))),
          listed(example("[4, 12]",
                         integer_key("prompts", "`prompt` alone", from(1, 1e6),
                                     "scenario generate: lengths of prompts in the table of words, in "
                                     "words, besides `prompt`; each is measured at every batch"))),
          integer_key("answers", "20", from(1, 1e6),
                      "number of answers of each process whose words are timed one by one after the race"),
          integer_key("processes", "3", from(1, 1000),
                      "number of processes of every contender whose words are timed"),
      });
}

std::vector<Key> keys_of_the_budget() {
  return in(
      "budget",
      {
          real_key(
              "minutes", "10", above(0),
              "time limit of one `bakeoff run` in minutes, from its start: preparation, proofs, race, and "
              "all trainings to a target ([target]) but the first of each contender. Two fifths of it are kept for "
              "heats: a contender that is not proven by then is a row that says so. Two contenders are proven in any "
              "case, and a heat that it ends has at least three rounds; a race that it ends is undecided. [latency], "
              "[fit], [search], [scaling] and [largest_batch] are not limited; the screen says so before they start"),
          integer_key("heats", "40", from(1, 10000), "maximum number of heats"),
      });
}

std::vector<Key> keys_of_the_published() {
  return in(
      "published",
      {
          example(
              "\"published/table.csv\"",
              path_key("file",
                       "CSV file of a published table with the columns `contender` and `seconds`; the report "
                       "compares its order and ratios with the measured ones")),
      });
}

std::vector<Key> keys_of_the_cost() {
  return in(
      "cost",
      {
          example(
              "1.2",
              real_key(
                  "per_hour", "", above(0),
                  "price of one hour of this machine; the report then shows the price of one epoch at the "
                  "steady step time")),
          example("\"USD\"",
                  word_key("currency", "", {}, "currency of per_hour, as the report shows it: \"USD\"")),
          example(
              "380",
              real_key(
                  "grams_per_kwh", "", above(0),
                  "grams of CO2 for one kWh of this machine's electricity; the report then shows the CO2 of "
                  "one epoch, if energy can be measured")),
      });
}

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all =
      joined({keys_of_the_top_level(), keys_of_the_data(), keys_of_the_optimizer(), keys_of_the_schedule(),
              keys_of_lora(), keys_of_generation(), keys_of_the_budget(), keys_of_the_race(),
              keys_of_the_published(), keys_of_the_cost(), keys_of_studies()});
  return all;
}

std::string example_of(const Key& key) {
  if (!key.example.empty()) return key.example;
  const bool number = key.kind == Kind::kInt || key.kind == Kind::kReal;
  if (number && key.list && !key.fallback.starts_with('[')) return "[10, 20]";
  if (key.kind == Kind::kTable) return "{ x = \"...\", y = [\"...\", \"...\"] }";
  if (number || key.kind == Kind::kFlag) return key.fallback;
  const bool other = !key.words.empty() && std::ranges::find(key.words, key.fallback) == key.words.end();
  return '"' + (other ? key.words.front() : key.fallback) + '"';
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
