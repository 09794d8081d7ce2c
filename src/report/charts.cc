#include "report/charts.h"

#include <fmt/format.h>

#include "records/names.h"

namespace bakeoff::report {

using namespace table;

std::vector<Series> all_series(const Summary& summary) {
  std::vector<Series> out;
  const auto add = [&](const Row& row, bool ranked) {
    const int index = static_cast<int>(out.size());
    const std::string cls = fmt::format("c{}{}", index % 10, index < 10 ? "" : " dashed");
    out.push_back({index, label(row.contender), cls, &row, ranked});
  };
  for (const Row& row : summary.ranked) add(row, true);
  for (const Row& row : summary.unranked) add(row, false);
  return out;
}

}  // namespace bakeoff::report
