// What goes wrong on clusters, provoked on one that is made up: races of a real plan, whose blocks run as the test says.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <set>
#include <thread>

#include "base/testing.h"
#include "fleet/races.h"
#include "fleet/shared_folder.h"
#include "plan/plan.h"
#include "race/race.h"
#include "summary/summarise.h"

namespace bakeoff::fleet {
namespace {

using bakeoff::testing::TestFolder;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Interpreters kTorch = {{"torch", {"/usr/bin/python3", "", "some"}}};

// A machine of the cluster.
struct Machine {
  std::string name = {};
  double speed = 1;             // of others; its clock too
  double gap = 1.1;             // step time of the second contender over that of the first
  std::string started = {};     // what its clock says
  std::chrono::hours ahead{0};  // how far its files' times are ahead
  bool full = false;            // its disk
};

// Runs each block as soon as it is submitted, on the machines in turns.
class Cluster : public Engine {
 public:
  explicit Cluster(const Board& board)
      : board_(board), contenders_(RunDirectory::open(board.run())->manifest()->contenders) {}

  std::vector<Machine> machines = {{.name = "n1"}, {.name = "n2"}};
  double needs_minutes = 0;  // of every block: a job with a shorter limit is ended by it
  mutable std::vector<Job> jobs = {};
  mutable std::vector<std::vector<std::string>> avoided = {};

  Status check() const override { return Done{}; }
  Status submit(Job& job, const std::vector<std::string>& avoid) const override {
    job.ids = {std::to_string(job.number)};
    job.submitted = "2031-01-01T00:00:00Z";  // long after what nodes say
    const std::lock_guard<std::mutex> one_at_a_time(mutex_);
    for (const int block : job.blocks) CHECK_OK(run(job, block, avoid));
    jobs.push_back(job);
    avoided.push_back(avoid);
    return Done{};
  }
  Result<std::map<int, Queued>> queued(const Job&) const override { return std::map<int, Queued>{}; }
  std::string why_gone(const Job& job, int) const override {
    return job.minutes < needs_minutes ? fmt::format("TIMEOUT after {:g} minutes", job.minutes) : "";
  }
  Status cancel(const Job&) const override { return Done{}; }

 private:
  Status run(const Job& job, int block, const std::vector<std::string>& avoid) const {
    const Machine* machine = nullptr;
    do {
      machine = &machines[turn_++ % machines.size()];
    } while (std::ranges::find(avoid, machine->name) != avoid.end());
    TRY(const bool ours, board_.take(block, job.number, machine->name));
    EXPECT_TRUE(ours) << block << " was handed out twice in job " << job.number;
    if (job.minutes < needs_minutes) return Done{};
    const std::string folder = fmt::format("fleet/blocks/{:05}/", block);
    if (machine->full) {  // half of a result, as a full disk leaves it
      CHECK_OK(
          write_file(board_.run() / (folder + "result-1.json.tmp2"), "{\"block\":" + std::to_string(block)));
      return board_.write(FailedAttempt{.block = block,
                                        .job = job.number,
                                        .node = machine->name,
                                        .reason = "cannot write: No space left on device",
                                        .contenders = {}},
                          machine->name);
    }
    TRY(const bool first, board_.settle(result_of(*machine, block)));
    EXPECT_TRUE(first);
    const fs::path file = board_.run() / (folder + "result.json");
    fs::last_write_time(file, fs::last_write_time(file) + machine->ahead);
    return Done{};
  }

  BlockResult result_of(const Machine& machine, int block) const {
    const auto order = board_.order(block);
    EXPECT_TRUE(order);
    BlockResult result{.block = block, .attempt = machine.name};
    result.node = {
        .name = machine.name, .clock_ghz = 3 * machine.speed, .speed = machine.speed, .noise = 0.01};
    result.node.host.cpu = "EPYC";
    for (const size_t member : order->members) {
      // A little noise, so that variances are above 0.
      const double ms = (member == 0 ? 4 : 4 * machine.gap) / machine.speed *
                        (1 + 0.001 * std::sin(7.0 * block + static_cast<double>(member)));
      const auto ns = static_cast<int64_t>(std::llround(ms * 1e7));
      result.trials += to_json(Trial{.contender = contenders_[member].id,
                                     .heat = block,
                                     .node = machine.name,
                                     .started = machine.started,
                                     .heat_ns = 1'000'000'000,
                                     .confirms = order->confirms,
                                     .bursts = {{ns, 10}, {ns, 10}, {ns, 10}}}) +
                       "\n";
    }
    result.bytes = static_cast<int64_t>(result.trials.size());
    return result;
  }

