#include "regression/package_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bakeoff::regression {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PackageVersions, OlderComparesNumbersAndNotText) {
  EXPECT_TRUE(older("2.9", "2.10"));
  EXPECT_FALSE(older("2.10", "2.9"));
  EXPECT_TRUE(older("1.9.9", "2"));
  EXPECT_FALSE(older("2.13", "2.13.0"));
  EXPECT_FALSE(older("2.13.0", "2.13"));
  EXPECT_TRUE(older("2.13", "2.13.1"));
  EXPECT_TRUE(older("2.9.0rc1", "2.9.0"));
  EXPECT_FALSE(older("2.9.0", "2.9.0rc1"));
}

TEST(PackageVersions, WithinHasBothEndsOldestFirstWithoutPreReleases) {
  const std::vector<std::string> all = {"2.14.0",   "2.13.1", "2.13.0", "2.10.0",     "2.9.0",
                                        "2.9.0rc1", "2.8.1",  "2.9.0",  "2.12.0.dev1"};
  EXPECT_THAT(within(all, "2.9", "2.13"), ElementsAre("2.9.0", "2.10.0", "2.13.0", "2.13.1"));
  EXPECT_THAT(within(all, "2.9.0", "2.10.0"), ElementsAre("2.9.0", "2.10.0"));
  EXPECT_THAT(within(all, "3", "4"), IsEmpty());
  EXPECT_THAT(within(all, "2.13", "2.9"), IsEmpty());
}

TEST(PackageVersions, WordsOfPackagesAndVersions) {
  for (const char* name : {"torch", "scikit-learn", "a.b_c", "3to2"}) EXPECT_TRUE(is_package(name)) << name;
  for (const char* name : {"", "-torch", ".a", "a b", "a+b", "a;b", "ä"})
    EXPECT_FALSE(is_package(name)) << name;
  for (const char* version : {"1", "2.1.0rc1+cpu", "1!2.0", "2024.1-1"})
    EXPECT_TRUE(is_version(version)) << version;
  for (const char* version : {"", ".1", "1 2", "1,2", "1/2"}) EXPECT_FALSE(is_version(version)) << version;
}

TEST(PackageVersions, ARangeHasEnds) {
  const auto range = parse_range("torch==2.9..2.13");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->name, "torch");
  EXPECT_EQ(range->first, "2.9");
  EXPECT_EQ(range->last, "2.13");
  EXPECT_THAT(range->listed, IsEmpty());
}

TEST(PackageVersions, AListKeepsItsOrder) {
  const auto range = parse_range("scikit-learn==1.4.2,1.5.0rc1,1.5.0+cpu");
  ASSERT_TRUE(range);
  EXPECT_THAT(range->listed, ElementsAre("1.4.2", "1.5.0rc1", "1.5.0+cpu"));
  EXPECT_EQ(range->first, "");
}

TEST(PackageVersions, WhatNamesNoVersionsIsRefused) {
  for (const char* text :
       {"", "torch", "torch==", "torch==2.9", "==1..2", "torch==2.9..", "torch==..2", "torch==1..2..3",
        "torch==1,,2", "torch==a..b", "-r==1..2", "to rch==1..2", "torch==1;rm..2", "torch==1,--index-url"}) {
    const auto range = parse_range(text);
    ASSERT_FALSE(range) << text;
    EXPECT_THAT(range.error().text(), HasSubstr("names no versions of a package"));
  }
}

}  // namespace
}  // namespace bakeoff::regression
