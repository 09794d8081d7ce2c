#include "worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/files.h"
#include "proc/process_tree.h"
#include "sample/memory.h"
#include "worker/testing.h"
#include "worker/worker_messages.h"

namespace bakeoff {
namespace {

using testing::alive;
using testing::fake_spec;
using ::testing::HasSubstr;
using testing::soon;
using testing::TestFolder;

using Options = std::map<std::string, std::string>;

const Build kBuild{.script = "none.py", .data = "none.safetensors"};

// A worker led up to its first burst, as far as it comes.
std::unique_ptr<Worker> lead(const WorkerSpec& spec, int64_t steps = 3) {
  auto worker = Worker::start(spec);
  Texts effective;
  worker->import();
  worker->build(kBuild, effective);
  worker->run(steps);
  return worker;
}

class WorkerTest : public ::testing::Test {
 protected:
  // Whatever a test did to its workers: none is left.
  void TearDown() override {
    EXPECT_TRUE(soon([] { return testing::workers_alive().empty(); })) << "a worker outlived its test";
  }
  TestFolder folder_;
};

TEST_F(WorkerTest, GoesThroughAllStages) {
  WorkerSpec spec = fake_spec({{"step_ms", "2"}, {"busy", "1"}});
  spec.threads = 3;
  spec.ring_file = folder_ / "ring";
  spec.log_file = folder_ / "log";
  const auto worker = Worker::start(spec);
  ASSERT_TRUE(worker->ok()) << worker->failure()->reason;
  EXPECT_GT(worker->start_ns(), 1'000'000);
  const auto imported = worker->import();
  ASSERT_TRUE(imported) << worker->failure()->reason;
  EXPECT_GT(imported->ns, 0);
  EXPECT_EQ(imported->versions.at("fake"), "1.0");
  EXPECT_EQ(imported->effective.at("threads"), "3");
  Texts effective = {{"kept", "yes"}};
  const auto built = worker->build(kBuild, effective);
  ASSERT_TRUE(built) << worker->failure()->reason;
  EXPECT_GE(*built, 0);
  EXPECT_EQ(effective.at("parameters"), "1");
  EXPECT_EQ(effective.at("kept"), "yes");
  const auto losses = worker->losses(3);
  ASSERT_TRUE(losses) << worker->failure()->reason;
  ASSERT_EQ(losses->losses.size(), 3u);
  EXPECT_DOUBLE_EQ(losses->losses[0], 4.5);
  EXPECT_NEAR(losses->losses[1], 4.5 * 0.81, 1e-12);
  EXPECT_GT(losses->first_ns, 1'900'000);
  const auto ran = worker->run(5);
  ASSERT_TRUE(ran) << worker->failure()->reason;
  EXPECT_EQ(ran->burst.steps, 5);
  EXPECT_GE(ran->burst.ms_per_step(), 1.99);
  EXPECT_NEAR(ran->loss.value(), 4.5 * std::pow(0.81, 7), 1e-12) << "goes on after the losses";
  ASSERT_EQ(ran->step_ns.size(), 4u) << "marks of this burst only";
  for (const int64_t ns : ran->step_ns) EXPECT_GE(ns, 1'990'000);
  const proc::ResourceUsage usage = worker->close();
  EXPECT_GT(usage.user_s + usage.system_s, 0.01);
  EXPECT_GT(usage.max_rss_bytes, 1 << 20);
  EXPECT_TRUE(worker->ok()) << "an orderly end is no failure";
  EXPECT_EQ(worker->close().max_rss_bytes, usage.max_rss_bytes) << "closing twice is harmless";
}

TEST_F(WorkerTest, TellsItsAllocatorsPeakOrWhyNot) {
  const auto counts = lead(fake_spec({{"allocator_mb", "96"}}));
  ASSERT_TRUE(counts->ok()) << counts->failure()->reason;
  EXPECT_EQ(counts->memory().allocator_peak_bytes, 96 << 20);
  const auto silent = lead(fake_spec());
  EXPECT_FALSE(silent->memory().allocator_peak_bytes);
  EXPECT_EQ(silent->memory().allocator_absent, "this framework keeps no count");
  const auto broken = lead(fake_spec({{"allocator_mb", "many"}}));
  EXPECT_THAT(broken->memory().allocator_absent, HasSubstr("ValueError"));
  EXPECT_TRUE(broken->ok()) << "a number less is no failure";
  const auto dead = lead(fake_spec({{"crash_step", "2"}, {"crash_how", "exit"}}));
  ASSERT_FALSE(dead->ok());
  EXPECT_NE(dead->memory().allocator_absent, "");
}

TEST_F(WorkerTest, ComputingOnAnotherDeviceThanWasAskedForIsAFailure) {
  const auto import_on = [](const std::string& device, const std::string& wanted) {
    WorkerSpec spec = fake_spec({{"device", device}});
    spec.device = wanted;
    const auto worker = Worker::start(spec);
    const bool imported = worker->import().has_value();
    EXPECT_EQ(imported, worker->ok());
    return worker->ok() ? std::string() : worker->failure()->text();
  };
  for (const char* device : {"cpu", "cuda:0", "gpu:0"}) EXPECT_EQ(import_on(device, "auto"), "");
  EXPECT_EQ(import_on("cpu", "cpu"), "");
  EXPECT_EQ(import_on("cpu:0", "cpu"), "");
  EXPECT_EQ(import_on("cuda:0", "cuda"), "");
  EXPECT_EQ(import_on("gpu:0", "cuda"), "");
  EXPECT_THAT(import_on("cpu", "cuda"),
              ::testing::StartsWith("import: device = \"cuda\", but fake computes on cpu here; "));
  EXPECT_EQ(import_on("cuda:0", "cpu"), "import: device = \"cpu\", but fake computes on cuda:0 here");
}

TEST_F(WorkerTest, NumbersThatAreNotFiniteTravel) {
  const auto worker = Worker::start(fake_spec({{"nan_step", "2"}}));
  Texts effective;
  worker->import();
  worker->build(kBuild, effective);
  const auto losses = worker->losses(2);
  ASSERT_TRUE(losses) << worker->failure()->reason;
  EXPECT_EQ(losses->losses[0], 4.5);
  EXPECT_TRUE(std::isnan(losses->losses[1]));
  const auto ran = worker->run(2);
  ASSERT_TRUE(ran);
  ASSERT_TRUE(ran->loss);
  EXPECT_TRUE(std::isnan(*ran->loss));
}

struct Misfortune {
  const char* what;
  Options options;
  bool hangs;
  const char* stage;
  const char* reason;    // part of it
  const char* log_tail;  // part of it
};

const Misfortune kMisfortunes[] = {
    {"import raises", {{"crash_at", "import"}}, false, "import", "asked to crash", "Traceback"},
    {"import exits",
     {{"crash_at", "import"}, {"crash_how", "exit"}},
     false,
     "import",
     "exit code 1 in stage import",
     "crashing by exit"},
    {"import ends silently",
     {{"crash_at", "import"}, {"crash_how", "silent"}},
     false,
     "import",
     "exit code 0",
     ""},
    {"build segfaults",
     {{"crash_at", "build"}, {"crash_how", "segv"}},
     false,
     "build",
     "SIGSEGV",
     "crashing by segv"},
    {"step raises", {{"crash_step", "2"}}, false, "run", "RuntimeError: fake: asked to crash", "_train_step"},
    {"step aborts",
     {{"crash_step", "3"}, {"crash_how", "abort"}},
     false,
     "run",
     "SIGABRT",
     "crashing by abort"},
    {"killed",
     {{"crash_step", "2"}, {"crash_how", "kill"}},
     false,
     "run",
     "killed by signal 9 (SIGKILL) in stage run",
     "crashing by kill"},
    {"unknown setting", {{"colour", "red"}}, false, "import", "unknown option 'colour'", ""},
    {"hangs in a step", {{"hang_step", "2"}, {"ignore_sigterm", "1"}}, true, "run", "s in stage run", ""},
    {"hangs in import", {{"hang_at", "import"}}, true, "import", "s in stage import", ""},
    {"text", {{"garbage_at", "run"}}, false, "run", "answered garbage: 'Segmentation fault? No", ""},
    {"binary",
     {{"garbage_at", "run"}, {"garbage", "binary"}},
     false,
     "run",
     "answered garbage: '??????????",
     ""},
    {"id",
     {{"garbage_at", "run"}, {"garbage", "id"}},
     false,
     "run",
     "answered garbage: '{\"id\": 987654",
     ""},
    {"long", {{"garbage_at", "build"}, {"garbage", "long"}}, false, "build", "stage build", ""},
    {"half a line", {{"garbage_at", "run"}, {"garbage", "partial"}}, true, "run", "timed out", ""},
};

TEST_F(WorkerTest, FailuresHaveStageReasonAndLog) {
  for (const Misfortune& c : kMisfortunes) {
    SCOPED_TRACE(c.what);
    WorkerSpec spec = fake_spec(c.options);
    spec.log_file = folder_ / "log";
    std::unique_ptr<Worker> worker;
    // Whoever hangs is given a second, or more if other work keeps it from coming that far.
    for (double limit = c.hangs ? 1 : testing::kNet; !worker || limit < testing::kNet; limit *= 4) {
      spec.stage_seconds = limit;
      worker = lead(spec);
      ASSERT_FALSE(worker->ok());
      if (name(worker->failure()->stage) == c.stage) break;
    }
    EXPECT_EQ(name(worker->failure()->stage), c.stage);
    EXPECT_THAT(worker->failure()->reason, HasSubstr(c.reason));
    EXPECT_EQ(worker->failure()->reason.find('\n'), std::string::npos) << "one line";
    EXPECT_THAT(worker->failure()->log_tail, HasSubstr(c.log_tail));
    const Failure first = *worker->failure();
    EXPECT_FALSE(worker->run(1)) << "of no further use";
    EXPECT_EQ(*worker->failure(), first) << "the first failure stands";
    worker->close();
    EXPECT_TRUE(testing::workers_alive().empty());
  }
}

TEST_F(WorkerTest, RunningOutOfMemoryIsAFailureOfItsStage) {
  WorkerSpec spec = fake_spec({{"eat_memory_at", "run"}});
  const fs::path limited = folder_ / "python";
  ASSERT_TRUE(write_file(limited, "#!/bin/sh\nulimit -v 400000\nexec " + spec.python.string() + " \"$@\"\n"));
  fs::permissions(limited, fs::perms::owner_all);
  spec.python = limited;
  const auto worker = lead(spec);
  ASSERT_FALSE(worker->ok());
  EXPECT_EQ(worker->failure()->stage, Stage::kRun);
  EXPECT_THAT(worker->failure()->reason, HasSubstr("MemoryError"));
  EXPECT_THAT(worker->failure()->log_tail, HasSubstr("_eat_memory"));
}

TEST_F(WorkerTest, AFloodOfOutputIsNoFailure) {
  WorkerSpec spec = fake_spec({{"flood_mb", "16"}, {"flood_at", "build"}});
  spec.log_file = folder_ / "log";
  const auto worker = lead(spec);
  EXPECT_TRUE(worker->ok()) << worker->failure()->reason;
  worker->close();
  EXPECT_LT(fs::file_size(spec.log_file), 8u << 20);
  EXPECT_GT(fs::file_size(spec.log_file), 1u << 20);
}

TEST_F(WorkerTest, AGrandchildIsNotLeftBehind) {
  for (const char* kind : {"plain", "setsid", "orphan"}) {
    SCOPED_TRACE(kind);
    const auto worker = Worker::start(fake_spec({{"grandchild", kind}}));
    const auto imported = worker->import();
    ASSERT_TRUE(imported) << worker->failure()->reason;
    const pid_t grandchild = std::stoi(imported->effective.at("grandchild"));
    EXPECT_TRUE(alive(grandchild));
    worker->close();
    EXPECT_TRUE(soon([&] { return !alive(grandchild); }));
  }
}

TEST_F(WorkerTest, TheMemoryOfRanksIsAddedUp) {
  const auto worker = Worker::start(fake_spec({{"grandchild", "rank"}}));
  EXPECT_EQ(worker->processes(), std::vector{worker->pid()});
  ASSERT_TRUE(worker->import()) << worker->failure()->reason;
  ASSERT_EQ(worker->processes().size(), 2u);
  const pid_t rank = worker->processes()[1];
  EXPECT_TRUE(soon([&] { return *sample::sample_memory(rank).peak_rss_bytes > 4 << 20; }));
  const double own = *sample::sample_memory(worker->pid()).peak_rss_bytes;
  EXPECT_GT(static_cast<double>(worker->close().max_rss_bytes), own + (4 << 20));
}

TEST_F(WorkerTest, AWorkerThatIsDroppedDies) {
  pid_t grandchild = 0;
  {
    const auto worker = Worker::start(fake_spec({{"grandchild", "setsid"}, {"ignore_sigterm", "1"}}));
    grandchild = std::stoi(worker->import()->effective.at("grandchild"));
  }
  EXPECT_TRUE(soon([&] { return !alive(grandchild); }));
}

TEST_F(WorkerTest, AFrozenWorkerUsesNoProcessor) {
  const auto cpu_ticks = [](pid_t pid) {  // fields 14 and 15 of stat, after the name in brackets
    const std::string stat = read_file(fs::path("/proc") / std::to_string(pid) / "stat").value();
    std::istringstream rest(stat.substr(stat.rfind(')') + 2));
    std::string field;
    for (int n = 3; n < 14; ++n) rest >> field;
    long user = 0, system = 0;
    rest >> user >> system;
    return user + system;
  };
  const auto worker = lead(fake_spec({{"spin", "1"}, {"step_ms", "1"}}), 1);
  ASSERT_TRUE(worker->ok()) << worker->failure()->reason;
  const auto pids = testing::workers_alive();
  ASSERT_EQ(pids.size(), 1u);
  EXPECT_TRUE(soon([&, start = cpu_ticks(pids[0])] { return cpu_ticks(pids[0]) > start; })) << "it spins";
  worker->freeze();
  EXPECT_EQ(proc::process_state(pids[0]), 'T');
  const long frozen = cpu_ticks(pids[0]);
  ::usleep(200'000);
  EXPECT_EQ(cpu_ticks(pids[0]), frozen);
  worker->thaw();
  EXPECT_NE(proc::process_state(pids[0]), 'T');
  EXPECT_TRUE(worker->run(2)) << "goes on as if nothing had been";
  worker->freeze();
  worker->close();  // also of a frozen one
  EXPECT_TRUE(worker->ok());
}

TEST_F(WorkerTest, WhatCannotBeStartedSaysSo) {
  WorkerSpec spec = fake_spec();
  spec.python = "/no/such/python";
  const auto none = Worker::start(spec);
  ASSERT_FALSE(none->ok());
  EXPECT_EQ(none->failure()->stage, Stage::kStart);
  EXPECT_THAT(none->failure()->reason, HasSubstr("/no/such/python"));
  EXPECT_FALSE(none->import());
  EXPECT_EQ(none->close().max_rss_bytes, 0);
  spec = fake_spec();
  spec.runner = folder_.path();  // no runner there
  const auto bare = Worker::start(spec);
  ASSERT_FALSE(bare->ok());
  EXPECT_EQ(bare->failure()->stage, Stage::kStart);
  EXPECT_THAT(bare->failure()->log_tail, HasSubstr("bakeoff_runner"));
}

// What a runner of one's own answers to `import`.
TEST_F(WorkerTest, AnswersOfTheWrongTypesAreRefusals) {
  const struct {
    const char* answer;
    const char* reason;
  } cases[] = {
      {R"({"id": 1, "ok": false, "error": 5, "traceback": {"a": 1}})", "the worker gave no reason"},
      {R"({"id": 1, "ok": false})", "the worker gave no reason"},
      {R"({"id": 1, "ok": "yes"})", "answered garbage"},
      {R"({"id": "1", "ok": true})", "answered garbage"},
      {R"([1, true])", "answered garbage"},
      {"\x1b[2J", "answered garbage: '?[2J'"},
      {R"({"id": 1, "ok": true, "import_ns": -5})", "impossible time: -5 ns"},
      {R"({"id": 1, "ok": true, "import_ns": 600000000000})", "impossible time: 600000000000 ns, while "},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.answer);
    ASSERT_TRUE(write_file(folder_ / "answer", std::string(c.answer) + "\n"));
    ASSERT_TRUE(write_file(folder_ / "bakeoff_runner/__main__.py",
                           "import os\n"
                           "os.write(4, b'{\"id\": 0, \"ok\": true, \"event\": \"hello\"}\\n')\n"
                           "os.read(3, 65536)\n"
                           "os.write(4, open('" +
                               (folder_ / "answer").string() + "', 'rb').read())\nos.read(3, 65536)\n"));
    WorkerSpec spec = fake_spec();
    spec.runner = folder_.path();
    const auto worker = Worker::start(spec);
    ASSERT_TRUE(worker->ok()) << worker->failure()->reason;
    EXPECT_FALSE(worker->import());
    EXPECT_THAT(worker->failure()->reason, HasSubstr(c.reason));
  }
}

TEST(LastLines, TakesTheEndOfALog) {
  EXPECT_EQ(last_lines("", 3), "");
  EXPECT_EQ(last_lines("\n\n", 3), "");
  EXPECT_EQ(last_lines("a", 3), "a");
  EXPECT_EQ(last_lines("a\nb\nc\n\n", 2), "b\nc");
  EXPECT_EQ(last_lines("a\nb\nc", 3), "a\nb\nc");
  EXPECT_EQ(last_lines("a\nb\nc", 9), "a\nb\nc");
  EXPECT_EQ(last_lines("\na", 9), "a");
  EXPECT_LE(last_lines(std::string(100000, 'x'), 1).size(), 4096u);
}

}  // namespace
}  // namespace bakeoff
