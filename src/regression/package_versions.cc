#include "regression/package_versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/clock.h"
#include "base/texts.h"
#include "proc/run.h"
#include "table/text.h"

namespace bakeoff::regression {
namespace {

bool released(const std::string& version) {
  return std::ranges::all_of(version, [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

std::vector<int64_t> numbers(const std::string& version) {
  std::vector<int64_t> all;
  for (const std::string& part : split(version.substr(0, version.find_first_not_of("0123456789.")), "."))
    all.push_back(std::atoll(part.c_str()));
  while (!all.empty() && all.back() == 0) all.pop_back();
  return all;
}

// Of ASCII letters, digits and characters of `more`, which are none of its first.
bool is_word(std::string_view text, std::string_view more) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  return !text.empty() && plain(text[0]) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || more.find(c) != more.npos; });
}

}  // namespace

bool is_package(std::string_view text) { return is_word(text, "._-"); }
bool is_version(std::string_view text) { return is_word(text, ".+!_-"); }

Result<PackageRange> parse_range(const std::string& text) {
  const Error wrong{.message = fmt::format("'{}' names no versions of a package", table::one_line(text)),
                    .remedy = "for example numpy==1.26..2.1, or numpy==1.26.4,2.0.2,2.1.3"};
  const size_t at = text.find("==");
  if (at == std::string::npos) return wrong;
  PackageRange range{.name = text.substr(0, at)};
  const std::string rest = text.substr(at + 2);
  const auto ends = split(rest, "..");
  range.listed = ends.size() == 2 ? ends : split(rest, ",");
  const auto fits = [](const std::string& version) {
    return is_version(version) && std::isdigit(static_cast<unsigned char>(version[0])) != 0;
  };
  if (!is_package(range.name) || range.listed.size() < 2 || !std::ranges::all_of(range.listed, fits))
    return wrong;
  if (ends.size() != 2) return range;
  range.first = ends[0];
  range.last = ends[1];
  range.listed.clear();
  return range;
}

bool older(const std::string& a, const std::string& b) {
  const auto x = numbers(a), y = numbers(b);
  return x != y ? x < y : released(b) && !released(a);
}

std::vector<std::string> within(std::vector<std::string> versions, const std::string& first,
                                const std::string& last) {
  std::erase_if(versions, [&](const std::string& v) {
    const bool of_last = v == last || v.starts_with(last + ".");
    return !released(v) || older(v, first) || (older(last, v) && !of_last);
  });
  std::ranges::stable_sort(versions, older);
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  return versions;
}

Result<std::vector<std::string>> indexed_versions(const std::filesystem::path& python,
                                                  const std::string& name) {
  std::vector<std::string> found;
  proc::CommandOptions pip{.child = {.argv = {python.string(), "-m", "pip", "index", "versions",
                                              "--disable-pip-version-check", name}},
                           .timeout_ns = 120 * kSecond};
  pip.on_line = [&](std::string_view line) {
    constexpr std::string_view kBefore = "Available versions: ";
    if (line.starts_with(kBefore)) found = split(std::string(line.substr(kBefore.size())), ", ");
  };
  TRY(const proc::CommandResult done, proc::run_command(pip));
  if (done.ok() && !found.empty()) return found;
  return Error{.message = fmt::format("pip lists no versions of '{}': {}\n{}", name, done.text(),
                                      join(table::last_lines(done.output_tail, 5), "\n")),
               .remedy = fmt::format("list them: --package {}==1.0,1.1,1.2", name)};
}

}  // namespace bakeoff::regression
