#pragma once

// The part of JSON (RFC 8259) that the runner protocol and the header of a safetensors file need: it reads
// and writes one line. Numbers written as integers are int64_t, others double. A double that is not finite
// is written as "nan", "inf" or "-inf", which strict JSON does not have.
//
//   Json request = Json::parse(line);   // throws std::invalid_argument: what is wrong, and at which byte
//   if (const Json* steps = request.find("steps")) steps->is_integer() ...
//   Json answer = {{"id", 7}, {"ok", true}};
//   answer["loss"] = 0.25;
//   write(answer.dump());

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace bakeoff {

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order written

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(static_cast<int64_t>(value)) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  Json(std::initializer_list<Object::value_type> members) : value_(Object(members)) {}

  static Json parse(std::string_view text);
  std::string dump() const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The value; std::bad_variant_access where it is of another kind.
  bool boolean() const { return std::get<bool>(value_); }
  int64_t integer() const { return std::get<int64_t>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  const Array& array() const { return std::get<Array>(value_); }
  const Object& object() const { return std::get<Object>(value_); }

  // A member of an object; null where it is absent or this is no object.
  const Json* find(std::string_view key) const;
  // The member, added where it is absent; makes an object of null.
  Json& operator[](const std::string& key);

 private:
  void print(std::string& out) const;

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace bakeoff
