#pragma once

// Figures of a text - numbers with their units - and whether a number of the report's JSON is what one of them shows.
//
//   figures_in("9 heats, 4 min 12 s")[1]          // text "4 min 12 s", kSeconds, value 252, step 1
//   Numbers(json).hold(figures_in("75.6 ms")[0])  // "ms_per_step": {"value": 75.5631}

#include <string>
#include <string_view>
#include <vector>

#include "table/quantity.h"

namespace bakeoff::report {

// What the value of a figure is in: seconds, bytes, a share of 1, a factor, a rate (of samples or bytes) or FLOP/s in
// ones, a count of things. kNone: the text states no unit.
enum class Unit { kSeconds, kBytes, kShare, kFactor, kRate, kFlops, kCount, kNone };

struct Figure {
  std::string text = {};  // "75.6 ms"
  Unit unit = Unit::kNone;
  double value = 0;
  double step = 0;     // of its last digit
  double scale = 1;    // of its unit, which is in value and step already: 0.001 of "ms"
  bool rough = false;  // rounded up or down, not to the nearest: "about 6 more minutes", "93% sure"
};

// A range ("3 to 16 minutes") is two figures of one unit. Digits within a word or a date are no figures.
std::vector<Figure> figures_in(std::string_view text);

// The parts of a line that make a statement each: split at full stops, colons, semicolons, middle dots.
std::vector<std::string> clauses_of(std::string_view line);

// A clause without its spaces and with "#" for every number; and its numbers.
struct Mask {
  std::string words = {};
  std::string numbers = {};
};
Mask masked(std::string_view clause);

// The numbers of a JSON text. A key says what a number is in ("_ms", "seconds", "bytes", "gflops"); shares, factors and
// counts carry no such word, so any number may be one.
class Numbers {
 public:
  explicit Numbers(const table::Json& json);
  // Within the rounding that the figure shows; a share also as what is above or below 1.
  bool hold(const Figure& figure) const;

 private:
  void add(const table::Json& json, Unit unit, double scale);
  struct Number {
    Unit unit = Unit::kNone;
    double value = 0;  // in what a figure of this unit is in
    double plain = 0;  // as it stands
  };
  std::vector<Number> all_ = {};
};

}  // namespace bakeoff::report
