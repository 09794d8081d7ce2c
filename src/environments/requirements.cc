#include "environments/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/files.h"
#include "base/texts.h"

namespace bakeoff {
namespace {

bool name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
}
bool version_char(char c) { return name_char(c) || c == '+' || c == '!'; }

// The site-packages folders of a virtual environment.
std::vector<fs::path> site_packages(const fs::path& environment) {
  std::vector<fs::path> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(environment / "lib", code)) {
    const fs::path site = entry.path() / "site-packages";
    if (entry.path().filename().string().starts_with("python") && fs::is_directory(site, code))
      found.push_back(site);
  }
  return found;
}

// What stands behind `key` in its line; empty: there is no such line.
std::string stated(const Requirements& requirements, std::string_view key) {
  for (const std::string& line : lines_of(requirements.text))
    if (line.starts_with(key)) return std::string(trimmed(line).substr(key.size()));
  return "";
}

}  // namespace

Result<std::vector<Pin>> parse_pins(const Requirements& requirements) {
  std::vector<Pin> pins;
  size_t number = 0;
  const std::string_view text = requirements.text;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t at = line.find("==");
    const std::string_view package = line.substr(0, at);
    const std::string_view version = at == std::string_view::npos ? "" : line.substr(at + 2);
    if (package.empty() || version.empty() || !std::ranges::all_of(package, name_char) ||
        !std::ranges::all_of(version, version_char)) {
      return Error{.message = fmt::format("'{}' is not pinned", line),
                   .where = fmt::format("envs/{}.txt:{}", requirements.name, number),
                   .remedy = "write name==version"};
    }
    pins.push_back({normalised(package), std::string(version)});
  }
  return pins;
}

bool without_dependencies(const Requirements& requirements) {
  return ("\n" + requirements.text).find("\n# pip: --no-deps\n") != std::string::npos;
}

std::string extended(const Requirements& requirements) { return stated(requirements, "# extends: "); }

std::vector<std::string> imported_once(const Requirements& requirements) {
  const std::string words = stated(requirements, "# import: ");
  return words.empty() ? std::vector<std::string>() : split(words, " ");
}

std::string normalised(std::string_view package) {
  std::string name;
  for (const char c : package) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && !name.empty() && name.back() == '-') continue;
    name.push_back(separator ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return name;
}

bool satisfies(std::string_view installed, std::string_view pinned) {
  if (pinned.find('+') == std::string_view::npos) installed = installed.substr(0, installed.find('+'));
  return installed == pinned;
}

Texts installed_packages(const fs::path& environment) {
  Texts packages;
  std::error_code code;
  for (const fs::path& site : site_packages(environment)) {
    for (const auto& entry : fs::directory_iterator(site, code)) {
      const std::string folder = entry.path().filename().string();
      const size_t dash = folder.find('-');
      if (!folder.ends_with(".dist-info") || dash == std::string::npos) continue;
      if (!fs::exists(entry.path() / "RECORD", code)) continue;
      const size_t end = folder.size() - std::string_view(".dist-info").size();
      if (dash + 1 < end)
        packages[normalised(folder.substr(0, dash))] = folder.substr(dash + 1, end - dash - 1);
    }
  }
  return packages;
}

std::string first_misfit(const std::vector<Pin>& pins, const Texts& installed) {
  for (const Pin& pin : pins) {
    const auto found = installed.find(pin.package);
    if (found == installed.end()) return fmt::format("{} {} is not installed", pin.package, pin.version);
    if (!satisfies(found->second, pin.version)) {
      return fmt::format("{} is {}, not {}", pin.package, found->second, pin.version);
    }
  }
  return "";
}

}  // namespace bakeoff
