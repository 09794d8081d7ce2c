#include "data/image_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/testing.h"
#include "data/idx.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using ::testing::HasSubstr;

// A set of six pictures of 2x2, whose "publisher" is a map of files.
class MnistTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pictures_ = idx_header({6, 2, 2}) + "abcdefghijklmnopqrstuvwx";
    labels_ = idx_header({6}) + std::string("\0\1\2\2\1\0", 6);
    set_ = {.name = "tiny",
            .classes = 3,
            .splits = {{"train", "images", "labels", sha256(pictures_), sha256(labels_), {6, 2, 2}}},
            .fetch = [this](const fs::path& into, const Progress&) -> Status {
              ++fetched_;
              if (offline_) return Error{.message = "no network"};
              CHECK_OK(write_file(into / "images", pictures_));
              return write_file(into / "labels", labels_);
            }};
  }

  Status prepare() { return prepare_images(set_, data_, kSilent); }
  std::string failure() {
    const Status status = prepare();
    return status ? "" : status.error().text();
  }

  const testing::TestFolder folder_;
  const fs::path data_ = folder_ / "data";
  const fs::path file_ = data_ / "tiny" / "train.safetensors";
  std::string pictures_, labels_;
  ImageSet set_;
  bool offline_ = false;
  int fetched_ = 0;
};

TEST_F(MnistTest, KeepsPicturesAndLabelsInSafetensors) {
  ASSERT_EQ(failure(), "");
  const auto file = tensor::SafetensorsFile::open(file_);
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->find("x")->shape, (tensor::Shape{6, 1, 2, 2}));
  EXPECT_EQ(file->find("x")->dtype, tensor::DType::kU8);
  EXPECT_EQ(file->bytes("x").value(), "abcdefghijklmnopqrstuvwx");
  EXPECT_EQ(file->find("y")->dtype, tensor::DType::kI32);
  EXPECT_EQ(file->read_ints("y")->data, (std::vector<int64_t>{0, 1, 2, 2, 1, 0}));
}

TEST_F(MnistTest, ASoundCacheNeedsNoNetwork) {
  ASSERT_EQ(failure(), "");
  offline_ = true;
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(fetched_, 1);
}

TEST_F(MnistTest, ADamagedCacheIsMadeAnew) {
  ASSERT_EQ(failure(), "");
  const std::string sound = read_file(file_).value();
  std::string flipped = sound;
  flipped[flipped.size() - 26] ^= 1;
  const std::vector<std::string> broken = {flipped, sound.substr(0, sound.size() - 1), std::string("x"),
                                           std::string()};
  for (const std::string& damaged : broken) {
    ASSERT_TRUE(write_file(file_, damaged));
    EXPECT_FALSE(check_split(file_, set_.splits[0]));
    ASSERT_EQ(failure(), "");
    EXPECT_EQ(read_file(file_).value(), sound);
  }
}

TEST_F(MnistTest, DamageInTheLabelsIsSeen) {
  ASSERT_EQ(failure(), "");
  const std::string sound = read_file(file_).value();
  for (size_t byte = 0; byte < sound.size(); ++byte) {  // header, labels and pictures alike
    std::string damaged = sound;
    damaged[byte] ^= 4;
    ASSERT_TRUE(write_file(file_, damaged));
    const Status status = check_split(file_, set_.splits[0]);
    if (status) {  // only the free text of the header may change unseen
      EXPECT_LT(byte, sound.find("\"x\"")) << byte;
    }
  }
}

TEST_F(MnistTest, DamageOnTheWayIsRefusedByFileName) {
  pictures_[20] ^= 1;
  EXPECT_THAT(failure(), HasSubstr("images' is damaged: its SHA-256 is"));
  pictures_.pop_back();
  EXPECT_THAT(failure(), HasSubstr("truncated"));
  pictures_ = idx_header({5, 2, 2}) + "abcdefghijklmnopqrst";
  EXPECT_THAT(failure(), HasSubstr("has shape [5,2,2], expected [6,2,2]"));
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_FALSE(fs::exists(data_ / "tiny" / ".fetched"));
}

TEST_F(MnistTest, OwnIdxFilesReplaceTheNetwork) {
  offline_ = true;
  EXPECT_THAT(failure(), HasSubstr("no network"));
  ASSERT_TRUE(write_file(data_ / "tiny" / "idx" / "images", pictures_));
  EXPECT_THAT(failure(), HasSubstr("idx/labels"));
  ASSERT_TRUE(write_file(data_ / "tiny" / "idx" / "labels", labels_));
  EXPECT_EQ(failure(), "");
}

TEST_F(MnistTest, LabelsBeyondTheClassesAreRefused) {
  set_.classes = 2;
  EXPECT_THAT(failure(), HasSubstr("row 2 has label 2, beyond 2 classes"));
}

TEST_F(MnistTest, AFolderThatCannotBeWrittenIsAnError) {
  ASSERT_TRUE(write_file(data_, "a file"));
  EXPECT_THAT(failure(), HasSubstr(data_.string()));
}

}  // namespace
}  // namespace bakeoff
