#include "proc/line_channel.h"

#include <unistd.h>

#include <csignal>
#include <thread>

#include "proc/interrupt.h"
#include "proc/testing.h"

namespace bakeoff::proc {
namespace {

using testing::FakeWorker;
using testing::in_seconds;

ChildOptions shell_worker(const std::string& script) { return {.argv = {"/bin/sh", "-c", script}}; }

TEST(LineChannel, ExchangesRequestsAndAnswers) {
  FakeWorker worker;
  EXPECT_TRUE(worker.import(""));
  EXPECT_TRUE(worker.build());
  const std::string answer = worker.run(5).value();
  EXPECT_EQ(testing::number_in(answer, "id"), 3);
  EXPECT_EQ(testing::number_in(answer, "steps"), 5);
  EXPECT_GT(testing::number_in(answer, "ns"), 0);
  EXPECT_TRUE(worker.channel.exchange(R"({"id":4,"op":"close"})", in_seconds()));
  EXPECT_EQ(worker.child.wait(in_seconds())->text(), "exit code 0");
  EXPECT_FALSE(worker.channel.failure());
}

TEST(LineChannel, NotANumberTravelsAsAString) {
  FakeWorker worker;
  ASSERT_TRUE(worker.import(R"("nan_step":"2")"));
  ASSERT_TRUE(worker.build());
  EXPECT_NE(worker.run(3).value().find(R"("loss": "nan")"), std::string::npos);
}

TEST(LineChannel, LinesArriveWholeHoweverTheyAreCut) {
  Child child = Child::start(shell_worker("printf 'ab' >&4; sleep 0.1; printf 'c\\nde\\n\\nf' >&4; "
                                          "sleep 0.1; printf 'g\\n' >&4; sleep 1000"))
                    .value();
  LineChannel channel(child);
  for (const char* line : {"abc", "de", "", "fg"}) EXPECT_EQ(channel.receive(in_seconds()).value(), line);
}

struct FaultCase {
  const char* name;
  const char* options;
  FailureKind kind;
  const char* message;
};

TEST(LineChannel, FaultsOfTheChildAreDistinctErrors) {
  const FaultCase cases[] = {
      {"hang", R"("hang_at":"import")", FailureKind::kTimeout, "timed out after 1 s in stage import"},
      {"exit", R"("crash_at":"import","crash_how":"exit")", FailureKind::kDied,
       "exit code 1 in stage import"},
      {"silent", R"("crash_at":"import","crash_how":"silent")", FailureKind::kDied,
       "exit code 0 in stage import"},
      {"segv", R"("crash_at":"import","crash_how":"segv")", FailureKind::kDied,
       "killed by signal 11 (SIGSEGV) in stage import"},
      {"abort", R"("crash_at":"import","crash_how":"abort")", FailureKind::kDied,
       "killed by signal 6 (SIGABRT) in stage import"},
      {"kill", R"("crash_at":"import","crash_how":"kill")", FailureKind::kDied,
       "killed by signal 9 (SIGKILL) in stage import, sent from outside Bakeoff"},
      {"long", R"("garbage_at":"import","garbage":"long")", FailureKind::kTooLong,
       "answered a line of more than 33554432 bytes in stage import"},
      {"partial", R"("garbage_at":"import","garbage":"partial")", FailureKind::kTimeout,
       "timed out after 1 s in stage import"},
  };
  for (const FaultCase& c : cases) {
    SCOPED_TRACE(c.name);
    FakeWorker worker;
    const bool times_out = c.kind == FailureKind::kTimeout;
    const Result<std::string> answer = worker.import(c.options, times_out ? 1 : 20);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, c.message);
    ASSERT_TRUE(worker.channel.failure());
    EXPECT_EQ(worker.channel.failure()->kind, c.kind);
    EXPECT_EQ(worker.channel.failure()->exit.has_value(), c.kind == FailureKind::kDied);
    if (c.kind == FailureKind::kDied) {
      const bool deadly = std::string(c.name) == "segv" || std::string(c.name) == "abort";
      EXPECT_EQ(worker.channel.failure()->log_tail.find("in _crash") != std::string::npos, deadly);
      EXPECT_NE(worker.channel.failure()->log_tail.find("fake: crashing by"), std::string::npos);
    }
  }
}

TEST(LineChannel, CrashAtAStepIsAnAnswerWithItsTraceback) {
  FakeWorker worker;
  ASSERT_TRUE(worker.import(R"("crash_step":"3")"));
  ASSERT_TRUE(worker.build());
  const std::string answer = worker.run(5).value();
  EXPECT_NE(answer.find(R"("ok": false, "stage": "run", "error": "RuntimeError: fake: asked to crash")"),
            std::string::npos)
      << answer;
  EXPECT_NE(answer.find("_train_step"), std::string::npos);
}

TEST(LineChannel, GarbageIsHandedOverAsItIs) {
  FakeWorker worker;
  EXPECT_EQ(worker.import(R"("garbage_at":"import")").value(), "Segmentation fault? No, just some text.");
}

TEST(LineChannel, ClosedChannelOfALivingChildIsAnError) {
  Child child = Child::start(shell_worker("exec 4>&-; sleep 1000")).value();
  LineChannel channel(child);
  const Result<std::string> answer = channel.receive(in_seconds(0.5), "start");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "closed its answer channel but lives on in stage start");
  EXPECT_EQ(channel.failure()->kind, FailureKind::kClosed);
}

