#pragma once

// A contender of a recipe, its id, and the processors that it may be pinned to.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "emit/emit.h"
#include "ir/training.h"

namespace bakeoff::recipe {

// One combination of settings of one framework.
struct Contender {
  std::string framework = {};
  std::map<std::string, std::string> settings = {};  // every setting of the framework
  std::map<std::string, std::string> controls = {};  // of common_settings() (schema.h), only those stated
  std::string environment = {};                      // that it runs in: "torch"
  std::filesystem::path script = {};                 // the user's own file, absolute; empty: emitted
  std::string source = {}, layout = {};              // of that file and its layout when the recipe was read
  std::string id = {};                               // "torch[compile=default]", unique
  std::string file = {};                             // name of its script in the run directory, unique
  bool operator==(const Contender&) const = default;
};

// "torch[compile=default,channels_last,allocator=tuned]": settings that differ from the framework's own
// default, and all controls that the contender states; a Keras backend is always shown.
std::string contender_id(const std::string& framework, const std::map<std::string, std::string>& settings,
                         const std::map<std::string, std::string>& controls = {});

// The contender of these settings whose script is emitted.
Contender emitted_contender(ir::Scenario scenario, const emit::Framework& framework,
                            const std::map<std::string, std::string>& settings,
                            const std::map<std::string, std::string>& controls = {});

// The CPUs of "0,2-3", ascending. Error: the text is no such list.
Result<std::vector<int>> parse_cpus(std::string_view text);

}  // namespace bakeoff::recipe