  const Board& board_;
  const std::vector<Contender> contenders_;
  mutable std::mutex mutex_;
  mutable size_t turn_ = 0;
};

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() { ::setenv("BAKEOFF_HOME", (folder_ / "home").c_str(), 1); }
  ~FaultsTest() override { ::unsetenv("BAKEOFF_HOME"); }

  // A run of two contenders that are proven.
  Board planned(const Settings& settings = {.engine = "local"}, const std::string& name = "run") {
    const auto recipe = recipe::parse(
        "workload = \"mlp_small\"\nbatch = 10\nalpha = 0.05\nmargin = 0.02\ncontenders = [{ framework = "
        "\"torch\", allocator = [\"default\", \"tuned\"] }]\n[data]\nsamples = 20\n[optimizer]\nkind = "
        "\"sgd\"\nlr = 0.1\n[race]\nmax_busy = 1\n[budget]\nminutes = 5\nheats = 24\n",
        "r.toml");
    EXPECT_TRUE(recipe) << recipe.error().text();
    const auto plan = make_plan(*recipe, folder_ / name, kTorch, kSilent);
    EXPECT_TRUE(plan) << plan.error().text();
    for (const Contender& one : plan->manifest.contenders)
      EXPECT_TRUE(plan->directory.append(Parity{.contender = one.id, .checks = {{.passed = true}}}));
    return Board::create(folder_ / name, settings).value();
  }

  static Status seen_through(const Board& board, const Cluster& cluster) {
    return see_through(board, cluster, kTorch, {.poll_s = 0.01});
  }
  static Merged merged(const Board& board) {
    auto found = collect(board, kTorch);
    EXPECT_TRUE(found) << found.error().text();
    return std::move(*found);
  }
  static Summary summary(const Board& board) {
    merged(board);
    auto found = summarise(RunDirectory::open(board.run()).value());
    EXPECT_TRUE(found) << found.error().text();
    return std::move(*found);
  }
  static std::string trials(const Board& board) { return read_file(board.run() / "trials.jsonl").value(); }

