#include "data/own_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <minizip/zip.h>
#include <png.h>
#include <turbojpeg.h>
#include <zlib.h>

#include <cmath>
#include <cstring>

#include "base/testing.h"
#include "data/data.h"
#include "data/idx.h"
#include "data/image_folder.h"
#include "data/pictures.h"
#include "ir/text.h"

namespace bakeoff {
namespace {

using tensor::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// x: f32[N,2], y: i32[N] of 3 classes.
const char* kSmall = R"(workload small(x: f32[N,2], y: i32[N]) {
  logits = linear(x; weight=fc.weight[3,2], bias=fc.bias[3])
  loss = softmax_cross_entropy(logits, y) reduction=mean
})";

std::string pictures_workload(int channels, int height, int width) {
  const int pixels = channels * height * width;
  return fmt::format(R"(workload pictures(x: f32[N,{},{},{}], y: i32[N]) {{
  flat = flatten(x)
  logits = linear(flat; weight=fc.weight[3,{}], bias=fc.bias[3])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}})",
                     channels, height, width, pixels);
}

template <typename T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// An npy file; `shape` as Python writes it: "4, 2".
std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                bool column_major = false) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", descr,
                                   column_major ? "True" : "False", shape);
  header.append(64 - (header.size() + 11) % 64, ' ');
  header += '\n';
  const auto size = static_cast<uint16_t>(header.size());
  return std::string("\x93NUMPY\x01\x00", 8) + bytes_of<uint16_t>({size}) + header + data;
}

std::string big_endian(float value) {
  std::string bytes = bytes_of<float>({value});
  std::reverse(bytes.begin(), bytes.end());
  return bytes;
}

class OwnDataTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file(folder_ / name, text));
    return folder_ / name;
  }
  fs::path write_npz(const std::string& name,
                     const std::vector<std::pair<std::string, std::string>>& arrays) {
    const fs::path path = folder_ / name;
    const zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
    for (const auto& [array, bytes] : arrays) {
      zipOpenNewFileInZip64(zip, (array + ".npy").c_str(), nullptr, nullptr, 0, nullptr, 0, nullptr,
                            Z_DEFLATED, 6, 0);
      zipWriteInFileInZip(zip, bytes.data(), static_cast<unsigned>(bytes.size()));
      zipCloseFileInZip(zip);
    }
    zipClose(zip, nullptr);
    return path;
  }
  fs::path write_gzip(const std::string& name, const std::string& bytes) {
    const fs::path path = folder_ / name;
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }
  void write_png(const std::string& name, const Picture& picture, int format = PNG_FORMAT_RGB) {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(picture.width),
    image.height = static_cast<png_uint_32>(picture.height);
    image.format = static_cast<png_uint_32>(format);
    fs::create_directories((folder_ / name).parent_path());
    ASSERT_TRUE(png_image_write_to_file(&image, (folder_ / name).c_str(), 0, picture.rgb.data(), 0, nullptr));
  }
  void write_jpeg(const std::string& name, const Picture& picture) {
    const tjhandle handle = tjInitCompress();
    unsigned char* out = nullptr;
    unsigned long size = 0;
    ASSERT_EQ(tjCompress2(handle, reinterpret_cast<const unsigned char*>(picture.rgb.data()),
                          static_cast<int>(picture.width), 0, static_cast<int>(picture.height), TJPF_RGB,
                          &out, &size, TJSAMP_444, 95, 0),
              0);
    write(name, std::string(reinterpret_cast<char*>(out), size));
    tjFree(out);
    tjDestroy(handle);
  }
  Result<DataSet> prepared(const DataSpec& spec, const std::string& workload = kSmall) {
    return prepare(spec, ir::parse(workload).value(), folder_ / "cache", kSilent);
  }
  // The values of a tensor of the converted file; the error as a test failure.
  std::vector<double> values(const DataSpec& spec, const std::string& name,
                             const std::string& workload = kSmall) {
    const auto data = prepared(spec, workload);
    if (!data) {
      ADD_FAILURE() << data.error().text();
      return {};
    }
    return tensor::SafetensorsFile::open(data->file)->read(name)->data;
  }
  std::string failure(const DataSpec& spec, const std::string& workload = kSmall) {
    const auto data = prepared(spec, workload);
    EXPECT_FALSE(data && data->rows >= 0);
    if (data) return "";
    EXPECT_FALSE(data.error().remedy.empty()) << data.error().text();
    return data.error().text();
  }
  DataSpec npz(const std::vector<std::pair<std::string, std::string>>& arrays) {
    return {.kind = DataKind::kNpz, .path = write_npz("data.npz", arrays)};
  }
  DataSpec csv(const std::string& text) {
    DataSpec spec{.kind = DataKind::kCsv, .path = write("table.csv", text)};
    spec.inputs = {{"x", {"a", "b"}}, {"y", {"class"}}};
    return spec;
  }

  testing::TestFolder folder_;
  const std::string x_ = npy("<f4", "4, 2", bytes_of<float>({1, 2, 3, 4, 5, 6, 7, 8}));
  const std::string y_ = npy("<i8", "4,", bytes_of<int64_t>({0, 1, 2, 0}));
};

