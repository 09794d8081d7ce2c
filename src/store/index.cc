// The queries of the index. Each change is one transaction. Statements use the SQL that SQLite and PostgreSQL
// share.
//
// A series keeps its number of runs and its first and latest start, so that lists need no pass over the
// results. A new run only adds to these (added_). A removed or replaced run may have been the first or the
// latest, so its series is counted anew (again_). recount() does both at the end of the transaction.
//
// A run can appear twice: its directory was moved (the row with its id is replaced), or copied (is_copy:
// left out while the other directory exists, or if that is on another machine). In a shared database a
// directory belongs to the machine in kept_on_, because paths of other machines mean nothing here.

#include "store/index.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "store/read_run.h"
#include "store/schema.h"

namespace bakeoff::store {
namespace {

Status ran(const Result<Found>& result) { return result ? Status(Done{}) : Status(result.error()); }

Value or_null(const std::optional<double>& value) { return value ? Value(*value) : Value{}; }

std::optional<double> optional(const Value& value) {
  const double held = number(value);
  return std::isfinite(held) ? std::optional(held) : std::nullopt;
}

constexpr const char* kListed =
    "SELECT id, directory, started, host, recipe, outcome, commit_hash, bakeoff_version, note, "
    "(SELECT COUNT(*) FROM results WHERE results.run = runs.id) FROM runs ";

ListedRun listed(const Values& row) {
  return {.id = text(row[0]),
          .directory = text(row[1]),
          .started = text(row[2]),
          .host = text(row[3]),
          .recipe = text(row[4]),
          .outcome = text(row[5]),
          .commit = text(row[6]),
          .bakeoff_version = text(row[7]),
          .note = text(row[8]),
          .contenders = integer(row[9])};
}

}  // namespace

Result<std::string> database_url() {
  const char* value = std::getenv("BAKEOFF_DB");
  const std::string url = value == nullptr ? "" : value;
  if (url.empty() || url.starts_with("postgresql://") || url.starts_with("postgres://")) return url;
  return Error{
      .message = "BAKEOFF_DB is no address of PostgreSQL",
      .remedy = "postgresql://user:password@host/name; without BAKEOFF_DB the index is a SQLite file"};
}

fs::path index_file(const fs::path& home) { return home / "index.sqlite"; }

Result<Index> Index::open(const fs::path& home, const std::string& url, std::function<bool()> stop) {
  auto database = url.empty() ? open_sqlite(index_file(home), std::move(stop)) : open_postgresql(url);
  if (!database) return database.error();
  CHECK_OK(migrate(**database));
  return Index(std::move(*database));
}

Index::Index(std::unique_ptr<Database> database) : database_(std::move(database)) {
  char name[256] = {};
  if (database_->shared() && ::gethostname(name, sizeof name - 1) == 0) kept_on_ = name;
}

// Runs by their ids, with all that refers to them. What is counted of their series is counted again.
Status Index::remove(const Found& runs) {
  for (const Values& row : runs) {
    const std::string id = text(row[0]);
    TRY(const Found series, database_->query("SELECT series FROM results WHERE run = $1", {id}));
    for (const Values& one : series) again_[text(one[0])] = true;
    CHECK_OK(ran(database_->query("DELETE FROM results WHERE run = $1", {id})));
    CHECK_OK(ran(database_->query("DELETE FROM accepted WHERE run = $1", {id})));
    CHECK_OK(ran(database_->query("DELETE FROM runs WHERE id = $1", {id})));
  }
  return Done{};
}

Status Index::remove_directory(const std::string& directory) {
  TRY(const Found old,
      database_->query("SELECT id FROM runs WHERE directory = $1 AND kept_on = $2", {directory, kept_on_}));
  return remove(old);
}

Result<bool> Index::is_copy(const IndexedRun& run) {
  TRY(const Found known, database_->query("SELECT directory, kept_on FROM runs WHERE id = $1", {run.id}));
  if (known.empty()) return false;
  if (text(known.front()[1]) != kept_on_) return true;  // of another machine, which we cannot look at
  const std::string directory = text(known.front()[0]);
  std::error_code ignored;
  return directory != run.directory && fs::exists(path_of(directory) / "run.json", ignored);
}

Status Index::put_result(const IndexedRun& run, const Indexed& r) {
  const Series& s = r.series;
  if (!added_.contains(s.id)) {
    CHECK_OK(ran(database_->query(
        "INSERT INTO series (id, line, name, recipe, contender, framework, settings, workload, training, machine, "
        "packages, measured, runs, first, latest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 0, '', '') "
        "ON CONFLICT (id) DO NOTHING",
        {s.id, s.line, s.name, s.recipe, s.contender, s.framework, s.settings, s.workload, s.training,
         s.machine, s.packages, s.measured})));
  }
  Counted& counted = added_[s.id];
  ++counted.runs;
  if (counted.first.empty() || run.started < counted.first) counted.first = run.started;
  counted.latest = std::max(counted.latest, run.started);
  CHECK_OK(ran(database_->query(
      "INSERT INTO results (run, contender, series, line, started, seconds, low, high, verdict, heats, reason, script) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
      {run.id, s.contender, s.id, s.line, run.started, or_null(r.seconds), or_null(r.low), or_null(r.high),
       r.verdict, r.heats, r.reason, r.script})));
  if (!r.accepted || r.accepted->withdrawn) return Done{};
  return ran(database_->query(
      "INSERT INTO accepted (run, contender, line, accepted, note) VALUES ($1, $2, $3, $4, $5)",
      {run.id, s.contender, s.line, r.accepted->at, r.accepted->note}));
}

Status Index::put_run(const IndexedRun& run, const std::string& now) {
  CHECK_OK(remove_directory(run.directory));
  CHECK_OK(remove({{run.id}}));  // its directory was moved
  CHECK_OK(ran(database_->query(
      "INSERT INTO runs (id, kept_on, directory, stamp, started, host, machine, bakeoff_version, commit_hash, branch, dirty, "
      "recipe, recipe_hash, outcome, note, indexed) "
      "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
      {run.id, kept_on_, run.directory, run.stamp, run.started, run.host, run.machine, run.bakeoff_version,
       run.commit, run.branch, static_cast<int64_t>(run.dirty), run.recipe, run.recipe_hash, run.outcome,
       run.note, now})));
  CHECK_OK(ran(database_->query("DELETE FROM skipped WHERE directory = $1 AND kept_on = $2",
                                {run.directory, kept_on_})));
  for (const Indexed& result : run.results) CHECK_OK(put_result(run, result));
  return Done{};
}

// Brings the counts of all touched series up to date; series without runs go.
Status Index::recount() {
  for (const auto& [id, counted] : added_) {
    if (again_.contains(id)) continue;
    CHECK_OK(ran(database_->query(
        "UPDATE series SET runs = runs + $1, first = CASE WHEN first = '' OR $2 < first THEN $2 ELSE first END, "
        "latest = CASE WHEN $3 > latest THEN $3 ELSE latest END WHERE id = $4",
        {counted.runs, counted.first, counted.latest, id})));
  }
  for (const auto& [id, unused] : again_) {
    CHECK_OK(ran(database_->query(
        "UPDATE series SET runs = (SELECT COUNT(*) FROM results WHERE series = $1), "
        "first = COALESCE((SELECT MIN(started) FROM results WHERE series = $1), ''), "
        "latest = COALESCE((SELECT MAX(started) FROM results WHERE series = $1), '') WHERE id = $1",
        {id})));
    CHECK_OK(ran(database_->query("DELETE FROM series WHERE id = $1 AND runs = 0", {id})));
  }
  added_.clear();
  again_.clear();
  return Done{};
}

Result<int64_t> Index::put(std::span<const IndexedRun> runs) {
  int64_t copies = 0;
  added_.clear();
  again_.clear();
  TRY(Transaction transaction, Transaction::begin(*database_));
  const std::string now = utc_now();
  for (const IndexedRun& run : runs) {
    TRY(const bool copy, is_copy(run));
    if (copy)
      ++copies;
    else
      CHECK_OK(put_run(run, now));
  }
  CHECK_OK(recount());
  CHECK_OK(transaction.commit());
  return copies;
}

Status Index::skip(std::span<const Skipped> skipped) {
  if (skipped.empty()) return Done{};
  added_.clear();
  again_.clear();
  TRY(Transaction transaction, Transaction::begin(*database_));
  for (const Skipped& one : skipped) {
    CHECK_OK(remove_directory(one.directory));
    CHECK_OK(ran(database_->query(
        "INSERT INTO skipped (directory, kept_on, reason, seen) VALUES ($1, $2, $3, $4) ON CONFLICT (directory, kept_on) DO "
        "UPDATE SET reason = excluded.reason, seen = excluded.seen",
        {one.directory, kept_on_, one.reason, one.seen})));
  }
  CHECK_OK(recount());
  return transaction.commit();
}

Status Index::forget(std::span<const std::string> directories) {
  added_.clear();
  again_.clear();
  TRY(Transaction transaction, Transaction::begin(*database_));
  for (const std::string& directory : directories) {
    CHECK_OK(remove_directory(directory));
    CHECK_OK(ran(database_->query("DELETE FROM skipped WHERE directory = $1 AND kept_on = $2",
                                  {directory, kept_on_})));
  }
  CHECK_OK(recount());
  return transaction.commit();
}

Result<std::map<std::string, std::string>> Index::stamps() {
  TRY(const Found rows, database_->query("SELECT directory, stamp FROM runs WHERE kept_on = $1", {kept_on_}));
  std::map<std::string, std::string> found;
  for (const Values& row : rows) found.emplace(text(row[0]), text(row[1]));
  return found;
}

Result<std::vector<ListedRun>> Index::runs(int64_t most) {
  TRY(const Found rows,
      database_->query(std::string(kListed) + "ORDER BY started DESC, id DESC LIMIT $1", {most}));
  std::vector<ListedRun> found;
  for (const Values& row : rows) found.push_back(listed(row));
  return found;
}

Result<std::optional<ListedRun>> Index::later_run(const std::string& host, const std::string& utc) {
  TRY(const Found rows, database_->query(std::string(kListed) +
                                             "WHERE started > $1 AND host = $2 ORDER BY started DESC LIMIT 1",
                                         {utc, host}));
  if (rows.empty()) return std::optional<ListedRun>();
  return std::optional(listed(rows.front()));
}

Result<std::vector<Skipped>> Index::skipped(int64_t most) {
  TRY(const Found rows,
      database_->query("SELECT directory, reason, seen FROM skipped ORDER BY directory LIMIT $1", {most}));
  std::vector<Skipped> found;
  for (const Values& row : rows) found.push_back({text(row[0]), text(row[1]), text(row[2])});
  return found;
}

Result<Tally> Index::tally() {
  TRY(const Found rows,
      database_->query("SELECT (SELECT COUNT(*) FROM runs), (SELECT COALESCE(SUM(runs), 0) FROM series), "
                       "(SELECT COUNT(*) FROM series), (SELECT COUNT(*) FROM skipped)"));
  const Values& row = rows.front();
  return Tally{integer(row[0]), static_cast<int64_t>(number(row[1])), integer(row[2]), integer(row[3])};
}

Result<std::vector<Line>> Index::lines() {
  TRY(const Found rows,
      database_->query(
          "SELECT line, MIN(name), MIN(recipe), MIN(contender), MIN(framework), MIN(machine), "
          "MIN(measured), SUM(runs), COUNT(*), MIN(first), MAX(latest) FROM series GROUP BY line "
          "ORDER BY MIN(name), line"));
  std::vector<Line> found;
  for (const Values& row : rows) {
    found.push_back({.id = text(row[0]),
                     .name = text(row[1]),
                     .recipe = text(row[2]),
                     .contender = text(row[3]),
                     .framework = text(row[4]),
                     .machine = text(row[5]),
                     .measured = text(row[6]),
                     .runs = static_cast<int64_t>(number(row[7])),
                     .series = integer(row[8]),
                     .first = text(row[9]),
                     .latest = text(row[10])});
  }
  return found;
}

Result<std::vector<LinePoint>> Index::points(const std::string& line, int64_t most) {
  TRY(const Found rows,
      database_->query(
          "SELECT results.run, results.started, results.series, results.seconds, results.low, results.high, "
          "results.verdict, runs.host, runs.commit_hash, runs.branch, runs.bakeoff_version, results.script, "
          "runs.dirty, series.packages, runs.directory, runs.note, accepted.note "
          "FROM (SELECT * FROM results WHERE line = $1 AND seconds IS NOT NULL ORDER BY started DESC, run DESC "
          "LIMIT $2) AS results JOIN runs ON runs.id = results.run JOIN series ON series.id = results.series "
          "LEFT JOIN accepted ON accepted.run = results.run AND accepted.contender = results.contender "
          "ORDER BY results.started, results.run",
          {line, most}));
  std::vector<LinePoint> found;
  for (const Values& row : rows) {
    LinePoint point{.run = text(row[0]),
                    .started = text(row[1]),
                    .series = text(row[2]),
                    .seconds = number(row[3]),
                    .low = optional(row[4]),
                    .high = optional(row[5]),
                    .verdict = text(row[6]),
                    .host = text(row[7]),
                    .commit = text(row[8]),
                    .branch = text(row[9]),
                    .bakeoff_version = text(row[10]),
                    .script = text(row[11]),
                    .dirty = integer(row[12]) != 0,
                    .packages = text(row[13]),
                    .directory = text(row[14]),
                    .note = text(row[15])};
    if (!std::holds_alternative<std::monostate>(row[16])) point.accepted = text(row[16]);
    found.push_back(std::move(point));
  }
  return found;
}

}  // namespace bakeoff::store
