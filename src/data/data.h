#pragma once

// The data that every contender of a race reads: one safetensors file with one tensor per input of the
// workload, all with the same number of rows along axis 0.
//
//   TRY(auto data, prepare({.kind = DataKind::kMnist}, workload, bakeoff_home() / "data", progress));
//   // data.file: x U8 [60000,1,28,28], y I32 [60000]; batches are rows [i*B, (i+1)*B)
//
// An f32 input may be stored as F32, F64 or U8, an i32 input as I32, I64 or U8.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff {

enum class DataKind { kMnist, kDigits, kText, kSynthetic, kFile };
// By the word of a recipe: mnist, digits, text, synthetic, file.
Result<DataKind> data_kind(const std::string& word);

struct DataSpec {
  DataKind kind = DataKind::kSynthetic;
  std::filesystem::path path = {};  // kFile; kText: a file or folder, empty: kDebianTexts
  int64_t samples = 1000;           // kSynthetic
  uint64_t seed = 1;                // kSynthetic
  std::string split = "train";      // "train" | "test"; a file has no splits
  bool operator==(const DataSpec&) const = default;
};

struct DataSet {
  std::filesystem::path file;
  int64_t rows = 0;
  std::string description;  // "MNIST, 60,000 train pictures"
  std::string sha256;       // of the file
  bool operator==(const DataSet&) const = default;
};

// Brings or makes the data below `cache` where it is not there yet, and checks it against the workload.
// Errors name file, tensor, row and value, and what to do.
Result<DataSet> prepare(const DataSpec& spec, const ir::Workload& workload,
                        const std::filesystem::path& cache, const Progress& progress);

// Checks that the file has, for every input of the workload, a tensor of its name, type and shape; the same
// number of rows in all; integers within the bounds that the ops reading them demand; no NaN and no infinity.
// Gives the number of rows.
Result<int64_t> check_data(const std::filesystem::path& file, const ir::Workload& workload);

}  // namespace bakeoff