TEST(LineChannel, LastWordsOfADeadChildAreStillRead) {
  Child child = Child::start(shell_worker("echo last >&4; echo words >&4; exit 4")).value();
  ASSERT_TRUE(child.wait(in_seconds()));
  LineChannel channel(child);
  EXPECT_EQ(channel.exchange("hello?", in_seconds()).value(), "last");
  EXPECT_EQ(channel.exchange("more?", in_seconds()).value(), "words");
  EXPECT_EQ(channel.exchange("more?", in_seconds()).error().message, "exit code 4");
}

TEST(LineChannel, GrandchildHoldingTheChannelDoesNotHideADeath) {
  Child child = Child::start(shell_worker("sleep 1000 & exit 5")).value();
  LineChannel channel(child);
  const Result<std::string> answer = channel.receive(in_seconds(), "start");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "exit code 5 in stage start; left 1 process behind (killed)");
}

TEST(LineChannel, RequestToAChildThatDoesNotReadTimesOut) {
  Child child = Child::start(shell_worker("sleep 1000")).value();
  LineChannel channel(child);
  const Result<std::string> answer = channel.exchange(std::string(1 << 20, 'x'), in_seconds(0.3), "build");
  ASSERT_FALSE(answer);
  EXPECT_EQ(channel.failure()->kind, FailureKind::kTimeout);
}

TEST(LineChannel, LongRequestsAndAnswersTogetherDoNotDeadlock) {
  // cat answers while it is still being written to; both pipes would fill up otherwise.
  Child child = Child::start(shell_worker("cat <&3 >&4")).value();
  LineChannel channel(child);
  const std::string line((size_t{1} << 20) - 1, 'y');
  EXPECT_EQ(channel.exchange(line, in_seconds()).value(), line);
}

TEST(LineChannel, FloodOfOutputDoesNotDelayAnswers) {
  Child child = Child::start(shell_worker("cat /dev/zero & while read l <&3; do echo $l >&4; done")).value();
  LineChannel channel(child);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(channel.exchange(std::to_string(i), in_seconds()).value(), std::to_string(i));
  }
  EXPECT_TRUE(testing::soon([&] { return child.log_bytes() > 1 << 20; }));
}

TEST(LineChannel, ReturnsAtOnceWhenInterrupted) {
  install_interrupt_handlers();
  FakeWorker worker;
  std::thread later([] {
    ::usleep(200'000);
    ::kill(::getpid(), SIGINT);
  });
  const Result<std::string> answer = worker.import(R"("hang_at":"import")");
  later.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "interrupted in stage import");
  EXPECT_EQ(worker.channel.failure()->kind, FailureKind::kInterrupted);
  worker.child.kill(kSecond / 2);  // works although the interrupt still stands
  EXPECT_FALSE(testing::alive(worker.child.pid()));
  clear_interrupt();
}

}  // namespace
}  // namespace bakeoff::proc
