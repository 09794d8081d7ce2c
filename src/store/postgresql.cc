// The index in a database that several machines share. libpq is opened at run time, so that the program needs
// it only where such an address is given. Writers wait for each other by an advisory lock that ends with the
// transaction: a writer that dies can leave no lock behind. Texts are sent as parameters and never pasted
// into SQL; zero bytes, which PostgreSQL's texts cannot hold, are taken out. Messages show the address
// without its password.

#include <fmt/format.h>

#include <cstdlib>
#include <map>

#include "base/texts.h"
#include "store/database.h"
#include "store/libpq.h"

namespace bakeoff::store {
namespace {

constexpr int kConnected = 0, kCommandOk = 1, kTuplesOk = 2;  // CONNECTION_OK, PGRES_*
constexpr int kSqlState = 'C';                                // PG_DIAG_SQLSTATE
constexpr unsigned kInt8 = 20, kInt4 = 23, kFloat8 = 701, kNumeric = 1700;
// Writers of one index wait for each other by this lock, which ends with the transaction.
constexpr const char* kWriterLock = "SELECT pg_advisory_xact_lock(4702386741)";

// The address without its password.
std::string shown(const std::string& url) {
  const size_t at = url.rfind('@'), begin = url.find("://");
  if (at == std::string::npos || begin == std::string::npos) return url.substr(0, url.find('?'));
  const size_t colon = url.find(':', begin + 3);
  const std::string rest =
      url.substr(at, url.find('?') == std::string::npos ? std::string::npos : url.find('?', at) - at);
  return url.substr(0, std::min(colon, at)) + rest;
}

// PostgreSQL's texts hold no zero byte.
std::string without_zeros(std::string text) {
  std::erase(text, '\0');
  return text;
}

class Postgresql : public Database {
 public:
  Postgresql(const Libpq& pq, std::string address) : pq_(pq), address_(std::move(address)) {}
  ~Postgresql() override {
    if (connection_ != nullptr) pq_.finish(connection_);
  }

  Status connect(const std::string& url) {
    connection_ = pq_.connectdb(url.c_str());
    if (connection_ == nullptr || pq_.status(connection_) != kConnected) {
      const std::string why = connection_ == nullptr ? "out of memory" : said(pq_.error_message(connection_));
      return Error{.message = fmt::format("PostgreSQL does not answer: {}", why),
                   .where = address_,
                   .remedy =
                       "is the server running, and BAKEOFF_DB its address "
                       "(postgresql://user:password@host/name)? Without BAKEOFF_DB the index is a SQLite "
                       "file"};
    }
    pq_.set_notice_processor(
        connection_, [](void*, const char*) {}, nullptr);
    return done(plain(fmt::format("SET lock_timeout = '{:g}s'", kPatience_s)));
  }

  Result<Found> query(const std::string& sql, const Values& parameters = {}) override {
    TRY(const std::string name, prepared(sql, parameters.size()));
    std::vector<std::string> texts;
    std::vector<const char*> values;
    texts.reserve(parameters.size());
    for (const Value& value : parameters) texts.push_back(written(value));
    for (size_t i = 0; i < parameters.size(); ++i)
      values.push_back(std::holds_alternative<std::monostate>(parameters[i]) ? nullptr : texts[i].c_str());
    return rows(pq_.exec_prepared(connection_, name.c_str(), static_cast<int>(values.size()), values.data(),
                                  nullptr, nullptr, 0));
  }

  Status begin() override {
    CHECK_OK(done(plain("BEGIN")));
    begun_ = true;
    return done(plain(kWriterLock));
  }
  Status commit() override {
    CHECK_OK(done(plain("COMMIT")));
    begun_ = false;
    return Done{};
  }
  void rollback() override {
    if (begun_) (void)plain("ROLLBACK");
    begun_ = false;
  }
  Result<bool> has_table(const std::string& name) override {
    // Not to_regclass(): its cache does not see what was committed while we waited for the writers' lock.
    TRY(const Found found,
        query(
            "SELECT tablename FROM pg_tables WHERE tablename = $1 AND schemaname = ANY(current_schemas(false))",
            {name}));
    return !found.empty();
  }
  std::string where() const override { return address_; }
  bool shared() const override { return true; }
  std::string remedy() const override {
    return "use the program of that version, or another database in BAKEOFF_DB and `bakeoff store rebuild`";
  }

