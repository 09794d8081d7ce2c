#include "recipe/largest_batch.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace bakeoff::recipe {

Result<int64_t> parse_size(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"B", 1},
                                                            {"kB", 1e3},
                                                            {"MB", 1e6},
                                                            {"GB", 1e9},
                                                            {"TB", 1e12},
                                                            {"KiB", 1024},
                                                            {"MiB", 1024.0 * 1024},
                                                            {"GiB", 1024.0 * 1024 * 1024},
                                                            {"TiB", 1024.0 * 1024 * 1024 * 1024}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const auto& [name, bytes] : kUnits) {
    const double size = number * bytes;
    if (error == std::errc() && unit == name && std::isfinite(size) && size >= 1 && size < 9e18)
      return static_cast<int64_t>(size);
  }
  return Error{.message = fmt::format("'{}' is not an amount of memory", text),
               .remedy = "write a number and a unit, for example \"4 GiB\" or \"800 MB\""};
}

Result<LargestBatch> read_largest_batch(const Reader& reader, bool wanted) {
  LargestBatch asked{.wanted = wanted};
  asked.most = reader.integer("largest_batch", "most", asked.most);
  const std::string memory = reader.word("largest_batch", "memory", "available");
  if (memory == "available") return asked;
  const auto bytes = parse_size(memory);
  if (!bytes) {
    return reader.error(reader.find("largest_batch", "memory")->source(), bytes.error().message,
                        bytes.error().remedy + ", or \"available\"");
  }
  asked.memory_bytes = *bytes;
  return asked;
}

}  // namespace bakeoff::recipe
