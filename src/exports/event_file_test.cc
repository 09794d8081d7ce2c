#include "exports/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tensorboard/tensorboard_event.pb.h>

#include <map>

#include "exports/recorded_testing.h"

namespace bakeoff::exports {
namespace {

using ::testing::ElementsAre;

// RFC 3720, B.4.
TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(FolderNames, EveryTextIsOneFolder) {
  EXPECT_THAT(
      folder_names({"torch[compile=default]", "../../etc", "..", "", "a/b", "a b", "a_b", "Grüße"}),
      ElementsAre("torch[compile=default]", "_.._.._etc", "_..", "_", "a_b", "a_b-2", "a_b-3", "Gr____e"));
  const auto longer = folder_names({std::string(5000, 'x'), std::string(5001, 'x')});
  EXPECT_EQ(longer[0].size(), 100u);
  EXPECT_EQ(longer[1], longer[0] + "-2");
}

uint64_t number(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

// The events of a file; both sums of every record are checked.
std::vector<wire::Event> events(std::string_view bytes) {
  std::vector<wire::Event> all;
  while (!bytes.empty()) {
    const std::string_view length = bytes.substr(0, 8);
    EXPECT_EQ(number(bytes.substr(8, 4)), masked_crc32c(length));
    const std::string_view data = bytes.substr(12, number(length));
    EXPECT_EQ(number(bytes.substr(12 + data.size(), 4)), masked_crc32c(data));
    EXPECT_TRUE(all.emplace_back().ParseFromArray(data.data(), static_cast<int>(data.size())));
    bytes.remove_prefix(16 + data.size());
  }
  return all;
}

TEST(EventFile, HoldsEverySeries) {
  const Experiment experiment = experiment_of(sample_recorded());
  const auto files = event_files(experiment);
  ASSERT_EQ(files.size(), 5u);
  EXPECT_EQ(files[0].name, "events.out.tfevents.1795248000.bakeoff");
  const auto all = events(files[0].bytes);
  ASSERT_GT(all.size(), 5u);
  EXPECT_EQ(all[0].file_version(), "brain.Event:2");
  std::map<std::string, std::vector<float>> scalars;
  for (const wire::Event& event : all) {
    for (const auto& value : event.summary().value()) {
      if (value.value_case() == wire::Summary::Value::kSimpleValue)
        scalars[value.tag()].push_back(value.simple_value());
    }
  }
  EXPECT_THAT(scalars["race/seconds_per_step"], ElementsAre(0.1f, 0.1f));
  EXPECT_THAT(scalars["race/samples_per_second"], ElementsAre(1000.f, 1000.f));
  EXPECT_THAT(scalars["parity/loss"], ElementsAre(2.5f, 1.5f));
  EXPECT_THAT(scalars["fit/seed1/loss"], ElementsAre(2.f, 1.f, 0.5f));
  EXPECT_THAT(scalars["fit/seed1/held_out_loss"], ElementsAre(0.7f));
  EXPECT_EQ(scalars.count("verdict/ms_per_step_high"), 0u);
}

TEST(EventFile, TheSameRunGivesTheSameBytes) {
  const auto once = event_files(experiment_of(sample_recorded()));
  const auto again = event_files(experiment_of(sample_recorded()));
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(once[i].bytes, again[i].bytes);
}

}  // namespace
}  // namespace bakeoff::exports
