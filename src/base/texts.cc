#include "base/texts.h"

namespace bakeoff {

std::string join(const std::vector<std::string>& values, std::string_view between) {
  return join(values.begin(), values.end(), between);
}

}  // namespace bakeoff
