#pragma once

// For sources that own a record (records/kept.h): its fields as JSON, named once.
//
//   namespace bakeoff {
//   BAKEOFF_RECORD(FitTrial, contender, seed, started)  // does not compile where a field is missing
//   BAKEOFF_KEPT(FitTrial)
//   }
//
// Every field is written. One that a line lacks keeps its default; one that is not known is ignored.

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "records/kept.h"

namespace nlohmann {
template <typename T>
struct adl_serializer<std::optional<T>> {
  static void to_json(ordered_json& j, const std::optional<T>& value) {
    if (value)
      j = *value;
    else
      j = nullptr;
  }
  static void from_json(const ordered_json& j, std::optional<T>& value) {
    if (j.is_null())
      value.reset();
    else
      value = j.get<T>();
  }
};
}  // namespace nlohmann

namespace bakeoff {

using RecordJson = nlohmann::ordered_json;

// JSON has neither infinities nor NaN: a number that is not finite is kept as kNotFinite (records/kept.h), or
// left out where the field may be absent.
inline double storable(double value) { return std::isfinite(value) ? value : kNotFinite; }
inline std::optional<double> storable(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}
inline std::vector<double> storable(std::vector<double> values) {
  for (double& value : values) value = storable(value);
  return values;
}
template <typename T>
const T& storable(const T& value) {
  return value;
}

// A number that does not fit into the integer that it is read into is an error, never another number.
template <typename T>
void read_value(const RecordJson& j, T& value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!j.is_number_integer() ||
        (j.is_number_unsigned() ? !std::in_range<T>(j.get<uint64_t>()) : !std::in_range<T>(j.get<int64_t>())))
      throw RecordJson::other_error::create(500, "no integer of its range: " + dump(j).substr(0, 40), &j);
  }
  j.get_to(value);
}

template <typename T>
requires std::is_integral_v<T>
void read_value(const RecordJson& j, std::vector<T>& values) {
  values.clear();
  for (const RecordJson& each : j.get_ref<const RecordJson::array_t&>())
    read_value(each, values.emplace_back());
}

// The name of a field in records of earlier versions; the same name if it was never renamed.
inline std::string former_name(const std::string& field) {
  return field == "elapsed_ns" ? "went_by_ns" : field;
}

#define BAKEOFF_WRITE(field) j[#field] = storable(v.field);
#define BAKEOFF_READ(field)                                                                     \
  if (auto it = j.find(#field); it != j.end() || (it = j.find(former_name(#field))) != j.end()) \
    read_value(*it, v.field);
#define BAKEOFF_RECORD(Type, ...)                                                            \
  void to_json(RecordJson& j, const Type& v) {                                               \
    [[maybe_unused]] const auto& [__VA_ARGS__] = v; /* compiles where no field is missing */ \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_WRITE, __VA_ARGS__))                    \
  }                                                                                          \
  void from_json(const RecordJson& j, Type& v) {                                             \
    j.get_ref<const RecordJson::object_t&>(); /* throws where it is no object */             \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(BAKEOFF_READ, __VA_ARGS__))                     \
  }
#define BAKEOFF_KEPT(Type)                   \
  template std::string to_json(const Type&); \
  template Result<Type> from_json(std::string_view, const std::string&);

// Parts of a race's records that those of studies and machines hold too.
#define BAKEOFF_SHARED(Type)                \
  void to_json(RecordJson& j, const Type&); \
  void from_json(const RecordJson& j, Type&);
BAKEOFF_SHARED(Failure)
BAKEOFF_SHARED(Host)
BAKEOFF_SHARED(Burst)
BAKEOFF_SHARED(HostRound)
BAKEOFF_SHARED(Trial)
#undef BAKEOFF_SHARED

// `key` is one that no record of this kind lacks.
template <typename R>
Result<R> record_from(std::string_view text, const std::string& where, const char* key) {
  const RecordJson json = parse_json<RecordJson>(text);
  if (json.is_discarded() || !json.is_object() || !json.contains(key)) {
    return Error{
        .message = "not a JSON record", .where = where, .remedy = "the file is damaged: start a new run"};
  }
  try {
    return json.get<R>();
  } catch (const nlohmann::json::exception& e) {
    // "[json.exception.type_error.302] type must be number, but is string": the library's number tells nobody anything.
    const std::string what = e.what();
    const size_t number = what.find("] ");
    return Error{.message = "unexpected record: " + what.substr(number == std::string::npos ? 0 : number + 2),
                 .where = where,
                 .remedy = "the file is damaged or from another version"};
  }
}

// Values that no writer writes. A record that can be checked has an overload of its own.
template <typename R>
Status check(const R&, const std::string&) {
  return Done{};
}
Status check(const Trial& trial, const std::string& where);

template <IsKept R>
std::string to_json(const R& record) {
  return dump(RecordJson(record));
}

template <IsKept R>
Result<R> from_json(std::string_view line, const std::string& where) {
  TRY(R record, record_from<R>(line, where, Kept<R>::kKey));
  CHECK_OK(check(record, where));
  return record;
}

}  // namespace bakeoff
