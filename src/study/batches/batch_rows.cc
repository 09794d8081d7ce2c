#include "study/batches/batch_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "evidence/heats.h"
#include "stats/trimmed.h"

namespace bakeoff {

std::string no_throughput(const Trial& trial) {
  if (trial.failure) return trial.failure->text();
  if (trial.invalid) return *trial.invalid;
  if (!trial.dropped.empty()) return "dropped: " + trial.dropped;
  return heat_value(trial) ? "" : "it was not timed";
}

namespace {

BatchPoint point_of(int64_t batch, const std::vector<const Trial*>& trials) {
  BatchPoint point{.batch = batch};
  std::vector<double> rates;
  for (const Trial* trial : trials) {
    point.peak_rss_bytes = std::max(point.peak_rss_bytes, trial->peak_rss_bytes);
    if (point.failure.empty()) point.failure = no_throughput(*trial);
    if (const auto log_ms = heat_value(*trial))
      rates.push_back(1e3 * static_cast<double>(batch) / std::exp(*log_ms));
  }
  if (!point.failure.empty() || rates.empty()) return point;
  point.processes = static_cast<int>(rates.size());
  point.samples_per_s = stats::median(rates);
  point.least = *std::min_element(rates.begin(), rates.end());
  point.most = *std::max_element(rates.begin(), rates.end());
  return point;
}

// Greatest throughput, the least batch that comes near it, and whether a larger one might give more.
void judge(SearchRow& row, double margin) {
  const BatchPoint* best = nullptr;
  for (const BatchPoint& point : row.points) {
    if (point.failure.empty() && (best == nullptr || point.samples_per_s > best->samples_per_s))
      best = &point;
  }
  if (best == nullptr) {
    row.note = row.points.empty() ? "" : row.points.front().failure;
    return;
  }
  row.best = best->batch;
  for (const BatchPoint& point : row.points) {
    if (!point.failure.empty() || point.samples_per_s < (1 - margin) * best->samples_per_s) continue;
    row.enough = point.batch;
    break;
  }
  if (!row.points.back().failure.empty())
    row.note = fmt::format("batch {}: {}", row.points.back().batch, row.points.back().failure);
  else if (row.points.size() > 1 && row.enough == row.points.back().batch)
    row.note = "the largest batch that was tried is the best: a larger one may be better";
}

}  // namespace

const BatchPoint* SearchRow::at(int64_t batch) const {
  const auto found =
      std::find_if(points.begin(), points.end(), [&](const auto& p) { return p.batch == batch; });
  return found == points.end() ? nullptr : &*found;
}

std::vector<SearchRow> search_rows(const std::vector<BatchTrial>& trials, const std::vector<std::string>& ids,
                                   const recipe::Search& asked, double margin) {
  std::vector<SearchRow> rows;
  for (const std::string& id : ids) {
    std::map<int64_t, std::vector<const Trial*>> by_batch;
    for (const BatchTrial& trial : trials) {
      if (trial.trial.contender == id) by_batch[trial.batch].push_back(&trial.trial);
    }
    if (by_batch.empty()) continue;
    SearchRow row{.contender = id};
    for (const auto& [batch, own] : by_batch) row.points.push_back(point_of(batch, own));
    judge(row, margin);
    // By doubling it ended because more did not pay, or at the recipe's own end.
    if (asked.doubles() && row.points.back().failure.empty() && row.points.back().batch * 2 <= asked.most)
      row.note.clear();
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace bakeoff
