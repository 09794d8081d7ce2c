// Creates all Python environments while the rest of the program is still being compiled: this small program has few
// rooms, so it exists long before `bakeoff`. `bakeoff env create` then waits for it, and does what is left.

#include <fmt/format.h>

#include <cstdio>

#include "base/files.h"
#include "base/home.h"
#include "environments/environments.h"
#include "proc/interrupt.h"

namespace {

bakeoff::Status create_all() {
  CHECK_OK(bakeoff::check_home());
  const std::filesystem::path home = bakeoff::bakeoff_home();
  TRY(const auto config, bakeoff::load_config({}, home, bakeoff::environment_names()));
  return bakeoff::create_environments({.home = home, .config = config}, {}, [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  });
}

}  // namespace

int main() {
  bakeoff::proc::install_interrupt_handlers();
  const auto done = create_all();
  if (done) return 0;
  fmt::print(stderr, "early_environments: {}\n", done.error().text());
  return 2;
}
