#include "table/quantity.h"

#include <algorithm>
#include <cmath>

#include "base/json_text.h"
#include "table/text.h"

namespace bakeoff::table {
namespace {

double end_of(const Json& value, const char* key, double open) {
  return value.contains(key) && value[key].is_number() ? value[key].get<double>() : open;
}

}  // namespace

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json estimate(const Estimate& e) {
  return {{"value", number(e.value)},
          {"low", bounded_below(e) ? number(e.low) : Json(nullptr)},
          {"high", bounded_above(e) ? number(e.high) : Json(nullptr)}};
}

Cell shown(const Json& value, std::string (*show)(double)) {
  if (value.is_string())
    return {value.get<std::string>().empty() ? kNone : one_line(value.get<std::string>())};
  if (value.is_number()) return {show ? show(value.get<double>()) : plain(value, "")};
  if (!value.is_object() || !value.contains("value") || !value["value"].is_number()) return {};
  const Estimate e{value["value"].get<double>(), end_of(value, "low", 0), end_of(value, "high", INFINITY)};
  return {show(e.value), interval(e, show)};
}

std::string plain(const Json& value, const std::string& pointer) {
  const Json::json_pointer at(pointer);
  if (!pointer.empty() && !value.contains(at)) return "";
  const Json& found = pointer.empty() ? value : value.at(at);
  if (found.is_string()) return found.get<std::string>();
  if (found.is_boolean()) return found.get<bool>() ? "true" : "false";
  if (found.is_number_float()) return plain(found.get<double>());
  return found.is_number() ? dump(found) : "";
}

void set(Json& out, const std::string& key, Json value) {
  Json* at = &out;
  size_t begin = 0;
  for (size_t slash; (slash = key.find('/', begin)) != std::string::npos; begin = slash + 1)
    at = &(*at)[key.substr(begin, slash - begin)];
  (*at)[key.substr(begin)] = std::move(value);
}

std::vector<CsvColumn> csv_columns(const Column& column) {
  if (!column.csv.empty()) return column.csv;
  if (column.key.empty() || !column.in_csv) return {};
  std::string name = column.key;
  std::replace(name.begin(), name.end(), '/', '_');
  return {{name, ""}};
}

bool all_read(const FilledColumn& column, const std::string& text) {
  return std::all_of(column.cells.begin(), column.cells.end(), [&](const Cell& cell) {
    return cell.text.empty() || cell.text == kNone || cell.text == text;
  });
}

bool blank(const FilledColumn& column) { return all_read(column, kNone); }

}  // namespace bakeoff::table
