#pragma once

// What imports from all sources have in common.

#include <filesystem>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "import/import_proof.h"
#include "import/origin.h"
#include "ir/workload.h"

namespace bakeoff {

struct ImportReport {
  ir::Workload workload = {};
  ImportProof proof = {};
  std::filesystem::path ir = {}, weights = {}, recipe = {};  // the files
  std::vector<std::string> notes = {};
  OriginNumbers numbers = {};
};

// The recipe's text. Contenders: every framework that trains, but for compiled ones: they take minutes.
std::string import_recipe(const ImportRequest& request, const ir::Workload& workload);

// The workload of an export's text. Errors: ops that the IR lacks, in one; text that is no workload.
Result<ir::Workload> parse_import(const ImportRequest& request, const OriginModel& model);

// Weights, IR and recipe: all files, or none of them.
Status write_import(const ImportRequest& request, const OriginModel& model, const ImportReport& report,
                    const referee::Weights& weights);

// Fills the report of an ONNX file's import, and writes it. `folder` is for files that travel to the child.
Status import_onnx(const ImportRequest& request, const std::filesystem::path& folder, ImportReport& report,
                   const Progress& progress);

}  // namespace bakeoff
