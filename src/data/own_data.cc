#include "data/own_data.h"

#include <fmt/format.h>

#include <set>

#include "base/files.h"
#include "base/sha256.h"
#include "base/sha256_file.h"
#include "data/arrays.h"
#include "data/image_folder.h"
#include "data/table.h"
#include "data/text_data.h"

namespace bakeoff {
namespace {

std::string absolute_text(const fs::path& path) { return fs::absolute(path).lexically_normal().string(); }

// Every input has as many rows.
Status check_row_counts(const OwnData& own) {
  const tensor::TensorSource& first = own.tensors.front();
  for (const tensor::TensorSource& each : own.tensors) {
    if (each.shape[0] == first.shape[0]) continue;
    return Error{.message = fmt::format("{} has {} rows, {} has {}", own.titles.at(each.name), each.shape[0],
                                        own.titles.at(first.name), first.shape[0]),
                 .remedy = "every input needs one row for each sample"};
  }
  return Done{};
}

Result<std::string> folder_digest(const fs::path& folder) {
  TRY(const ImageFolder found, list_images(folder));
  std::error_code ignored;
  const fs::path top = fs::canonical(folder, ignored);
  Sha256 sum;
  for (const ImageFolder::File& file : found.files) {
    TRY(const std::string hex, sha256_file(file.path));
    sum.add(hex + " " + file.path.lexically_relative(top).string() + "\n");
  }
  return sum.hex();
}

// The files of which each has a digest.
Result<std::set<fs::path>> source_files(const DataSpec& spec) {
  std::set<fs::path> files;
  if (spec.kind == DataKind::kText) {
    TRY(const auto texts, text_files(spec.path.empty() ? fs::path(kDebianTexts) : spec.path));
    files.insert(texts.begin(), texts.end());
  } else if (spec.kind == DataKind::kNpz || spec.kind == DataKind::kCsv) {
    files.insert(spec.path);
  } else if (spec.kind == DataKind::kNpy || spec.kind == DataKind::kIdx) {
    for (const auto& [input, file] : spec.inputs) files.insert(file[0]);
  }
  return files;
}

}  // namespace

bool is_own(DataKind kind) {
  return kind == DataKind::kNpz || kind == DataKind::kNpy || kind == DataKind::kIdx ||
         kind == DataKind::kImageFolder || kind == DataKind::kCsv;
}

Result<OwnData> open_own_data(const DataSpec& spec, const ir::Workload& workload) {
  if (workload.inputs.empty()) return Error{.message = "workload '" + workload.name + "' has no inputs"};
  const auto open = spec.kind == DataKind::kCsv           ? open_table
                    : spec.kind == DataKind::kImageFolder ? open_image_folder
                                                          : open_arrays;
  TRY(OwnData own, open(spec, workload));
  CHECK_OK(check_row_counts(own));
  return own;
}

Result<std::map<std::string, std::string>> source_digests(const DataSpec& spec) {
  std::map<std::string, std::string> digests;
  if (spec.kind == DataKind::kImageFolder) {
    TRY(digests[absolute_text(spec.path)], folder_digest(spec.path));
    return digests;
  }
  TRY(const auto files, source_files(spec));
  for (const fs::path& file : files) {
    std::error_code ignored;
    if (is_own(spec.kind) && !fs::is_regular_file(file, ignored)) {
      return Error{.message = fmt::format("there is no file '{}'", file.string()),
                   .remedy = "check [data]; paths are relative to the recipe's folder"};
    }
    TRY(digests[absolute_text(file)], sha256_file(file));
  }
  return digests;
}

}  // namespace bakeoff
