#include "records/why.h"

#include <fmt/format.h>

#include <cmath>

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(Why::Part, change, gain, verdict)
BAKEOFF_RECORD(Why, contender, leader, gap, parts)
BAKEOFF_KEPT(Why)

// Gains multiply, so shares are those of logarithms.
std::string sentence(const Why& why) {
  std::string text =
      fmt::format("Why: {} takes {:.2f} times as long as {}", why.contender, why.gap, why.leader);
  const double gap = std::log(why.gap);
  double explained = 0;
  std::string parts;
  for (const Why::Part& part : why.parts) {
    if (part.verdict != "faster" || part.gain <= 1) continue;
    explained += std::log(part.gain) / gap;
    parts += fmt::format("{}{} would gain {:.2f} ({:.0f}% of the gap)", parts.empty() ? "" : ", ",
                         part.change, part.gain, 100 * std::log(part.gain) / gap);
  }
  if (parts.empty())
    return text +
           fmt::format("; none of {} settings that were tried makes it certainly faster.", why.parts.size());
  text += "; " + parts;
  if (explained < 0.99)
    return text + fmt::format("; {:.0f}% of it is in no setting that was tried.", 100 * (1 - explained));
  return text + "; each measured alone, together they may gain less.";
}

}  // namespace bakeoff
