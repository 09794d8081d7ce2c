#pragma once

// The schema of the store, by numbered migrations: schema/1.sql makes the first, each further file the next from
// the one before. docs/store.md describes the tables.

#include <cstdint>

#include "base/result.h"
#include "store/database.h"

namespace bakeoff::store {

inline constexpr int64_t kSchemaVersion = 2;

// Brings a database to kSchemaVersion, in one transaction; several processes may do so at once. Errors: the schema
// is newer; the database is of something else.
Status migrate(Database& database, int64_t to = kSchemaVersion);

// 0: there is none.
Result<int64_t> schema_version(Database& database);

}  // namespace bakeoff::store
