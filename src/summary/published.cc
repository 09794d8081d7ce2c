#include "summary/published.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace bakeoff {
namespace {

using recipe::Published;
using recipe::PublishedRow;

// Places from 1; equals share the better one.
template <typename Value>
int place_of(const std::vector<recipe::PublishedRow*>& rows, const recipe::PublishedRow& row, Value value) {
  return 1 + static_cast<int>(std::count_if(rows.begin(), rows.end(), [&](const recipe::PublishedRow* other) {
           return value(*other) < value(row);
         }));
}

// What stands beside the published seconds.
using Measured = std::optional<double> PublishedRow::*;

double kendall(const std::vector<recipe::PublishedRow*>& rows, Measured measured) {
  int concordant = 0, discordant = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double sign =
          (rows[i]->seconds - rows[j]->seconds) * (*(rows[i]->*measured) - *(rows[j]->*measured));
      concordant += sign > 0;
      discordant += sign < 0;
    }
  }
  const auto pairs = static_cast<double>(rows.size() * (rows.size() - 1)) / 2;
  return pairs > 0 ? (concordant - discordant) / pairs : 0;
}

void compare(recipe::Published& published, Measured measured) {
  std::vector<recipe::PublishedRow*> both;
  for (recipe::PublishedRow& row : published.rows) {
    row.measured_ratio.reset();
    row.measured_place.reset();
    if (row.*measured) both.push_back(&row);
  }
  if (both.empty()) return;
  const auto seconds = [](const recipe::PublishedRow& r) { return r.seconds; };
  const auto here = [&](const recipe::PublishedRow& r) { return *(r.*measured); };
  double least_s = both[0]->seconds, least = here(*both[0]);
  for (const recipe::PublishedRow* row : both) {
    least_s = std::min(least_s, row->seconds);
    least = std::min(least, here(*row));
  }
  for (recipe::PublishedRow& row : published.rows) {
    row.ratio = row.seconds / least_s;
    row.place = place_of(both, row, seconds);
    if (!(row.*measured)) continue;
    row.measured_ratio = here(row) / least;
    row.measured_place = place_of(both, row, here);
  }
  published.agreement = kendall(both, measured);
  published.compared = static_cast<int>(both.size());
}

void take(recipe::Published& published, const std::vector<std::pair<std::string, double>>& values,
          Measured measured) {
  for (recipe::PublishedRow& row : published.rows) {
    for (const auto& [id, value] : values) {
      if (id == row.contender) row.*measured = value;
    }
  }
}

}  // namespace

void compare_with(recipe::Published& published, const std::vector<std::pair<std::string, double>>& measured) {
  take(published, measured, &PublishedRow::measured_ms);
  compare(published, &PublishedRow::measured_ms);
}

void compare_fits(recipe::Published& published, const std::vector<std::pair<std::string, double>>& measured,
                  int64_t epochs) {
  if (measured.empty()) return;
  take(published, measured, &PublishedRow::measured_s);
  compare(published, &PublishedRow::measured_s);
  published.epochs = epochs;
}

}  // namespace bakeoff
