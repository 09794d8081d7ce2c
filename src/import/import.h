#pragma once

// Import of a model of the user's own: exported by its framework, proven against it, written as IR text,
// weights and a recipe that runs as it is.
//
//   TRY(ImportReport report, import_model({.file = "model.py", .function = "make", ...}, progress));

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "import/import_steps.h"
#include "import/origin.h"
#include "ir/workload.h"

namespace bakeoff {

// Writes `request.out` and, with its stem, the weights (.safetensors) and the recipe (.toml); all of them or
// none; of a request that counts, nothing. Errors: the model cannot be imported (all unsupported ops in one), the import does not compute what
// its origin computes, or a file exists.
Result<ImportReport> import_model(const ImportRequest& request, const Progress& progress);

}  // namespace bakeoff
