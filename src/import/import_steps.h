#pragma once

// What imports have in common, whatever they come from.

#include <filesystem>

#include "import/import.h"

namespace bakeoff {

// The workload of an export's text. Errors: ops that the IR lacks, in one; text that is no workload.
Result<ir::Workload> parse_import(const ImportRequest& request, const OriginModel& model);

// Weights, IR and recipe: all files, or none of them.
Status write_import(const ImportRequest& request, const OriginModel& model, const ImportReport& report,
                    const referee::Weights& weights);

// Fills the report of an ONNX file's import, and writes it. `folder` is for files that travel to the child.
Status import_onnx(const ImportRequest& request, const std::filesystem::path& folder, ImportReport& report,
                   const Progress& progress);

}  // namespace bakeoff
