#pragma once

// Arrays as data: npz, npy and IDX files. See own_data.h.

#include "data/own_data.h"

namespace bakeoff {

Result<OwnData> open_arrays(const DataSpec& spec, const ir::Workload& workload);

}  // namespace bakeoff
