#pragma once

// What says which model of the user's own is imported, and how: the same for `import` and `translate`.

#include <filesystem>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bakeoff::cli {

struct ImportOptions {
  std::string model = {};  // FILE.py:NAME
  std::vector<std::string> inputs = {};
  std::string loss = {};
  std::string output = {};
  std::string framework = {};         // empty: what the file imports
  std::filesystem::path python = {};  // empty: that of the framework's environment
  std::filesystem::path socket = {};  // of a process that has the model; `model` is then but its name
  std::filesystem::path out = {};
  double seconds = 600;
  bool force = false;
  bool count = false;
};

// All but --out. `others`: what else than FILE.py:NAME may be named.
void add_model_options(CLI::App& sub, ImportOptions& options, const std::string& others);

}  // namespace bakeoff::cli
