#include "summary/standing.h"

#include <fmt/format.h>

namespace bakeoff {
namespace {

bool probably_slower(const Summary& s, const Row& row) {
  const Rival* rival = rival_of(s, row);
  return rival &&
         (rival->slower ? *rival->slower >= kProbable : rival->heats < 2 && row.ratio.value > 1 + s.margin);
}

}  // namespace

const Rival* rival_of(const Summary& s, const Row& row) {
  for (const Outlook& outlook : s.outlooks) {
    for (const Rival& rival : outlook.rivals) {
      if (rival.contender == row.contender.id) return &rival;
    }
  }
  return nullptr;
}

Field field_of(const Summary& s, const std::string& group) {
  Field field;
  for (const Row& row : s.ranked) {
    if (row.group != group) continue;
    if (!field.leader)
      field.leader = &row;
    else
      (row.verdict == RowVerdict::kSame        ? field.tied
       : row.verdict != RowVerdict::kUndecided ? field.behind
       : probably_slower(s, row)               ? field.probable
                                               : field.open)
          .push_back(&row);
  }
  return field;
}

Finish finish_of(const Summary& s, const Row& row) {
  if (!s.refusal.empty()) return Finish::kMayBe;
  if (row.verdict == RowVerdict::kUndecided)
    return probably_slower(s, row) ? Finish::kProbably : Finish::kMayBe;
  if (row.verdict == RowVerdict::kSame) return Finish::kEqual;
  if (&row != &leader_of(s, row)) return Finish::kSlower;
  const Field field = field_of(s, row.group);
  return !field.open.empty() || !field.probable.empty() ? Finish::kMayBe
         : !field.tied.empty()                          ? Finish::kEqual
                                                        : Finish::kFastest;
}

std::string verdict_of(const Row& row) {
  return row.verdict == RowVerdict::kAtLeast
             ? fmt::format("at least {:g} times slower", row.at_least.value_or(1))
             : word(row.verdict);
}

}  // namespace bakeoff
