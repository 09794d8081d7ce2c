#include "records/records.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/files.h"
#include "base/testing.h"
#include "records/testing.h"
#include "records/why.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;
using testing::TestFolder;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Every field differs from its default, so that a field that is not written, or not read, shows.
Trial full_trial() {
  return {
      .contender = "torch[compile=default]",
      .heat = 7,
      .node = "n1",
      .started = "2026-11-21T08:00:00Z",
      .heat_ns = 41'000'000'000,
      .failure = Failure{Stage::kRun, "exit code 1", "line 1\nline \"2\"\n", Cause::kTime},
      .invalid = "the loss became nan",
      .dropped = "far behind",
      .behind_leader = 3.5,
      .look_disturbed = "stolen",
      .start_ns = 1,
      .import_ns = 2,
      .build_ns = 3,
      .first_step_ns = int64_t{1} << 60,
      .cold = true,
      .confirms = true,
      .alone = true,
      .start_up_ns = 6,
      .transfer = Transfer{"data", 7, 8},
      .warmup_ns = 5,
      .bursts = {{100, 2, 7, 1, 2, 101, {{2, 0.5}}, {{"cpu_s", 0.25}}, BatchWait{1, 2, 3, 4}, 1, 60, 70, 80},
                 {int64_t{9007199254740993}, 3}},
      .step_ns = {49, 51},
      .warmup_step_ns = {60, 50},
      .warmup_bursts = 1,
      .steadiness = "not steady",
      .drift = 0.125,
      .rounds = {{1000, {{"steal", 0.5}}, {{"cpu pressure", "no such file"}}, "stolen", true, 4},
                 {.wall_ns = 9}},
      .void_bursts =
          {{200, 2, 8, 9, 2, 201, {{4, 0.25}}, {{"wall_s", 1}}, BatchWait{5, 6, 7, 8}, 2, 61, 71, 81}},
      .audits = {{1, 2, 0.1, 0.2, 0.3, 0.4, "the loss of step 2"}},
      .not_audited = "the budget ended",
      .last_loss = 0.1 + 0.2,
      .user_s = 1.25,
      .system_s = 1e-300,
      .peak_rss_bytes = int64_t{5} << 30,
      .involuntary_switches = 12,
      .memory = {{"pss_bytes", 7}},
      .not_sampled = {{"energy_j", "no sensor"}},
      .sensors_lost = {{"gpu_w", "gone"}},
      .effective = {{"threads", "2"}},
      .versions = {{"torch", "2.13.0+cpu"}, {"ünïcode", "✓"}}};
}

Parity full_parity() {
  return {.contender = "jax",
          .failure = Failure{Stage::kImport, "no module", "Traceback"},
          .checks = {{"float64 loss", "loss", 1e-17, 1e-10, true}, {"gradients", "grad/w", 2, 1e-8, false}},
          .diverges_at = "grad/w",
          .divergence = 2,
          .explanation = "matches: epsilon inside the root",
          .losses = {2.302585092994046, 2.1},
          .loss_limits = {1e-5, 3e-5},
          .referee_losses = {2.3, 2.1},
          .first_step_cold_ns = 44,
          .effective = {{"device", "cpu"}},
          .versions = {{"jax", "0.10.2"}},
          .proven = "2026-11-21T07:00:00Z",
          .reused = true};
}

Manifest full_manifest() {
  Manifest m;
  m.bakeoff_version = "0.1.0";
  m.started = "2026-11-21T08:00:00Z";
  m.recipe_name = "mnist_cnn";
  m.recipe_file = "/r/mnist_cnn.toml";
  m.recipe_text = "batch = 32\n\"quoted\" \\ \t\n";
  m.workload_text = "workload w() {}";
  m.published_text = "contender,seconds\n";
  m.weights_sha256 = "ab";
  m.data_sha256 = "ef";
  m.data_rows = 60'000;
  m.source_sha256 = {{"/texts/book.txt", "cd"}};
  m.data_description = "MNIST";
  m.host = {
      .name = "h", .kernel = "k", .cpu = "c", .os = "o", .cpus = 2, .memory_bytes = 3, .more = {{"a", "b"}}};
  m.contenders = {{"torch",
                   "torch",
                   "torch",
                   {{"compile", "off"}},
                   "train_torch.py",
                   "/home/me/mine.py",
                   {{"threads", "1"}},
                   {{"threads", "1"}},
                   22'000'000'000,
                   "g++ 12.2.0"},
                  {"jax", "jax", "jax", {}, "train_jax.py", ""}};
  m.not_started = {{}, {Stage::kEmit, "jax has no op pad", "tail"}};
  m.referee_losses = {2.3, 2.2};
  m.fairness = {.frameworks = {"torch", "jax"}, .lines = {{"eps", {"1e-8", "1e-7"}, true}}};
  m.worker_environment = {{"OMP_NUM_THREADS", "2"}};
  m.controls = {{"allocator", "tuned"}};
  m.calibration = {{"measured", "today"}};
  m.baseline = "torch";
  m.notes = {"pinning is refused"};
  return m;
}

