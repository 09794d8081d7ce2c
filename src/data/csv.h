#pragma once

// Records of a CSV file (RFC 4180): fields may be in quotes, and then hold delimiters, quotes ("") and line
// ends. Spaces around a field and blank lines are left out. The file may be compressed by gzip.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bakeoff {

// `line`: where the record begins, from 1.
using CsvRecord = std::function<Status(const std::vector<std::string>& fields, int64_t line)>;

// Calls `record` for each, until one fails. Errors name file and line: a quote within a field without quotes,
// a quote that is never closed, a field of more than 1 MiB.
// `expansion`: see byte_source.h.
Status read_csv(const std::filesystem::path& path, char delimiter, double expansion, const CsvRecord& record);

// The same of a text in memory; errors name `path`.
Status read_csv_text(std::string_view text, const std::filesystem::path& path, char delimiter,
                     const CsvRecord& record);

}  // namespace bakeoff
