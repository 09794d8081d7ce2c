// early_environments NAME...: creates Python environments while the rest of the program is still being compiled. This
// small program has few rooms, so it exists long before `bakeoff`; `bakeoff env create` then waits for it, and does
// what is left.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/home.h"
#include "environments/environments.h"
#include "proc/interrupt.h"

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
