#include "emit/native/graph.h"

#include <fmt/format.h>

namespace bakeoff::emit::native {

std::string Count::text() const {
  if (!rows) return std::to_string(count);
  return count == 1 ? "rows" : fmt::format("rows * {}", count);
}

Count count_of(const ir::Shape& sizes, size_t first, size_t last) {
  Count all;
  for (size_t axis = first; axis < last; ++axis) {
    if (sizes[axis] == ir::kBatch)
      all.rows = true;
    else
      all.count *= sizes[axis];
  }
  return all;
}
Count count_of(const ir::Shape& sizes) { return count_of(sizes, 0, sizes.size()); }

}  // namespace bakeoff::emit::native
