// Why std::regex: users write \d and \s, which POSIX's expressions do not know. It recurses once for each character that
// it matches, so a line of a megabyte would end the program; no figure stands behind the first 1,000 bytes.

#include "regression/metric.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <regex>

namespace bakeoff::regression {
namespace {

constexpr size_t kMostBytes = 1000;

// The number at the beginning of `text`, which may have a sign and commas between thousands.
std::optional<double> number_at(std::string_view text) {
  std::string digits;
  for (const char c : text.substr(0, 64))
    if (c != ',' && c != '_') digits += c;
  const size_t sign = !digits.empty() && digits[0] == '+' ? 1 : 0;
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data() + sign, digits.data() + digits.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> first_number(std::string_view text) {
  const size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at;
  if (begin > 0 && text[begin - 1] == '.') --begin;
  if (begin > 0 && text[begin - 1] == '-') --begin;
  return number_at(text.substr(begin));
}

}  // namespace

struct MetricReader::Expression {
  std::regex regex;
};

Result<MetricReader> MetricReader::make(const std::string& pattern) {
  try {
    MetricReader reader;
    reader.expression_ = std::make_shared<const Expression>(Expression{std::regex(pattern)});
    return reader;
  } catch (const std::regex_error& error) {
    return Error{
        .message = fmt::format("--metric '{}' is no regular expression: {}", pattern, error.what()),
        .remedy = R"(for example --metric 'tokens/s: ([0-9.]+)'; a \ before a bracket takes it as it is)"};
  }
}

std::optional<double> MetricReader::figure(std::string_view line) const {
  const std::string text(line.substr(0, kMostBytes));
  std::smatch found;
  if (!std::regex_search(text, found, expression_->regex)) return std::nullopt;
  if (found.size() > 1) return first_number(found.str(1));
  return first_number(std::string_view(text).substr(static_cast<size_t>(found.position(0)) +
                                                    static_cast<size_t>(found.length(0))));
}

}  // namespace bakeoff::regression
