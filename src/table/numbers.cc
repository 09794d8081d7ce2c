#include "table/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace bakeoff::table {

std::string count(double value) {
  if (!std::isfinite(value)) return kNone;
  std::string digits = fmt::format("{:.0f}", std::abs(value));
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(at, ",");
  return (value <= -0.5 ? "-" : "") + digits;
}

std::string counted(int64_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string milliseconds(double ms) {
  if (!std::isfinite(ms)) return kNone;
  const double size = std::abs(ms);
  if (size >= 999.95) return count(ms);
  return fmt::format("{:.{}f}", ms, size < 0.9995 ? 3 : size < 9.995 ? 2 : 1);
}

std::string duration(double ms) {
  if (!std::isfinite(ms)) return kNone;
  if (ms < 0.9995) return fmt::format("{:.0f} µs", ms * 1e3);
  if (ms < 9.95) return fmt::format("{:.1f} ms", ms);
  if (ms < 999.5) return fmt::format("{:.0f} ms", ms);
  const double s = ms / 1e3;
  if (s < 9.995) return fmt::format("{:.2f} s", s);
  if (s < 99.95) return fmt::format("{:.1f} s", s);
  const auto whole = static_cast<int64_t>(std::llround(std::min(s, 9e15)));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes(double value) {
  if (!std::isfinite(value)) return kNone;
  if (value < 1024) return fmt::format("{:.0f} B", value);
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (value /= 1024; value >= 999.5 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string ratio(double value) {
  if (!std::isfinite(value)) return kNone;
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.9995 ? 3 : size < 99.95 ? 1 : 0);
}

std::string times(double value) {
  if (!std::isfinite(value)) return kNone;
  return value < 9.995 ? fmt::format("{:.2f}", value) : significant(value, 3);
}

std::string error_size(double value) {
  if (!std::isfinite(value)) return "not finite";
  std::string text = fmt::format("{:.2g}", value);
  if (const size_t zero = text.find("e-0"); zero != std::string::npos) text.erase(zero + 2, 1);
  return text;
}

std::string percent(double share) {
  if (!std::isfinite(share)) return kNone;
  return fmt::format("{:.3g}%", share * 100);
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return kNone;
  const double size = std::abs(value);
  const int whole = size >= 1 ? static_cast<int>(std::floor(std::log10(size))) + 1 : 1;
  return whole >= digits ? count(value) : fmt::format("{:.{}f}", value, digits - whole);
}

bool bounded_below(const Estimate& e, double far) {
  return std::isfinite(e.low) && (e.low > 1 || e.low * far > e.value);
}
bool bounded_above(const Estimate& e, double far) {
  return e.high > 0 && (e.high < 1 || e.high < e.value * far);
}

std::string interval(const Estimate& e, std::string (*show)(double)) {
  if (!bounded_below(e) && !bounded_above(e)) return kNone;
  const std::string low = bounded_below(e) ? '[' + show(e.low) : "(0";
  return low + ", " + (bounded_above(e) ? show(e.high) + ']' : "∞)");
}

std::string plain(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string plain(const std::optional<double>& value) { return value ? plain(*value) : ""; }

}  // namespace bakeoff::table
