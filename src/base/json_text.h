#pragma once

// JSON to text and back. The library's parser and writer are templates: they are compiled here alone, instead of again
// in each unit that calls them (docs/measured/building.md).

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace bakeoff {

// Without an end of line; indent -1: in one line. Bytes that are no UTF-8 are replaced.
std::string dump(const nlohmann::json& json, int indent = -1);
std::string dump(const nlohmann::ordered_json& json, int indent = -1);

// Discarded (`is_discarded()`) where `text` is no JSON. J: nlohmann::json or nlohmann::ordered_json.
template <typename J>
J parse_json(std::string_view text);

}  // namespace bakeoff
