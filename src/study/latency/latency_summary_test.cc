#include "study/latency/latency_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "records/testing.h"
#include "study/latency/latency.h"

namespace bakeoff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

// One server that answers in `service_ms` each; rate 0: single stream.
LatencyTrial served(double rate, int64_t requests, double service_ms, int round = 1) {
  LatencyTrial trial{.contender = "a", .round = round, .rate = rate, .step_ms = service_ms};
  if (rate > 0) trial.arrival_ns = poisson_arrivals(rate, requests, static_cast<uint64_t>(round));
  int64_t free = 0;
  for (int64_t i = 0; i < requests; ++i) {
    const int64_t start = rate > 0 ? std::max(free, trial.arrival_ns[static_cast<size_t>(i)]) : free;
    free = start + std::llround(service_ms * static_cast<double>(kMs));
    trial.start_ns.push_back(start);
    trial.end_ns.push_back(free);
  }
  trial.ns = free + 1000;
  trial.elapsed_ns = trial.ns + kMs;
  return trial;
}

recipe::Latency asked(std::vector<double> rates, int64_t requests = 1000) {
  return {.arrivals_per_second = std::move(rates), .requests = requests};
}

LatencyRow row_of(const std::vector<LatencyTrial>& trials) {
  std::vector<double> rates;
  if (!trials[0].single_stream()) rates.push_back(trials[0].rate);
  const auto rows = latency_rows(trials, {"a"}, asked(rates), 0.99);
  EXPECT_THAT(rows, SizeIs(1));
  return rows.at(0);
}

TEST(PoissonArrivals, HaveTheStatedRateAndExponentialGaps) {
  const auto moments = poisson_arrivals(200, 20000, 7);
  EXPECT_NEAR(static_cast<double>(moments.back()) / 1e9, 100, 3);
  int64_t before = 0;
  int longer = 0;
  double squares = 0;
  for (const int64_t moment : moments) {
    const double gap = static_cast<double>(moment - before) / 5e6;  // means
    EXPECT_GE(gap, 0);
    longer += gap > 1;
    squares += gap * gap;
    before = moment;
  }
  EXPECT_NEAR(longer / 20000.0, std::exp(-1), 0.015);
  EXPECT_NEAR(squares / 20000, 2, 0.1) << "second moment of an exponential";
  EXPECT_EQ(moments, poisson_arrivals(200, 20000, 7));
  EXPECT_NE(moments, poisson_arrivals(200, 20000, 8));
}

TEST(PlannedRequests, FitTheSeconds) {
  EXPECT_EQ(planned_requests(asked({10}), 10), 300);
  EXPECT_EQ(planned_requests(asked({100}), 100), 1000);
}

TEST(LatencyRows, SingleStreamIsTheTimeOfAnAnswer) {
  const LatencyRow row = row_of({served(0, 1000, 2), served(0, 1000, 2, 2), served(0, 1000, 3, 3)});
  EXPECT_EQ(row.state, LatencyState::kSteady) << row.note;
  EXPECT_EQ(row.processes, 3);
  EXPECT_EQ(row.requests, 3000) << "there is no queue to settle";
  ASSERT_THAT(row.percentiles, SizeIs(4));
  EXPECT_NEAR(row.percentiles[0].value, 2, 1e-9);
  EXPECT_NEAR(row.percentiles[1].value, 3, 1e-9);
  EXPECT_NEAR(row.by_process[1].low, 2, 1e-9);
  EXPECT_NEAR(row.by_process[1].high, 3, 1e-9) << "processes differ, and that is shown";
}

