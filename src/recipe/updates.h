#pragma once

// [schedule], and the keys of [optimizer] that belong to no kind of optimizer: clipping, which parameters
// decay, accumulation, the average of weights.

#include "recipe/reader.h"

namespace bakeoff::recipe {

// Reads them into `optimizer`, whose own keys are read. `workload` null: the recipe comes from a record, and
// `no_decay` stays empty.
Status read_updates(const Reader& reader, const toml::table& root, const ir::Workload* workload,
                    int64_t batch, ir::Optimizer& optimizer);

}  // namespace bakeoff::recipe
