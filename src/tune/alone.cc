#include "tune/alone.h"

#include "summary/standing.h"

namespace bakeoff::tune {

const Row* row_of(const Summary& summary, const std::string& id) {
  for (const auto* rows : {&summary.ranked, &summary.unranked})
    for (const Row& row : *rows)
      if (row.contender.id == id) return &row;
  return nullptr;
}

bool timed(const Row* row) { return row != nullptr && !row->failure && !row->at_least && row->rank_best > 0; }

namespace {

// Of the two, as far as the race tells them from the leader.
std::string compared(const Row& base, const Row& changed) {
  if (surely_slower(base.verdict) && changed.verdict == RowVerdict::kLeader) return "faster";
  if (base.verdict == RowVerdict::kLeader && surely_slower(changed.verdict)) return "slower";
  if (base.ratio.high < changed.ratio.low) return "slower";
  if (changed.ratio.high < base.ratio.low) return "faster";
  return "no difference is certain";
}

}  // namespace

Alone alone_of(const Summary& summary, const recipe::Contender& base, const recipe::Contender& changed,
               const Change& change) {
  Alone alone{.change = change};
  const Row *as_is = row_of(summary, base.id), *row = row_of(summary, changed.id);
  if (row == nullptr) {
    alone.verdict = "not raced";
  } else if (row->failure) {
    alone.verdict = row->failure->reason;
  } else if (row->at_least) {
    alone.verdict = verdict_of(*row);
  } else if (timed(as_is) && timed(row)) {
    alone.gain = as_is->ratio.value / row->ratio.value;
    alone.verdict = compared(*as_is, *row);
  } else {
    alone.verdict = "not timed";
  }
  return alone;
}

}  // namespace bakeoff::tune
