#include "proc/oom_kills.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/testing.h"

namespace bakeoff::proc {
namespace {

TEST(OomKills, AreThoseOfTheOwnGroup) {
  const char* const kGroups = "proc/self/cgroup";
  const struct {
    const char* what;
    std::map<std::string, std::string> files;
    int64_t kills;
  } cases[] = {
      {"version 2",
       {{kGroups, "0::/user.slice/job\n"},
        {"sys/fs/cgroup/user.slice/job/memory.events",
         "low 0\nhigh 0\nmax 212\noom 4\noom_kill 3\noom_group_kill 1\n"},
        {"sys/fs/cgroup/user.slice/memory.events", "oom_kill 9\n"},
        {"proc/vmstat", "oom_kill 20\n"}},
       3},
      {"version 2 in a container, whose path is that of the host",
       {{kGroups, "0::/docker/0a1b\n"}, {"sys/fs/cgroup/memory.events", "oom 1\noom_kill 2\n"}},
       2},
      {"version 1, beside a version 2 without memory",
       {{kGroups, "4:memory:/job\n0::/job\n"},
        {"sys/fs/cgroup/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n"}},
       5},
      {"version 2 beside a version 1 without memory",
       {{kGroups, "1:cpu:/\n0::/job\n"}, {"sys/fs/cgroup/unified/job/memory.events", "oom_kill 6\n"}},
       6},
      {"the machine", {{kGroups, "0::/\n"}, {"proc/vmstat", "nr_free 1\noom_kill 7\n"}}, 7},
      {"unknown", {{kGroups, "no group\n0:\n0::\n"}}, 0},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    const bakeoff::testing::TestFolder root;
    for (const auto& [file, text] : c.files) ASSERT_TRUE(write_file(root / file, text));
    EXPECT_EQ(oom_kills(root), c.kills);
  }
}

}  // namespace
}  // namespace bakeoff::proc
