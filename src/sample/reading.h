#pragma once

// A number read from the machine, or the reason why it is absent. An absent number never becomes zero.

#include <optional>
#include <string>
#include <utility>

namespace bakeoff::sample {

class Reading {
 public:
  Reading() = default;                                 // absent, "not read"
  Reading(double value) : value_(value), reason_() {}  // NOLINT: implicit on purpose
  static Reading absent(std::string reason) {
    Reading reading;
    reading.reason_ = std::move(reason);
    return reading;
  }

  explicit operator bool() const { return value_.has_value(); }
  double operator*() const { return *value_; }
  const std::string& reason() const { return reason_; }  // why it is absent; empty if there is a value
  bool operator==(const Reading&) const = default;

 private:
  std::optional<double> value_ = {};
  std::string reason_ = "not read";
};

}  // namespace bakeoff::sample
