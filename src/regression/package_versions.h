#pragma once

// Versions of a package, from a list, or from a range of what pip's index has.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bakeoff::regression {

struct PackageRange {
  std::string name = {};
  std::vector<std::string> listed = {};  // given one by one
  std::string first = {}, last = {};     // or the ends of a range
};
// Of ASCII letters, digits and a few signs, as pip writes them: "scikit-learn", "2.1.0rc1+cpu".
bool is_package(std::string_view text);
bool is_version(std::string_view text);

// "numpy==1.26..2.1" or "numpy==1.26.4,2.0.2".
Result<PackageRange> parse_range(const std::string& text);

// Whether version a is older than b: by their numbers, "2.9" before "2.10". Suffixes ("2.9.0rc1") come before.
bool older(const std::string& a, const std::string& b);

// Those between first and last, both included, oldest first; "2.13" includes "2.13.1". Pre-releases are left out.
std::vector<std::string> within(std::vector<std::string> versions, const std::string& first,
                                const std::string& last);

// What `python -m pip index versions NAME` lists.
Result<std::vector<std::string>> indexed_versions(const std::filesystem::path& python,
                                                  const std::string& name);

}  // namespace bakeoff::regression
