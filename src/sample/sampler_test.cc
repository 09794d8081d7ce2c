#include "sample/sampler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/testing.h"
#include "sample/clock_probe.h"
#include "sample/process_sampler.h"

namespace bakeoff::sample {
namespace {

using ::testing::HasSubstr;
using testing::soon;

constexpr int64_t kMs = 1'000'000;

// Time that tests move.
class HandClock : public Clock {
 public:
  int64_t now_ns() const override { return now; }
  std::atomic<int64_t> now = 1;
};

Sensor counting(std::shared_ptr<std::atomic<int>> looks, const std::string& name = "looks") {
  return {.names = {name}, .read = [looks](std::span<Reading> out) { out[0] = ++*looks; }};
}

std::shared_ptr<std::atomic<int>> counter() { return std::make_shared<std::atomic<int>>(0); }

// A sampler of these sensors alone.
struct Watched {
  Watched(std::vector<Sensor> sensors, SamplerOptions options) : sampler(options) {
    for (Sensor& sensor : sensors) wanted.push_back(sampler.add(std::move(sensor)));
  }
  void begin() { sampler.begin(wanted); }
  std::map<std::string, Series> end() { return sampler.end(); }
  Sampler sampler;
  std::vector<size_t> wanted = {};
};

TEST(Series, SaysWhatItsNumberDid) {
  Series series;
  series.add(Reading::absent("warming up"), 1);
  EXPECT_EQ(series.absent, "warming up");
  EXPECT_EQ(series.count, 0u);
  for (const auto& [value, ns] : {std::pair{4.0, 10}, {2.0, 20}, {9.0, 30}}) series.add(value, ns);
  EXPECT_EQ(series.absent, "");
  EXPECT_EQ(series.count, 3u);
  EXPECT_DOUBLE_EQ(series.mean(), 5);
  EXPECT_EQ(std::pair(series.low, series.high), std::pair(2.0, 9.0));
  EXPECT_EQ(std::pair(series.first, series.last), std::pair(4.0, 9.0));
  EXPECT_EQ(std::pair(series.first_ns, series.last_ns), (std::pair<int64_t, int64_t>(10, 30)));
  series.add(Reading::absent("gone"), 40);
  EXPECT_EQ(series.absent, "gone");
  EXPECT_EQ(series.count, 3u);
}

TEST(Sampler, LooksOnlyBetweenBeginAndEnd) {
  const auto looks = counter();
  Watched sampler({counting(looks)}, {.period_ns = kMs});
  ::usleep(20'000);
  EXPECT_EQ(*looks, 0);
  sampler.begin();
  ASSERT_TRUE(soon([&] { return *looks >= 5; }));
  const Series first = sampler.end().at("looks");
  EXPECT_EQ(first.first, 1);
  EXPECT_EQ(first.last, static_cast<double>(first.count));
  const int then = *looks;
  ::usleep(20'000);
  EXPECT_EQ(*looks, then);
  sampler.begin();
  ASSERT_TRUE(soon([&] { return *looks > then + 1; }));
  EXPECT_EQ(sampler.end().at("looks").first, then + 1) << "a series of its own";
}

TEST(Sampler, TheReasonOfAnAbsenceHoldsUntilTheNextLook) {
  constexpr int64_t kHour = 3'600'000 * kMs;
  const auto looks = counter();
  const Sensor seldom{.names = {"heat"},
                      .read =
                          [looks](std::span<Reading> out) {
                            ++*looks;
                            out[0] = Reading::absent("there is no sensor");
                          },
                      .least_ns = kHour};
  const auto often = counter();
  Watched sampler({seldom, counting(often)}, {.period_ns = kMs});
  sampler.begin();
  // The second sensor is looked at after the first one.
  ASSERT_TRUE(soon([&] { return *often >= 3; }));
  EXPECT_EQ(sampler.end().at("heat").absent, "there is no sensor");
  const int then = *often;
  sampler.begin();
  ASSERT_TRUE(soon([&] { return *often > then + 2; }));
  EXPECT_EQ(sampler.end().at("heat").absent, "there is no sensor") << "also where nobody looked again";
  EXPECT_EQ(*looks, 1);
}

TEST(Sampler, LooksOnlyAtWhatIsWanted) {
  const auto one = counter(), two = counter();
  Sampler sampler({.period_ns = kMs});
  const size_t first = sampler.add(counting(one, "one"));
  sampler.begin({first});
  ASSERT_TRUE(soon([&] { return *one >= 3; }));
  EXPECT_EQ(sampler.end().size(), 1u);
  const size_t second = sampler.add(counting(two, "two"));
  const int then = *one;
  sampler.begin({second});
  ASSERT_TRUE(soon([&] { return *two >= 3; }));
  EXPECT_TRUE(sampler.end().contains("two"));
  EXPECT_EQ(*one, then);
}

TEST(Sampler, KeepsItsPaceByItsOwnClockWhereASensorAsksForLess) {
  const auto often = counter(), seldom = counter();
  HandClock clock;
  Sensor slow = counting(seldom, "seldom");
  slow.least_ns = 1000 * kMs;
  Watched sampler({counting(often, "often"), slow}, {.period_ns = kMs, .clock = &clock});
  sampler.begin();
  ASSERT_TRUE(soon([&] { return *often >= 20; }));
  EXPECT_EQ(*seldom, 1);
  clock.now += 1000 * kMs;
  ASSERT_TRUE(soon([&] { return *seldom == 2; }));
  EXPECT_EQ(sampler.end().at("often").first_ns, 1);
}

TEST(Sampler, SurvivesASensorThatHangs) {
  const auto looks = counter();
  auto release = std::make_shared<std::atomic<bool>>(false);
  const auto entered = counter(), done = counter();
  const Sensor hangs{.names = {"a", "b"}, .read = [=](std::span<Reading> out) {
                       ++*entered;
                       while (!*release) ::usleep(1000);
                       out[0] = out[1] = 1.0;
                       ++*done;
                     }};
  {
    Watched sampler({counting(looks), hangs}, {.period_ns = kMs, .patience_ns = 300 * kMs});
    sampler.begin();
    ASSERT_TRUE(soon([&] { return *entered == 1; }));
    auto seen = sampler.end();
    EXPECT_EQ(seen.at("looks").count, 1u) << "the hanging one kept it from looking again";
    for (const char* name : {"a", "b"})
      EXPECT_EQ(seen.at(name).absent, "its sensor did not answer within 0.3 s");
    sampler.begin();
    ASSERT_TRUE(soon([&] { return *looks >= 6; })) << "goes on without it";
    *release = true;
    ASSERT_TRUE(soon([&] { return *done == 1; }));
    seen = sampler.end();
    EXPECT_GE(seen.at("looks").count, 5u);
    EXPECT_EQ(seen.at("a").count, 0u) << "what came too late is of another burst";
    EXPECT_THAT(seen.at("a").absent, HasSubstr("did not answer"));
  }
  EXPECT_EQ(*done, 1) << "and is never asked again";
}

TEST(Sampler, EndsAlthoughASensorHangs) {
  auto release = std::make_shared<std::atomic<bool>>(false);
  const auto entered = counter(), left = counter();
  {
    Watched sampler({{.names = {"a"},
                      .read =
                          [=](std::span<Reading>) {
                            ++*entered;
                            while (!*release) ::usleep(1000);
                            ++*left;
                          }}},
                    {.period_ns = kMs, .patience_ns = kMs});
    sampler.begin();
    ASSERT_TRUE(soon([&] { return *entered == 1; }));
  }
  EXPECT_EQ(*left, 0);
  *release = true;
  EXPECT_TRUE(soon([&] { return *left == 1; })) << "its thread owns what it needs";
}

class SensorTest : public ::testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(folder_ / file, text));
  }
  static Reading look(const Sensor& sensor) {
    std::vector<Reading> readings(sensor.names.size());
    sensor.read(readings);
    return readings[0];
  }
  const testing::TestFolder folder_;
  const std::string root_ = folder_.path();
};

TEST_F(SensorTest, ReadResidentMemoryAndTheRunQueue) {
  put("proc/7/statm", "5000 300 20 1 0 200 0\n");
  put("proc/loadavg", "0.20 0.18 0.12 3/80 11206\n");
  EXPECT_EQ(*look(rss_sensor(7, root_)), 300.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(*look(run_queue_sensor(root_)), 2);
  put("proc/loadavg", "0.20 0.18 0.12 0/80 11206\n");
  EXPECT_EQ(*look(run_queue_sensor(root_)), 0);
}

TEST_F(SensorTest, SayWhyTheyCannot) {
  EXPECT_THAT(look(rss_sensor(7, root_)).reason(), HasSubstr("statm cannot be read: No such file"));
  for (const char* garbage : {"", "5000", "5000 many 20\n", "5000 -3\n"}) {
    put("proc/7/statm", garbage);
    EXPECT_THAT(look(rss_sensor(7, root_)).reason(), HasSubstr("statm is not as expected")) << garbage;
  }
}

TEST_F(SensorTest, AFileThatComesBackIsReadAgain) {
  const Sensor sensor = run_queue_sensor(root_);
  EXPECT_FALSE(look(sensor));
  put("proc/loadavg", "0 0 0 5/80 1\n");
  EXPECT_EQ(*look(sensor), 4);
}

TEST_F(SensorTest, APipeInPlaceOfAFileHoldsNobodyUp) {
  fs::create_directories(folder_ / "proc/7");
  ASSERT_EQ(::mkfifo((folder_ / "proc/7/statm").c_str(), 0600), 0);
  EXPECT_THAT(look(rss_sensor(7, root_)).reason(), HasSubstr("statm cannot be read"));
}

TEST_F(SensorTest, APipeThatIsOpenedTheUsualWayIsGivenUp) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto entered = counter();
  const Sensor waits{.names = {"waits"}, .read = [=](std::span<Reading> out) {
                       ++*entered;
                       const int fd = ::open(pipe.c_str(), O_RDONLY | O_CLOEXEC);  // until somebody writes
                       out[0] = 1.0;
                       ::close(fd);
                     }};
  Watched sampler({waits, rss_sensor(::getpid())}, {.period_ns = kMs, .patience_ns = 300 * kMs});
  sampler.begin();
  ASSERT_TRUE(soon([&] { return *entered == 1; }));
  EXPECT_THAT(sampler.end().at("waits").absent, HasSubstr("did not answer"));
  sampler.begin();
  std::map<std::string, Series> seen;
  ASSERT_TRUE(soon([&] {
    seen = sampler.end();
    sampler.begin();
    return seen.at("rss_bytes").count > 0;
  }));
  EXPECT_GT(seen.at("rss_bytes").high, 1e6) << "this program's own";
  const int writer = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);  // lets the thread go
  ::close(writer);
}

}  // namespace
}  // namespace bakeoff::sample
