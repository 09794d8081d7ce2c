#pragma once

// Data of the user's own in the formats that people keep it in: npz, npy, IDX, a folder of pictures, CSV.
//
//   TRY(const OwnData own, open_own_data(spec, workload));   // reads headers, and a CSV file as a whole
//   CHECK_OK(tensor::stream_safetensors(file, own.tensors, own.metadata));

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/spec.h"
#include "ir/workload.h"
#include "tensor/safetensors.h"

namespace bakeoff {

struct OwnData {
  std::vector<tensor::TensorSource> tensors = {};  // one for each input of the workload, with its name
  std::map<std::string, std::string> titles = {};  // by input, for errors: "'data.npz': array 'x'"
  tensor::Metadata metadata = {};                  // what the numbers mean: "classes of y" as a JSON list
};

// Whether data of this kind is converted by open_own_data().
bool is_own(DataKind kind);

// Checks names, types and shapes before any element is read. Errors name file, array, column or line, and a
// remedy.
Result<OwnData> open_own_data(const DataSpec& spec, const ir::Workload& workload);

// SHA-256 of what the data is made of, by absolute path: of each file, or of a folder of pictures as a whole
// (of the lines "SHA-256 path" of its files, in order). Texts, too; empty for other kinds.
Result<std::map<std::string, std::string>> source_digests(const DataSpec& spec);

}  // namespace bakeoff