Cause cause_of(const std::string& failure) {
  return from_json<Trial>(R"({"contender": "a", "failure": )" + failure + "}", "t")->failure->cause;
}

TEST(Failures, OfOlderRecordsHaveTheCauseThatTheirReasonTells) {
  EXPECT_EQ(cause_of(R"({"reason": "out of memory: it used 2 GiB, above its limit of 1 GiB"})"),
            Cause::kLimit);
  EXPECT_EQ(cause_of(R"({"reason": "killed by signal 9 (SIGKILL), likely out of memory"})"), Cause::kKilled);
  EXPECT_EQ(cause_of(R"({"reason": "timed out after 30 s in stage build"})"), Cause::kTime);
  EXPECT_EQ(cause_of(R"({"reason": "exit code 1"})"), Cause::kOther);
  EXPECT_EQ(cause_of(R"({"reason": "RuntimeError: timed out", "cause": "other"})"), Cause::kOther);
  EXPECT_EQ(cause_of(R"({"reason": "?", "cause": "a word of a later version"})"), Cause::kOther);
  for (const Cause cause : {Cause::kOther, Cause::kLimit, Cause::kKilled, Cause::kTime, Cause::kProtocol}) {
    const Trial trial{.contender = "a", .failure = Failure{Stage::kRun, "why", "", cause}};
    EXPECT_EQ(from_json<Trial>(to_json(trial), "t")->failure->cause, cause);
  }
}

TEST(Failures, AStageIsItsWordInARecord) {
  for (int i = 0; i <= static_cast<int>(Stage::kClose); ++i) {
    const auto stage = static_cast<Stage>(i);
    SCOPED_TRACE(name(stage));
    const Trial trial{.contender = "a", .failure = Failure{stage, "why"}};
    EXPECT_THAT(to_json(trial), ::testing::HasSubstr("\"stage\":\"" + std::string(name(stage)) + "\""));
    EXPECT_EQ(from_json<Trial>(to_json(trial), "t")->failure->stage, stage);
  }
  const auto stage_of = [](const std::string& word) {
    const std::string line = R"({"contender": "a", "failure": {"stage": ")" + word + R"(", "reason": "?"}})";
    return from_json<Trial>(line, "t")->failure->stage;
  };
  EXPECT_EQ(stage_of("first step"), Stage::kFirstStep);
  EXPECT_EQ(stage_of("warmup"), Stage::kWarmUp);
  EXPECT_EQ(stage_of("a word of a later version"), Stage::kOther);
}

TEST(Records, EveryFieldSurvivesTheJson) {
  testing::expect_kept(full_trial());
  testing::expect_kept(full_parity());
  testing::expect_kept(
      Why{"torch", "jax", 1.5, {{"channels_last=true", 1.2, "faster"}}, {{"backward pass", 5.1, 2.2}}});
  EXPECT_THAT(testing::empty_places(to_json(full_manifest())), ::testing::IsEmpty());
  EXPECT_THAT(testing::empty_places(to_json(Parity{.contender = "a"})), ::testing::SizeIs(13));
  const auto manifest = manifest_from_json(to_json(full_manifest()), "m");
  ASSERT_TRUE(manifest) << manifest.error().text();
  EXPECT_EQ(*manifest, full_manifest());
}

TEST(Records, WhatIsAbsentStaysAbsent) {
  const Trial trial{.contender = "torch"};
  EXPECT_EQ(from_json<Trial>(to_json(trial), "t").value(), trial);
  const Parity parity{.contender = "torch"};
  EXPECT_EQ(from_json<Parity>(to_json(parity), "p").value(), parity);
  EXPECT_EQ(manifest_from_json(to_json(Manifest{}), "m").value(), Manifest{});
}

