#include "store/schema.h"

#include <fmt/format.h>

#include "base/embedded.h"
#include "base/texts.h"

namespace bakeoff::embedded {
const std::vector<File>& store_schema();
}

namespace bakeoff::store {
namespace {

Status apply(Database& database, int64_t version) {
  const std::string name = fmt::format("{}.sql", version);
  for (const embedded::File& file : embedded::store_schema()) {
    if (file.path != name) continue;
    for (std::string_view rest = file.text; !trimmed(rest).empty();) {
      const size_t end = rest.find(";\n");
      auto done = database.query(std::string(rest.substr(0, end)));
      if (!done) return done.error();
      rest = end == std::string_view::npos ? "" : rest.substr(end + 2);
    }
  }
  return Done{};
}

}  // namespace

Result<int64_t> schema_version(Database& database) {
  TRY(const bool known, database.has_table("schema_version"));
  if (!known) return int64_t{0};
  TRY(const Found rows, database.query("SELECT version FROM schema_version"));
  return rows.empty() ? int64_t{0} : integer(rows.front().front());
}

Status migrate(Database& database, int64_t to) {
  TRY(int64_t version, schema_version(database));
  if (version == to) return Done{};
  TRY(Transaction transaction, Transaction::begin(database));
  // Another process may have been faster.
  TRY(version, schema_version(database));
  if (version > to)
    return Error{
        .message = fmt::format("the index has schema {}, and this program knows {} at most", version, to),
        .where = database.where(),
        .remedy = fmt::format("use the newer bakeoff that made it; or {}", database.remedy())};
  if (version == 0) {
    for (const char* table : {"runs", "series", "results"}) {
      TRY(const bool taken, database.has_table(table));
      if (taken)
        return Error{.message = fmt::format("has a table '{}' that is not of Bakeoff's index", table),
                     .where = database.where(),
                     .remedy = database.remedy()};
    }
  }
  for (++version; version <= to; ++version) CHECK_OK(apply(database, version));
  return transaction.commit();
}

}  // namespace bakeoff::store
