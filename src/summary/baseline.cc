#include "summary/baseline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/nearest.h"
#include "summary/pair_ratios.h"

namespace bakeoff {
namespace {

AgainstBaseline compare(const Summary& s, const PairRatios& ratios, const Row& row, const Row& base) {
  AgainstBaseline out{.contender = row.contender.id};
  if (&row == &base) {
    out.verdict = PairVerdict::kBaseline;
    return out;
  }
  out.verdict = s.refusal.empty() ? PairVerdict::kUndecided : PairVerdict::kNotJudged;
  if (row.group != base.group) {
    out.note = fmt::format("computes in {}, the baseline in {}: each precision is a race of its own",
                           row.group, base.group);
    return out;
  }
  out.ratio = ratios.between(row.contender.id, base.contender.id);
  if (!out.ratio) {
    out.note = "no heat links it with the baseline yet";
    return out;
  }
  out.speed = inverse(out.ratio->ratio);
  if (s.refusal.empty()) out.verdict = compared(out.ratio->ratio, s.margin);
  if (out.ratio->bound)
    out.note =
        fmt::format("a bound: {} looked hopeless and was not timed", row.at_least ? "it" : "the baseline");
  else if (!out.ratio->through.empty())
    out.note = fmt::format("too seldom in a heat with the baseline: by way of {}", out.ratio->through);
  return out;
}

}  // namespace

std::vector<AgainstBaseline> against_baseline(const Summary& s) {
  const auto base = std::find_if(s.ranked.begin(), s.ranked.end(),
                                 [&](const Row& row) { return row.contender.id == s.baseline; });
  if (s.baseline.empty() || base == s.ranked.end()) return {};
  const PairRatios ratios(s);
  std::vector<AgainstBaseline> all;
  for (const Row& row : s.ranked) all.push_back(compare(s, ratios, row, *base));
  return all;
}

Status set_baseline(Summary& s, const std::string& name) {
  std::vector<std::string> ids;
  for (const Contender& contender : s.manifest.contenders) ids.push_back(contender.id);
  if (std::find(ids.begin(), ids.end(), name) == ids.end())
    return Error{.message = fmt::format("--baseline: '{}' is no contender of this run", name),
                 .remedy = suggest(name, ids)};
  s.baseline = name;
  return Done{};
}

}  // namespace bakeoff
