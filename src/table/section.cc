#include "table/section.h"

#include <algorithm>

namespace bakeoff::table {

Fields fields(const Section& section, const std::string& contender) {
  const auto found = std::find_if(section.csv.begin(), section.csv.end(),
                                  [&](const auto& entry) { return entry.first == contender; });
  Fields out;
  for (size_t i = 0; i < section.csv_names.size(); ++i)
    out.emplace_back(section.csv_names[i], found == section.csv.end() ? "" : found->second[i]);
  return out;
}

void add_fields(Section& section, const std::string& contender, const Fields& values) {
  section.csv_names.clear();
  std::vector<std::string> texts;
  for (const auto& [name, value] : values) {
    section.csv_names.push_back(name);
    texts.push_back(value);
  }
  section.csv.emplace_back(contender, std::move(texts));
}

}  // namespace bakeoff::table
