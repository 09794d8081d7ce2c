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
#include <map>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "data/spec.h"
#include "ir/workload.h"

namespace bakeoff {

struct DataSet {
  std::filesystem::path file;
  int64_t rows = 0;
  std::string description;                          // "MNIST, 60,000 train pictures"
  std::string sha256;                               // SHA-256 of the file
  std::map<std::string, std::string> sources = {};  // SHA-256 of what it was made of (source_digests())
  bool operator==(const DataSet&) const = default;
};

// Fetches or makes the data below `cache` if it is not there yet, and checks that it fits the workload.
// Errors name file, tensor, row and value, and a remedy.
Result<DataSet> prepare(const DataSpec& spec, const ir::Workload& workload,
                        const std::filesystem::path& cache, const Progress& progress);

// Checks that the file has, for every input of the workload, a tensor of its name, type and shape; that all
// have the same number of rows; that integers lie within the bounds of the ops that read them; and that no
// number is NaN or infinite. Returns the number of rows. An error names the tensor by its title, by default
// "'FILE': tensor 'NAME'".
Result<int64_t> check_data(const std::filesystem::path& file, const ir::Workload& workload,
                           const std::map<std::string, std::string>& titles = {});

}  // namespace bakeoff
