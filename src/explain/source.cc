#include "explain/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"

namespace bakeoff::explain {

Source::Source(const std::string& script) { files_.push_back({.lines = lines_of(script)}); }

const Source::File* Source::file(int64_t number) const {
  const auto found = std::ranges::find_if(files_, [&](const File& one) {
    return number > one.first && number <= one.first + std::ssize(one.lines);
  });
  return found == files_.end() ? nullptr : &*found;
}

const std::string* Source::text(int64_t number) const {
  const File* of = file(number);
  return of == nullptr ? nullptr : &of->lines[static_cast<size_t>(number - of->first) - 1];
}

std::string Source::line(int64_t number) const {
  const std::string* found = text(number);
  return found == nullptr ? "" : *found;
}

bool Source::contains(const std::string& text) const {
  return std::ranges::any_of(files_, [&](const File& one) {
    return std::ranges::any_of(one.lines,
                               [&](const auto& line) { return line.find(text) != std::string::npos; });
  });
}

std::pair<std::string, int64_t> Source::place(int64_t number) const {
  const File* of = file(number);
  return of == nullptr ? std::pair<std::string, int64_t>{} : std::pair(of->name, number - of->first);
}

std::string Source::words(int64_t number) const {
  const auto [name, line] = place(number);
  if (line == 0) return "a line of a file that cannot be read";
  return fmt::format("line {}", line) + (name.empty() ? "" : " of " + name);
}

}  // namespace bakeoff::explain
