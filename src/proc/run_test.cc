#include "proc/run.h"

#include <unistd.h>

#include <csignal>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "proc/interrupt.h"
#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

using testing::shell;

TEST(RunCommand, HandsOverLinesAsTheyCome) {
  const testing::TestFolder folder;
  std::vector<std::string> lines;
  // It goes on when its first lines have arrived.
  const std::string script =
      "printf 'one\\ntwo\\r50%%\\r\\n'; until [ -e seen ]; do sleep 0.01; done; "
      "echo err >&2; printf 'no end'";
  ChildOptions child = shell(script);
  child.cwd = folder;
  const CommandResult result = run_command({.child = child,
                                            .timeout_ns = static_cast<int64_t>(testing::kNet * 1e9),
                                            .on_line =
                                                [&](std::string_view line) {
                                                  lines.emplace_back(line);
                                                  if (lines.size() == 3)
                                                    (void)write_file(folder / "seen", "");
                                                }})
                                   .value();
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "50%", "err", "no end"}));
  EXPECT_EQ(result.output_tail, "one\ntwo\r50%\r\nerr\nno end");
}

TEST(RunCommand, TellsExitCodeAndKeepsTheTail) {
  const CommandResult result =
      run_command({.child = shell("seq 1 100000; exit 2"), .tail_bytes = 12}).value();
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.text(), "exit code 2");
  EXPECT_EQ(result.output_tail, "9999\n100000\n");
}

TEST(RunCommand, EndsWhatTakesTooLong) {
  const CommandResult result =
      run_command({.child = shell("echo begun; sleep 1000"), .timeout_ns = kSecond / 2}).value();
  EXPECT_TRUE(result.timed_out);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(result.text(), "timed out after 500 ms");
  EXPECT_EQ(result.output_tail, "begun\n");
}

TEST(RunCommand, BackgroundProcessesDoNotKeepItWaiting) {
  const CommandResult result = run_command({.child = shell("sleep 1000 & echo done")}).value();
  EXPECT_EQ(result.output_tail, "done\n");
  EXPECT_EQ(result.exit.leftovers, 1) << "killed";
}

// The exit is told when the output ends, too: a moment before or after.
TEST(RunCommand, EndsWithItsProgramHoweverTheTwoEndsMeet) {
  const int64_t limit = 20 * kSecond;
  for (int i = 0; i < 400; ++i) {
    const int64_t begin = monotonic_clock().now_ns();
    const CommandResult result = run_command({.child = {.argv = {"true"}}, .timeout_ns = limit}).value();
    ASSERT_TRUE(result.ok()) << result.text();
    ASSERT_LT(monotonic_clock().now_ns() - begin, limit) << "command " << i << ": it waited for its limit";
  }
}

TEST(RunCommand, MissingProgramIsAnError) {
  EXPECT_EQ(run_command({.child = {.argv = {"no-such-program"}}}).error().message,
            "there is no program 'no-such-program' in the PATH");
}

TEST(RunCommand, InterruptEndsIt) {
  install_interrupt_handlers();
  std::thread later([] {
    ::usleep(200'000);
    ::kill(::getpid(), SIGTERM);
  });
  const Result<CommandResult> result = run_command({.child = shell("sleep 1000")});
  later.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "interrupted while running '/bin/sh'");
  clear_interrupt();
}

}  // namespace
}  // namespace bakeoff::proc
