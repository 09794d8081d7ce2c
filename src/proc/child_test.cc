#include "proc/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "proc/launcher.h"
#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

using testing::alive;
using testing::fake_options;
using testing::FakeWorker;
using testing::in_seconds;
using testing::now;
using testing::number_in;
using testing::shell;
using testing::soon;

// Runs a shell script to its end; its output is in `log`.
struct Finished {
  Exit exit;
  std::string log;
};
Finished finish(const ChildOptions& options) {
  Result<Child> child = Child::start(options);
  EXPECT_TRUE(child) << child.error().text();
  if (!child) return {};
  const std::optional<Exit> exit = child->wait(in_seconds());
  EXPECT_TRUE(exit);
  return {exit.value_or(Exit{}), child->log_tail()};
}

int open_fds() {
  int count = 0;
  DIR* directory = ::opendir("/proc/self/fd");
  while (::readdir(directory) != nullptr) ++count;
  ::closedir(directory);
  return count;
}

// Processor time of a process so far, in clock ticks.
int64_t cpu_ticks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string stat((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  int64_t user = 0;
  int64_t system = 0;
  fields >> user >> system;
  return user + system;
}

TEST(Child, ReportsExitCodesSignalsAndOutput) {
  const Finished three = finish(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(three.exit.text(), "exit code 3");
  EXPECT_EQ(three.log, "out\nerr\n");
  EXPECT_EQ(finish(shell("kill -SEGV $$")).exit.text(), "killed by signal 11 (SIGSEGV)");
  EXPECT_EQ(finish(shell("kill -KILL $$")).exit.text(),
            "killed by signal 9 (SIGKILL), sent from outside Bakeoff");
  EXPECT_TRUE(finish(shell("true")).exit.ok());
}

TEST(Child, StartErrorsNameProgramAndReason) {
  const testing::TestFolder folder;
  ASSERT_TRUE(write_file(folder / "text", "no program"));
  const struct {
    ChildOptions options;
    std::string message;
  } cases[] = {
      {{.argv = {"no-such-program-at-all"}}, "there is no program 'no-such-program-at-all' in the PATH"},
      {{.argv = {"./no/such"}}, "there is no program './no/such'"},
      {{.argv = {folder / "text"}}, "cannot execute it: Permission denied"},
      {{.argv = {"true"}, .cwd = "/no/such/folder"}, "cannot enter folder '/no/such/folder'"},
      {{.argv = {"true"}, .cpus = {1000}}, "cannot run on processors 1000: Invalid argument"},
      {{.argv = {"true"}, .cpus = {-1}}, "there is no processor -1"},
      {{.argv = {"true"}, .log_file = "/no/such/log"}, "cannot write the log '/no/such/log'"},
      {{}, "argv is empty"},
  };
  for (const auto& c : cases) {
    const Result<Child> child = Child::start(c.options);
    ASSERT_FALSE(child) << c.message;
    EXPECT_NE(child.error().message.find(c.message), std::string::npos) << child.error().message;
  }
}

TEST(Child, AppliesEnvironmentFolderProcessorsAndNice) {
  ::setenv("PROC_TEST_KEPT", "kept", 1);
  ::setenv("PROC_TEST_REMOVED", "there", 1);
  ChildOptions options = shell(
      "echo $PROC_TEST_KEPT-$PROC_TEST_REMOVED-$PROC_TEST_ADDED; pwd; nice; "
      "grep Cpus_allowed_list /proc/self/status; echo group $$ $(cut -d' ' -f5 /proc/self/stat)");
  options.env = {{"PROC_TEST_ADDED", "a b=c"}};
  options.env_remove = {"PROC_TEST_REMOVED"};
  options.cwd = "/usr";
  cpu_set_t ours;
  ASSERT_EQ(::sched_getaffinity(0, sizeof ours, &ours), 0);
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<size_t>(last), &ours)) --last;
  options.cpus = {last};
  options.nice = 7;
  Child child = Child::start(options).value();
  const std::string pid = std::to_string(child.pid());
  ASSERT_TRUE(child.wait(in_seconds()));
  EXPECT_EQ(child.log_tail(), "kept--a b=c\n/usr\n7\nCpus_allowed_list:\t" + std::to_string(last) +
                                  "\ngroup " + pid + " " + pid + "\n");
}

