#include "store/schema.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/testing.h"

namespace bakeoff::store {
namespace {

using bakeoff::testing::TestFolder;

Found must(Result<Found> result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  return result ? std::move(*result) : Found{};
}

// Tables and columns, without the order in which migrations added them.
Found shape(Database& database) {
  return must(
      database.query("SELECT m.type, m.name, p.name, p.type FROM sqlite_master AS m LEFT JOIN "
                     "pragma_table_info(m.name) AS p ORDER BY 1, 2, 3"));
}

// A run with two contenders as schema 1 had it.
void fill_first(Database& database) {
  must(
      database.query("INSERT INTO runs VALUES ('R1', '', '/runs/a', 's', '2026-01-02T00:00:00Z', 'h', 'm', "
                     "'0.1.0', 'c', 'main', 0, 'tiny', 'rh', 'decided', '', '2026-01-03T00:00:00Z')"));
  for (const char* name : {"torch", "jax"}) {
    must(database.query(
        "INSERT INTO series VALUES ($1, $2, $3, 'tiny', $1, $1, '{}', 'w', 't', 'm', '{}', 'x')",
        {name, std::string("line ") + name, std::string("tiny ") + name}));
    must(database.query("INSERT INTO results VALUES ('R1', $1, $1, 0.01, 0.009, 0.011, 'leader', 3, '')",
                        {name}));
  }
}

TEST(Migrate, OfEveryOlderVersionGivesTheSchemaOfANewDatabase) {
  const TestFolder folder;
  auto fresh = open_sqlite(folder / "fresh.sqlite");
  ASSERT_TRUE(fresh);
  ASSERT_TRUE(migrate(**fresh));
  EXPECT_EQ(*schema_version(**fresh), kSchemaVersion);
  for (int64_t version = 1; version < kSchemaVersion; ++version) {
    SCOPED_TRACE(version);
    auto old = open_sqlite(folder / ("old" + std::to_string(version)));
    ASSERT_TRUE(old && migrate(**old, version));
    EXPECT_EQ(*schema_version(**old), version);
    EXPECT_NE(shape(**old), shape(**fresh));
    ASSERT_TRUE(migrate(**old));
    EXPECT_EQ(shape(**old), shape(**fresh));
  }
}

TEST(Migrate, KeepsWhatTheFirstVersionHeldAndFillsTheNewColumns) {
  const TestFolder folder;
  auto database = open_sqlite(folder / "index.sqlite");
  ASSERT_TRUE(database && migrate(**database, 1));
  fill_first(**database);
  ASSERT_TRUE(migrate(**database));
  const Found results = must(
      (*database)->query("SELECT contender, line, started, script, seconds FROM results ORDER BY contender"));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0], (Values{"jax", "line jax", "2026-01-02T00:00:00Z", "", 0.01}));
  const Found series = must((*database)->query("SELECT runs, first, latest FROM series WHERE id = 'torch'"));
  EXPECT_EQ(series[0], (Values{int64_t{1}, "2026-01-02T00:00:00Z", "2026-01-02T00:00:00Z"}));
}

TEST(Migrate, TheCheckedInDatabaseOfTheFirstVersionIsBroughtUpToDate) {
  const TestFolder folder;
  fs::copy_file(fs::path(BAKEOFF_SOURCE_DIR) / "src/store/testing/index_1.sqlite", folder / "index.sqlite");
  auto database = open_sqlite(folder / "index.sqlite");
  ASSERT_TRUE(database);
  ASSERT_EQ(*schema_version(**database), 1);
  ASSERT_TRUE(migrate(**database));
  EXPECT_EQ(must((*database)->query("SELECT COUNT(*) FROM results WHERE line <> '' AND started <> ''")),
            (Found{{int64_t{2}}}));
}

TEST(Migrate, ANewerSchemaIsAnErrorThatNamesBoth) {
  const TestFolder folder;
  auto database = open_sqlite(folder / "index.sqlite");
  ASSERT_TRUE(database && migrate(**database));
  must((*database)->query("UPDATE schema_version SET version = 7"));
  const auto done = migrate(**database);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("schema 7, and this program knows 2"), std::string::npos)
      << done.error().text();
  EXPECT_NE(done.error().remedy.find("store rebuild"), std::string::npos);
  EXPECT_EQ(*schema_version(**database), 7);
}

TEST(Migrate, ADatabaseOfSomethingElseIsLeftAlone) {
  const TestFolder folder;
  auto database = open_sqlite(folder / "index.sqlite");
  must((*database)->query("CREATE TABLE runs (mine TEXT)"));
  const auto done = migrate(**database);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("'runs'"), std::string::npos);
  EXPECT_FALSE(*(*database)->has_table("series"));
}

TEST(Sqlite, AFileThatIsNoDatabaseIsDamage) {
  const TestFolder folder;
  EXPECT_EQ(damage_of(folder / "absent"), "");
  EXPECT_FALSE(fs::exists(folder / "absent"));
  ASSERT_TRUE(write_file(folder / "index.sqlite", std::string(8192, 'x')));
  EXPECT_NE(damage_of(folder / "index.sqlite"), "");
}

TEST(Sqlite, ATransactionThatIsNotCommittedLeavesNothing) {
  const TestFolder folder;
  auto database = open_sqlite(folder / "index.sqlite");
  ASSERT_TRUE(database && migrate(**database));
  {
    auto transaction = Transaction::begin(**database);
    ASSERT_TRUE(transaction);
    must((*database)->query("INSERT INTO skipped VALUES ('d', '', 'r', 's')"));
  }
  EXPECT_EQ(must((*database)->query("SELECT COUNT(*) FROM skipped")), (Found{{int64_t{0}}}));
}

TEST(Sqlite, AWaitForAnotherWriterEndsWhenItIsStopped) {
  const TestFolder folder;
  auto first = open_sqlite(folder / "index.sqlite");
  ASSERT_TRUE(first && migrate(**first));
  const auto held = Transaction::begin(**first);
  auto second = open_sqlite(folder / "index.sqlite", [] { return true; });
  ASSERT_TRUE(second);
  const auto done = (*second)->begin();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("another process"), std::string::npos);
}

}  // namespace
}  // namespace bakeoff::store
