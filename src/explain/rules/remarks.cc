#include "base/json_text.h"
#include "explain/rules/parts.h"

namespace bakeoff::explain {

constexpr double kEarly = 0.5;  // of the reads of a clock, that come before the results

std::vector<Remark> remarks(const Subject& s) {
  std::vector<Remark> all;
  const Json lines = fact(s, "lines");
  const auto add = [&](const char* id, std::string text, const char* line_of = "") {
    const int64_t line = lines.is_object() ? lines.value(line_of, int64_t{0}) : 0;
    const auto [file, number] = s.source.place(line);
    all.push_back({file.empty() ? s.name : file, id, std::move(text), number});
  };
  if (const Json shapes = fact(s, "broadcast_loss"); shapes.size() == 2)
    add("R21",
        fmt::format("its loss compares shapes {} and {}: they broadcast to a table of all pairs",
                    dump(shapes[0]), dump(shapes[1])),
        "broadcast_loss");
  if (s.flag("double_softmax"))
    add("R22", "its loss takes logits and gets probabilities: softmax is computed twice", "double_softmax");
  if (s.flag("missing_softmax"))
    add("R22",
        "its loss takes probabilities and gets the numbers of a linear layer: from_logits=True is missing");
  const Json names = fact(s, "unchanged");
  if (s.seen.kind != "call" && names.is_array() && !names.empty())  // of calls alone nothing is to change
    add("R24", fmt::format("parameters that want gradients did not change in all observed steps: {}{}",
                           names[0].get<std::string>(), names.size() > 1 ? ", ..." : ""));
  if (const Json found = fact(s, "batch_as_time"); found.size() == 2)
    add("R23",
        fmt::format("its {} takes time first and gets {}, whose first axis has as many rows as the loss "
                    "compares: batch_first=True seems to be missing",
                    found[0].get<std::string>(), dump(found[1])));
  if (s.number("early_clocks") >= kEarly)
    add("R18",
        "its clock is read while results of the step are still computed: the times that it prints are not those "
        "of its steps",
        "a clock");
  if (s.number("cell_calls_per_step") >= 2)
    add("R10",
        fmt::format("it calls recurrent cells {:.0f} times a step; one layer over all time steps is faster, "
                    "and no switch can replace them from outside",
                    s.number("cell_calls_per_step")));
  if (const auto evaluates = called(s, {"model.evaluate"}))
    add("R6", "in its loop: " + evaluates->evidence + "; each call has a fixed cost of some ten milliseconds",
        "model.evaluate");
  return all;
}

}  // namespace bakeoff::explain