TEST(Child, ClearedEnvironmentHoldsOnlyWhatIsSet) {
  EXPECT_EQ(finish({.argv = {"/usr/bin/env"}, .env = {{"ONLY", "this"}}, .env_clear = true}).log,
            "ONLY=this\n");
}

// Files below the folder `path`; -1 if there is none.
int64_t files_in(const fs::path& path) {
  std::error_code error;
  const fs::directory_iterator files(path, error);
  return error ? -1 : std::distance(files, fs::directory_iterator());
}

TEST(Child, OfWhatItLeavesInItsTemporaryFolderNothingStays) {
  const testing::TestFolder folder;
  for (const std::string end : {"exit 0", "kill -9 $$", "sleep 600"}) {
    ChildOptions options = shell("mkdir $TMPDIR/a && touch $TMPDIR/a/b $TMPDIR/c && echo ${#TMPDIR}; " + end);
    options.env = {{"TMPDIR", folder.path().string()}};
    options.own_temporary_folder = true;
    Child child = Child::start(options).value();
    ASSERT_TRUE(soon([&] { return child.log_bytes() > 0 || child.exit(); })) << end;
    child.kill();
    // The paths of sockets in it have room for 107 characters.
    EXPECT_EQ(std::stoul(child.log_tail()), folder.path().string().size() + 11) << child.log_tail();
    EXPECT_EQ(files_in(folder.path()), 0) << end;
  }
}

TEST(Child, InheritsNoDescriptorButItsOwn) {
  const int leaked = ::open("/dev/null", O_RDONLY);  // not close-on-exec, as a library might
  ChildOptions options = {.argv = {"/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; ls -l /proc/$$/fd"}};
  // ls itself opens the folder as the lowest free descriptor.
  EXPECT_EQ(finish(options).log.substr(0, 12), "0 1 2 3 4 5 ");
  options.control = false;
  EXPECT_EQ(finish(options).log.substr(0, 8), "0 1 2 3 ");
  ::close(leaked);
}