TEST(Records, FieldsThatAnotherWriterDidNotKnowKeepTheirDefault) {
  const auto trial = from_json<Trial>(R"({"contender": "torch", "heat": 2, "colour": "red"})", "t");
  ASSERT_TRUE(trial) << trial.error().text();
  EXPECT_EQ(*trial, (Trial{.contender = "torch", .heat = 2}));
}

TEST(Records, AFieldIsReadUnderTheNameThatItHadInEarlierVersions) {
  const auto trial =
      from_json<Trial>(R"({"contender": "torch", "bursts": [{"ns": 5, "steps": 1, "went_by_ns": 7}],)"
                       R"( "void_bursts": [{"ns": 5, "elapsed_ns": 9}]})",
                       "t");
  ASSERT_TRUE(trial) << trial.error().text();
  EXPECT_EQ(trial->bursts.at(0).elapsed_ns, 7);
  EXPECT_EQ(trial->void_bursts.at(0).elapsed_ns, 9);
}

TEST(Records, NumbersThatAreNotFiniteDoNotDamageTheFile) {
  Trial trial = full_trial();
  for (const double loss : {kNan, kInfinity, -kInfinity}) {
    trial.last_loss = loss;
    const auto back = from_json<Trial>(to_json(trial), "t");
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(back->last_loss, std::nullopt);
    EXPECT_EQ(back->invalid, trial.invalid) << "the reason must survive";
  }
  Parity parity = full_parity();
  parity.losses = {1, kNan, kInfinity};
  parity.checks[0].error = kInfinity;
  parity.divergence = kNan;
  const auto back = from_json<Parity>(to_json(parity), "p");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->losses, (std::vector<double>{1, 1e308, 1e308}));
  EXPECT_EQ(back->checks[0].error, 1e308);
  EXPECT_EQ(back->divergence, 1e308);
  EXPECT_FALSE(back->passed());
  Manifest manifest = full_manifest();
  manifest.referee_losses = {2.3, kNan, kInfinity};
  const auto diverged = manifest_from_json(to_json(manifest), "m");
  ASSERT_TRUE(diverged) << diverged.error().text();
  EXPECT_EQ(diverged->referee_losses, (std::vector<double>{2.3, 1e308, 1e308}));
}

TEST(Records, BytesThatAreNoUtf8AreReplaced) {
  Trial trial = full_trial();
  trial.failure->log_tail = "ok \xff\xfe end";
  const auto back = from_json<Trial>(to_json(trial), "t");
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_THAT(back->failure->log_tail, HasSubstr("ok "));
  EXPECT_THAT(back->failure->log_tail, HasSubstr(" end"));
}

TEST(Records, ForeignVersionIsRefusedWithTheRemedy) {
  Manifest manifest = full_manifest();
  manifest.version = kRecordVersion + 1;
  const auto refused = manifest_from_json(to_json(manifest), "run.json");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "run.json");
  EXPECT_THAT(refused.error().message, HasSubstr("record version 2, this program reads 1"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("0.1.0"));
}

TEST(Records, ANameThatLeadsOutOfTheRunIsRefused) {
  for (const std::string name : {"/etc/passwd", "../x", "..", ".", "a/b", "a\\b"}) {
    Manifest manifest = full_manifest();
    manifest.contenders[1].script = name;
    const auto refused = manifest_from_json(to_json(manifest), "run.json");
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().where, "run.json");
    EXPECT_THAT(refused.error().message, HasSubstr("contenders[1].script"));
    EXPECT_NE(refused.error().remedy, "");
  }
}

TEST(Records, ANumberThatDoesNotFitIsRefused) {
  for (const char* heat : {"1e300", "1.5", "2147483648", "-1", "-1e30", "true", "null"}) {
    const auto trial = from_json<Trial>(fmt::format(R"({{"contender": "a", "heat": {}}})", heat), "t:1");
    EXPECT_FALSE(trial) << heat;
  }
}

