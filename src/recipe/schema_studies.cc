// The keys of the sections whose measurements follow the race.

#include "recipe/schema.h"
#include "recipe/schema_rows.h"

namespace bakeoff::recipe {
namespace {

std::vector<Key> keys_of_latencies() {
  return in(
      "latency",
      {
          listed(required(real_key("arrivals_per_second", "", above(0, 1e6),
                                   "scenario predict: requests arrive at random (Poisson) at this rate, even "
                                   "if earlier requests are not answered yet; latency counts from the "
                                   "arrival. A request is one step of `batch` rows. See docs/latency.md"))),
          integer_key("requests", "1000", from(20, 1e6),
                      "number of requests to each process, at every rate and in single stream"),
          real_key("seconds", "30", above(0, 86400),
                   "how long each process is loaded at one rate, in seconds; fewer requests are sent if they "
                   "take longer"),
          integer_key("processes", "3", from(1, 1000),
                      "number of processes of every contender, started one after another"),
          listed(real_key("percentiles", "[50, 90, 99, 99.9]", above(0, 99.9999),
                          "percentiles to report, each with confidence bounds")),
      });
}

std::vector<Key> keys_of_the_search() {
  return in(
      "search",
      {
          listed(integer_key("batches", "doubled", from(1, 1e6),
                             "batches (rows per step) at which the throughput of every contender is measured "
                             "after the race. Without this key the batch is doubled from `least` until "
                             "doubling no longer raises the throughput. See docs/batch_size.md")),
          integer_key("least", "1", from(1, 1e6), "smallest batch of the doubling"),
          integer_key("most", "4096", from(1, 1e6), "largest batch of the doubling"),
          integer_key("processes", "2", from(1, 1000),
                      "number of processes that measure each contender at each batch"),
      });
}

std::vector<Key> keys_of_the_largest_batch() {
  return in(
      "largest_batch",
      {
          word_key("memory", "available", {},
                   "memory limit, for example \"4 GiB\": after the race the largest batch of every contender "
                   "that fits into it is searched. `available`: the memory that the machine has free then, "
                   "less a reserve. See docs/batch_size.md"),
          integer_key("most", "1000000", from(1, 1e6),
                      "largest batch to try; a batch never exceeds the rows of the data"),
      });
}

std::vector<Key> keys_of_scaling() {
  return in("scaling",
            {integer_key("heats", "4", from(2, 1000),
                         "scenario train: number of heats after the race in which each contender on several "
                         "devices is held against the same on one device, with the batch fixed, with the "
                         "batch of each device fixed, and without communication. See docs/devices.md")});
}

std::vector<Key> keys_of_the_target() {
  return in(
      "target",
      {
          example(
              "0.97",
              real_key("accuracy", "", above(0, 1),
                       "scenario train: accuracy to reach, as the share of held-out rows that are predicted "
                       "right; steps, epochs and seconds to it are measured over several seeds. See "
                       "docs/target.md")),
          example("0.1", real_key("loss", "", {},
                                  "loss of the held-out rows to reach (this or less), instead of accuracy")),
          integer_key("seeds", "5", from(1, 1000),
                      "number of trainings of every contender, each with its own initial weights and order "
                      "of the rows"),
          integer_key("rows", "2000", from(1, 1e8),
                      "number of held-out rows: of MNIST's test pictures, of the last tenth of a text, or "
                      "the last rows of other data"),
          integer_key("every", "50", from(1, 1e6),
                      "number of steps between two evaluations of the held-out rows"),
          real_key("epochs", "5", above(0, 1e6),
                   "number of epochs after which a training ends without having reached the target"),
          flag_key("referee", "true",
                   "true: the referee trains too, in float64, and contenders are compared with it. false: "
                   "they are not compared"),
      });
}

std::vector<Key> keys_of_whole_trainings() {
  return in(
      "fit",
      {
          example("5", required(integer_key(
                           "epochs", "", from(1, 1e6),
                           "scenario train: number of epochs that every contender trains in one process "
                           "after the race; the report shows its seconds, loss and accuracy of held-out "
                           "rows. See docs/fit.md"))),
          integer_key("seeds", "1", from(1, 1000),
                      "number of trainings of every contender, each with its own initial weights and order "
                      "of the rows"),
          example("2000",
                  integer_key(
                      "rows", "MNIST's 10000 test pictures; of other data none", from(0, 1e8),
                      "number of held-out rows, on which no contender trains: of MNIST's test pictures, of "
                      "the last tenth of a text, or the last rows of other data")),
          integer_key("patience", "0", from(0, 1e6),
                      "number of epochs: a training ends when this many epochs in a row brought no new "
                      "lowest held-out loss, lower by more than min_delta. 0: it never ends early"),
          real_key("min_delta", "0", from(0), "smallest fall of the held-out loss that counts for patience"),
      });
}

}  // namespace

std::vector<Key> keys_of_studies() {
  return joined({keys_of_latencies(), keys_of_the_search(), keys_of_the_largest_batch(), keys_of_scaling(),
                 keys_of_the_target(), keys_of_whole_trainings()});
}

}  // namespace bakeoff::recipe
