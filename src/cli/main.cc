#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "cli/command_line.h"
#include "cli/console.h"

using bakeoff::cli::fail;

namespace {

// A closed descriptor of 0 to 2 would be given to the next file that is opened, and what is printed would be written
// into that. These can be read alone, so that printing fails as it does on a closed one.
void keep_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
}

}  // namespace

// Expected failures are Results. What is thrown all the same ends with a message, too.
int main(int argc, char** argv) {
  keep_standard_descriptors();
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
