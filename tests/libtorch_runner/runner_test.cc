// runners/libtorch without torch: its JSON, and its side of the protocol against Worker.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/files.h"
#include "json.h"
#include "worker/testing.h"
#include "worker/worker.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

TEST(RunnerJson, ReadsWhatItWrites) {
  for (const char* text : {"null", "true", "false", "0", "-7", "9223372036854775807", "0.1", "-2.5e-300",
                           "\"\"", "\"a \\\"quoted\\\" \\\\ text\\n\\u0001\"", "[]", "[1, [2, []], \"x\"]",
                           "{}", "{\"a\": 1, \"b\": {\"c\": [null, false]}}"}) {
    EXPECT_EQ(bakeoff::Json::parse(text).dump(), text);
  }
  EXPECT_EQ(bakeoff::Json::parse(" { \"k\" :\t[ 1 , 2 ] }\r\n").dump(), "{\"k\": [1, 2]}");
  EXPECT_EQ(bakeoff::Json::parse("\"\\u00fc\\u4e16\\ud83d\\ude00\\/\"").string(), "ü世😀/");
  EXPECT_FALSE(bakeoff::Json::parse("1.0").is_integer());
}

TEST(RunnerJson, NumbersThatAreNotFiniteAreText) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(bakeoff::Json(bakeoff::Json::Array{std::nan(""), inf, -inf}).dump(),
            "[\"nan\", \"inf\", \"-inf\"]");
}

TEST(RunnerJson, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{a:1}", "nul", "\"open", "\"\\x\"",
                           "\"\\u12\"", "\"\\ud800\"", "1 2", "+1", "'a'", "\"a\nb\"", "-", ".5"}) {
    SCOPED_TRACE(text);
    EXPECT_THROW(bakeoff::Json::parse(text), std::invalid_argument);
  }
  EXPECT_THROW(bakeoff::Json::parse(std::string(100'000, '[')), std::invalid_argument);
}

class RunnerWorker : public ::testing::Test {
 protected:
  std::unique_ptr<Worker> start(const std::map<std::string, std::string>& options = {}) {
    return Worker::start({.command = {FAKE_WORKER},
                          .framework = "libtorch",
                          .options = options,
                          .threads = 3,
                          .log_file = folder_ / "log",
                          .ring_file = folder_ / ("ring" + std::to_string(rings_++)),
                          .stage_seconds = 20});
  }
  TestFolder folder_;
  int rings_ = 0;
};

TEST_F(RunnerWorker, GoesThroughAllStages) {
  const auto worker = start();
  const auto imported = worker->import();
  ASSERT_TRUE(imported) << worker->failure()->reason;
  EXPECT_EQ(imported->versions.at("fake"), "1.0 \"quoted\"");
  EXPECT_EQ(imported->effective.at("threads"), "3");
  Texts effective;
  ASSERT_TRUE(worker->build({.script = "/run/ü.cc", .dropout = false, .dtype = "float64"}, effective));
  EXPECT_EQ(effective.at("float64"), "true");
  EXPECT_EQ(effective.at("script"), "/run/ü.cc");
  EXPECT_EQ(effective.at("dropout"), "false");
  EXPECT_EQ(effective.at("weights"), "");
  EXPECT_TRUE(worker->parity(2, 4, "", "/out"));
  EXPECT_TRUE(worker->state("/out"));
  EXPECT_EQ(worker->batches(2, {{1, 28, 28}, {}}), (std::vector<std::string>{"0: 3 0", "1: 3 0"}));
  const auto losses = worker->losses(2);
  ASSERT_TRUE(losses) << worker->failure()->reason;
  EXPECT_EQ(losses->losses, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(losses->first_ns, 5);
  const auto ran = worker->run(6);
  ASSERT_TRUE(ran) << worker->failure()->reason;
  EXPECT_EQ(ran->burst.steps, 6);
  EXPECT_EQ(ran->loss, 1.0 / 8);
  EXPECT_EQ(ran->burst.wait, (BatchWait{70, 2, 50, 1}));
  ASSERT_EQ(ran->step_ns.size(), 5u);
  for (const int64_t ns : ran->step_ns) EXPECT_GT(ns, 0);
  EXPECT_TRUE(worker->run(5, Stage::kRun, {.file = "w", .every = 2}));
  EXPECT_TRUE(worker->run(3));
  EXPECT_TRUE(worker->ok());
  worker->close();
  EXPECT_EQ(read_file(folder_ / "log").value(),
            "trained\nnudged by 'w'\nnudged by ''\nnudged by ''\ntrained\ntrained\n");
}

TEST_F(RunnerWorker, RefusalsAreTold) {
  const auto unknown = start({{"compile", "default"}});
  EXPECT_FALSE(unknown->import());
  EXPECT_EQ(unknown->failure()->reason, "unknown option 'compile'");
  EXPECT_EQ(unknown->failure()->log_tail, "the stack");

  const auto early = start();
  Texts effective;
  EXPECT_FALSE(early->build({.script = "a.cc"}, effective));
  EXPECT_EQ(early->failure()->reason, "the framework is not imported yet");

  const auto unbuilt = start();
  unbuilt->import();
  EXPECT_FALSE(unbuilt->losses(1));
  EXPECT_EQ(unbuilt->failure()->reason, "nothing is built");

  const auto stateless = start();
  stateless->import();
  EXPECT_FALSE(stateless->state("/out"));
  EXPECT_EQ(stateless->failure()->reason, "nothing is built");

  const auto throws = start({{"fault", "build"}});
  throws->import();
  EXPECT_FALSE(throws->build({.script = "a.cc"}, effective));
  EXPECT_EQ(throws->failure()->reason, "first line");

  const auto zero = start();
  zero->import();
  zero->build({.script = "a.cc"}, effective);
  EXPECT_FALSE(zero->losses(0));
  EXPECT_EQ(zero->failure()->reason, "'steps' is not a positive integer");
}

TEST_F(RunnerWorker, ALossThatIsNoNumberArrivesAsOne) {
  const auto worker = start({{"fault", "nan"}});
  Texts effective;
  worker->import();
  worker->build({.script = "a.cc"}, effective);
  const auto losses = worker->losses(2);
  ASSERT_TRUE(losses);
  EXPECT_TRUE(std::isnan(losses->losses[1]));
}

TEST_F(RunnerWorker, ACrashLeavesItsStackInTheLog) {
  const auto worker = start({{"fault", "crash"}});
  Texts effective;
  worker->import();
  worker->build({.script = "a.cc"}, effective);
  EXPECT_FALSE(worker->run(1));
  EXPECT_THAT(worker->failure()->reason, HasSubstr("SIGSEGV"));
  EXPECT_THAT(worker->failure()->log_tail, HasSubstr("fatal signal"));
}

// The supervisor's view of a ring that cannot be mapped.
TEST_F(RunnerWorker, ARingThatIsNoneEndsIt) {
  proc::ChildOptions options;
  ASSERT_TRUE(write_file(folder_ / "noring", std::string(200, 'x')));
  options.argv = {FAKE_WORKER, "--framework", "libtorch", "--ring", (folder_ / "noring").string()};
  auto child = proc::Child::start(options);
  ASSERT_TRUE(child) << child.error().text();
  const auto end = child->wait(monotonic_clock().now_ns() + 10'000'000'000);
  ASSERT_TRUE(end);
  EXPECT_THAT(end->text(), HasSubstr("exit code 2"));
}

}  // namespace
}  // namespace bakeoff
