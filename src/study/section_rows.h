#pragma once

// A study's table from the list of its quantities: what all renderers take, in one step.
//
//   table::Section section = section_of(kQuantities, rows);   // columns, and names and notes of the rows
//   add_csv(section, kQuantities, rows, "target_");           // by contender
//   section.json = {{"target", text}, {"rows", json_rows(kQuantities, rows)}};
//
// A row has a `contender` and a `note`.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "table/section.h"
#include "table/text.h"

namespace bakeoff {

// The first quantity of every study.
template <typename Row>
table::Quantity<Row> contender_quantity() {
  return {{.key = "contender", .in_csv = false, .title = "contender", .left = true, .name = true},
          [](const Row& row) { return table::Json(row.contender); }};
}

template <typename Row>
table::Section section_of(const std::vector<table::Quantity<Row>>& quantities, const std::vector<Row>& rows) {
  table::Section section;
  section.columns = table::columns_of(quantities, rows);
  for (const Row& row : rows) {
    section.row_names.push_back(table::one_line(row.contender));
    section.notes.push_back(table::one_line(row.note));
  }
  return section;
}

// Columns for each prefix that a row has, all of them for every contender: a contender has a row of each prefix at most.
template <typename Row>
void add_csv(table::Section& section, const std::vector<table::Quantity<Row>>& quantities,
             const std::vector<Row>& rows, const std::function<std::string(const Row&)>& prefix_of) {
  std::vector<std::string> prefixes, contenders;
  const auto note = [](std::vector<std::string>& seen, const std::string& one) {
    if (std::find(seen.begin(), seen.end(), one) == seen.end()) seen.push_back(one);
  };
  for (const Row& row : rows) note(prefixes, prefix_of(row)), note(contenders, row.contender);
  for (const std::string& contender : contenders) {
    table::Fields fields;
    for (const std::string& prefix : prefixes) {
      const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
        return r.contender == contender && prefix_of(r) == prefix;
      });
      for (auto& field : table::fields_of(quantities, row == rows.end() ? nullptr : &*row, prefix))
        fields.push_back(std::move(field));
    }
    table::add_fields(section, contender, fields);
  }
}

template <typename Row>
void add_csv(table::Section& section, const std::vector<table::Quantity<Row>>& quantities,
             const std::vector<Row>& rows, const std::string& prefix) {
  add_csv<Row>(section, quantities, rows, [&](const Row&) { return prefix; });
}

template <typename Row>
table::Json json_rows(const std::vector<table::Quantity<Row>>& quantities, const std::vector<Row>& rows) {
  table::Json all = table::Json::array();
  for (const Row& row : rows) all.push_back(table::json_of(quantities, row));
  return all;
}

}  // namespace bakeoff
