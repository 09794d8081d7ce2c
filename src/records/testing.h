#pragma once

// For tests of records: that none of a sample's fields has its default, and that all survive on disk.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "records/records.h"

namespace bakeoff::testing {

// Which places of a record hold something anywhere: "bursts[].ns" of any burst.
inline void look(const nlohmann::json& j, const std::string& path, std::map<std::string, bool>& filled) {
  const bool leaf = !j.is_structured();
  filled[path] |= leaf ? !j.is_null() && j != 0 && j != "" && j != false : !j.empty();
  if (leaf) return;
  for (const auto& [key, value] : j.items()) look(value, path + (j.is_array() ? "[]" : "." + key), filled);
}

inline std::vector<std::string> empty_places(const std::string& json) {
  std::map<std::string, bool> filled;
  look(nlohmann::json::parse(json), "", filled);
  std::vector<std::string> empty;
  for (const auto& [path, full] : filled) {
    if (!full) empty.push_back(path);
  }
  return empty;
}

// A record whose list lacks a field does not compile; a sample that lacks one is seen here: a field of its
// default would survive without being written.
template <IsKept R>
void expect_kept(const R& full) {
  EXPECT_THAT(empty_places(to_json(full)), ::testing::IsEmpty());
  EXPECT_EQ(to_json(full).find('\n'), std::string::npos) << "one record is one line";
  const auto back = from_json<R>(to_json(full), "here");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, full);
  const auto refused = from_json<R>("{}", std::string(Kept<R>::kFile) + ":1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, std::string(Kept<R>::kFile) + ":1");
}

}  // namespace bakeoff::testing