TEST(Records, StepTimesAreReadHoweverTheyAreWritten) {
  const auto read = [](const std::string& list, const std::string& key = ",\"step_ns\":") {
    return from_json<Trial>(R"({"contender":"a\",\"step_ns\":[7]")" + key + list + "}", "t:1");
  };
  for (const char* list : {"[49,50]", "[49, 50]", "[ 49,50]", "[49,50 ]", "[\n49,50]"})
    EXPECT_THAT(read(list).value().step_ns, ::testing::ElementsAre(49, 50)) << list;
  EXPECT_THAT(read("[49]", ", \"step_ns\" : ").value().step_ns, ::testing::ElementsAre(49));
  EXPECT_THAT(read("[0,-5,9223372036854775807]").value().step_ns,
              ::testing::ElementsAre(0, -5, std::numeric_limits<int64_t>::max()));
  EXPECT_TRUE(read("[]").value().step_ns.empty());
  EXPECT_EQ(read("[]").value().contender, R"(a","step_ns":[7])");
  for (const char* list : {"[49,9223372036854775808]", "[1.5]", "[1e3]", "[49,]", "[,49]", "[49", "[49,50",
                           "[049]", "[49 50]", "[49,[50]]", "[49]]", "49", "null", "[49,null]"})
    EXPECT_FALSE(read(list)) << list;
}

TEST(Records, WhatIsNoRecordIsRefused) {
  for (const char* text : {"", "[]", "3", "{", "{}", R"({"heat": 1})", R"({"contender": 3})",
                           R"({"contender": "a", "bursts": [1]})", R"({"contender": "a", "heat": "x"})"}) {
    const auto trial = from_json<Trial>(text, "trials.jsonl:4");
    ASSERT_FALSE(trial) << text;
    EXPECT_EQ(trial.error().where, "trials.jsonl:4");
    EXPECT_NE(trial.error().remedy, "");
    EXPECT_EQ(trial.error().message.find("json.exception"), std::string::npos) << trial.error().message;
  }
  EXPECT_FALSE(manifest_from_json("{}", "run.json"));
  Manifest unequal = full_manifest();
  unequal.not_started.pop_back();
  EXPECT_FALSE(manifest_from_json(to_json(unequal), "run.json"));
}

TEST(RunDirectory, KeepsRecordsInOrder) {
  const TestFolder folder;
  const auto run = RunDirectory::create(folder / "run");
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_TRUE(fs::is_directory(run->scripts()));
  EXPECT_TRUE(fs::is_directory(run->logs()));
  EXPECT_FALSE(RunDirectory::open(folder / "run")) << "no run.json yet";
  ASSERT_TRUE(run->write(full_manifest()));
  const auto again = RunDirectory::open(folder / "run");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->manifest().value(), full_manifest());
  EXPECT_TRUE(again->read<Trial>()->empty());
  EXPECT_TRUE(again->read<Parity>()->empty());
  std::vector<Trial> trials;
  for (int heat = 1; heat <= 3; ++heat) {
    trials.push_back(full_trial());
    trials.back().heat = heat;
    ASSERT_TRUE(again->append(trials.back()));
  }
  ASSERT_TRUE(again->append(full_parity()));
  EXPECT_EQ(run->read<Trial>().value(), trials);
  EXPECT_EQ(run->read<Parity>().value(), std::vector<Parity>{full_parity()});
}

TEST(RunDirectory, ATornLastLineIsIgnoredAndRepairedByTheNextRecord) {
  const TestFolder folder;
  const auto run = RunDirectory::create(folder / "run").value();
  const fs::path file = folder / "run/trials.jsonl";
  const std::string whole = to_json(full_trial());
  for (size_t cut : {size_t{1}, whole.size() / 2, whole.size()}) {  // the last: all but the end of line
    ASSERT_TRUE(write_file(file, whole + "\n" + whole.substr(0, cut)));
    EXPECT_EQ(run.read<Trial>().value().size(), 1u) << cut;
    ASSERT_TRUE(run.append(full_trial()));
    EXPECT_EQ(read_file(file).value(), whole + "\n" + whole + "\n") << cut;
    EXPECT_EQ(run.read<Trial>().value(), (std::vector<Trial>{full_trial(), full_trial()}));
  }
  ASSERT_TRUE(write_file(file, whole.substr(0, 10)));  // torn in the very first line
  EXPECT_TRUE(run.read<Trial>().value().empty());
  ASSERT_TRUE(run.append(full_trial()));
  EXPECT_EQ(read_file(file).value(), whole + "\n");
}

TEST(RunDirectory, DamageInTheMiddleIsAnErrorNamingFileAndLine) {
  const TestFolder folder;
  const auto run = RunDirectory::create(folder / "run").value();
  const std::string whole = to_json(full_trial()) + "\n";
  for (const std::string damage : {"{\"contender\": \"a\n", "\n", "garbage\n", "{\"heat\": 3}\n"}) {
    ASSERT_TRUE(write_file(folder / "run/trials.jsonl", whole + damage + whole));
    const auto trials = run.read<Trial>();
    ASSERT_FALSE(trials) << damage;
    EXPECT_EQ(trials.error().where, (folder / "run/trials.jsonl").string() + ":2");
  }
}

