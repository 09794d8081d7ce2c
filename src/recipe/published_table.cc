#include "recipe/published_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

namespace bakeoff::recipe {
namespace {

std::string without_hashes(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '#')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return std::string(text);
}

// Fields of one line; a field in double quotes may hold commas.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

size_t column(const std::vector<std::string>& names, const char* name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

class Parser {
 public:
  Parser(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  Result<Published> parse() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      const std::string_view line = std::string_view(text_).substr(begin, end - begin);
      begin = end + 1;
      ++number_;
      if (line.starts_with("#")) {
        if (table_.source.empty()) table_.source = without_hashes(line);
      } else if (!line.empty() && names_.empty()) {
        names_ = fields_of(line);
        for (const char* wanted : {"contender", "seconds"}) {
          if (column(names_, wanted) == names_.size())
            return error(fmt::format("there is no column '{}'", wanted));
        }
      } else if (!line.empty()) {
        CHECK_OK(row(line));
      }
    }
    if (names_.empty()) return error("the table is empty");
    return table_;
  }

 private:
  Error error(const std::string& message) const {
    return {.message = message,
            .where = fmt::format("{}:{}", file_, number_),
            .remedy = "docs/pipelines.md describes the format"};
  }

  Status row(std::string_view line) {
    const auto fields = fields_of(line);
    if (fields.size() != names_.size())
      return error(fmt::format("{} fields, the first line has {}", fields.size(), names_.size()));
    const std::string& ids = fields[column(names_, "contender")];
    const std::string& text = fields[column(names_, "seconds")];
    double seconds = 0;
    const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    if (code != std::errc() || stop != text.data() + text.size() || !(seconds > 0))
      return error(fmt::format("column 'seconds': '{}' is no positive number", text));
    for (size_t begin = 0; begin < ids.size();) {
      const size_t end = std::min(ids.find(' ', begin), ids.size());
      CHECK_OK(add(ids.substr(begin, end - begin), seconds));
      begin = end + 1;
    }
    return Done{};
  }

  Status add(const std::string& id, double seconds) {
    for (const PublishedRow& other : table_.rows) {
      if (other.contender == id) return error(fmt::format("contender '{}' is in two rows", id));
    }
    if (!id.empty()) table_.rows.push_back({.contender = id, .seconds = seconds});
    return Done{};
  }

  const std::string& text_;
  const std::string& file_;
  int number_ = 0;
  std::vector<std::string> names_;
  Published table_;
};

}  // namespace

Result<Published> parse_published(const std::string& text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace bakeoff::recipe
