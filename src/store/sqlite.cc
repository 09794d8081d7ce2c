// The index in one file. All that it holds can be made again from the run directories, so a damaged file is
// never repaired: it is moved aside. What SQLite reports by number is told with what to do about it, since
// most of it is no fault of the program (a full disk, another writer, a folder that cannot be written).
// Several processes index at once: writers wait for each other, for a limited time, and what was stored
// before an error is kept.

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <map>

#include "base/clock.h"
#include "base/files.h"
#include "store/database.h"

namespace bakeoff::store {
namespace {

constexpr const char* kRebuild =
    "`bakeoff store rebuild` moves the file aside and makes a new one from the run directories";

// What SQLite says, with what to do about it.
Error sqlite_error(int code, const std::string& what, const fs::path& file) {
  Error error{.message = what, .where = file.string()};
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      error.message = fmt::format("the index is damaged, or no SQLite database: {}", what);
      error.remedy = kRebuild;
      break;
    case SQLITE_FULL:
      error.message = "no space is left on the disk of the index; what was stored before is kept";
      error.remedy = "free some space and give the command again: it goes on where it stopped";
      break;
    case SQLITE_IOERR:
      error.message = fmt::format("the index cannot be read or written: {}", what);
      error.remedy =
          "is the disk full or failing? Then give the command again: what was stored before is kept";
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      error.message = fmt::format("another process has been writing the index for {:g} s", kPatience_s);
      error.remedy = "give the command again once it has ended";
      break;
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      error.remedy = "is the folder yours to write? BAKEOFF_HOME names another one";
      break;
    default:
      error.remedy = kRebuild;
  }
  return error;
}

using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

class Sqlite : public Database {
 public:
  Sqlite(fs::path file, std::function<bool()> stop) : file_(std::move(file)), stop_(std::move(stop)) {}
  ~Sqlite() override {
    statements_.clear();
    sqlite3_close(handle_);
  }

  Status open() {
    const int code =
        sqlite3_open_v2(file_.c_str(), &handle_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    if (code != SQLITE_OK) return error(code);
    sqlite3_extended_result_codes(handle_, 1);
    sqlite3_busy_handler(handle_, &Sqlite::wait, this);
    // Safe against a killed process; after a power cut the last transactions may be missing, which an import mends.
    CHECK_OK(done(query("PRAGMA synchronous = NORMAL")));
    return done(query("PRAGMA cache_size = -65536"));  // KiB: a history touches pages all over the file
  }

  Result<Found> query(const std::string& sql, const Values& parameters = {}) override {
    TRY(sqlite3_stmt * statement, prepared(sql));
    const struct Reset {
      sqlite3_stmt* statement;
      ~Reset() {
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
      }
    } reset{statement};
    for (size_t i = 0; i < parameters.size(); ++i) bind(statement, i, parameters[i]);
    Found rows;
    for (;;) {
      const int code = sqlite3_step(statement);
      if (code == SQLITE_DONE) return rows;
      if (code != SQLITE_ROW) return error(code);
      Values& row = rows.emplace_back();
      for (int c = 0; c < sqlite3_column_count(statement); ++c) row.push_back(column(statement, c));
    }
  }

  Status begin() override {
    begun_ns_ = monotonic_clock().now_ns();
    return done(query("BEGIN IMMEDIATE"));
  }
  Status commit() override { return done(query("COMMIT")); }
  void rollback() override {
    if (sqlite3_get_autocommit(handle_) == 0) (void)query("ROLLBACK");
  }
  Result<bool> has_table(const std::string& name) override {
    TRY(const Found rows, query("SELECT name FROM sqlite_master WHERE type = 'table' AND name = $1", {name}));
    return !rows.empty();
  }
  std::string where() const override { return file_.string(); }
  bool shared() const override { return false; }
  std::string remedy() const override { return kRebuild; }

 private:
  static Status done(const Result<Found>& result) { return result ? Status(Done{}) : Status(result.error()); }

  Error error(int code) const {
    return sqlite_error(code, handle_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle_), file_);
  }

  // Another process holds the database: 1 = wait on.
  static int wait(void* self, int tries) {
    auto* me = static_cast<Sqlite*>(self);
    if (tries == 0) me->begun_ns_ = monotonic_clock().now_ns();
    if (me->stop_() || seconds_since(me->begun_ns_) > kPatience_s) return 0;
    ::usleep(5000);
    return 1;
  }

  Result<sqlite3_stmt*> prepared(const std::string& sql) {
    if (const auto known = statements_.find(sql); known != statements_.end()) return known->second.get();
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v3(handle_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return error(code);
    statements_.emplace(sql, Statement(statement, &sqlite3_finalize));
    return statement;
  }

  static void bind(sqlite3_stmt* statement, size_t i, const Value& value) {
    const int at = sqlite3_bind_parameter_index(statement, fmt::format("${}", i + 1).c_str());
    if (at == 0) return;
    if (const auto* string = std::get_if<std::string>(&value))
      sqlite3_bind_text64(statement, at, string->data(), string->size(), SQLITE_STATIC, SQLITE_UTF8);
    else if (const auto* real = std::get_if<double>(&value))
      sqlite3_bind_double(statement, at, *real);
    else if (const auto* whole = std::get_if<int64_t>(&value))
      sqlite3_bind_int64(statement, at, *whole);
  }

  static Value column(sqlite3_stmt* statement, int c) {
    switch (sqlite3_column_type(statement, c)) {
      case SQLITE_NULL:
        return {};
      case SQLITE_INTEGER:
        return static_cast<int64_t>(sqlite3_column_int64(statement, c));
      case SQLITE_FLOAT:
        return sqlite3_column_double(statement, c);
      default: {
        const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, c));
        const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, c));
        return bytes == nullptr ? std::string() : std::string(bytes, size);
      }
    }
  }

  fs::path file_;
  std::function<bool()> stop_;
  sqlite3* handle_ = nullptr;
  int64_t begun_ns_ = 0;
  std::map<std::string, Statement> statements_ = {};
};

}  // namespace

Result<std::unique_ptr<Database>> open_sqlite(const fs::path& file, std::function<bool()> stop) {
  CHECK_OK(make_folder(file.parent_path()));
  auto database = std::make_unique<Sqlite>(file, std::move(stop));
  CHECK_OK(database->open());
  return std::unique_ptr<Database>(std::move(database));
}

std::string damage_of(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  const auto database = open_sqlite(file);
  if (!database) return database.error().message;
  const auto checked = (*database)->query("PRAGMA quick_check(1)");
  if (!checked) return checked.error().message;
  const std::string said = checked->empty() ? "" : text(checked->front().front());
  return said == "ok" ? "" : said;
}

}  // namespace bakeoff::store
