// early_environments NAME...: creates Python environments while the rest of the program is still being compiled.
// It is made of the same sources as `bakeoff env create` but knows no framework, so that it exists seconds after
// the build begins; `bakeoff env create` then waits for it, and does what is left.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "base/files.h"
#include "base/home.h"
#include "environments/environments.h"
#include "proc/interrupt.h"

namespace bakeoff {

namespace embedded {
const std::vector<File>& requirements();  // envs/*.txt
}

// Every file, whether a framework has its name or not: the command line says which are made.
const std::vector<Requirements>& shipped_requirements() {
  static const std::vector<Requirements> shipped = [] {
    std::vector<Requirements> all;
    for (const embedded::File& file : embedded::requirements())
      all.push_back({std::string(file.path.substr(0, file.path.rfind('.'))), std::string(file.text)});
    return all;
  }();
  return shipped;
}

std::string framework_package(const std::string& environment) { return environment; }

}  // namespace bakeoff

namespace {

bakeoff::Status create(const std::vector<std::string>& names) {
  CHECK_OK(bakeoff::check_home());
  const std::filesystem::path home = bakeoff::bakeoff_home();
  TRY(const auto config, bakeoff::load_config({}, home, bakeoff::environment_names()));
  return bakeoff::create_environments({.home = home, .config = config}, names, [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  });
}

}  // namespace

int main(int count, char** words) {
  bakeoff::proc::install_interrupt_handlers();
  const auto done = create({words + 1, words + count});
  if (done) return 0;
  fmt::print(stderr, "early_environments: {}\n", done.error().text());
  return 2;
}
