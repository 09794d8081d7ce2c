#include "records/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/record_json.h"

namespace bakeoff {

BAKEOFF_RECORD(Why::Part, change, gain, verdict)
BAKEOFF_RECORD(Why::Account, what, ms, leader_ms)
BAKEOFF_RECORD(Why, contender, leader, gap, parts, accounts)
BAKEOFF_KEPT(Why)

namespace {

constexpr double kTold = 0.1;    // of what a step takes more, from which on an account is told
constexpr size_t kMostTold = 2;  // accounts

// What a step spends more on than the leader's; empty where nothing was observed.
std::string accounts_words(const Why& why) {
  double more = 0;
  for (const Why::Account& one : why.accounts) more += std::max(0.0, one.ms - one.leader_ms);
  std::string text;
  size_t told = 0;
  for (const Why::Account& one : why.accounts)
    if (one.ms - one.leader_ms > kTold * more && told++ < kMostTold)
      text += fmt::format("{}{} {:.3g} against {:.3g} ms", text.empty() ? "" : ", ", one.what, one.ms,
                          one.leader_ms);
  return text.empty() ? "" : fmt::format(" What a step of each does, run by itself: {}.", text);
}

// Gains multiply, so shares are those of logarithms.
std::string settings_words(const Why& why) {
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

}  // namespace

std::string sentence(const Why& why) { return settings_words(why) + accounts_words(why); }

}  // namespace bakeoff
