#pragma once

// `bakeoff gate --init`: a ready workflow for a CI service, in the current folder.

#include <string>

namespace bakeoff::cli {

// `service`: "github" or "gitlab". Returns the exit code.
int write_workflow(const std::string& service, bool force);

}  // namespace bakeoff::cli
