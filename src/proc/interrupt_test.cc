#include "proc/interrupt.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/files.h"
#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

bool readable(int fd) {
  struct pollfd polled = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&polled, 1, 0) == 1;
}

TEST(Interrupt, FirstSignalSetsTheFlag) {
  install_interrupt_handlers();
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_FALSE(interrupted());
    EXPECT_FALSE(readable(interrupt_fd()));
    ::raise(signal);
    EXPECT_TRUE(interrupted());
    EXPECT_EQ(interrupt_signal(), signal);
    EXPECT_TRUE(readable(interrupt_fd()));
    ::raise(signal);  // the same key press, delivered twice
    clear_interrupt();
  }
  EXPECT_FALSE(interrupted());
}

TEST(Interrupt, SecondSignalEndsTheProgramAndItsChildren) {
  const testing::TestFolder folder;
  const pid_t program = ::fork();
  if (program == 0) {
    install_interrupt_handlers();
    Result<Child> child = Child::start(testing::shell("trap '' INT TERM; sleep 1000"));
    (void)write_file(folder / "pid", std::to_string(child->pid()));
    for (;;) ::pause();
  }
  ASSERT_TRUE(testing::soon([&] { return fs::exists(folder / "pid"); }));
  const pid_t child = std::stoi(read_file(folder / "pid").value());
  ASSERT_TRUE(testing::alive(child));
  ::kill(program, SIGINT);
  ::usleep(400'000);
  int status = 0;
  EXPECT_EQ(::waitpid(program, &status, WNOHANG), 0);
  ::kill(program, SIGINT);
  ASSERT_EQ(::waitpid(program, &status, 0), program);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(testing::soon([&] { return !testing::alive(child); }));
  clear_interrupt();  // the fork shares our descriptor
}

}  // namespace
}  // namespace bakeoff::proc
