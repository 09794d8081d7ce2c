#include "report/csv.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "report/phrases.h"
#include "report/published_section.h"
#include "report/ranking.h"
#include "summary/baseline.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// The names of the columns, or their values.
std::string record(const Fields& fields, std::string Fields::value_type::*text) {
  std::vector<std::string> texts;
  for (const auto& one : fields) texts.push_back(one.*text);
  return csv_row(texts);
}

std::string settings(const Contender& contender) {
  std::string out;
  for (const auto& [key, value] : contender.settings) out += (out.empty() ? "" : ";") + key + '=' + value;
  return out;
}

// What row it is; then its quantities, those of the studies, and why it is not ranked.
Fields fields_of_row(const Summary& s, const std::vector<Quantity<Place>>& quantities, const Place& place) {
  const Row& row = *place.row;
  Fields all = {{"recipe", s.title},
                {"track", ir::name(s.track)},
                {"contender", row.contender.id},
                {"framework", row.contender.framework},
                {"settings", settings(row.contender)},
                {"state", !place.ranked       ? "not ranked"
                          : s.refusal.empty() ? "ranked"
                                              : word(PairVerdict::kNotJudged)}};
  const auto add = [&](const Fields& more) { all.insert(all.end(), more.begin(), more.end()); };
  add(fields_of(quantities, &place));
  for (const Section& section : sections_of(s)) add(fields(section, row.contender.id));
  all.emplace_back("reason", place.ranked ? "" : unranked_reason(row));
  return all;
}

}  // namespace

std::string render_csv(const std::vector<Fields>& rows) {
  std::string out = rows.empty() ? "" : record(rows.front(), &Fields::value_type::first);
  for (const Fields& row : rows) out += record(row, &Fields::value_type::second);
  return out;
}

std::string render_csv(const Summary& summary) {
  const auto quantities = ranking_quantities(summary);
  const Row none;
  std::string out =
      record(fields_of_row(summary, quantities, {&summary, &none, false}), &Fields::value_type::first);
  for (const bool ranked : {true, false}) {
    for (const Row& row : ranked ? summary.ranked : summary.unranked)
      out +=
          record(fields_of_row(summary, quantities, {&summary, &row, ranked}), &Fields::value_type::second);
  }
  return out;
}

}  // namespace bakeoff::report