// ---- arrays

TEST_F(OwnDataTest, NpzIsConvertedAndItsFileHashed) {
  const DataSpec spec = npz({{"x", x_}, {"y", y_}});
  const auto data = prepared(spec);
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(data->rows, 4);
  EXPECT_EQ(data->description, "4 rows of 'data.npz'");
  EXPECT_EQ(data->sources.begin()->first, spec.path.string());
  EXPECT_EQ(data->sources.begin()->second.size(), 64u);
  const auto file = tensor::SafetensorsFile::open(data->file);
  EXPECT_EQ(file->find("x")->dtype, DType::kF32);
  EXPECT_EQ(file->find("y")->dtype, DType::kI64);
  EXPECT_THAT(file->read("x")->data, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(file->read("y")->data, ElementsAre(0, 1, 2, 0));
}

TEST_F(OwnDataTest, ChangedFilesAreConvertedAnewAndDamagedCopiesToo) {
  const auto first = prepared(npz({{"x", x_}, {"y", y_}}));
  ASSERT_TRUE(first);
  std::string bytes = read_file(first->file).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  ASSERT_TRUE(write_file(first->file, bytes));
  EXPECT_EQ(prepared(npz({{"x", x_}, {"y", y_}}))->sha256, first->sha256);
  const auto other = prepared(npz({{"x", x_}, {"y", npy("<i8", "4,", bytes_of<int64_t>({2, 1, 2, 0}))}}));
  EXPECT_NE(other->file, first->file);
  EXPECT_NE(other->sources, first->sources);
}

TEST_F(OwnDataTest, EveryTypeOfElementKeepsItsValues) {
  const std::string half =
      bytes_of<uint16_t>({0x3c00, 0xc000, 0x0001, 0x7bff, 0x3555, 0x8000, 0x0400, 0x4248});
  const std::vector<double> halves = {
      1, -2, std::ldexp(1, -24), 65504, 0.333251953125, -0.0, std::ldexp(1, -14), 3.140625};
  std::string big;
  for (int i = 1; i <= 8; ++i) big += big_endian(static_cast<float>(i) / 3);
  const struct {
    std::string descr, bytes;
    std::vector<double> values;
  } cases[] = {
      {"<f2", half, halves},
      {"<f8", bytes_of<double>({.1, .2, .3, .4, .5, .6, .7, .8}), {.1, .2, .3, .4, .5, .6, .7, .8}},
      {"|u1", bytes_of<uint8_t>({0, 1, 2, 3, 4, 5, 254, 255}), {0, 1, 2, 3, 4, 5, 254, 255}},
      {"|i1", bytes_of<int8_t>({-128, 127, 0, 1, 2, 3, 4, 5}), {-128, 127, 0, 1, 2, 3, 4, 5}},
      {"<u2", bytes_of<uint16_t>({65535, 1, 2, 3, 4, 5, 6, 7}), {65535, 1, 2, 3, 4, 5, 6, 7}},
      {"<i8", bytes_of<int64_t>({-(1LL << 53), 1, 2, 3, 4, 5, 6, 7}), {-0x1p53, 1, 2, 3, 4, 5, 6, 7}},
      {"<u4", bytes_of<uint32_t>({4294967295, 1, 2, 3, 4, 5, 6, 7}), {4294967295, 1, 2, 3, 4, 5, 6, 7}},
      {"|b1", bytes_of<uint8_t>({0, 1, 1, 0, 0, 0, 1, 1}), {0, 1, 1, 0, 0, 0, 1, 1}},
  };
  for (const auto& [descr, bytes, expected] : cases) {
    SCOPED_TRACE(descr);
    EXPECT_EQ(values(npz({{"x", npy(descr, "4, 2", bytes)}, {"y", y_}}), "x"), expected);
  }
  EXPECT_FLOAT_EQ(static_cast<float>(values(npz({{"x", npy(">f4", "4, 2", big)}, {"y", y_}}), "x")[7]),
                  8.0F / 3);
}

TEST_F(OwnDataTest, ColumnMajorArraysAreTransposed) {
  // [[1,2],[3,4],[5,6],[7,8]] with the first axis fastest.
  const std::string x = npy("<f4", "4, 2", bytes_of<float>({1, 3, 5, 7, 2, 4, 6, 8}), true);
  EXPECT_THAT(values(npz({{"x", x}, {"y", y_}}), "x"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  // Three axes: element (n,h,w) of [2,1,2,3] lies at n + 2*h + 4*w.
  std::vector<float> numbers(12);
  for (int n = 0; n < 2; ++n)
    for (int h = 0; h < 2; ++h)
      for (int w = 0; w < 3; ++w)
        numbers[static_cast<size_t>(n + 2 * h + 4 * w)] = static_cast<float>(6 * n + 3 * h + w);
  const DataSpec spec = npz({{"x", npy("<f4", "2, 2, 3", bytes_of(numbers), true)},
                             {"y", npy("<i4", "2,", bytes_of<int32_t>({0, 1}))}});
  EXPECT_THAT(values(spec, "x", pictures_workload(1, 2, 3)),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST_F(OwnDataTest, ArraysOfOtherNamesAreNamedByTheRecipe) {
  DataSpec spec = npz({{"pictures", x_}, {"labels", y_}});
  EXPECT_THAT(failure(spec), HasSubstr("data.npz' has no array 'x' (f32[N,2]); it has: pictures, labels\n"));
  spec.inputs = {{"x", {"pictures"}}, {"y", {"labels"}}};
  EXPECT_THAT(values(spec, "y"), ElementsAre(0, 1, 2, 0));
}

TEST_F(OwnDataTest, NpyAndIdxFilesForEachInput) {
  DataSpec spec{.kind = DataKind::kNpy};
  spec.inputs = {{"x", {write("x.npy", x_)}}, {"y", {write_gzip("y.npy.gz", y_)}}};
  EXPECT_THAT(values(spec, "x"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(prepared(spec)->sources.size(), 2u);
  spec.kind = DataKind::kIdx;
  const std::string floats = std::string("\0\0\x0d\x02\0\0\0\x02\0\0\0\x02", 12) + big_endian(1.5) +
                             big_endian(-2) + big_endian(3) + big_endian(4);
  spec.inputs = {{"x", {write_gzip("x.idx.gz", floats)}},
                 {"y", {write("y.idx", idx_header({2}) + std::string("\2\0", 2))}}};
  EXPECT_THAT(values(spec, "x"), ElementsAre(1.5, -2, 3, 4));
  EXPECT_THAT(values(spec, "y"), ElementsAre(2, 0));
  spec.inputs.erase("y");
  EXPECT_THAT(failure(spec),
              HasSubstr("no file is named for the input 'y' (i32[N])\n  add it to data.inputs"));
}

TEST_F(OwnDataTest, ArraysThatDoNotFitAreRefused) {
  const struct {
    const char* name;
    std::string x, y;
    const char* message;
  } cases[] = {
      {"label", x_, npy("<i8", "4,", bytes_of<int64_t>({0, 1, 3, 0})),
       "array 'y' holds 3 in row 2, outside 0..2"},
      {"nan", npy("<f8", "4, 2", bytes_of<double>({1, 2, 3, 4, 5, std::nan(""), 7, 8})), y_,
       "array 'x' holds nan in row 2"},
      {"float labels", x_, npy("<f4", "4,", bytes_of<float>({0, 1, 2, 0})),
       "array 'y' holds float32, the workload's input holds integers"},
      {"width", npy("<f4", "4, 3", std::string(48, '\0')), y_,
       "array 'x' has shape [4,3], the workload's input is f32[N,2]"},
      {"no axes", npy("<f4", "", std::string(4, '\0')), y_, "has shape []"},
      {"no rows", npy("<f4", "0, 2", ""), y_,
       "has shape [0,2], the workload's input is f32[N,2]\n  it has no rows"},
      {"rows", npy("<f4", "3, 2", std::string(24, '\0')), y_, "array 'y' has 4 rows, "},
      {"beyond 2^53", npy("<i8", "4, 2", bytes_of<int64_t>({1, 2, 3, (1LL << 53) + 1, 5, 6, 7, 8})), y_,
       "holds an integer in row 1 that F64 cannot hold"},
      {"beyond 2^63", x_, npy("<u8", "4,", bytes_of<uint64_t>({0, 1, 1ULL << 63, 0})),
       "holds an integer in row 2 that I64 cannot hold"},
      {"objects", npy("|O", "4, 2", "\x80\x04."), y_,
       "holds Python objects, which are never loaded: they can run code"},
      {"texts", x_, npy("<U5", "4,", std::string(80, '\0')), "holds texts (numpy's type '<U5')"},
      {"complex", npy("<c8", "4, 2", std::string(64, '\0')), y_, "holds complex numbers"},
      {"records", npy("X", "4, 2", "").replace(10, 12, "{'descr': [("), y_, "holds records"},
      {"truncated", x_.substr(0, x_.size() - 5), y_,
       "is truncated: its header promises 4 rows, it ends in row 3"},
      {"too long", x_ + "!", y_, "array 'x' has more bytes than its header promises"},
      {"no npy", "hello world", y_, "is no npy file"},
      {"no header", std::string("\x93NUMPY\x01\x00\x50\x00{", 11), y_, "ends within its header"},
      {"long header", std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12), y_,
       "has a header of 2147483647 bytes"},
      {"overflow", npy("<f4", "9223372036854775807, 2", ""), y_, "has the impossible shape"},
      {"negative", npy("<f4", "-4, 2", ""), y_, "has a damaged header"},
      {"no space", npy("<f4", "100000000000000, 2", ""), npy("<i8", "100000000000000,", ""), "iB free\n"},
      {"column-major, truncated", npy("<f4", "4, 2", std::string(31, '\0'), true), y_, "is truncated"},
  };
  for (const auto& [name, x, y, message] : cases) {
    SCOPED_TRACE(name);
    EXPECT_THAT(failure(npz({{"x", x}, {"y", y}})), HasSubstr(message));
    int left = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache"))
      left += entry.path().extension() == ".safetensors";
    EXPECT_EQ(left, 0) << "nothing of it is kept";
    fs::remove_all(folder_ / "cache");
    fs::create_directories(folder_ / "cache");
  }
}

TEST_F(OwnDataTest, PicturesWithTheChannelsLastGetTheirRemedy) {
  const DataSpec spec = npz({{"x", npy("|u1", "4, 2, 5, 3", std::string(120, '\1'))}, {"y", y_}});
  EXPECT_THAT(failure(spec, pictures_workload(3, 2, 5)), HasSubstr("x.transpose(0, 3, 1, 2)"));
  EXPECT_EQ(values(npz({{"x", npy("|u1", "4, 2, 5", std::string(40, '\1'))}, {"y", y_}}), "x",
                   pictures_workload(1, 2, 5))
                .size(),
            40u);
}

TEST_F(OwnDataTest, DamagedArchivesAreRefused) {
  const DataSpec spec = npz({{"x", x_}, {"y", y_}});
  const std::string whole = read_file(spec.path).value();
  for (size_t size = 0; size + 3 < whole.size(); size += 7) {
    write("data.npz", whole.substr(0, size));
    EXPECT_THAT(failure(spec), HasSubstr("data.npz'")) << size;
  }
  int refused = 0;
  for (size_t at = 0; at < whole.size(); ++at) {  // a flipped bit is refused or changes no number
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    write("data.npz", flipped);
    const auto data = prepared(spec);
    if (data) {
      EXPECT_EQ(tensor::SafetensorsFile::open(data->file)->read("x")->data[7], 8) << at;
    }
    refused += data ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
  fs::remove(spec.path);
  EXPECT_THAT(failure(spec), HasSubstr("data.npz'"));
  EXPECT_THAT(failure({.kind = DataKind::kNpz, .path = folder_.path()}), HasSubstr("there is no file"));
}

// The archive promises 8 bytes more than the array has.
TEST_F(OwnDataTest, MoreBytesThanPromisedAreNotExpanded) {
  const std::string zeros(200'000'000, '\0');  // 200 MB in 200 kB
  const DataSpec spec = npz({{"x", npy("<f4", "4, 2", zeros)}, {"y", y_}});
  EXPECT_LT(fs::file_size(spec.path), 300'000u);
  const double start = testing::cpu_s();
  EXPECT_THAT(failure(spec), HasSubstr("has more bytes than its header promises"));
  EXPECT_LT(testing::cpu_s() - start, 5);
}

TEST_F(OwnDataTest, WhatExpandsTooFarIsRefused) {
  constexpr size_t kBytes = size_t{260} << 20;
  const std::string workload = fmt::format(
      "workload wide(x: f32[N,{0}], y: i32[N]) {{\n"
      "  z = linear(x; weight=a.weight[3,{0}], bias=a.bias[3])\n"
      "  loss = softmax_cross_entropy(z, y) reduction=mean\n}}\n",
      kBytes / 4);
  const std::string array = npy("|u1", fmt::format("4, {}", kBytes / 4), std::string(kBytes, '\0'));
  DataSpec spec = npz({{"x", array}, {"y", y_}});
  EXPECT_LT(fs::file_size(spec.path), 400'000u);
  EXPECT_THAT(failure(spec, workload),
              HasSubstr("'x.npy' expands to more than 100 times its size, to 260 MiB or more\n"
                        "  if it is meant to, raise data.expansion, which is 100"));
  spec = {.kind = DataKind::kNpy,
          .inputs = {{"x", {write_gzip("x.npy.gz", array)}}, {"y", {write("y.npy", y_)}}}};
  EXPECT_THAT(failure(spec, workload), HasSubstr("x.npy.gz' expands to more than 100 times its size"));
}

// ---- CSV

TEST_F(OwnDataTest, CsvColumnsByName) {
  const DataSpec spec =
      csv("\xef\xbb\xbf"
          "class, b ,unused,a\r\n0,2,x,1\r\n\r\n2, 4.5e0 ,\"q,\"\"\nz\",+3\r\n");
  EXPECT_THAT(values(spec, "x"), ElementsAre(1, 2, 3, 4.5));
  EXPECT_THAT(values(spec, "y"), ElementsAre(0, 2));
  EXPECT_EQ(prepared(spec)->rows, 2);
}

TEST_F(OwnDataTest, CategoriesAreNumberedWhereStated) {
  const std::string text = "class,a,b\nwolf,1,red\n\"cat, big\",2,blue\nwolf,3,red\n";
  DataSpec spec = csv(text);
  EXPECT_THAT(failure(spec), HasSubstr("table.csv:2: column 'b' holds 'red', which is no number\n"));
  spec.categories = {"class", "b"};
  EXPECT_THAT(failure(spec),
              HasSubstr("has 3 values in a row (a, 2 texts of b), the workload's input is f32[N,2]"));
  spec.inputs["x"] = {"b"};
  EXPECT_THAT(values(spec, "x"), ElementsAre(0, 1, 1, 0, 0, 1)) << "blue, red";
  EXPECT_THAT(values(spec, "y"), ElementsAre(1, 0, 1)) << "cat, wolf";
  const auto file = tensor::SafetensorsFile::open(prepared(spec)->file);
  EXPECT_EQ(file->metadata().at("classes of class"), R"(["cat, big","wolf"])");
  spec.categories.push_back("a");
  EXPECT_THAT(failure(spec), HasSubstr("data.categories names 'a', which no input reads"));
  DataSpec many = csv("class,a,b\np,1,1\nq,1,1\nr,1,1\ns,1,1\n");
  many.categories = {"class"};
  EXPECT_THAT(failure(many), HasSubstr("column 'class' has 4 texts, the workload takes 3"));
}

TEST_F(OwnDataTest, CsvErrorsNameTheLine) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"a,b,class\n1,2,0\n1,2\n", "table.csv:3: 2 fields, the header has 3\n"},
      {"a,b,class\n1,\"2\n3\n\n\",0\n1,2,0,4\n", "table.csv:2: column 'b' holds"},
      {"a,b,class,c\n1,2,0,\"\n\n\"\n\n1,2\n", "table.csv:6: 2 fields"},
      {"a,b,class\n1,,0\n", "table.csv:2: column 'b' is empty"},
      {"a,b,class\n1,nan,0\n", "table.csv:2: column 'b' holds 'nan', which is not a finite float32"},
      {"a,b,class\n1,1e39,0\n", "table.csv:2: column 'b' holds '1e39', which is not a finite float32"},
      {"a,b,class\n1,\"1,5\",0\n", "table.csv:2: column 'b' holds '1,5', which is no number"},
      {"a,b,class\n1,2,3\n", "table.csv:2: column 'class' holds 3, not an integer of 0..2"},
      {"a,b,class\n1,2,-1\n", "table.csv:2: column 'class' holds -1, not"},
      {"a,b,class\n1,2,0.5\n", "table.csv:2: column 'class' holds 0.5, not"},
      {"a,b,class\n1,2,nan\n", "table.csv:2: column 'class' holds nan, not"},
      {"a,B,class\n1,2,0\n", "table.csv:1: there is no column 'b'\n"},
      {"a,b,a,class\n1,2,3,0\n", "table.csv:1: there are two columns 'a'"},
      {"a,b,class\n1,2\"3,0\n", "table.csv:2: the line has a quote within a field"},
      {"a,b,class\n1,2,0\n1,\"2,0\n",
       "table.csv:3: the line begins a record whose last quote is never closed"},
      {"a,b,class\n", "has no rows below its header"},
      {"", "has no rows below its header"},
      {"a;b;class\n1;2;0\n", "there is no column 'a'"},
      {"\xf6ther,bread,class\n1,2,0\n", "there is no column 'a'\n  one of: \xEF\xBF\xBDther"},
      {"a,b,class\n1,\xff\x1b[2J,0\n", "holds '\xEF\xBF\xBD\\u001b[2J', which is no number"},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    EXPECT_THAT(failure(csv(text)), HasSubstr(message));
  }
  EXPECT_THAT(failure(csv(std::string("a,b,class\n1,2\0,0\n", 17))),
              HasSubstr("table.csv:2: holds a zero byte"));
  EXPECT_THAT(failure(csv(std::string("\xff\xfe\x61\0,\0b\0\n\0", 10))),
              HasSubstr("table.csv:1: holds a zero byte\n"));
  EXPECT_THAT(failure(csv("a,b,class\n1,\"" + std::string(3 << 20, '\n'))),
              HasSubstr("table.csv:2: the line begins a field of more than 1 MiB"));
  DataSpec semicolons = csv("a;b;class\n1;2;0\n");
  semicolons.delimiter = ';';
  EXPECT_THAT(values(semicolons, "x"), ElementsAre(1, 2));
  semicolons.inputs.erase("y");
  EXPECT_THAT(failure(semicolons), HasSubstr("no column is named for the input 'y' (i32[N])"));
}

TEST_F(OwnDataTest, CsvMayBeCompressedAndEndWithoutANewline) {
  DataSpec spec = csv("");
  spec.path = write_gzip("table.csv.gz", "a,b,class\n1,2,1");
  EXPECT_THAT(values(spec, "x"), ElementsAre(1, 2));
  EXPECT_THAT(values(spec, "y"), ElementsAre(1));
  const std::string whole = read_file(spec.path).value();
  ASSERT_TRUE(write_file(spec.path, whole.substr(0, whole.size() - 6)));
  EXPECT_THAT(failure(spec), HasSubstr("table.csv.gz' cannot be read"));
}

// ---- pictures

Picture drawn(int64_t height, int64_t width) {
  Picture picture{height, width, {}};
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (const int64_t value : {10 * y, 10 * x, int64_t{200}})
        picture.rgb.push_back(static_cast<char>(value));
    }
  }
  return picture;
}

TEST_F(OwnDataTest, ImageFoldersAreReadInOrder) {
  write_png("set/wolf/2.png", drawn(4, 5));
  write_png("set/wolf/10.png", Picture{4, 5, std::string(60, '\x7f')});
  write_jpeg("set/cat/a.JPG", Picture{4, 5, std::string(60, '\x40')});
  write("set/README.md", "no class");
  write("set/.hidden/x", "left out");
  const DataSpec spec{.kind = DataKind::kImageFolder, .path = folder_ / "set"};
  const std::string workload = pictures_workload(3, 4, 5);
  const auto data = prepared(spec, workload);
  ASSERT_TRUE(data) << data.error().text();
  EXPECT_EQ(data->description, "3 rows of 'set'");
  const auto file = tensor::SafetensorsFile::open(data->file);
  EXPECT_EQ(file->find("x")->dtype, DType::kU8);
  EXPECT_EQ(file->find("x")->shape, (tensor::Shape{3, 3, 4, 5}));
  EXPECT_THAT(file->read("y")->data, ElementsAre(0, 1, 1)) << "cat, wolf: 10.png before 2.png";
  EXPECT_EQ(file->metadata().at("classes of y"), R"(["cat","wolf"])");
  const auto x = file->read("x")->data;
  EXPECT_NEAR(x[0], 0x40, 2);
  EXPECT_EQ(x[60], 0x7f);
  for (size_t h = 0; h < 4; ++h) {
    for (size_t w = 0; w < 5; ++w) {
      EXPECT_EQ(x[120 + 5 * h + w], 10.0 * static_cast<double>(h)) << "red";
      EXPECT_EQ(x[120 + 20 + 5 * h + w], 10.0 * static_cast<double>(w)) << "green";
      EXPECT_EQ(x[120 + 40 + 5 * h + w], 200) << "blue";
    }
  }
  EXPECT_EQ(data->sources.size(), 1u);
  fs::rename(folder_ / "set/wolf/2.png", folder_ / "set/wolf/3.png");
  EXPECT_NE(prepared(spec, workload)->sources, data->sources);
}

TEST_F(OwnDataTest, OneChannelIsLuma) {
  Picture picture{1, 3, {}};
  picture.rgb = std::string("\xff\0\0\0\xff\0\x11\x11\x11", 9);
  write_png("set/a/1.png", picture);
  write_png("set/b/1.png", Picture{1, 3, std::string("\x05\x06\xff", 3)}, PNG_FORMAT_GRAY);
  EXPECT_THAT(
      values({.kind = DataKind::kImageFolder, .path = folder_ / "set"}, "x", pictures_workload(1, 1, 3)),
      ElementsAre(76, 150, 0x11, 5, 6, 255))
      << "as Pillow's convert('L')";
}

TEST_F(OwnDataTest, TransparencyIsLeftOut) {
  write_png("set/a/1.png", Picture{1, 2, std::string("\x0a\x14\x1e\xff\x28\x32\x3c\x01", 8)},
            PNG_FORMAT_RGBA);
  EXPECT_THAT(
      values({.kind = DataKind::kImageFolder, .path = folder_ / "set"}, "x", pictures_workload(3, 1, 2)),
      ElementsAre(10, 40, 20, 50, 30, 60));
}

TEST_F(OwnDataTest, OtherSizesAreAnErrorOrResized) {
  write_png("set/a/1.png", drawn(8, 16));
  DataSpec spec{.kind = DataKind::kImageFolder, .path = folder_ / "set"};
  EXPECT_THAT(
      failure(spec, pictures_workload(3, 4, 4)),
      HasSubstr("1.png' is 16 pixels wide and 8 high, the workload takes 4 and 4\n  set data.resize"));
  spec.resize = "stretch";
  auto x = values(spec, "x", pictures_workload(3, 4, 4));
  EXPECT_NEAR(x[16 + 2] - x[16 + 1], 40, 1) << "every fourth of 16 columns";
  spec.resize = "crop";
  x = values(spec, "x", pictures_workload(3, 4, 4));
  EXPECT_NEAR(x[16 + 2] - x[16 + 1], 20, 1) << "every second of the middle 8 columns";
  EXPECT_NEAR((x[16] + x[16 + 3]) / 2, 75, 1) << "their middle";
  EXPECT_NEAR(x[4] - x[0], 20, 3) << "rows";
  EXPECT_EQ(x[32], 200);
}

// Values that Pillow 13.0 gave for Image.resize(size, BILINEAR).
TEST(Resized, IsPillowsBilinearFilter) {
  Planes from{1, 5, 7, {}};
  for (int i = 0; i < 35; ++i) from.bytes.push_back(static_cast<char>((37 * i * i + 11 * i) % 256));
  const auto numbers = [&](int64_t height, int64_t width) {
    std::vector<int> all;
    for (const char c : resized(from, height, width, Resize::kStretch).bytes)
      all.push_back(static_cast<unsigned char>(c));
    return all;
  };
  EXPECT_THAT(numbers(2, 3), ElementsAre(101, 149, 178, 161, 115, 170));
  EXPECT_THAT(numbers(3, 7), ElementsAre(42, 93, 107, 160, 176, 157, 175, 190, 108, 128, 137, 163, 206, 181,
                                         146, 215, 103, 64, 99, 209, 136));
  EXPECT_THAT(numbers(5, 4), ElementsAre(29, 129, 138, 159, 118, 106, 208, 180, 151, 136, 167, 206, 190, 125,
                                         116, 165, 161, 106, 108, 166));
  const std::vector<int> larger = numbers(8, 10);
  EXPECT_EQ(std::vector<int>(larger.begin() + 30, larger.begin() + 40),
            (std::vector<int>{194, 129, 90, 126, 148, 167, 184, 197, 199, 197}));
}

TEST_F(OwnDataTest, BadPicturesAreNamed) {
  const DataSpec spec{.kind = DataKind::kImageFolder, .path = folder_ / "set"};
  const std::string workload = pictures_workload(3, 4, 5);
  write_png("set/a/1.png", drawn(4, 5));
  const std::string png = read_file(folder_ / "set/a/1.png").value();
  for (size_t size = 0; size + 12 < png.size(); size += 5) {
    write("set/a/1.png", png.substr(0, size));
    EXPECT_THAT(failure(spec, workload), HasSubstr("set/a/1.png'")) << size;
  }
  for (size_t at = 0; at < png.size() - 12; ++at) {
    std::string flipped = png;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x20);
    write("set/a/1.png", flipped);
    (void)prepared(spec, workload);  // no crash; a flag of an ancillary chunk may be flipped in silence
  }
  // 100,000 x 100,000 with a right checksum.
  std::string huge = png;
  for (const size_t at : {16u, 20u}) huge.replace(at, 4, std::string("\x00\x01\x86\xa0", 4));
  const auto crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(huge.data()) + 12, 17));
  for (size_t i = 0; i < 4; ++i) huge[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  write("set/a/1.png", huge);
  EXPECT_THAT(failure(spec, workload),
              HasSubstr("1.png': 100000 x 100000 pixels; at most 67 million are read"));
  Picture deep{1, 1, std::string(6, '\1')};
  write_png("set/a/1.png", deep, PNG_FORMAT_LINEAR_RGB);
  EXPECT_THAT(failure(spec, workload), HasSubstr("16 bits a channel"));
  write("set/a/1.png", "GIF89a");
  EXPECT_THAT(failure(spec, workload), HasSubstr("1.png': neither PNG nor JPEG"));
  write_jpeg("set/a/1.png", drawn(4, 5));
  const std::string jpeg = read_file(folder_ / "set/a/1.png").value();
  EXPECT_EQ(values(spec, "x", workload).size(), 60u) << "a JPEG in a file named .png";
  for (size_t size = 3; size + 2 < jpeg.size(); size += 11) {
    write("set/a/1.png", jpeg.substr(0, size));
    EXPECT_THAT(failure(spec, workload), HasSubstr("set/a/1.png'")) << size;
  }
}

TEST_F(OwnDataTest, FoldersThatAreNoImageFolders) {
  const DataSpec spec{.kind = DataKind::kImageFolder, .path = folder_ / "set"};
  const std::string workload = pictures_workload(3, 4, 5);
  EXPECT_THAT(failure(spec, workload), HasSubstr("there is no folder"));
  fs::create_directories(folder_ / "set");
  EXPECT_THAT(failure(spec, workload), HasSubstr("has no folders of classes"));
  fs::create_directories(folder_ / "set/a");
  EXPECT_THAT(failure(spec, workload), HasSubstr("set/a' has no pictures"));
  write_png("set/a/1.png", drawn(4, 5));
  write("set/a/notes.txt", "x");
  EXPECT_THAT(failure(spec, workload), HasSubstr("notes.txt' is no .png, .jpg or .jpeg file"));
  fs::remove(folder_ / "set/a/notes.txt");
  EXPECT_THAT(failure(spec), HasSubstr("a folder of pictures is data for pictures f32[N,C,H,W]"));
  for (const char* name : {"b", "c", "d"}) fs::copy(folder_ / "set/a", folder_ / "set" / name);
  EXPECT_THAT(failure(spec, workload), HasSubstr("has 4 classes, workload 'pictures' has 3"));
}

TEST_F(OwnDataTest, LinksMustStayWithinTheFolder) {
  const DataSpec spec{.kind = DataKind::kImageFolder, .path = folder_ / "set"};
  const std::string workload = pictures_workload(3, 4, 5);
  write_png("set/a/1.png", drawn(4, 5));
  write_png("settle/1.png", drawn(4, 5));
  fs::create_symlink("1.png", folder_ / "set/a/2.png");
  EXPECT_EQ(values(spec, "x", workload).size(), 120u);
  const fs::path link = folder_ / "set/a/3.png";
  fs::create_symlink("../../settle/1.png", link);
  EXPECT_THAT(failure(spec, workload), HasSubstr("3.png' is a link out of the folder, to '"));
  fs::remove(link);
  fs::create_symlink("nowhere.png", link);
  EXPECT_THAT(failure(spec, workload), HasSubstr("3.png' is a link that leads nowhere"));
  fs::remove(link);
  fs::create_directory_symlink(folder_ / "settle", folder_ / "set/z");
  EXPECT_THAT(failure(spec, workload), HasSubstr("set/z' is a link out of the folder"));
  fs::remove(folder_ / "set/z");
  fs::create_directory_symlink(folder_ / "set", folder_ / "alias");  // the folder itself may be a link
  EXPECT_EQ(values({.kind = DataKind::kImageFolder, .path = folder_ / "alias"}, "x", workload).size(), 120u);
}

}  // namespace
}  // namespace bakeoff
