#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "regression/bisect.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

using Json = nlohmann::ordered_json;
using table::paragraph;

std::string named(const SideInfo& version) {
  return table::one_line(version.detail.empty() ? version.name
                                                : fmt::format("{} ({})", version.name, version.detail));
}

std::string times(const Row& row) {
  return fmt::format("{} times as long, {}", table::ratio(row.ratio.value),
                     table::interval(row.ratio, table::ratio));
}

std::string suspects(const BisectOutcome& outcome) {
  const auto& found = outcome.found;
  if (found.first == 0) return "Nothing is known yet.";
  const std::string sure = fmt::format("{:.0f}% likely", std::floor(100 * found.probability));
  if (found.first == found.last)
    return fmt::format("Most likely {} ({}).", named(outcome.versions[found.first]), sure);
  return fmt::format("Most likely one of {} versions from {} to {} ({}); those between do not run.",
                     found.last - found.first + 1, named(outcome.versions[found.first]),
                     named(outcome.versions[found.last]), sure);
}

std::string headline(const BisectOutcome& outcome) {
  const auto& found = outcome.found;
  switch (verdict(outcome)) {
    case BisectVerdict::kNothingToFind:
      return fmt::format("NOTHING TO FIND: {} takes {} in the bad version: less than {} slower.",
                         outcome.ends->name, times(*outcome.ends), table::percent(outcome.settings.margin));
    case BisectVerdict::kFound:
      return fmt::format("FOUND: {} made {} slower: it takes {}, raced against {}.",
                         found.first == found.last
                             ? named(outcome.versions[found.last])
                             : fmt::format("one of {} versions from {} to {} (those between do not run)",
                                           found.last - found.first + 1, named(outcome.versions[found.first]),
                                           named(outcome.versions[found.last])),
                         outcome.confirmed->name, times(*outcome.confirmed),
                         named(outcome.versions[outcome.parent]));
    default:
      break;
  }
  if (outcome.interrupted) return "INTERRUPTED. " + suspects(outcome);
  if (outcome.ends && outcome.ends->change == stats::Change::kUndecided)
    return "UNDECIDED: whether the bad version is slower at all. " +
           what_decides(*outcome.ends, {.settings = outcome.settings});
  if (outcome.confirmed)
    return fmt::format(
        "UNDECIDED: the search found {}, but raced against {} it takes {}: that does not prove it.",
        named(outcome.versions[found.last]), named(outcome.versions[outcome.parent]),
        times(*outcome.confirmed));
  return fmt::format(
      "UNDECIDED: {}. {} A larger --budget goes on where this ended, with --resume.",
      outcome.stopped.empty() ? "what was found was not raced against its parent" : outcome.stopped,
      suspects(outcome));
}

Json row_json(const std::optional<Row>& row) {
  if (!row) return {};
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{"change", stats::name(row->change)},
          {"ratio",
           {{"value", row->ratio.value}, {"low", finite(row->ratio.low)}, {"high", finite(row->ratio.high)}}},
          {"heats", row->heats}};
}

}  // namespace

BisectVerdict verdict(const BisectOutcome& outcome) {
  if (outcome.ends && outcome.ends->change == stats::Change::kNone) return BisectVerdict::kNothingToFind;
  if (outcome.confirmed && outcome.confirmed->change == stats::Change::kRegression)
    return BisectVerdict::kFound;
  return BisectVerdict::kUndecided;
}

int exit_code(const BisectOutcome& outcome) {
  if (outcome.interrupted) return 130;
  const BisectVerdict found = verdict(outcome);
  return found == BisectVerdict::kFound ? 0 : found == BisectVerdict::kNothingToFind ? 1 : 3;
}

std::string to_text(const BisectOutcome& outcome, int width) {
  std::string out = paragraph(table::one_line(headline(outcome)), width) + "\n";
  const auto skipped = std::ranges::count_if(outcome.probes, [](const ProbeRecord& p) { return !p.seen; });
  out += paragraph(
             fmt::format("{}, {} ({} skipped), {}", table::counted(std::ssize(outcome.versions), "version"),
                         table::counted(std::ssize(outcome.probes), "probe"), skipped,
                         table::duration(1e3 * outcome.seconds)),
             width) +
         "\n";
  if (outcome.probes.empty()) return out;
  out += "\n";
  for (const ProbeRecord& probe : outcome.probes) {
    const std::string seen = probe.seen
                                 ? fmt::format("{} times as long as the good version ({})",
                                               table::ratio(std::exp(probe.seen->mean)),
                                               table::counted(static_cast<int64_t>(probe.heats), "heat"))
                                 : "skipped: " + table::one_line(probe.reason).substr(0, 200);
    out += paragraph(fmt::format("{}: {}", named(outcome.versions[probe.position]), table::clean(seen)),
                     width, fmt::format("{:>4}  ", probe.position), "      ") +
           "\n";
  }
  return out;
}

std::string to_json(const BisectOutcome& outcome) {
  static constexpr const char* kVerdicts[] = {"found", "nothing to find", "undecided"};
  Json json = {{"format", "bakeoff bisect 1"},
               {"verdict", kVerdicts[static_cast<size_t>(verdict(outcome))]},
               {"exit_code", exit_code(outcome)},
               {"sentence", headline(outcome)},
               {"contender", outcome.contender},
               {"margin", outcome.settings.margin},
               {"alpha", outcome.settings.alpha},
               {"seconds", outcome.seconds},
               {"versions", Json::array()},
               {"ends", row_json(outcome.ends)},
               {"confirmed", row_json(outcome.confirmed)},
               {"probes", Json::array()}};
  for (const SideInfo& version : outcome.versions)
    json["versions"].push_back({{"name", version.name}, {"detail", version.detail}});
  if (outcome.found.first > 0)
    json["found"] = {{"first", outcome.found.first},
                     {"last", outcome.found.last},
                     {"probability", outcome.found.probability}};
  for (const ProbeRecord& probe : outcome.probes) {
    Json one = {{"position", probe.position}, {"heats", probe.heats}};
    if (probe.seen) one["ratio"] = std::exp(probe.seen->mean);
    if (!probe.seen) one["skipped"] = probe.reason;
    json["probes"].push_back(one);
  }
  return dump(json, 2) + "\n";
}

}  // namespace bakeoff::regression
