#include "base/texts.h"

namespace bakeoff {

std::string join(const std::vector<std::string>& values, std::string_view between) {
  return join(values.begin(), values.end(), between);
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name.substr(0, 80)) {
    const bool keep = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    plain += keep ? c : '_';
  }
  return plain;
}

}  // namespace bakeoff
