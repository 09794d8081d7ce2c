#pragma once

// The user's configuration file, $BAKEOFF_CONFIG or $BAKEOFF_HOME/config.toml:
//
//   [environment.torch]
//   python = "/usr/bin/python3"      # races use the torch of this interpreter, in any version
//
// It is read once. Errors name file, line, key and the nearest valid word.

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bakeoff {

struct Config {
  std::filesystem::path file = {};                                 // empty: there is no such file
  std::map<std::string, std::filesystem::path> interpreters = {};  // by environment, absolute
  bool operator==(const Config&) const = default;
};

// `environments`: names that may be configured. A relative path is relative to the folder of `file`; a path
// that starts with "~/" is relative to $HOME.
Result<Config> parse_config(std::string_view text, const std::filesystem::path& file,
                            const std::vector<std::string>& environments);

// Reads `named`, else $BAKEOFF_CONFIG, else `home`/config.toml. Only the last may be missing: an empty
// Config.
Result<Config> load_config(const std::filesystem::path& named, const std::filesystem::path& home,
                           const std::vector<std::string>& environments);

}  // namespace bakeoff
