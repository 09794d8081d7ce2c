// The advice of summary/effects.h.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/texts.h"
#include "summary/effects.h"
#include "summary/pair_ratios.h"
#include "table/numbers.h"

namespace bakeoff {
namespace {

std::string factor(double value) { return table::significant(value, 3); }

std::string change(const SettingEffect& e) { return fmt::format("{} = {}", e.setting, e.to); }

std::vector<const EffectPair*> with_verdict(const SettingEffect& e, PairVerdict verdict) {
  std::vector<const EffectPair*> found;
  for (const EffectPair& pair : e.pairs) {
    if (pair.verdict == verdict) found.push_back(&pair);
  }
  return found;
}

// "1.15x faster [1.12, 1.18]" of one; "1.10x to 1.20x faster" of several, which are all faster, or all slower.
std::string speeds(const std::vector<const EffectPair*>& pairs) {
  if (pairs.size() == 1) {
    const EffectPair& one = *pairs.front();
    if (one.ratio && one.ratio->bound)
      return fmt::format("at least {}x {}", factor(one.speed.value > 1 ? one.speed.low : 1 / one.speed.high),
                         word(one.verdict));
    return speed_in_words(one.speed);
  }
  double least = INFINITY, most = 0;
  for (const EffectPair* pair : pairs) {
    const double x = std::max(pair->speed.value, 1 / pair->speed.value);
    least = std::min(least, x);
    most = std::max(most, x);
  }
  return fmt::format("{}x to {}x {}", factor(least), factor(most), word(pairs.front()->verdict));
}

std::string said_of(const EffectPair& pair, double margin) {
  if (!pair.ratio) return "not compared";
  if (pair.verdict == PairVerdict::kSame) return "the same within " + table::percent(margin);
  if (pair.verdict == PairVerdict::kUndecided) return "not decided";
  return speeds({&pair});
}

std::string value_in(const EffectPair& pair, const std::string& name) {
  const auto found = pair.with.find(name);
  return found == pair.with.end() ? "" : found->second;
}

std::set<std::string> values_among(const SettingEffect& e, const std::string& name) {
  std::set<std::string> values;
  for (const EffectPair& pair : e.pairs) values.insert(value_in(pair, name));
  return values;
}

// The settings that differ from pair to pair.
std::vector<std::string> crossed(const SettingEffect& e) {
  std::set<std::string> names;
  for (const EffectPair& pair : e.pairs) {
    for (const auto& [name, value] : pair.with) names.insert(name);
  }
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (values_among(e, name).size() > 1) found.push_back(name);
  }
  return found;
}

// The crossed settings by whose value alone the verdict is known; all crossed ones where no single one does it.
std::vector<std::string> on_what(const SettingEffect& e) {
  std::vector<std::string> found;
  const std::vector<std::string> all = crossed(e);
  for (const std::string& name : all) {
    std::map<std::string, std::set<PairVerdict>> verdicts;
    for (const EffectPair& pair : e.pairs) verdicts[value_in(pair, name)].insert(pair.verdict);
    if (std::all_of(verdicts.begin(), verdicts.end(), [](const auto& v) { return v.second.size() == 1; }))
      found.push_back(name);
  }
  return found.empty() ? all : found;
}

std::string each(const SettingEffect& e, double margin) {
  std::vector<std::string> parts;
  for (const EffectPair& pair : e.pairs)
    parts.push_back(fmt::format("{} with {}", said_of(pair, margin), with_in_words(pair)));
  return join(parts, "; ");
}

// Where several agree: on what, or how much.
std::string alike(const SettingEffect& e) {
  if (e.pairs.size() < 2) {
    const std::string with = with_in_words(e.pairs.front());
    return with.empty() ? "" : ", with " + with;
  }
  for (const EffectPair& a : e.pairs) {
    for (const EffectPair& b : e.pairs) {
      if (a.speed.high < b.speed.low)
        return fmt::format(", whatever {} is, though not equally much", join(crossed(e), " and "));
    }
  }
  return fmt::format(", whatever {} is", join(crossed(e), " and "));
}

}  // namespace

std::string speed_in_words(const Estimate& speed) {
  const bool slower = speed.value < 1;
  const Estimate e = slower ? inverse(speed) : speed;
  return fmt::format("{}x {} {}", factor(e.value), slower ? "slower" : "faster",
                     table::interval(e, [](double v) { return factor(v); }));
}

std::string with_in_words(const EffectPair& pair) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : pair.with) parts.push_back(name + " = " + value);
  return join(parts, ", ");
}

std::string advice(const SettingEffect& e, double margin) {
  const auto faster = with_verdict(e, PairVerdict::kFaster), slower = with_verdict(e, PairVerdict::kSlower),
             same = with_verdict(e, PairVerdict::kSame);
  const size_t all = e.pairs.size();
  if (faster.size() == all)
    return fmt::format("Set {} in {}: {} than {}{}.", change(e), e.place, speeds(faster), e.from, alike(e));
  if (slower.size() == all)
    return fmt::format("Leave {} = {} in {}: {} is {}{}.", e.setting, e.from, e.place, e.to, speeds(slower),
                       alike(e));
  if (same.size() == all)
    return fmt::format("{} = {} or {} in {} makes no difference of more than {}{}.", e.setting, e.from, e.to,
                       e.place, table::percent(margin), alike(e));
  if (faster.empty() && slower.empty()) {
    if (all > 1) return fmt::format("{} in {} is not decided: {}.", change(e), e.place, each(e, margin));
    const EffectPair& one = e.pairs.front();
    if (!one.ratio) return fmt::format("{} in {} was not compared with {}.", change(e), e.place, e.from);
    const bool below = table::bounded_below(one.speed), above = table::bounded_above(one.speed);
    const std::string range =
        below && above ? fmt::format("between {} and {}", factor(one.speed.low), factor(one.speed.high))
        : below        ? "at least " + factor(one.speed.low)
        : above        ? "at most " + factor(one.speed.high)
                       : "";
    return fmt::format("{} in {} is not decided against {}{}{}.", change(e), e.place, e.from,
                       range.empty() ? " yet" : fmt::format(": {} times as fast", range), alike(e));
  }
  if (!faster.empty() && !slower.empty())
    return fmt::format("Whether {} gains in {} depends on {}: {}.", change(e), e.place,
                       join(on_what(e), " and "), each(e, margin));
  return fmt::format("{} in {} does not {} everywhere: {}.", change(e), e.place,
                     faster.empty() ? "cost" : "gain", each(e, margin));
}

}  // namespace bakeoff
