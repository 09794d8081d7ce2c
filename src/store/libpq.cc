#include "store/libpq.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace bakeoff::store {
namespace {

constexpr const char* kPackage =
    "install the client library of PostgreSQL (Debian: apt-get install libpq5; Fedora: dnf install libpq), or "
    "unset BAKEOFF_DB to use the SQLite file";

template <typename Function>
bool bind(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr && missing.empty()) missing = name;
  return function != nullptr;
}

Result<Libpq> load() {
  // For tests, and for a library in a place of its own.
  const char* named = std::getenv("BAKEOFF_LIBPQ");
  const char* name = named != nullptr && *named != 0 ? named : "libpq.so.5";
  void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{.message = fmt::format("PostgreSQL cannot be reached: {}", ::dlerror()), .remedy = kPackage};
  Libpq pq;
  std::string missing;
  bind(library, "PQconnectdb", pq.connectdb, missing);
  bind(library, "PQstatus", pq.status, missing);
  bind(library, "PQerrorMessage", pq.error_message, missing);
  bind(library, "PQfinish", pq.finish, missing);
  bind(library, "PQexec", pq.exec, missing);
  bind(library, "PQprepare", pq.prepare, missing);
  bind(library, "PQexecPrepared", pq.exec_prepared, missing);
  bind(library, "PQresultStatus", pq.result_status, missing);
  bind(library, "PQresultErrorMessage", pq.result_error, missing);
  bind(library, "PQresultErrorField", pq.error_field, missing);
  bind(library, "PQntuples", pq.rows, missing);
  bind(library, "PQnfields", pq.columns, missing);
  bind(library, "PQgetisnull", pq.is_null, missing);
  bind(library, "PQgetvalue", pq.value, missing);
  bind(library, "PQftype", pq.type, missing);
  bind(library, "PQclear", pq.clear, missing);
  bind(library, "PQsetNoticeProcessor", pq.set_notice_processor, missing);
  if (!missing.empty())
    return Error{.message = fmt::format("{} has no function {}", name, missing), .remedy = kPackage};
  return pq;
}

}  // namespace

Result<const Libpq*> load_libpq() {
  static const Result<Libpq> loaded = load();
  if (!loaded) return loaded.error();
  return &loaded.value();
}

}  // namespace bakeoff::store
