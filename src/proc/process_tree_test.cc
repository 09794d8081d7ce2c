#include "proc/process_tree.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

TEST(ProcessTree, BothWaysOfReadingAgree) {
  Child child =
      Child::start(testing::shell("sleep 1000 & (sleep 1000 & setsid sleep 1000 & wait) & wait")).value();
  ASSERT_TRUE(testing::soon([&] { return descendants(child.pid()).size() == 4; }));
  std::vector<pid_t> fast = descendants(child.pid());
  std::vector<pid_t> slow = descendants_by_scan(child.pid());
  std::sort(fast.begin(), fast.end());
  std::sort(slow.begin(), slow.end());
  EXPECT_EQ(fast, slow);
}

TEST(ProcessTree, ReadsNamesWithParenthesesAndSpaces) {
  char before[16] = {};
  ::prctl(PR_GET_NAME, before);
  ::prctl(PR_SET_NAME, "a) T (b");
  EXPECT_EQ(process_state(::getpid()), 'R');
  ::prctl(PR_SET_NAME, before);
}

TEST(ProcessTree, MissingProcessesAreNothing) {
  EXPECT_EQ(process_state(999'999'999), '\0');
  EXPECT_EQ(resident_bytes(999'999'999), 0);
  EXPECT_TRUE(descendants(999'999'999).empty());
  EXPECT_GT(resident_bytes(::getpid()), 1 << 20);
}

}  // namespace
}  // namespace bakeoff::proc