  TestFolder folder_;
};

// On two nodes the first contender is 10% quicker. On the third, which is 30% slower, the second one is by far.
TEST_F(FaultsTest, ASlowNodeIsNamedAndDoesNotTurnTheVerdict) {
  const std::vector<Machine> machines = {
      {.name = "n1"}, {.name = "n2"}, {.name = "slow", .speed = 0.7, .gap = 0.5}};
  const Board board = planned();
  Cluster cluster(board);
  cluster.machines = machines;
  ASSERT_TRUE(seen_through(board, cluster));
  const Merged all = merged(board);
  EXPECT_THAT(all.nodes.at("slow").apart, HasSubstr("30% less"));
  EXPECT_THAT(told(all), ElementsAre(HasSubstr("node slow is kept apart")));
  EXPECT_THAT(trials(board), ::testing::Not(HasSubstr("slow")));
  EXPECT_THAT(cluster.avoided.back(), ElementsAre("slow")) << "later jobs are not sent there";
  const Summary verdict = summary(board);
  ASSERT_THAT(verdict.ranked, SizeIs(2));
  EXPECT_EQ(verdict.ranked[0].contender.id, RunDirectory::open(board.run())->manifest()->contenders[0].id);
  EXPECT_TRUE(surely_slower(verdict.ranked[1].verdict));
  // Where it counts, it turns the verdict or leaves it open.
  const Board blind = planned({.engine = "local", .out_of_line = 9}, "blind");
  Cluster same(blind);
  same.machines = machines;
  ASSERT_TRUE(seen_through(blind, same));
  EXPECT_THAT(told(merged(blind)), IsEmpty());
  const Summary other = summary(blind);
  EXPECT_FALSE(other.ranked[0].contender.id == verdict.ranked[0].contender.id &&
               surely_slower(other.ranked[1].verdict));
}

// The second contender is slower on each node, where nodes differ by 10 or by 30%.
TEST_F(FaultsTest, VerdictsSayWhomTheyMean) {
  const auto said = [&](const std::vector<double>& gaps) {
    const Board board = planned({.engine = "local"}, "of" + std::to_string(gaps.size()) +
                                                         (gaps.front() == gaps.back() ? "alike" : "unlike"));
    Cluster cluster(board);
    cluster.machines.clear();
    for (const double gap : gaps)
      cluster.machines.push_back({.name = "n" + std::to_string(cluster.machines.size()), .gap = gap});
    EXPECT_TRUE(seen_through(board, cluster));
    const Summary found = summary(board);
    EXPECT_TRUE(found.decided) << found.sentence;
    return found.sentence + " " + found.studies.back().legend;
  };
  EXPECT_THAT(said({1.1}), HasSubstr("Verdicts are of this node; fewer than 4 nodes say nothing of other"));
  EXPECT_THAT(said({1.1, 1.3}), HasSubstr("together, of these 2 nodes, are wrong with probability 5%"));
  EXPECT_THAT(said({1.1, 1.1, 1.1, 1.1}), HasSubstr("of machines of this kind, from 4 nodes,"));
  EXPECT_THAT(said({1.1, 1.3, 1.1, 1.3}),
              HasSubstr("of these 4 nodes; of machines of this kind 0 of 1 comparisons with the leader"));
}

TEST_F(FaultsTest, ClocksApartChangeNothing) {
  const Board right = planned(), wrong = planned({.engine = "local"}, "wrong");
  Cluster on_time(right), apart(wrong);
  apart.machines = {{.name = "n1", .started = "2040-01-01T00:00:00Z", .ahead = std::chrono::hours(9)},
                    {.name = "n2", .started = "1970-01-01T00:00:00Z", .ahead = std::chrono::hours(-90000)}};
  ASSERT_TRUE(seen_through(right, on_time));
  ASSERT_TRUE(seen_through(wrong, apart));
  EXPECT_EQ(merged(wrong).settled, merged(right).settled);
  const auto order = [](const Board& board) {
    std::vector<int> heats;
    for (const Trial& trial : *RunDirectory::open(board.run())->read<Trial>()) heats.push_back(trial.heat);
    return heats;
  };
  EXPECT_EQ(order(wrong), order(right));
  EXPECT_TRUE(std::ranges::is_sorted(order(wrong)));
  const Summary one = summary(right), other = summary(wrong);
  ASSERT_EQ(one.ranked.size(), other.ranked.size());
  for (size_t i = 0; i < one.ranked.size(); ++i) {
    EXPECT_EQ(one.ranked[i].contender.id, other.ranked[i].contender.id);
    EXPECT_EQ(one.ranked[i].verdict, other.ranked[i].verdict);
    EXPECT_EQ(one.ranked[i].ratio.value, other.ranked[i].ratio.value);
  }
}

TEST_F(FaultsTest, ABlockOfAFullDiskRunsElsewhere) {
  const Board board = planned();
  Cluster cluster(board);
  cluster.machines = {{.name = "n1"}, {.name = "full", .full = true}, {.name = "n2"}};
  ASSERT_TRUE(seen_through(board, cluster));
  const Merged all = merged(board);
  EXPECT_THAT(told(all), IsEmpty());
  EXPECT_EQ(all.settled, static_cast<int>(board.blocks()->size()));
  EXPECT_FALSE(all.nodes.contains("full"));
  EXPECT_THAT(board.failures(2), SizeIs(1));
  EXPECT_THAT(board.failures(2).front().reason, HasSubstr("No space left"));
}

TEST_F(FaultsTest, WhatATimeLimitEndsGoesOnInASuccessorWithALongerOne) {
  const Board board = planned();
  Cluster cluster(board);
  cluster.needs_minutes = 60;
  ASSERT_TRUE(seen_through(board, cluster));
  ASSERT_GE(cluster.jobs.size(), 2u);
  EXPECT_EQ(cluster.jobs[0].minutes, 30);
  EXPECT_EQ(cluster.jobs[1].minutes, 120);
  EXPECT_EQ(cluster.jobs[1].blocks, cluster.jobs[0].blocks);
  EXPECT_EQ(merged(board).settled, static_cast<int>(board.blocks()->size()));
  EXPECT_THAT(board.failures(1).front().reason, HasSubstr("TIMEOUT after 30 minutes"));
}

TEST_F(FaultsTest, SuccessorsEndAfterSomeTriesAndSoDoesARaceWithoutAResult) {
  const Board board = planned({.engine = "local", .tries = 3});
  Cluster cluster(board);
  cluster.needs_minutes = 1000;
  const Status done = seen_through(board, cluster);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("8 of 8 blocks are given up"));
  EXPECT_THAT(done.error().message, HasSubstr("TIMEOUT after 120 minutes"));
  EXPECT_THAT(cluster.jobs, SizeIs(3));
  EXPECT_THAT(*board.blocks(), SizeIs(8)) << "no further wave";
}

