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
                                   "scenario predict: requests arrive at random at this rate (Poisson), "
                                   "whether or not the last one is answered, and latency counts from then. "
                                   "A request is one step: `batch` rows. See docs/latency.md"))),
          integer_key("requests", "1000", from(20, 1e6), "of a process, at every rate and in single stream"),
          real_key("seconds", "30", above(0, 86400),
                   "that a process is asked at one rate; fewer requests where they take longer"),
          integer_key("processes", "3", from(1, 1000), "of every contender, one after another"),
          listed(real_key("percentiles", "[50, 90, 99, 99.9]", above(0, 99.9999),
                          "that are reported, with bounds")),
      });
}

std::vector<Key> keys_of_the_search() {
  return in(
      "search",
      {
          listed(integer_key("batches", "doubled", from(1, 1e6),
                             "after the race, the throughput of every contender at these batches. Without "
                             "this key they are doubled from `least` until that no longer pays. See "
                             "docs/batch_size.md")),
          integer_key("least", "1", from(1, 1e6), "the batch to double from"),
          integer_key("most", "4096", from(1, 1e6), "the largest batch to double to"),
          integer_key("processes", "2", from(1, 1000), "of every contender and batch"),
      });
}

std::vector<Key> keys_of_the_largest_batch() {
  return in(
      "largest_batch",
      {
          word_key("memory", "available", {},
                   "after the race, the largest batch of every contender that fits into so much memory, \"4 "
                   "GiB\"; `available`: what the machine has now, less a reserve. See docs/batch_size.md"),
          integer_key("most", "1000000", from(1, 1e6),
                      "the largest batch to try; the rows of the data are another end"),
      });
}

std::vector<Key> keys_of_the_target() {
  return in(
      "target",
      {
          real_key("accuracy", "", above(0, 1),
                   "scenario train: steps, epochs and seconds until this share of held-out rows is "
                   "predicted right, over seeds. See docs/target.md"),
          real_key("loss", "", {}, "or until their loss is no more than this"),
          integer_key("seeds", "5", from(1, 1000),
                      "trainings of every contender, each from other weights and in another order of the "
                      "rows"),
          integer_key("rows", "2000", from(1, 1e8),
                      "held out: of MNIST's test pictures, of a text's last tenth, else the last ones of "
                      "the data"),
          integer_key("every", "50", from(1, 1e6), "steps between two looks at them"),
          real_key("epochs", "5", above(0, 1e6), "after which a training has not reached it"),
          flag_key("referee", "true",
                   "the referee trains as well, in float64: what contenders are held against. false: they "
                   "are not"),
      });
}

std::vector<Key> keys_of_whole_trainings() {
  return in(
      "fit",
      {
          required(integer_key("epochs", "", from(1, 1e6),
                               "scenario train: after the race every contender trains for so many epochs in "
                               "one process; seconds, loss and accuracy of held-out rows stand beside its "
                               "time. See docs/fit.md")),
          integer_key("seeds", "1", from(1, 1000),
                      "trainings of every contender, each from other weights and in another order of the "
                      "rows"),
          integer_key("rows", "MNIST's 10000 test pictures; of other data none", from(0, 1e8),
                      "held out: of MNIST's test pictures, of a text's last tenth, else the last ones of "
                      "the data; nobody trains on them"),
      });
}

}  // namespace

std::vector<Key> keys_beside_the_race() {
  return joined({keys_of_latencies(), keys_of_the_search(), keys_of_the_largest_batch(), keys_of_the_target(),
                 keys_of_whole_trainings()});
}

}  // namespace bakeoff::recipe
