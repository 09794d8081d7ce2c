#pragma once

// Numbers as people read them. A value that is not finite is "–" (never "nan" or "inf"); an interval that is
// not bounded yet is open on that side.

#include <cstdint>
#include <optional>
#include <string>

namespace bakeoff {

// A value with its confidence interval; the interval is infinite on a side that is not bounded yet.
struct Estimate {
  double value = 0;
  double low = 0;
  double high = 0;
  bool operator==(const Estimate&) const = default;
};

}  // namespace bakeoff

namespace bakeoff::table {

inline constexpr const char* kNone = "–";

std::string count(double value);                          // "563,018"
std::string counted(int64_t n, const std::string& noun);  // "1 thread", "2 threads"
std::string milliseconds(double ms);   // "0.412", "3.42", "75.6", "1,262": three digits or more, no unit
std::string duration(double ms);       // "352 ms", "1.75 s", "2 min 03 s", "1 h 05 min"
std::string bytes(double value);       // "812 MiB", "1.23 GiB"
std::string ratio(double value);       // "1.013", "12.4", "266"
std::string times(double value);       // "1.15", "5.52", "12.3", "266": a ratio in a sentence
std::string error_size(double value);  // "0", "0.013", "3.1e-15", "1e-8"
std::string percent(double share);     // 0.03 -> "3%"
std::string significant(double value, int digits);  // 12.5 -> "12.5", 165.3 -> "165"

// For programs to read, with every digit: "0.1", "1e-08"; empty where there is no number.
std::string plain(double value);
std::string plain(const std::optional<double>& value);

// "[1.28, 1.31]", "[1.28, ∞)", "(0, 1.31]", "–" without any bound; `show` formats the finite ends. A lower end at or below
// 0 is open.
std::string interval(const Estimate& estimate, std::string (*show)(double));

// Whether the interval has an end on that side. An end at or below 0 does not count, nor does one
// farther than a factor of `far` from the estimate, unless it tells a ratio from 1: intervals are that wide only
// while too few heats were run.
inline constexpr double kSaysNothing = 100;
bool bounded_below(const Estimate& estimate, double far = kSaysNothing);
bool bounded_above(const Estimate& estimate, double far = kSaysNothing);

}  // namespace bakeoff::table
