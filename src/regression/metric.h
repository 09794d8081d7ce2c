#pragma once

// A figure that a script prints, of which a user says by a regular expression where it stands: "tokens/s: 812.5".

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bakeoff::regression {

struct Metric {
  std::string pattern = {};  // of ECMAScript, as std::regex reads it
  bool higher_is_better = false;
  bool operator==(const Metric&) const = default;
};

// Reads the figure out of printed lines.
class MetricReader {
 public:
  // Errors: the pattern is no regular expression.
  static Result<MetricReader> make(const std::string& pattern);
  // What the pattern's first group holds; without a group the first number after what the pattern matches. Nothing if the
  // line does not match or no number stands there. Only the first 1,000 bytes of a line are read.
  std::optional<double> figure(std::string_view line) const;

 private:
  struct Expression;
  std::shared_ptr<const Expression> expression_ = {};
};

}  // namespace bakeoff::regression
