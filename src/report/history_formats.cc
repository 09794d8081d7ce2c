#include "report/history_formats.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "table/numbers.h"
#include "table/quantity.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

Json point_json(const History& history, size_t i) {
  const store::LinePoint& p = history.points[i];
  return {{"run", p.run},
          {"started", p.started},
          {"series", p.series},
          {"seconds_per_step", number(p.seconds)},
          {"low", number(p.low)},
          {"high", number(p.high)},
          {"level", number(history.levels[i])},
          {"verdict", p.verdict},
          {"host", p.host},
          {"commit", p.commit},
          {"branch", p.branch},
          {"dirty", p.dirty},
          {"bakeoff_version", p.bakeoff_version},
          {"packages", parse_json<Json>(p.packages)},
          {"directory", p.directory},
          {"note", p.note}};
}

Json history_json(const History& h) {
  Json out = {{"line", h.line.id},
              {"name", h.line.name},
              {"recipe", h.line.recipe},
              {"contender", h.line.contender},
              {"framework", h.line.framework},
              {"machine", h.line.machine},
              {"measured", h.line.measured},
              {"runs", h.line.runs},
              {"series", h.line.series},
              {"points_left_out", h.left_out},
              {"points", Json::array()},
              {"marks", Json::array()},
              {"shifts", Json::array()}};
  for (size_t i = 0; i < h.points.size(); ++i) out["points"].push_back(point_json(h, i));
  for (const Mark& mark : h.marks)
    out["marks"].push_back({{"run", h.points[mark.at].run}, {"index", mark.at}, {"changes", mark.changes}});
  for (const Shift& s : h.shifts) {
    out["shifts"].push_back({{"run", h.points[s.at].run},
                             {"index", s.at},
                             {"before", number(s.before)},
                             {"after", number(s.after)},
                             {"ratio", number(s.ratio)},
                             {"state", s.accepted ? "accepted" : "nominated"},
                             {"note", s.note},
                             {"changes", s.changes}});
  }
  return out;
}

std::string dumped(const Json& json) { return dump(json, 2) + "\n"; }

}  // namespace

std::string render_history_json(const std::vector<History>& histories) {
  Json out = Json::array();
  for (const History& history : histories) out.push_back(history_json(history));
  return dumped(out);
}

std::string render_history_csv(const std::vector<History>& histories) {
  std::string out = csv_row({"line", "name", "machine", "run", "started", "series", "seconds_per_step", "low",
                             "high", "level", "shift", "verdict", "host", "commit", "dirty",
                             "bakeoff_version", "packages", "directory", "note"});
  for (const History& h : histories) {
    for (size_t i = 0; i < h.points.size(); ++i) {
      const store::LinePoint& p = h.points[i];
      std::string shift;
      for (const Shift& s : h.shifts)
        if (s.at == i) shift = s.accepted ? "accepted" : "nominated";
      out += csv_row({h.line.id, h.line.name, h.line.machine, p.run, p.started, p.series, plain(p.seconds),
                      plain(p.low), plain(p.high), plain(h.levels[i]), shift, p.verdict, p.host, p.commit,
                      p.dirty ? "true" : "false", p.bakeoff_version, p.packages, p.directory, p.note});
    }
  }
  return out;
}

std::string render_store_json(const std::vector<store::ListedRun>& runs,
                              const std::vector<store::Skipped>& skipped, const store::Tally& tally,
                              const std::string& where) {
  Json out = {{"index", where},          {"runs_in_all", tally.runs},       {"results", tally.results},
              {"series", tally.series},  {"skipped_in_all", tally.skipped}, {"runs", Json::array()},
              {"skipped", Json::array()}};
  for (const store::ListedRun& r : runs) {
    out["runs"].push_back({{"id", r.id},
                           {"started", r.started},
                           {"host", r.host},
                           {"recipe", r.recipe},
                           {"outcome", r.outcome},
                           {"contenders", r.contenders},
                           {"commit", r.commit},
                           {"bakeoff_version", r.bakeoff_version},
                           {"directory", r.directory},
                           {"note", r.note}});
  }
  for (const store::Skipped& s : skipped)
    out["skipped"].push_back({{"directory", s.directory}, {"reason", s.reason}, {"seen", s.seen}});
  return dumped(out);
}

}  // namespace bakeoff::report
