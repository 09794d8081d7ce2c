#pragma once

// Result<T>: a value or an Error. Expected failures travel as Result; a bug is an assert.
//
//   Result<std::string> text = read_file(path);
//   if (!text) return text.error();
//
//   TRY(auto text, read_file(path));     // the same, in a function that returns a Result

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace bakeoff {

// What went wrong, in words for the user. `where` is "file:line" or empty; `remedy` says what to do.
struct Error {
  std::string message;
  std::string where = {};
  std::string remedy = {};

  // "where: message", and the remedy on a second line; empty parts are left out.
  std::string text() const { return with_remedy("\n  "); }
  // The same on one line, for a row of a table: "where: message; remedy".
  std::string line() const { return with_remedy("; "); }
  bool operator==(const Error&) const = default;

 private:
  std::string with_remedy(const char* between) const {
    std::string all = where.empty() ? message : where + ": " + message;
    if (!remedy.empty()) all += between + remedy;
    return all;
  }
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & {
    assert(has_value());
    return std::get<0>(state_);
  }
  const T& value() const& {
    assert(has_value());
    return std::get<0>(state_);
  }
  T&& value() && {
    assert(has_value());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    assert(!has_value());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// The outcome of an action that returns no value.
struct Done {
  bool operator==(const Done&) const = default;
};
using Status = Result<Done>;

}  // namespace bakeoff

#define BAKEOFF_CONCAT_(a, b) a##b
#define BAKEOFF_CONCAT(a, b) BAKEOFF_CONCAT_(a, b)
// TRY(auto x, expression): evaluates a Result; returns its error from this function, or binds its value.
#define TRY(declaration, ...)                                                         \
  auto BAKEOFF_CONCAT(try_, __LINE__) = (__VA_ARGS__);                                \
  if (!BAKEOFF_CONCAT(try_, __LINE__)) return BAKEOFF_CONCAT(try_, __LINE__).error(); \
  declaration = std::move(BAKEOFF_CONCAT(try_, __LINE__)).value()
// CHECK_OK(expression): the same for a Status, which has no value to bind.
#define CHECK_OK(...)                                                                     \
  if (auto BAKEOFF_CONCAT(ok_, __LINE__) = (__VA_ARGS__); !BAKEOFF_CONCAT(ok_, __LINE__)) \
  return BAKEOFF_CONCAT(ok_, __LINE__).error()