TEST_F(FaultsTest, TwoWhoWaitAtOnceSubmitEachBlockOnce) {
  const Board board = planned();
  const Cluster cluster(board);
  std::vector<Status> ends(3, Done{});
  std::vector<std::thread> waiting;
  for (Status& end : ends) waiting.emplace_back([&] { end = seen_through(board, cluster); });
  for (std::thread& one : waiting) one.join();
  for (const Status& end : ends) EXPECT_TRUE(end) << end.error().text();
  std::set<int> submitted;
  for (const Job& job : cluster.jobs)
    for (const int block : job.blocks) EXPECT_TRUE(submitted.insert(block).second) << block;
  EXPECT_EQ(merged(board).settled, static_cast<int>(submitted.size()));
}

TEST_F(FaultsTest, ABlockOfAnotherRaceRunsAgain) {
  const Board board = planned();
  const Cluster cluster(board);
  ASSERT_TRUE(seen_through(board, cluster));
  const std::string before = trials(board);
  const auto manifest = RunDirectory::open(board.run())->manifest();
  BlockResult copied = board.result(2).value();
  copied.race = race_of(*manifest);
  fs::remove(board.run() / "fleet/blocks/00002/result.json");
  ASSERT_TRUE(*board.settle(copied));
  EXPECT_THAT(merged(board).damaged, IsEmpty()) << "its own";
  copied.race += "0";
  fs::remove(board.run() / "fleet/blocks/00002/result.json");
  ASSERT_TRUE(*board.settle(copied));
  EXPECT_THAT(merged(board).damaged, ElementsAre("block 2: it is the result of another race"));
  EXPECT_FALSE(board.settled(2));
  EXPECT_TRUE(board.set_aside(2)) << "another collector did so";
  ASSERT_TRUE(seen_through(board, cluster));
  EXPECT_EQ(trials(board).size(), before.size());
}

TEST_F(FaultsTest, TimeThatIsOverEndsTheWaves) {
  const Board board = planned();
  const Cluster cluster(board);
  ASSERT_TRUE(see_through(board, cluster, kTorch, {.over = [] { return true; }}));
  EXPECT_THAT(cluster.jobs, SizeIs(1)) << "the first wave is run in any case";
}

// Whatever a recipe names is read on nodes: each kind of file, with its key and the remedy.
TEST_F(FaultsTest, WhatLiesOutsideTheSharedFolderIsRefused) {
  const Board board = planned();
  Plan plan = reopen_plan(board.run(), kTorch, Reopen::kHelp).value();
  const fs::path shared = folder_ / ".", inside = folder_ / "file";
  for (Lane& lane : plan.lanes) lane.entry.worker.python = inside;
  const Settings settings{.engine = "ssh", .program = inside.string(), .home = inside.string()};
  EXPECT_TRUE(check_shared(shared, settings, plan));
  const auto refused = [&](const Settings& with, const Plan& changed) {
    const Status done = check_shared(shared, with, changed);
    return done ? std::string() : done.error().text();
  };
  Settings elsewhere = settings;
  elsewhere.program = "/usr/bin/bakeoff";
  EXPECT_THAT(refused(elsewhere, plan), HasSubstr("--shared: the program '/usr/bin/bakeoff' lies outside"));
  elsewhere = settings;
  elsewhere.home = "/root/home";
  EXPECT_THAT(refused(elsewhere, plan), HasSubstr("BAKEOFF_HOME: the bakeoff home"));
  Plan changed = plan;
  changed.manifest.source_sha256["/data/x.npz"] = "0";
  EXPECT_THAT(refused(settings, changed), HasSubstr("the data '/data/x.npz' lies outside"));
  changed = plan;
  changed.lanes[0].entry.contender.own_script = "/scripts/own.py";
  EXPECT_THAT(refused(settings, changed), HasSubstr("r.toml:5: the script '/scripts/own.py' lies outside"));
  changed = plan;
  changed.lanes[1].entry.worker.python = "/usr/bin/python3";
  EXPECT_THAT(refused(settings, changed), HasSubstr("set BAKEOFF_HOME to a folder in it"));
}

}  // namespace
}  // namespace bakeoff::fleet
