#pragma once

// Which data a run reads, as the recipe states it under [data].

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace bakeoff {

enum class DataKind { kMnist, kDigits, kText, kSynthetic, kFile, kNpz, kNpy, kIdx, kImageFolder, kCsv };
// From the word that a recipe uses: "mnist", ..., "image folder", "csv".
Result<DataKind> data_kind(const std::string& word);

struct DataSpec {
  DataKind kind = DataKind::kSynthetic;
  std::filesystem::path path = {};  // kFile, kNpz, kCsv: the file; kImageFolder: the folder; kText: a file or
                                    // folder, empty: kDebianTexts
  int64_t samples = 1000;           // kSynthetic: number of rows
  uint64_t seed = 1;                // kSynthetic: seed of the numbers
  std::string split = "train";      // "train" or "test"; ignored for data of the user's own but kText
  // By input of the workload. kNpz: the name of an array, where it is not the input's; kNpy, kIdx: the file;
  // kCsv: the columns.
  std::map<std::string, std::vector<std::string>> inputs = {};
  std::vector<std::string> categories = {};  // kCsv: columns whose texts are numbered
  char delimiter = ',';                      // kCsv
  std::string resize = "none";               // kImageFolder: none | stretch | crop
  double expansion = 100;                    // most bytes that a compressed one becomes; see byte_source.h
  bool operator==(const DataSpec&) const = default;
};

}  // namespace bakeoff
