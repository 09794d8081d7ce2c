#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "cli/command_line.h"
#include "cli/console.h"

using bakeoff::cli::fail;

// Expected failures are Results. What is thrown all the same ends with a message, too.
int main(int argc, char** argv) {
  try {
    return bakeoff::cli::run_command_line(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail(
        {.message = "out of memory", .remedy = "free some memory, or raise the limit of this process"});
  } catch (const std::filesystem::filesystem_error& thrown) {
    // A name that is too long, links in a circle, a folder that may not be looked into.
    return fail(
        {.message = fmt::format("cannot look at '{}': {}", thrown.path1().string(), thrown.code().message()),
         .remedy = "name another file, or make this one accessible"});
  } catch (const std::exception& thrown) {
    return fail({.message = std::string("internal error: ") + thrown.what(),
                 .remedy = "this is a defect of bakeoff: please report it with the command and its input"});
  }
}
