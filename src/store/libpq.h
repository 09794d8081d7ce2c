#pragma once

// The client library of PostgreSQL, loaded when it is first needed: it has no static form that links, and few users
// need it.

#include "base/result.h"

namespace bakeoff::store {

// libpq's handles; their contents are its own.
struct PgConnection;
struct PgResult;

// The functions of libpq that the store calls, by their names in libpq-fe.h.
struct Libpq {
  PgConnection* (*connectdb)(const char* conninfo) = nullptr;
  int (*status)(const PgConnection*) = nullptr;  // 0: connected
  char* (*error_message)(const PgConnection*) = nullptr;
  void (*finish)(PgConnection*) = nullptr;
  PgResult* (*exec)(PgConnection*, const char* sql) = nullptr;
  PgResult* (*prepare)(PgConnection*, const char* name, const char* sql, int parameters,
                       const unsigned* types) = nullptr;
  PgResult* (*exec_prepared)(PgConnection*, const char* name, int parameters, const char* const* values,
                             const int* lengths, const int* formats, int result_format) = nullptr;
  int (*result_status)(const PgResult*) = nullptr;
  char* (*result_error)(const PgResult*) = nullptr;
  char* (*error_field)(const PgResult*, int field) = nullptr;
  int (*rows)(const PgResult*) = nullptr;
  int (*columns)(const PgResult*) = nullptr;
  int (*is_null)(const PgResult*, int row, int column) = nullptr;
  char* (*value)(const PgResult*, int row, int column) = nullptr;
  unsigned (*type)(const PgResult*, int column) = nullptr;
  void (*clear)(PgResult*) = nullptr;
  using NoticeProcessor = void (*)(void*, const char*);
  NoticeProcessor (*set_notice_processor)(PgConnection*, NoticeProcessor, void*) = nullptr;
};

// Error: the library is not installed, or lacks a function; the remedy names the package.
Result<const Libpq*> load_libpq();

}  // namespace bakeoff::store