 private:
  static Status done(const Result<Found>& result) { return result ? Status(Done{}) : Status(result.error()); }
  static std::string said(const char* text) {
    std::string words(trimmed(text == nullptr ? "" : text));
    for (char& c : words)
      if (c == '\n' || c == '\t') c = ' ';
    return words;
  }

  Error error(const PgResult* result) const {
    const char* state = pq_.error_field(result, kSqlState);
    const std::string code = state == nullptr ? "" : state;
    // A lost connection has no code; a server that is being stopped has one of class 57P.
    if (pq_.status(connection_) != kConnected || code.empty() || code.starts_with("57P"))
      return Error{.message = fmt::format("PostgreSQL went away: {}", said(pq_.result_error(result))),
                   .where = address_,
                   .remedy = "give the command again once it is back: what was committed is kept"};
    std::string remedy = "is this database for Bakeoff alone? `bakeoff store rebuild` fills it again";
    if (code == "55P03") remedy = "another process has been writing for long: give the command again later";
    if (code.starts_with("53")) remedy = "free space or memory on the server, and give the command again";
    if (code == "42501")
      remedy = "let an owner of the database grant this user CREATE and USAGE on its schema";
    return Error{.message = fmt::format("PostgreSQL refuses: {}", said(pq_.result_error(result))),
                 .where = address_,
                 .remedy = remedy};
  }

  Result<Found> rows(PgResult* result) const {
    const std::unique_ptr<PgResult, void (*)(PgResult*)> held(result, pq_.clear);
    const int status = pq_.result_status(result);
    if (status != kCommandOk && status != kTuplesOk) return error(result);
    Found found(static_cast<size_t>(pq_.rows(result)));
    for (int r = 0; r < pq_.rows(result); ++r)
      for (int c = 0; c < pq_.columns(result); ++c)
        found[static_cast<size_t>(r)].push_back(
            pq_.is_null(result, r, c) != 0 ? Value{} : read(pq_.value(result, r, c), pq_.type(result, c)));
    return found;
  }

  Result<Found> plain(const std::string& sql) { return rows(pq_.exec(connection_, sql.c_str())); }

  static std::string written(const Value& value) {
    if (const auto* string = std::get_if<std::string>(&value)) return without_zeros(*string);
    if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
    if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
    return "";
  }

  static Value read(const char* value, unsigned type) {
    if (type == kInt8 || type == kInt4) return static_cast<int64_t>(std::strtoll(value, nullptr, 10));
    if (type == kFloat8 || type == kNumeric) return std::strtod(value, nullptr);
    return std::string(value);
  }

  Result<std::string> prepared(const std::string& sql, size_t parameters) {
    if (const auto known = names_.find(sql); known != names_.end()) return known->second;
    const std::string name = fmt::format("s{}", names_.size());
    CHECK_OK(done(
        rows(pq_.prepare(connection_, name.c_str(), sql.c_str(), static_cast<int>(parameters), nullptr))));
    names_.emplace(sql, name);
    return name;
  }

  const Libpq& pq_;
  std::string address_;
  PgConnection* connection_ = nullptr;
  bool begun_ = false;
  std::map<std::string, std::string> names_ = {};  // of prepared statements, by their SQL
};

}  // namespace

Result<std::unique_ptr<Database>> open_postgresql(const std::string& url) {
  TRY(const Libpq* pq, load_libpq());
  auto database = std::make_unique<Postgresql>(*pq, shown(url));
  CHECK_OK(database->connect(url));
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace bakeoff::store