TEST(RunDirectory, RefusesAFolderThatHoldsSomething) {
  const TestFolder folder;
  ASSERT_TRUE(write_file(folder / "full/thesis.tex", "precious"));
  const auto refused = RunDirectory::create(folder / "full");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().text(), HasSubstr("already holds something"));
  EXPECT_THAT(refused.error().remedy, HasSubstr("--resume"));
  EXPECT_EQ(read_file(folder / "full/thesis.tex").value(), "precious");
  ASSERT_TRUE(make_folder(folder / "empty"));
  EXPECT_TRUE(RunDirectory::create(folder / "empty"));
}

TEST(RunDirectory, OpenSaysWhatIsMissing) {
  const auto none = RunDirectory::open("/no/such/run");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("it has no run.json"));
}

TEST(RunDirectory, ASecondProcessDoesNotGetTheLock) {
  const TestFolder folder;
  auto run = RunDirectory::create(folder / "run").value();
  const auto lock_in_child = [&folder] {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto manifest = write_file(folder / "run/run.json", "{}");
      auto own = RunDirectory::open(folder / "run");
      const Status locked = own->lock();
      ::_exit(!manifest                                                      ? 3
              : locked                                                       ? 0
              : locked.error().message.starts_with("another run is writing") ? 1
                                                                             : 2);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(lock_in_child(), 0) << "free";
  ASSERT_TRUE(run.lock()) << "free again: its holder is gone";
  EXPECT_EQ(lock_in_child(), 1);
  auto copy = std::optional(run);
  run = RunDirectory::create(folder / "another").value();
  EXPECT_EQ(lock_in_child(), 1) << "the copy holds it";
  copy.reset();
  EXPECT_EQ(lock_in_child(), 0) << "free again: no copy is left";
}

TEST(RunDirectory, NothingIsWrittenThroughALink) {
  const TestFolder folder;
  const auto run = RunDirectory::create(folder / "run");
  ASSERT_TRUE(run);
  ASSERT_TRUE(write_file(folder / "mine", "mine"));
  fs::create_symlink(folder / "mine", folder / "run/trials.jsonl");
  fs::create_symlink(folder / "none", folder / "run/parity.jsonl");
  EXPECT_THAT(run->append(full_trial()).error().text(), HasSubstr("trials.jsonl: cannot be added to"));
  EXPECT_FALSE(run->append(full_parity()));
  EXPECT_EQ(*read_file(folder / "mine"), "mine");
  EXPECT_FALSE(fs::exists(folder / "none"));
}

// The cost of an append does not grow with the file.
TEST(RunDirectory, AppendingReadsNothing) {
  const TestFolder folder;
  const auto run = RunDirectory::create(folder / "run").value();
  const fs::path file = folder / "run/trials.jsonl";
  ASSERT_TRUE(write_file(file, "\n"));
  fs::resize_file(file, uintmax_t{1} << 40);  // sparse: more than memory and disk hold
  ASSERT_TRUE(append_line(file, ""));
  ASSERT_TRUE(run.append(full_trial()));
  EXPECT_EQ(fs::file_size(file), (uintmax_t{1} << 40) + 1 + to_json(full_trial()).size() + 1);
}

TEST(RunDirectory, AFolderThatCannotBeWrittenIsAnError) {
  const TestFolder folder;
  ASSERT_TRUE(write_file(folder / "file", "x"));
  const auto below_a_file = RunDirectory::create(folder / "file/run");
  ASSERT_FALSE(below_a_file);
  EXPECT_THAT(below_a_file.error().text(), HasSubstr("file/run"));
  EXPECT_FALSE(RunDirectory::create(folder / "file")) << "a file, not a folder";
  auto run = RunDirectory::create(folder / "run").value();
  fs::remove_all(folder / "run");
  const Status lock = run.lock();
  ASSERT_FALSE(lock);
  EXPECT_THAT(lock.error().message, HasSubstr("cannot write into"));
  EXPECT_FALSE(run.append(full_trial()));
  if (::geteuid() == 0) return;  // permissions do not bind root
  ASSERT_TRUE(make_folder(folder / "locked"));
  fs::permissions(folder / "locked", fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_FALSE(RunDirectory::create(folder / "locked"));
  fs::permissions(folder / "locked", fs::perms::owner_all);
}

}  // namespace
}  // namespace bakeoff
