#pragma once

// Arrays as data: npz, npy and IDX files. See own_data.h.

#include "base/result.h"
#include "data/own_tensors.h"
#include "data/spec.h"
#include "ir/workload.h"

namespace bakeoff {

Result<OwnData> open_arrays(const DataSpec& spec, const ir::Workload& workload);

}  // namespace bakeoff
