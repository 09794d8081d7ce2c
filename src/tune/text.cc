#include "table/text.h"

#include <fmt/format.h>

#include "base/json_text.h"
#include "base/texts.h"
#include "records/names.h"
#include "summary/limits.h"
#include "table/numbers.h"
#include "table/quantity.h"
#include "tune/tune.h"

namespace bakeoff::tune {

namespace {

using table::paragraph;
using table::significant;

std::string joined(const std::vector<Change>& changes) {
  std::vector<std::string> all;
  for (const Change& change : changes) all.push_back(words(change));
  return join(all, ", ");
}

std::string gain_of(const Alone& alone) {
  if (!alone.gain) return alone.verdict;
  return fmt::format("{} times as fast, {}", significant(*alone.gain, 3), alone.verdict);
}

// Of a contender whose settings changed nothing for the better, as far as they were timed.
std::string nothing_gains(const std::vector<Alone>& alone) {
  const auto timed = std::ranges::count_if(alone, [](const Alone& one) { return one.gain.has_value(); });
  if (timed == std::ssize(alone)) return "nothing gains";
  if (timed == 0)
    return fmt::format("not known: none of its {} was timed", table::counted(std::ssize(alone), "setting"));
  return fmt::format(
      "of {} timed nothing gains, {} not timed", table::counted(timed, "setting"),
      std::ssize(alone) - timed == 1 ? "1 was" : fmt::format("{} were", std::ssize(alone) - timed));
}

// Whether the best setting found takes as little time as the limit.
const char* reached(const Row& best) {
  if (best.over_native->low > 1) return "No setting of a framework reached it.";
  return best.over_native->high < 1 ? "That setting is faster than plain C++, which is no limit here."
                                    : "Whether that setting reaches it is not certain.";
}

}  // namespace

std::string to_text(const Outcome& outcome, int width) {
  std::string out = "What each setting gains\n";
  for (const Tuned& tuned : outcome.tuned) {
    out += "\n";
    std::string head = spoken(tuned.base) + ": ";
    if (!tuned.failure.empty())
      head += "not raced: " + tuned.failure;
    else if (!tuned.base.script.empty())
      head += "a script of your own: raced as it is";
    else if (!tuned.untried.empty())
      head += "as the recipe states it: " + tuned.untried;
    else if (tuned.changes.empty())
      head += nothing_gains(tuned.alone) + "; as the recipe states it";
    else
      head += fmt::format("{}: {} {} times as fast", joined(tuned.changes), significant(tuned.gain.value, 3),
                          table::interval(tuned.gain, [](double end) { return significant(end, 3); }));
    out += paragraph(head, width, "", "  ") + "\n";
    for (const Alone& alone : tuned.alone)
      out +=
          paragraph(fmt::format("{} alone: {}", words(alone.change), gain_of(alone)), width, "  ", "    ") +
          "\n";
  }
  const Row* best = winner(outcome.best);
  const std::string limit = best == nullptr ? "" : native_limit_of(*best);
  if (!limit.empty())
    out += "\n" +
           paragraph(fmt::format("The limit: {} is the best setting found, and {}. {}",
                                 spoken(best->contender), limit, reached(*best)),
                     width, "", "  ") +
           "\n";
  return out + "\n";
}

std::string to_json(const Outcome& outcome) {
  table::Json all = table::Json::array();
  for (const Tuned& tuned : outcome.tuned) {
    table::Json alone = table::Json::array();
    for (const Alone& one : tuned.alone)
      alone.push_back(
          {{"change", words(one.change)}, {"gain", table::number(one.gain)}, {"verdict", one.verdict}});
    all.push_back({{"contender", tuned.base.id},
                   {"best", tuned.best.id},
                   {"gain", table::estimate(tuned.gain)},
                   {"alone", alone},
                   {"failure", tuned.failure},
                   {"untried", tuned.untried}});
  }
  const Row* best = winner(outcome.best);
  const bool held = best != nullptr && best->over_native.has_value();
  return dump(table::Json{{"tuned", all},
                          {"winner_over_native", held ? table::estimate(*best->over_native) : table::Json()}},
              2) +
         "\n";
}

Result<std::string> best_recipe(const std::string& text, const Outcome& outcome) {
  std::vector<recipe::Contender> best;
  for (const Tuned& tuned : outcome.tuned)
    if (tuned.failure.empty()) best.push_back(tuned.best);
  return recipe::with_contenders(text, best);
}

}  // namespace bakeoff::tune
