#pragma once

// For tests of studies' tables: a cell by its column's title, and what holds of every table.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "table/section.h"

namespace bakeoff::testing {

inline table::Cell cell(const table::Section& section, const std::string& title, size_t row) {
  const auto found = std::find_if(section.columns.begin(), section.columns.end(),
                                  [&](const auto& filled) { return filled.column.title == title; });
  if (found != section.columns.end()) return found->cells.at(row);
  ADD_FAILURE() << "no column " << title;
  return {};
}

inline std::string csv(const table::Section& section, const std::string& contender, const std::string& name) {
  for (const auto& [key, value] : table::fields(section, contender)) {
    if (key == name) return value;
  }
  return "no such column";
}

// The names of its columns in a CSV, with commas between.
inline std::string csv_names(const table::Section& section) {
  std::string all;
  for (const std::string& name : section.csv_names) all += (all.empty() ? "" : ",") + name;
  return all;
}

// The values of one contender, with commas between.
inline std::string csv_values(const table::Section& section, const std::string& contender) {
  std::string all;
  for (const auto& [name, value] : table::fields(section, contender)) all += value + ",";
  return all.substr(0, all.size() - 1);
}

// Every column is as long as the table and says in a sentence what it means; every row has a name.
inline void expect_whole(const table::Section& section, size_t rows) {
  EXPECT_NE(section.key, "");
  EXPECT_NE(section.label, "");
  EXPECT_NE(section.legend, "");
  ASSERT_EQ(section.rows(), rows);
  EXPECT_EQ(section.notes.size(), rows);
  for (const auto& [column, cells] : section.columns) {
    EXPECT_EQ(cells.size(), rows) << column.title;
    if (column.name) continue;
    EXPECT_TRUE(column.meaning.size() > 10 && column.meaning.back() == '.') << column.title;
  }
}

}  // namespace bakeoff::testing