TEST(LatencyRows, OpenLoopCountsFromTheIntendedArrival) {
  // 100 a second, 5 ms each: M/D/1 at half its capacity. Mean latency 5 + 2.5 ms (Pollaczek & Khinchine).
  std::vector<LatencyTrial> trials;
  for (int round = 1; round <= 3; ++round) trials.push_back(served(100, 3000, 5, round));
  const LatencyRow row = row_of(trials);
  EXPECT_EQ(row.state, LatencyState::kSteady) << row.note;
  EXPECT_NEAR(row.load, 0.5, 1e-6);
  EXPECT_NEAR(row.mean_ms, 7.5, 0.4);
  EXPECT_NEAR(row.service_ms, 5, 1e-6);
  EXPECT_LT(row.requests, 9000) << "the empty queue at the start is left out";
  EXPECT_LT(row.percentiles[2].n_eff, 9000) << "requests that queue are not independent";
  EXPECT_GT(row.percentiles[2].value, 15);
}

TEST(LatencyRows, OneSlowAnswerIsSeenByAllWhoWaitBehindIt) {
  LatencyTrial trial = served(100, 1000, 5);
  const int64_t stall = 200 * kMs;
  int64_t free = 0;
  for (size_t i = 0; i < 1000; ++i) {
    trial.start_ns[i] = std::max(free, trial.arrival_ns[i]);
    free = trial.start_ns[i] + 5 * kMs + (i == 500 ? stall : 0);
    trial.end_ns[i] = free;
  }
  trial.ns = free + 1000;
  trial.elapsed_ns = trial.ns;
  const LatencyRow with = row_of({trial}), without = row_of({served(100, 1000, 5)});
  EXPECT_GT(with.percentiles[2].value, 150) << "p99: about 40 requests came meanwhile";
  EXPECT_LT(without.percentiles[2].value, 40);
}

TEST(LatencyRows, AboveCapacityQuotesTheGrowthAndNoLatency) {
  const LatencyRow row = row_of({served(400, 2000, 5)});
  EXPECT_EQ(row.state, LatencyState::kGrowing);
  EXPECT_THAT(row.percentiles, IsEmpty());
  EXPECT_EQ(row.mean_ms, 0);
  EXPECT_NEAR(row.growth_per_s, 200, 25);
  EXPECT_THAT(row.note, HasSubstr("400 requests arrive a second, 200 can be answered; the queue grows by"));
}

// Ten times what it can answer, in too few requests to watch the queue grow.
TEST(LatencyRows, FarAboveCapacityIsSaidHoweverFewRequestsThereWere) {
  const LatencyRow row = row_of({served(2000, 25, 5)});
  EXPECT_EQ(row.state, LatencyState::kGrowing);
  EXPECT_GT(row.growth_per_s, 1500);
  EXPECT_THAT(row.note, HasSubstr("above its capacity: 2000 requests arrive a second, 200 can be answered"));
}

TEST(LatencyRows, NearCapacityIsNotSteadyAndSaysWhatWouldDo) {
  const LatencyRow row = row_of({served(190, 1000, 5)});
  EXPECT_EQ(row.state, LatencyState::kUnsettled);
  EXPECT_THAT(row.percentiles, IsEmpty());
  EXPECT_THAT(row.note, HasSubstr("at 95% of its capacity"));
  EXPECT_THAT(row.note, HasSubstr("latency.requests"));
}

TEST(LatencyRows, OneProcessAboveCapacityIsEnough) {
  const LatencyRow row = row_of({served(100, 1000, 5), served(100, 1000, 15, 2)});
  EXPECT_EQ(row.state, LatencyState::kGrowing);
}

TEST(LatencyRows, AFailureIsARowWithItsReason) {
  LatencyTrial dead{
      .contender = "a", .round = 2, .rate = 100, .failure = Failure{Stage::kServe, "exit code 1", ""}};
  const LatencyRow row = row_of({served(100, 1000, 5), dead});
  EXPECT_EQ(row.state, LatencyState::kFailed);
  EXPECT_EQ(row.note, "serve: exit code 1");
}

TEST(LatencyRows, StandByRateInTheOrderOfTheContenders) {
  std::vector<LatencyTrial> trials;
  for (const char* id : {"a", "b"}) {
    for (const double rate : {0.0, 50.0, 20.0}) {
      trials.push_back(served(rate, 600, 2));
      trials.back().contender = id;
    }
  }
  std::vector<std::string> seen;
  for (const LatencyRow& row : latency_rows(trials, {"b", "a", "stranger"}, asked({20, 50}), 0.99))
    seen.push_back(row.contender + std::to_string(static_cast<int>(row.rate)));
  EXPECT_THAT(seen, ElementsAre("b0", "a0", "b20", "a20", "b50", "a50"));
}

