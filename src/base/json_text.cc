#include "base/json_text.h"

namespace bakeoff {

std::string dump(const nlohmann::json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string dump(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

template <typename J>
J parse_json(std::string_view text) {
  return J::parse(text, nullptr, /*allow_exceptions=*/false);
}
template nlohmann::json parse_json(std::string_view text);
template nlohmann::ordered_json parse_json(std::string_view text);

}  // namespace bakeoff
