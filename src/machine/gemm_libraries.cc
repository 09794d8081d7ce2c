#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/version.h"
#include "emit/all/frameworks.h"
#include "machine/machine_facts.h"

namespace bakeoff {
namespace {

// Files of `folder` and the folders in it, `depth` levels deep, whose names begin with one of `prefixes`.
void find_files(const fs::path& folder, int depth, const std::vector<std::string>& prefixes,
                std::vector<fs::path>& found) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory(error)) {
      if (depth > 0) find_files(entry.path(), depth - 1, prefixes, found);
      continue;
    }
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](const std::string& prefix) { return name.starts_with(prefix); });
    if (wanted && name.find(".so") != std::string::npos) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
}

void add_library(std::vector<roofline::GemmLibrary>& all, std::set<std::string>& seen,
                 const std::string& name, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  // The same file in several environments counts once.
  if (!error && seen.insert(real.filename().string()).second) all.push_back({name, real});
}

}  // namespace

std::vector<roofline::GemmLibrary> find_gemms(const fs::path& root, const EnvironmentStore& store) {
  std::vector<roofline::GemmLibrary> all;
  std::set<std::string> seen;
  for (const char* folder : {"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib"}) {
    std::vector<fs::path> found;
    find_files(root / folder, 0, {"libopenblas", "libdnnl.so", "libmkl_rt"}, found);
    for (const fs::path& path : found) {
      const std::string name = path.filename().string();
      add_library(all, seen, name[3] == 'o' ? "OpenBLAS" : name[3] == 'd' ? "oneDNN" : "MKL", path);
    }
  }
  for (const std::string& name : environment_names()) {
    std::vector<fs::path> blas, own;
    const fs::path packages = environment_folder(store, name) / "lib";
    find_files(packages, 3, {"libscipy_openblas", "libopenblas"}, blas);
    for (const fs::path& path : blas)
      add_library(all, seen, "OpenBLAS of " + path.parent_path().stem().string(), path);
    const emit::Framework* framework = emit::find_framework(name);
    if (framework == nullptr || framework->gemm.file.empty()) continue;
    find_files(packages, 4, {framework->gemm.file}, own);
    for (const fs::path& path : own) add_library(all, seen, framework->gemm.title, path);
  }
  return all;
}

}  // namespace bakeoff