TEST(CheckLatency, PassesWhatIsSound) {
  for (const double rate : {0.0, 100.0, 400.0}) EXPECT_THAT(check_latency(served(rate, 500, 5)), IsEmpty());
  LatencyTrial cut = served(400, 500, 5);
  cut.start_ns.resize(100);
  cut.end_ns.resize(100);
  cut.ns = cut.end_ns.back() + 1000;
  cut.elapsed_ns = cut.ns + 20'000'000;
  EXPECT_THAT(check_latency(cut), IsEmpty()) << "time ran out: those that were answered";
}

std::string broken_rule(const LatencyTrial& trial) {
  const auto broken = check_latency(trial);
  return broken.empty() ? "" : broken.front().rule;
}

TEST(CheckLatency, FindsTimesThatCannotBe) {
  LatencyTrial early = served(100, 500, 5);
  early.start_ns[40] = early.arrival_ns[40] - 1000;
  EXPECT_THAT(broken_rule(early), HasSubstr("once they arrived"));
  LatencyTrial together = served(400, 500, 5);
  together.start_ns[40] = together.start_ns[39];
  EXPECT_THAT(broken_rule(together), HasSubstr("one at a time"));
  LatencyTrial long_clock = served(100, 500, 5);
  long_clock.elapsed_ns = long_clock.ns / 2;
  EXPECT_THAT(broken_rule(long_clock), HasSubstr("no longer than went by"));
  LatencyTrial halved = served(0, 500, 5);
  for (auto* times : {&halved.start_ns, &halved.end_ns}) {
    for (int64_t& ns : *times) ns /= 2;
  }
  halved.ns /= 2;
  EXPECT_THAT(broken_rule(halved), HasSubstr("requests took as long as went by"));
  LatencyTrial other_clock = served(100, 500, 5);
  other_clock.ns /= 2;
  EXPECT_THAT(broken_rule(other_clock), HasSubstr("requests in flight = rate x latency"));
  LatencyTrial missing = served(100, 500, 5);
  missing.end_ns.pop_back();
  EXPECT_THAT(broken_rule(missing), HasSubstr("a start and an end"));
}

TEST(CheckLatency, FindsAnswersThatWereGivenBeforeTheOutputWasThere) {
  LatencyTrial trial = served(0, 500, 0.05);
  trial.step_ms = 4;
  EXPECT_THAT(broken_rule(trial), HasSubstr("half of a step at full throughput"));
  EXPECT_EQ(row_of({trial}).state, LatencyState::kFailed);
}

TEST(LatencyNotes, CountDisturbedMeasurements) {
  std::vector<LatencyTrial> trials = {served(0, 50, 1), served(0, 50, 1, 2)};
  EXPECT_THAT(latency_notes(trials), IsEmpty());
  trials[1].host.busy = "other processes used 40% of the processors";
  EXPECT_THAT(latency_notes(trials), ElementsAre(HasSubstr("1 of 2 measurements")));
}

TEST(LatencyTrial, IsKept) {
  testing::expect_kept(LatencyTrial{.contender = "torch",
                                    .round = 2,
                                    .rate = 10,
                                    .started = "now",
                                    .failure = Failure{Stage::kServe, "exit code 1", "tail"},
                                    .arrival_ns = {1, 2},
                                    .start_ns = {3, 4},
                                    .end_ns = {5, 6},
                                    .ns = 7,
                                    .elapsed_ns = 8,
                                    .step_ms = 0.5,
                                    .host = {7, {{"steal", 0.5}}, {{"others", "hidden"}}, "stolen", true, 3},
                                    .effective = {{"threads", "2"}}});
}

}  // namespace
}  // namespace bakeoff
