#include "tensor/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/sha256.h"
#include "base/testing.h"

namespace bakeoff::tensor {
namespace {

using ::testing::HasSubstr;

class Safetensors : public ::testing::Test {
 protected:
  fs::path path() const { return folder_ / "t.safetensors"; }
  // A file with this header and so many bytes of data.
  std::string error_of(const std::string& header, size_t data_size) {
    const uint64_t length = header.size();
    std::string file(8, '\0');
    std::memcpy(file.data(), &length, 8);
    return error_of_file(file + header + std::string(data_size, '\1'));
  }
  std::string error_of_file(const std::string& bytes) {
    EXPECT_TRUE(write_file(path(), bytes));
    const auto file = SafetensorsFile::open(path());
    if (file) return "no error";
    EXPECT_THAT(file.error().text(), HasSubstr(path().string()));
    return file.error().text();
  }

  testing::TestFolder folder_;
};

NamedTensors samples() {
  return {{"u", *encode(IntTensor{{3, 2}, {0, 255, 7, 1, 2, 3}}, DType::kU8)},
          {"d", *encode(Tensor{{2, 2}, {0.1, -2, 3e300, 4}}, DType::kF64)},
          {"f", *encode(Tensor{{3}, {0.1, 1e-3, -7}}, DType::kF32)},
          {"i", *encode(IntTensor{{2}, {-5, 2147483647}}, DType::kI32)},
          {"l", *encode(IntTensor{{2}, {INT64_MIN, 3}}, DType::kI64)},
          {"s", *encode(Tensor{{}, {2.5}}, DType::kF64)},
          {"none", *encode(Tensor{{0, 4}, {}}, DType::kF32)}};
}

TEST_F(Safetensors, ReadsWhatItWrote) {
  ASSERT_TRUE(write_safetensors(path(), samples(), {{"seed", "7"}, {"name", "\"é\n"}}));
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->metadata(), (Metadata{{"seed", "7"}, {"name", "\"é\n"}}));
  EXPECT_EQ(file->entries().size(), 7u);
  EXPECT_EQ(*file->read("d"), (Tensor{{2, 2}, {0.1, -2, 3e300, 4}}));
  EXPECT_EQ(*file->read("f"), (Tensor{{3}, {double{0.1f}, double{1e-3f}, -7}}));
  EXPECT_EQ(*file->read("s"), (Tensor{{}, {2.5}}));
  EXPECT_EQ(*file->read("u"), (Tensor{{3, 2}, {0, 255, 7, 1, 2, 3}}));
  EXPECT_EQ(*file->read("none"), (Tensor{{0, 4}, {}}));
  EXPECT_EQ(*file->read_ints("i"), (IntTensor{{2}, {-5, 2147483647}}));
  EXPECT_EQ(*file->read_ints("l"), (IntTensor{{2}, {INT64_MIN, 3}}));
  EXPECT_EQ(*file->read_rows("u", 1, 2), (Tensor{{2, 2}, {7, 1, 2, 3}}));
  EXPECT_EQ(*file->read_int_rows("u", 0, 1), (IntTensor{{1, 2}, {0, 255}}));
  EXPECT_EQ(*file->bytes("u"), std::string_view("\0\xff\7\1\2\3", 6));
  EXPECT_EQ(file->find("f")->dtype, DType::kF32);
}

TEST_F(Safetensors, RefusesWhatAFileDoesNotHold) {
  ASSERT_TRUE(write_safetensors(path(), samples()));
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file);
  EXPECT_THAT(file->read("x").error().message, HasSubstr("no tensor 'x'"));
  EXPECT_THAT(file->read_rows("u", 2, 2).error().message, HasSubstr("has 3 rows"));
  EXPECT_THAT(file->read_rows("u", -1, 1).error().message, HasSubstr("has 3 rows"));
  EXPECT_THAT(file->read_rows("u", 1, INT64_MAX).error().message, HasSubstr("has 3 rows"));
  EXPECT_THAT(file->read_rows("s", 0, 1).error().message, HasSubstr("scalar"));
  EXPECT_THAT(file->read_ints("d").error().message, HasSubstr("is F64, integers are wanted"));
  EXPECT_THAT(file->read("l").error().message, HasSubstr("does not fit"));
}

TEST_F(Safetensors, EncodesWhatItWritesOneByOne) {
  const Tensor a{{2}, {0.1, -2}}, b{{1, 2}, {1e-3, 7}};
  ASSERT_TRUE(write_sources(path(), {source_of("a", a, DType::kF32), source_of("b", b, DType::kF64)}));
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->read("a"), (Tensor{{2}, {static_cast<double>(0.1F), -2}}));
  EXPECT_EQ(*file->read("b"), b);
  EXPECT_EQ(*file->read("b"), b);  // pages that were left are there again
}

TEST_F(Safetensors, RefusesNumbersThatDoNotFit) {
  EXPECT_THAT(encode(IntTensor{{1}, {256}}, DType::kU8).error().message, HasSubstr("256 does not fit U8"));
  EXPECT_THAT(encode(IntTensor{{1}, {1ll << 31}}, DType::kI32).error().message,
              HasSubstr("does not fit I32"));
  EXPECT_THAT(encode(Tensor{{1}, {0.5}}, DType::kI64).error().message, HasSubstr("0.5 does not fit I64"));
  EXPECT_FALSE(encode(Tensor{{1}, {0x1p63}}, DType::kI64));
  EXPECT_FALSE(encode(Tensor{{2}, {1}}, DType::kF64));
  EXPECT_TRUE(encode(Tensor{{1}, {-3}}, DType::kI32));
}

