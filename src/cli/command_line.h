#pragma once

namespace bakeoff::cli {

// Carries out the command that the line names, or prints help or what is wrong with the line. Returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace bakeoff::cli
