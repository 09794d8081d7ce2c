#include "table/junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace bakeoff::table {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Junit, CountsOutcomes) {
  const std::string text = render_junit({.name = "s",
                                         .started = "2026-11-21T08:00:00Z",
                                         .cases = {{.name = "a", .seconds = 1.5},
                                                   {.name = "b", .outcome = JunitOutcome::kFailed},
                                                   {.name = "c", .outcome = JunitOutcome::kError},
                                                   {.name = "d", .outcome = JunitOutcome::kSkipped}}});
  EXPECT_THAT(text, HasSubstr("<testsuite name=\"s\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\" "
                              "time=\"1.500000\" timestamp=\"2026-11-21T08:00:00Z\">"));
  EXPECT_THAT(text, HasSubstr("<testcase name=\"a\" classname=\"\" time=\"1.500000\"/>"));
}

TEST(Junit, EscapesEveryText) {
  const std::string evil = "\"/><script a='1'>&\x1b[31m\x01\xff\xEF\xBF\xBF\nline";
  const std::string text = render_junit({.name = evil,
                                         .properties = {{evil, evil}},
                                         .cases = {{.name = evil,
                                                    .group = evil,
                                                    .outcome = JunitOutcome::kFailed,
                                                    .kind = evil,
                                                    .message = evil,
                                                    .details = evil + "]]>",
                                                    .properties = {{evil, evil}},
                                                    .output = evil}}});
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  EXPECT_THAT(text, Not(HasSubstr("]]>")));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x01")));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
  EXPECT_THAT(text, Not(HasSubstr("\xEF\xBF\xBF")));
  EXPECT_THAT(text, HasSubstr("&quot;/&gt;&lt;script a=&apos;1&apos;&gt;&amp;"));
}

TEST(Junit, TimesAreNumbers) {
  for (const double seconds :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(), -1.0}) {
    EXPECT_THAT(render_junit({.cases = {{.seconds = seconds}}}), HasSubstr("time=\"0.000000\"/>"));
  }
}

}  // namespace
}  // namespace bakeoff::table
