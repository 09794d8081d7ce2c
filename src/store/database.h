#pragma once

// A database as the store uses it: SQLite or PostgreSQL behind one interface. Statements are SQL that both
// understand, with parameters $1, $2, ...
//
//   TRY(auto database, open_sqlite(file));
//   TRY(Found rows, database->query("SELECT id FROM runs WHERE host = $1", {host}));
//
// One object belongs to one thread; any number of processes use one database.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"

namespace bakeoff::store {

using Value = std::variant<std::monostate, std::string, double, int64_t>;  // monostate: NULL
using Values = std::vector<Value>;
using Found = std::vector<Values>;

// Empty, 0 or NaN for NULL.
std::string text(const Value& value);
int64_t integer(const Value& value);
double number(const Value& value);

class Database {
 public:
  virtual ~Database() = default;
  // All rows of one statement; none for a statement that returns none.
  virtual Result<Found> query(const std::string& sql, const Values& parameters = {}) = 0;
  // Begins a transaction that writes. Waits for those of other processes; an error after `kPatience_s`.
  virtual Status begin() = 0;
  virtual Status commit() = 0;
  virtual void rollback() = 0;  // also where nothing was begun
  // Whether a table of that name is there.
  virtual Result<bool> has_table(const std::string& name) = 0;
  virtual std::string where() const = 0;   // for people: a file, or an address without its password
  virtual bool shared() const = 0;         // by several machines: paths are not the same everywhere
  virtual std::string remedy() const = 0;  // what to do where its schema is newer or not ours
};

inline constexpr double kPatience_s = 60;

// Rolls back unless it was committed.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction() {
    if (database_ != nullptr) database_->rollback();
  }
  Status commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

// Creates the file, and folders above it, if absent. `stop`: whether to end a wait for another process.
Result<std::unique_ptr<Database>> open_sqlite(
    const std::filesystem::path& file, std::function<bool()> stop = [] { return false; });

// Why the file cannot be used as a database: it is damaged, or something else. Empty: it can, or is not there.
std::string damage_of(const std::filesystem::path& file);

// `url`: postgresql://user:password@host:port/name, as libpq takes it. libpq is loaded at run time.
Result<std::unique_ptr<Database>> open_postgresql(const std::string& url);

}  // namespace bakeoff::store