TEST_F(Safetensors, RefusesCorruptFiles) {
  EXPECT_THAT(error_of_file(""), HasSubstr("too short"));
  EXPECT_THAT(error_of_file("\xff\xff\xff\xff\xff\xff\xff\x7f{}"),
              HasSubstr("claims a header of 9223372036854775807"));
  EXPECT_THAT(error_of("{", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error_of(R"({"a":1})", 0), HasSubstr("tensor 'a' needs a dtype"));
  EXPECT_THAT(error_of(R"({"__metadata__":{"a":1}})", 0), HasSubstr("text to text"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("has dtype BF16"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7),
              HasSubstr("truncated"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
              HasSubstr("takes 12 bytes"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
              HasSubstr("needs a dtype"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), HasSubstr("lies at"));
  EXPECT_THAT(error_of(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0),
              HasSubstr("impossible shape"));
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_THAT(error_of("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]}})", 5),
              HasSubstr("overlaps"));
  EXPECT_THAT(error_of("{" + a + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[5,7]}})", 7),
              HasSubstr("hole"));
  EXPECT_THAT(error_of("{" + a + "}", 6), HasSubstr("2 bytes belong to no tensor"));
  EXPECT_THAT(error_of("{" + a + "," + a + "}", 4), HasSubstr("'a' is there twice"));
  EXPECT_EQ(error_of("{" + a + "}", 4), "no error");
  EXPECT_THAT(SafetensorsFile::open(folder_ / "absent").error().text(), HasSubstr("absent': No such file"));
  EXPECT_THAT(SafetensorsFile::open(folder_).error().text(), HasSubstr("Is a directory"));
}

// The Python package rewrites our file with its own hand; both ways nothing may change.
TEST_F(Safetensors, AgreesWithThePythonPackage) {
  const fs::path python = bakeoff_home() / "envs/torch/bin/python";
  if (!fs::exists(python)) GTEST_SKIP() << "no environment at " << python;
  ASSERT_TRUE(write_safetensors(path(), samples(), {{"seed", "7"}}));
  const std::string script = R"(import sys, numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
t = load_file(sys.argv[1])
assert t['u'].dtype == np.uint8 and t['u'].tolist() == [[0, 255], [7, 1], [2, 3]]
assert t['d'].dtype == np.float64 and t['d'].tolist() == [[0.1, -2], [3e300, 4]]
assert t['f'].dtype == np.float32 and t['f'].tolist() == np.array([0.1, 1e-3, -7], np.float32).tolist()
assert t['l'].tolist() == [-2**63, 3] and t['i'].dtype == np.int32 and t['none'].shape == (0, 4)
assert safe_open(sys.argv[1], 'np').metadata() == {'seed': '7'}
save_file(t, sys.argv[2], metadata={'seed': '7'})
)";
  ASSERT_TRUE(write_file(folder_ / "s.py", script));
  const fs::path back = folder_ / "back.safetensors";
  const std::string command =
      python.string() + " " + (folder_ / "s.py").string() + " " + path().string() + " " + back.string();
  ASSERT_EQ(std::system(command.c_str()), 0);
  const auto ours = SafetensorsFile::open(path());
  const auto theirs = SafetensorsFile::open(back);
  ASSERT_TRUE(theirs) << theirs.error().text();
  EXPECT_EQ(theirs->metadata(), ours->metadata());
  ASSERT_EQ(theirs->entries().size(), ours->entries().size());
  for (const auto& entry : ours->entries()) {
    EXPECT_EQ(*theirs->bytes(entry.name), *ours->bytes(entry.name)) << entry.name;
    EXPECT_EQ(theirs->find(entry.name)->dtype, entry.dtype);
    EXPECT_EQ(theirs->find(entry.name)->shape, entry.shape);
  }
}

TEST_F(Safetensors, StreamedTensorsAreTheSameAsThoseInMemory) {
  const RawTensor bytes{DType::kU8, {3}, "abc"}, wide{DType::kF64, {2}, std::string(16, '\1')};
  const TensorSource pieces{"b", DType::kU8, {3}, [](const Sink& sink) -> Status {
                              CHECK_OK(sink("a"));
                              CHECK_OK(sink(""));
                              return sink("bc");
                            }};
  ASSERT_TRUE(stream_safetensors(path(), {pieces, source_of("w", wide)},
                                 {{"made by", "\"sha256\":\"" + std::string(64, '0') + "\""}}));
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->entries()[0].name, "w") << "wider types first";
  EXPECT_EQ(file->bytes("b").value(), "abc");
  EXPECT_EQ(file->metadata().at(kDigest), sha256(wide.bytes + "abc"));
  EXPECT_EQ(file->metadata().at("made by"), "\"sha256\":\"" + std::string(64, '0') + "\"");
}

TEST_F(Safetensors, AStreamThatFailsLeavesTheOldFile) {
  ASSERT_TRUE(write_file(path(), "old"));
  const auto source = [](const std::string& given, bool fails) {
    return TensorSource{"t", DType::kU8, {3}, [=](const Sink& sink) -> Status {
                          CHECK_OK(sink(given));
                          return fails ? Status(Error{.message = "broken"}) : Status(Done{});
                        }};
  };
  EXPECT_EQ(stream_safetensors(path(), {source("abc", true)}).error().message, "broken");
  EXPECT_THAT(stream_safetensors(path(), {source("ab", false)}).error().message,
              HasSubstr("tensor 't' has 2 bytes"));
  EXPECT_THAT(stream_safetensors(path(), {source("abc", false), source("abc", false)}).error().message,
              HasSubstr("repeated"));
  EXPECT_EQ(read_file(path()).value(), "old");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1) << "no temporary file";
}

}  // namespace
}  // namespace bakeoff::tensor
