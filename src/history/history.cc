#include "history/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_text.h"
#include "base/texts.h"
#include "records/names.h"
#include "stats/history.h"
#include "stats/trimmed.h"
#include "table/text.h"

namespace bakeoff {
namespace {

// Steps smaller than this are no news, however certain: the margin of a race is larger.
constexpr double kLeastStep = 0.005;

Texts texts_of(const std::string& json) {
  Texts texts;
  const auto parsed = parse_json<nlohmann::json>(json);
  if (!parsed.is_object()) return texts;
  for (const auto& [name, value] : parsed.items())
    if (value.is_string()) texts[name] = value.get<std::string>();
  return texts;
}

void add_packages(const std::string& before, const std::string& after, Mark& mark) {
  if (before == after) return;
  const Texts old = texts_of(before), fresh = texts_of(after);
  for (const auto& [name, version] : fresh) {
    const auto was = old.find(name);
    if (was == old.end())
      mark.changes.push_back(fmt::format("{} {} is new", name, version));
    else if (was->second != version)
      mark.changes.push_back(fmt::format("{} {} -> {}", name, was->second, version));
  }
  for (const auto& [name, version] : old)
    if (!fresh.contains(name)) mark.changes.push_back(fmt::format("{} {} is gone", name, version));
  mark.packages = true;
}

std::vector<Mark> marks_of(const std::vector<store::LinePoint>& points) {
  std::vector<Mark> marks;
  for (size_t i = 1; i < points.size(); ++i) {
    const store::LinePoint &before = points[i - 1], &after = points[i];
    Mark mark{.at = i};
    add_packages(before.packages, after.packages, mark);
    if (before.bakeoff_version != after.bakeoff_version)
      mark.changes.push_back(fmt::format("bakeoff {} -> {}", before.bakeoff_version, after.bakeoff_version));
    if (before.commit != after.commit && !after.commit.empty())
      mark.changes.push_back(fmt::format("commit {}", after.commit.substr(0, 9)));
    if (before.script != after.script) mark.changes.emplace_back("its script");
    if (before.host != after.host)
      mark.changes.push_back(fmt::format("host {} -> {}", before.host, after.host));
    if (!mark.changes.empty()) marks.push_back(std::move(mark));
  }
  return marks;
}

// Adds the first index after every significant change within [from, to).
void split(const std::vector<double>& logs, size_t from, size_t to, std::vector<size_t>& at) {
  const auto part = std::span(logs).subspan(from, to - from);
  const auto found = stats::nominate(part);
  if (!found || std::abs(found->change) < kLeastStep) return;
  split(logs, from, from + found->at, at);
  at.push_back(from + found->at);
  split(logs, from + found->at, to, at);
}

// A cut that was made while a further shift was on one side of it may lie beside its place: every cut is sought again
// between its neighbours.
void settle(const std::vector<double>& logs, size_t from, size_t to, std::vector<size_t>& at) {
  for (int pass = 0; pass < 10; ++pass) {
    const std::vector<size_t> before = at;
    for (size_t i = 0; i < at.size(); ++i) {
      const size_t low = i == 0 ? from : at[i - 1], high = i + 1 == at.size() ? to : at[i + 1];
      const stats::CusumPeak peak = stats::max_cusum(std::span(logs).subspan(low, high - low));
      if (peak.statistic > 0) at[i] = low + peak.at;
    }
    if (at == before) return;
  }
}

double level(const std::vector<double>& logs, size_t from, size_t to) {
  return std::exp(stats::mean(std::span(logs).subspan(from, to - from)));
}

// What changed at the shift, or at most two points before or after: its place is known to no more.
std::vector<std::string> near(const std::vector<Mark>& marks, size_t at) {
  std::vector<std::string> changes;
  for (const Mark& mark : marks)
    if (mark.at + 2 >= at && mark.at <= at + 2)
      changes.insert(changes.end(), mark.changes.begin(), mark.changes.end());
  return changes;
}

}  // namespace

size_t History::open_shifts() const {
  return static_cast<size_t>(std::ranges::count_if(shifts, [](const Shift& s) { return s.open(); }));
}

History history_of(const store::Line& line, std::vector<store::LinePoint> points) {
  History history{.line = line, .points = std::move(points)};
  history.marks = marks_of(history.points);
  const size_t n = history.points.size();
  history.left_out = std::max<int64_t>(0, line.runs - static_cast<int64_t>(n));
  std::vector<double> logs;
  for (const store::LinePoint& point : history.points) logs.push_back(std::log(point.seconds));
  logs = stats::without_spikes(logs);
  std::vector<size_t> bounds = {0};
  size_t from = 0;
  for (size_t i = 1; i <= n; ++i) {
    const bool accepted = i < n && history.points[i].accepted.has_value();
    if (i < n && !accepted) continue;
    std::vector<size_t> cuts;
    split(logs, from, i, cuts);
    settle(logs, from, i, cuts);
    bounds.insert(bounds.end(), cuts.begin(), cuts.end());
    if (i < n) bounds.push_back(i);
    from = i;
  }
  bounds.push_back(n);
  history.levels.resize(n);
  for (size_t b = 0; b + 1 < bounds.size(); ++b) {
    const double here = n == 0 ? 0 : level(logs, bounds[b], bounds[b + 1]);
    std::fill(history.levels.begin() + static_cast<long>(bounds[b]),
              history.levels.begin() + static_cast<long>(bounds[b + 1]), here);
    if (b == 0) continue;
    const auto& accepted = history.points[bounds[b]].accepted;
    const double before = history.levels[bounds[b] - 1];
    history.shifts.push_back({.at = bounds[b],
                              .before = before,
                              .after = here,
                              .ratio = here / before,
                              .accepted = accepted.has_value(),
                              .note = accepted.value_or(""),
                              .changes = near(history.marks, bounds[b])});
  }
  return history;
}

std::string label_of(const store::Line& line) {
  Contender contender{.id = line.contender, .framework = line.framework};
  const std::string begin = line.framework + "[";
  if (line.contender.starts_with(begin) && line.contender.ends_with("]")) {
    std::string* last = nullptr;
    for (const std::string& part :
         split(line.contender.substr(begin.size(), line.contender.size() - begin.size() - 1), ",")) {
      const size_t sign = part.find('=');
      if (last != nullptr && sign == std::string::npos &&
          std::isdigit(static_cast<unsigned char>(part[0])) != 0)
        *last += "," + part;  // of "cpus=0,2"
      else
        last = &(contender.settings[part.substr(0, sign)] =
                     sign == std::string::npos ? "true" : part.substr(sign + 1));
    }
  }
  return label(contender);
}

std::string title_of(const store::Line& line) {
  if (line.framework.empty()) return table::one_line(line.name);
  return table::one_line(line.recipe) + ", " + label_of(line);
}

std::vector<store::Line> lines_named(const std::vector<store::Line>& lines, const std::string& words) {
  std::vector<store::Line> same, within;
  for (const store::Line& line : lines) {
    const std::string title = title_of(line);
    if ((words.size() >= 4 && line.id.starts_with(words)) || line.name == words || title == words)
      same.push_back(line);
    if (line.name.find(words) != std::string::npos || title.find(words) != std::string::npos)
      within.push_back(line);
  }
  return same.empty() ? within : same;
}

}  // namespace bakeoff