TEST(Child, StartsWithDefaultSignals) {
  const std::string log = finish(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status")).log;
  // Signals 32 and 33 are the C library's own: whoever starts us may have them ignored, and nobody can reset
  // them through the library.
  constexpr uint64_t kLibrarys = (uint64_t{1} << 31) | (uint64_t{1} << 32);
  ASSERT_EQ(log.size(), std::string("SigBlk:\t0000000000000000\n").size() * 2) << log;
  EXPECT_EQ(log.substr(0, 25), "SigBlk:\t0000000000000000\n");
  EXPECT_EQ(std::stoull(log.substr(33), nullptr, 16) & ~kLibrarys, 0u) << log;
}

TEST(Child, AddressRandomisationCanBeTurnedOff) {
  // Under `setarch -R` this process has it off itself.
  const auto own = std::stoul(read_file("/proc/self/personality").value(), nullptr, 16);
  ChildOptions options = shell("cat /proc/self/personality");
  EXPECT_EQ(finish(options).log, fmt::format("{:08x}\n", own));
  options.randomise_addresses = false;
  EXPECT_EQ(finish(options).log, fmt::format("{:08x}\n", own | ADDR_NO_RANDOMIZE));
}

TEST(Child, HugePagesCanBeTurnedOff) {
  ChildOptions options = shell("grep THP_enabled /proc/self/status || echo unknown");
  const std::string before = finish(options).log;
  if (before == "unknown\n") GTEST_SKIP() << "the kernel does not tell";
  EXPECT_EQ(before, "THP_enabled:\t1\n");
  options.huge_pages = false;
  EXPECT_EQ(finish(options).log, "THP_enabled:\t0\n");
}

TEST(Child, ReportsWhatItUsed) {
  const Finished used =
      finish({.argv = {"python3", "-c",
                       "import time\nhoard = bytearray(b'x') * (200 << 20)\n"
                       "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"}});
  ASSERT_TRUE(used.exit.ok()) << used.log;
  const ResourceUsage& usage = used.exit.usage;
  EXPECT_GT(usage.user_s + usage.system_s, 0.29);
  EXPECT_GT(usage.max_rss_bytes, int64_t{200} << 20);
  EXPECT_LT(usage.max_rss_bytes, int64_t{400} << 20);
  EXPECT_GT(usage.minor_faults, 0);
}

TEST(Child, PeakMemoryIsNotThatOfTheSupervisor) {
  ASSERT_TRUE(start_launcher());  // as main() does, before it holds any data
  const std::string ballast(size_t{300} << 20, 'x');
  const Finished small = finish(shell("true"));
  EXPECT_LT(small.exit.usage.max_rss_bytes, int64_t{100} << 20) << ballast.size();
}

TEST(Child, FloodOnBothStreamsIsDrainedAndCapped) {
  const testing::TestFolder folder;
  ChildOptions options = fake_options();
  options.log_file = folder / "log";
  FakeWorker worker(options);
  const Result<std::string> answer = worker.import(R"("flood_mb":"50")");
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_TRUE(worker.child.kill().asked);
  EXPECT_EQ(worker.child.log_bytes(), int64_t{100} << 20);
  EXPECT_LE(worker.child.log_tail().size(), size_t{64} << 10);
  EXPECT_NE(worker.child.log_tail().find("fake floods"), std::string::npos);
  const auto size = static_cast<int64_t>(fs::file_size(folder / "log"));
  EXPECT_GT(size, int64_t{3} << 20);
  EXPECT_LT(size, (int64_t{4} << 20) + 100);
}

TEST(Child, FloodWhileNobodyListensDoesNotBlockIt) {
  Child child = Child::start(shell("head -c 5000000 /dev/zero; echo done")).value();
  ::usleep(300'000);  // the supervisor is busy elsewhere
  ASSERT_TRUE(soon([&] { return child.exit().has_value(); }));
  EXPECT_EQ(child.log_bytes(), 5'000'005);
}

TEST(Child, StopReallyFreezesAndResumeThaws) {
  FakeWorker worker;
  ASSERT_TRUE(worker.import(R"("spin":"1")"));
  const pid_t pid = worker.child.pid();
  ASSERT_TRUE(worker.child.stop());
  EXPECT_TRUE(worker.child.stopped());
  EXPECT_EQ(process_state(pid), 'T');
  const int64_t frozen = cpu_ticks(pid);
  ::usleep(200'000);
  EXPECT_EQ(cpu_ticks(pid), frozen);
  EXPECT_EQ(worker.channel.exchange(R"({"id":9,"op":"memory"})", in_seconds(0.2), "memory").error().message,
            "timed out after 200 ms in stage memory");
  ASSERT_TRUE(worker.child.resume());
  EXPECT_TRUE(worker.channel.receive(in_seconds()));
  EXPECT_TRUE(soon([&] { return cpu_ticks(pid) > frozen + 5; }));
  EXPECT_TRUE(worker.child.stop());
  EXPECT_TRUE(worker.child.stop());  // of no effect
  EXPECT_TRUE(worker.child.resume());
  EXPECT_TRUE(worker.child.resume());
}

TEST(Child, StopFreezesDescendantsOfOtherSessionsToo) {
  FakeWorker worker;
  const pid_t grandchild =
      static_cast<pid_t>(number_in(worker.import(R"("grandchild":"orphan")").value(), "grandchild"));
  ASSERT_TRUE(alive(grandchild));
  ASSERT_TRUE(worker.child.stop());
  EXPECT_TRUE(soon([&] { return process_state(grandchild) == 'T'; }));
  ASSERT_TRUE(worker.child.resume());
  EXPECT_TRUE(soon([&] { return process_state(grandchild) == 'S'; }));
}

TEST(Child, KillOfAFrozenChildWorks) {
  Child child = Child::start(shell("sleep 1000")).value();
  ASSERT_TRUE(child.stop());
  EXPECT_EQ(child.kill(100 * kSecond).text(), "ended by Bakeoff (SIGTERM)") << "and not after its grace";
  EXPECT_FALSE(child.resume());
}

TEST(Child, StopReturnsSoonWhileTheChildStartsAnother) {
  // A shell waits in vfork for its new process, which may be frozen first; it cannot be told to stop then.
  Child child = Child::start(shell("while true; do /bin/true; done")).value();
  int late = 0;
  for (int i = 0; i < 50; ++i) {
    const int64_t begin = now();
    ASSERT_TRUE(child.stop());
    late += now() - begin > kSecond / 2;
    ASSERT_TRUE(child.resume());
  }
  EXPECT_LT(late, 10) << "of 50, of which most fall into a vfork";
}

TEST(Child, GraceThenForce) {
  FakeWorker worker;
  ASSERT_TRUE(worker.import(R"("ignore_sigterm":"1")"));
  const int64_t begin = now();
  const Exit exit = worker.child.kill(kSecond / 5);
  EXPECT_EQ(exit.text(), "ended by Bakeoff (SIGKILL)");
  EXPECT_GE(now() - begin, kSecond / 5);
}

TEST(Child, SeveralCanBeToldBeforeAnyIsAwaited) {
  std::vector<Child> children;
  for (int i = 0; i < 4; ++i)
    children.push_back(Child::start(shell("trap '' TERM; echo deaf; sleep 1000")).value());
  for (const Child& child : children) ASSERT_TRUE(soon([&] { return child.log_bytes() > 0; }));
  for (Child& child : children) child.begin_kill(1000 * kSecond);
  for (const Child& child : children) EXPECT_FALSE(child.exit()) << "nobody waited for it";
  for (Child& child : children) child.begin_kill(kSecond / 5);
  for (const Child& child : children) EXPECT_TRUE(child.wait(in_seconds()));
}

TEST(Child, NoGrandchildSurvivesIt) {
  for (const std::string kind : {"plain", "setsid", "orphan"}) {
    for (const bool by_itself : {false, true}) {
      SCOPED_TRACE(kind + (by_itself ? " after the end" : " at kill"));
      FakeWorker worker;
      const Result<std::string> answer = worker.import(R"("grandchild":")" + kind + "\"");
      ASSERT_TRUE(answer) << answer.error().text();
      const pid_t grandchild = static_cast<pid_t>(number_in(*answer, "grandchild"));
      ASSERT_TRUE(alive(grandchild));
      if (by_itself) {
        ASSERT_TRUE(worker.channel.exchange(R"({"id":9,"op":"close"})", in_seconds(), "close"));
        const std::optional<Exit> exit = worker.child.wait(in_seconds());
        ASSERT_TRUE(exit);
        EXPECT_EQ(exit->text(), "exit code 0; left 1 process behind (killed)");
      } else {
        worker.child.kill();
      }
      EXPECT_FALSE(alive(grandchild));
    }
  }
}

TEST(Child, MemoryLimitKillsAndSaysSo) {
  ChildOptions options = fake_options();
  options.memory_limit_bytes = int64_t{300} << 20;
  FakeWorker worker(options);
  const Result<std::string> answer = worker.import(R"("eat_memory_at":"import")");
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("(SIGKILL) in stage import, out of memory: it used"),
            std::string::npos);
  EXPECT_NE(answer.error().message.find("above its limit of 300 MiB"), std::string::npos)
      << answer.error().message;
}

TEST(Child, AddressSpaceLimitIsNamedWhenItFails) {
  ChildOptions options = {.argv = {"python3", "-c", "bytearray(1 << 30)"},
                          .address_space_limit_bytes = int64_t{512} << 20};
  const Finished finished = finish(options);
  EXPECT_EQ(finished.exit.text(), "exit code 1, with its address space limited to 512 MiB");
  EXPECT_NE(finished.log.find("MemoryError"), std::string::npos) << finished.log;
}

TEST(Child, BeyondItsPrivateMemoryItsOwnAllocatorFails) {
  const auto take = [](int mebibytes) {
    return ChildOptions{.argv = {"python3", "-c", fmt::format("print(len(bytearray({} << 20)))", mebibytes)},
                        .private_memory_limit_bytes = int64_t{300} << 20};
  };
  const Finished refused = finish(take(400));
  EXPECT_EQ(refused.exit.text(), "exit code 1, with its private memory limited to 300 MiB");
  EXPECT_NE(refused.log.find("MemoryError"), std::string::npos) << refused.log;
  EXPECT_TRUE(finish(take(100)).exit.ok());
}

TEST(Child, LeaksNoDescriptorAndNoProcess) {
  ASSERT_TRUE(finish(shell("true")).exit.ok());  // the launcher runs
  const int fds = open_fds();
  const auto only_the_launcher = [] { return descendants(::getpid()).size() == 1; };
  ASSERT_TRUE(soon(only_the_launcher));
  for (int i = 0; i < 5; ++i) {
    FakeWorker worker;
    Child moved = std::move(worker.child);
    EXPECT_TRUE(worker.channel.exchange(R"({"id":9,"op":"memory"})", in_seconds()));
    moved = Child::start(shell("sleep 1000")).value();
    EXPECT_FALSE(Child::start({.argv = {"/no/such"}}));
    EXPECT_FALSE(Child::start({.argv = {"true"}, .cwd = "/no/such"}));
  }
  EXPECT_EQ(open_fds(), fds);
  EXPECT_TRUE(soon(only_the_launcher));
  int status = 0;
  EXPECT_EQ(::waitpid(-1, &status, WNOHANG), 0) << "there is a zombie of ours";
}

TEST(Launcher, IsReplacedWhenItWasKilled) {
  ASSERT_TRUE(finish(shell("true")).exit.ok());
  Child survivor = Child::start(shell("sleep 1000")).value();
  for (pid_t pid : descendants(::getpid())) {
    std::ifstream comm("/proc/" + std::to_string(pid) + "/comm");
    std::string name;
    std::getline(comm, name);
    if (name != "bakeoff-launch") continue;
    ::kill(pid, SIGKILL);
    ASSERT_TRUE(soon([&] { return !alive(pid); }));
  }
  EXPECT_TRUE(finish(shell("true")).exit.ok());
  EXPECT_FALSE(survivor.exit());
  EXPECT_EQ(survivor.kill().text(), "ended by Bakeoff (SIGKILL)");
}

// A supervisor in a process of its own, with workers and all kinds of grandchildren; writes the pids of
// everything into `pids`, then waits to be killed.
[[noreturn]] void be_supervisor(const fs::path& pids, const fs::path& temporary) {
  std::vector<std::unique_ptr<FakeWorker>> workers;
  ChildOptions options = fake_options();
  options.env["TMPDIR"] = temporary.string();
  options.own_temporary_folder = true;
  for (const std::string kind : {"plain", "setsid", "orphan"}) {
    workers.push_back(std::make_unique<FakeWorker>(options));
    if (!workers.back()->import(R"("ignore_sigterm":"1","grandchild":")" + kind + "\"")) ::_exit(1);
  }
  (void)workers.back()->child.stop();
  std::string text;
  for (pid_t pid : descendants(::getpid())) text += std::to_string(pid) + " ";
  (void)write_file(pids, text);
  for (;;) ::pause();
}

