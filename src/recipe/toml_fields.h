#pragma once

// Reads one table of a suite or of a study. Every error names the file, the line, the key and the remedy. Internal to
// this room.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/toml_text.h"

namespace bakeoff::recipe {

class TomlFields {
 public:
  // `whose`: the table in errors, "a row".
  TomlFields(const toml::table& table, std::string file, std::string whose)
      : table_(table), file_(std::move(file)), whose_(std::move(whose)) {}

  const toml::node* get(const char* key) const { return table_.get(key); }
  // At a node; nullptr: at the table.
  Error error(const toml::node* at, std::string message, std::string remedy) const;
  Status check_names(const std::vector<std::string>& known) const;

  // Of a key that is not there: `fallback`; an error where that is null.
  Result<std::string> text(const char* key, const char* fallback = nullptr) const;
  Result<std::vector<std::string>> texts(const char* key) const;  // none where the key is not there
  Result<double> minutes() const;                                 // 0 where they are not there
  // The TOML of a table of recipe keys; `holds`: what it is, for its error.
  Result<std::string> keys(const char* key, const char* holds) const;
  Result<std::vector<TomlFields>> tables(const char* key, const char* whose) const;

 private:
  const toml::table& table_;
  std::string file_, whose_;
};

}  // namespace bakeoff::recipe
