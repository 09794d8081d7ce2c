#include "evidence/sign_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

stats::PairTable table_of(size_t contenders) {
  return stats::PairTable(contenders, std::log1p(0.03), stats::Backup::kOnSigns);
}

TEST(SignNotes, AreSilentWithoutASign) {
  stats::PairTable table = table_of(2);
  for (const double d : {0.01, -0.02, 0.015, 0.003, -0.011, 0.021, -0.004, 0.009})
    ASSERT_TRUE(table.add({{d, 0.0}, 0.02}));
  EXPECT_THAT(sign_notes(table, {"a", "b"}), IsEmpty());
}

TEST(SignNotes, NameThePairAndItsFigures) {
  stats::PairTable table = table_of(2);
  for (int heat = 0; heat < 10; ++heat) {
    const double steal = 0.01 * (heat * 7 % 10);
    ASSERT_TRUE(table.add({{1.5 * steal + 0.001 * (heat * 3 % 4), 0.0}, steal}));
  }
  const auto notes = sign_notes(table, {"torch", "jax"});
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_THAT(notes[0], HasSubstr("torch against jax (+1.5% for each percent stolen"));
  EXPECT_THAT(notes[0], HasSubstr("0.0% to 9.0% stolen"));
  EXPECT_THAT(notes[1], HasSubstr("docs/verdicts.md"));
}

TEST(SignNotes, NameThreePairsAndCountTheOthers) {
  stats::PairTable table = table_of(4);
  for (int heat = 0; heat < 10; ++heat) {
    stats::HeatResult result;
    for (int i = 0; i < 4; ++i)
      result.log_ms.emplace_back(heat * (i + 1) % 2 * 0.05 * (1 + i) + 1e-4 * (heat * (3 + i) % 5));
    ASSERT_TRUE(table.add(result));
  }
  const auto notes = sign_notes(table, {"a", "b", "c", "d"});
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], HasSubstr("a against b (2 groups, "));
  EXPECT_THAT(notes[0], HasSubstr("more pair"));
}

TEST(SignNotes, NamePairsWhoseStallsDiffer) {
  stats::PairTable table(2, std::log1p(0.02), stats::Backup::kOnSigns);
  for (const double stalls : {0.05, 0.051, 0.049})
    ASSERT_TRUE(table.add({.log_ms = {1.0, 1.0}, .log_mean_ms = {1.0, 1.0 + stalls}}));
  const auto notes = sign_notes(table, {"torch", "jax"});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes[0], HasSubstr("jax against torch (by 5.0 ± 0.1% more, over 3 heats)"));
}

}  // namespace
}  // namespace bakeoff