TEST(Child, KillMinusNineOfTheSupervisorLeavesNothing) {
  const testing::TestFolder folder;
  const fs::path temporary = folder / "tmp";
  fs::create_directory(temporary);
  const pid_t supervisor = ::fork();
  if (supervisor == 0) be_supervisor(folder / "pids", temporary);
  EXPECT_TRUE(soon([&] { return fs::exists(folder / "pids"); }));
  std::istringstream text(read_file(folder / "pids").value());
  std::vector<pid_t> pids;
  for (pid_t pid = 0; text >> pid;) pids.push_back(pid);
  EXPECT_EQ(pids.size(), 10U);  // launcher, 3 x (guardian, worker, grandchild)
  for (pid_t pid : pids) EXPECT_TRUE(alive(pid));
  EXPECT_EQ(files_in(temporary), 3);
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  const auto any_alive = [&] { return std::any_of(pids.begin(), pids.end(), alive); };
  EXPECT_TRUE(soon([&] { return !any_alive(); }));
  EXPECT_EQ(files_in(temporary), 0);
}

TEST(Child, KillMinusNineOfTheGuardianLeavesNothing) {
  FakeWorker worker;
  const Result<std::string> answer = worker.import(R"("grandchild":"plain")");
  std::ifstream status("/proc/" + std::to_string(worker.child.pid()) + "/status");
  pid_t guardian = -1;
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("PPid:", 0) == 0) guardian = std::atoi(line.c_str() + 5);
  }
  ASSERT_GT(guardian, 1);
  ::kill(guardian, SIGKILL);
  EXPECT_TRUE(soon([&] { return !alive(worker.child.pid()); }));
  const std::optional<Exit> exit = worker.child.wait(in_seconds());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->text(), "lost: its guardian process is gone");
  stop_launcher();
  EXPECT_FALSE(alive(static_cast<pid_t>(number_in(*answer, "grandchild"))));
}

}  // namespace
}  // namespace bakeoff::proc
