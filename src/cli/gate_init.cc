#include "cli/gate_init.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/embedded.h"
#include "base/files.h"
#include "base/version.h"
#include "cli/console.h"

namespace bakeoff::embedded {
const std::vector<File>& workflows();
}

namespace bakeoff::cli {
namespace {

struct Workflow {
  const char* service;
  const char* embedded;
  const char* file;
  const char* next;
};
constexpr Workflow kWorkflows[] = {
    {"github", "github.yml", ".github/workflows/bakeoff.yml", "set SCRIPT in it, and commit it"},
    {"gitlab", "gitlab.yml", ".gitlab/bakeoff.yml",
     "set SCRIPT in it, include it in .gitlab-ci.yml as its first lines say, and commit both"},
};

}  // namespace

int write_workflow(const std::string& service, bool force) {
  for (const Workflow& workflow : kWorkflows) {
    if (service != workflow.service) continue;
    const fs::path file = workflow.file;
    std::error_code failed;
    if (fs::exists(fs::symlink_status(file, failed)) && !force)
      return fail({.message = fmt::format("'{}' exists already", file.string()),
                   .remedy = "move it away, or replace it with --force; nothing was written"});
    fs::create_directories(file.parent_path(), failed);
    for (const embedded::File& one : embedded::workflows()) {
      if (one.path != workflow.embedded) continue;
      std::string text(one.text);
      constexpr std::string_view kPlace = "{version}";
      text.replace(text.find(kPlace), kPlace.size(), kVersion);
      if (const auto written = write_file(file, text); !written) return fail(written.error());
    }
    print(fmt::format("wrote {}\nnext: {}\n", file.string(), workflow.next));
    return 0;
  }
  return fail(
      {.message = fmt::format("there is no workflow for '{}'", service), .remedy = "github or gitlab"});
}

}  // namespace bakeoff::cli
