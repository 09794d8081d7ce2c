#include "stats/verdict.h"

#include <array>
#include <cmath>
#include <utility>

namespace bakeoff::stats {
namespace {

constexpr std::array<std::pair<Verdict, std::string_view>, 5> kNames = {
    {{Verdict::kUndecided, "UNDECIDED"},
     {Verdict::kFaster, "FASTER"},
     {Verdict::kSame, "SAME"},
     {Verdict::kSlower, "SLOWER"},
     {Verdict::kMateriallySlower, "MATERIALLY SLOWER"}}};

}  // namespace

std::string_view name(Verdict verdict) { return kNames[static_cast<size_t>(verdict)].second; }

std::optional<Verdict> verdict_of(std::string_view name) {
  for (const auto& [verdict, text] : kNames) {
    if (text == name) return verdict;
  }
  return std::nullopt;
}

Verdict judge(const Interval& d, double margin) {
  if (d.low > std::log1p(margin)) return Verdict::kMateriallySlower;
  if (d.low > 0) return Verdict::kSlower;
  if (d.high < 0) return Verdict::kFaster;
  if (within_margin(d, margin)) return Verdict::kSame;
  return Verdict::kUndecided;
}

bool within_margin(const Interval& d, double margin) { return d.within(std::log1p(margin)); }

}  // namespace bakeoff::stats
