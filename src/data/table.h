#pragma once

// A CSV file as data: columns by name, numbers, and categories where the recipe states them. See own_data.h.

#include "base/result.h"
#include "data/own_tensors.h"
#include "data/spec.h"
#include "ir/workload.h"

namespace bakeoff {

// A column of data.categories has its texts numbered from 0 in the order of their bytes. An input of integers
// takes the number, a float input a column of 0 and 1 for each text. Reads the whole file; memory: 4 bytes
// for each value.
Result<OwnData> open_table(const DataSpec& spec, const ir::Workload& workload);

}  // namespace bakeoff
