#pragma once

// Data of the user's own in the formats that people keep it in: npz, npy, IDX, a folder of pictures, CSV.
//
//   TRY(const OwnData own, open_own_data(spec, workload));   // reads headers, and a CSV file as a whole
//   CHECK_OK(tensor::stream_safetensors(file, own.tensors, own.metadata));

#include <map>
#include <string>

#include "base/result.h"
#include "data/own_tensors.h"
#include "data/spec.h"
#include "ir/workload.h"

namespace bakeoff {

// Whether data of this kind is converted by open_own_data().
bool is_own(DataKind kind);

// Checks names, types and shapes before any element is read. Errors name file, array, column or line, and a
// remedy.
Result<OwnData> open_own_data(const DataSpec& spec, const ir::Workload& workload);

// SHA-256 of what the data is made of, by absolute path: of each file, or of a folder of pictures as a whole
// (of the lines "SHA-256 path" of its files, in order). Texts, too; empty for other kinds.
Result<std::map<std::string, std::string>> source_digests(const DataSpec& spec);

}  // namespace bakeoff
