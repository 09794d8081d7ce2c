// Reads figures out of prose, to show that no report says a number that its JSON does not have. A figure is
// text, unit and value together with its last digit's worth: "75.6 ms" is shown by any value that rounds to
// it, and by no other. Units are tried from the longest, as many begin alike. Words of time ("minutes") are
// rough and may be off by more. A sentence that writes a number in a new way must be readable here, or the
// check would pass over it in silence.

#include "report/figures.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/texts.h"

namespace bakeoff::report {

using table::Json;
namespace {

struct UnitName {
  std::string_view text;
  Unit unit;
  double scale;
  bool rough = false;
};

// The longer of two that begin alike stands first. Words of time are for rough figures alone.
constexpr UnitName kUnits[] = {
    {" more seconds", Unit::kSeconds, 1, true},
    {" seconds", Unit::kSeconds, 1, true},
    {" more minutes", Unit::kSeconds, 60, true},
    {" more minute", Unit::kSeconds, 60, true},
    {" minutes", Unit::kSeconds, 60, true},
    {" minute", Unit::kSeconds, 60, true},
    {" hours", Unit::kSeconds, 3600, true},
    {" hour", Unit::kSeconds, 3600, true},
    {" µs", Unit::kSeconds, 1e-6},
    {" ms", Unit::kSeconds, 1e-3},
    {" s", Unit::kSeconds, 1},
    {" min", Unit::kSeconds, 60},
    {" h", Unit::kSeconds, 3600, true},
    {" KiB", Unit::kBytes, 1024.0},
    {" MiB", Unit::kBytes, 1024.0 * 1024},
    {" GiB", Unit::kBytes, 1024.0 * 1024 * 1024},
    {" TiB", Unit::kBytes, 1024.0 * 1024 * 1024 * 1024},
    {"% sure", Unit::kShare, 0.01, true},
    {"%", Unit::kShare, 0.01},
    {" times", Unit::kFactor, 1},
    {" ×", Unit::kFactor, 1},
    {"x", Unit::kFactor, 1},
    {" samples/s", Unit::kRate, 1},
    {" GB/s", Unit::kRate, 1e9},
    {" MHz", Unit::kRate, 1e6},
    {" M", Unit::kCount, 1e6},
    {" G", Unit::kCount, 1e9},
    {" GFLOP/s", Unit::kFlops, 1e9},
    {" GFLOP", Unit::kFlops, 1e9},
    {" MFLOP", Unit::kFlops, 1e6},
    {" kFLOP", Unit::kFlops, 1e3},
    {" heats", Unit::kCount, 1},
    {" heat", Unit::kCount, 1},
    {" parameters", Unit::kCount, 1},
};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The end of the number at `at`: "1,149", "0.31", "1.3e-02".
size_t after_number(std::string_view text, size_t at) {
  const auto digits = [&](size_t from) {
    while (from < text.size() && is_digit(text[from])) ++from;
    return from;
  };
  size_t end = digits(at);
  while (end < text.size() && text[end] == ',' && digits(end + 1) == end + 4) end += 4;
  if (end + 1 < text.size() && text[end] == '.' && is_digit(text[end + 1])) end = digits(end + 1);
  if (end < text.size() && text[end] == 'e') {
    const size_t sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+');
    if (digits(end + 1 + sign) > end + 1 + sign) end = digits(end + 1 + sign);
  }
  return end;
}

// Whether a number may begin there: not within a word, a version or a date.
bool begins(std::string_view text, size_t at) {
  if (!is_digit(text[at])) return false;
  const char before = at > 0 ? text[at - 1] : ' ';
  const char earlier = at > 1 ? text[at - 2] : ' ';
  return !is_word(before) && before != '.' && !((before == '-' || before == ':') && is_word(earlier));
}

// A number with the unit that follows it; `end` moves behind both.
Figure figure_at(std::string_view text, size_t at, size_t& end) {
  end = after_number(text, at);
  std::string digits(text.substr(at, end - at));
  std::erase(digits, ',');
  Figure figure{.value = std::strtod(digits.c_str(), nullptr)};
  const size_t e = std::min(digits.find('e'), digits.size()), point = std::min(digits.find('.'), e);
  const double decimals = point < e ? static_cast<double>(e - point - 1) : 0;
  const double power = e < digits.size() ? std::strtod(digits.c_str() + e + 1, nullptr) : 0;
  figure.step = std::pow(10, power - decimals);
  for (const UnitName& name : kUnits) {
    const size_t behind = end + name.text.size();
    if (text.substr(end, name.text.size()) != name.text) continue;
    if (behind < text.size() && (is_word(text[behind]) || text[behind] == '/')) continue;
    figure.unit = name.unit;
    figure.rough = name.rough;
    const size_t zeros = digits.size() - 1 - digits.find_last_not_of('0');
    if (name.rough && point == digits.size()) figure.step = std::pow(10, static_cast<double>(zeros));
    figure.scale = name.scale;
    figure.value *= name.scale;
    figure.step *= name.scale;
    end = behind;
    break;
  }
  figure.text = text.substr(at, end - at);
  return figure;
}

// "4 min" and "12 s" behind it are one figure.
bool goes_on(const Figure& first, const Figure& next, std::string_view between) {
  return between == " " && ((first.text.ends_with(" min") && next.text.ends_with(" s")) ||
                            (first.text.ends_with(" h") && next.text.ends_with(" min")));
}

// What the words of a key say of the numbers below it.
struct Meaning {
  Unit unit = Unit::kNone;
  double scale = 1;
};
Meaning meaning_of(const std::string& key) {
  const std::vector<std::string> all = split(key, "_");
  const std::set<std::string> words(all.begin(), all.end());
  if (words.contains("ms")) return {Unit::kSeconds, 1e-3};
  if (words.contains("ns")) return {Unit::kSeconds, 1e-9};
  if (words.contains("bytes")) return {words.contains("s") ? Unit::kRate : Unit::kBytes, 1};
  if (words.contains("s") || words.contains("seconds")) return {Unit::kSeconds, 1};
  if (words.contains("gflops") || words.contains("gflop")) return {Unit::kFlops, 1e9};
  if (words.contains("flops")) return {Unit::kFlops, 1};
  return {};
}

}  // namespace

std::vector<Figure> figures_in(std::string_view text) {
  std::vector<Figure> all;
  std::vector<size_t> begin, end;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!begins(text, at)) continue;
    size_t behind = at;
    const Figure next = figure_at(text, at, behind);
    if (!all.empty() && goes_on(all.back(), next, text.substr(end.back(), at - end.back()))) {
      Figure& whole = all.back();
      whole.text += ' ' + next.text;
      whole.value += next.value;
      whole.step = next.step;
      end.back() = behind;
    } else {
      all.push_back(next);
      begin.push_back(at);
      end.push_back(behind);
    }
    at = behind - 1;
  }
  for (size_t i = all.size(); i-- > 1;) {
    const std::string_view between = text.substr(end[i - 1], begin[i] - end[i - 1]);
    if (all[i - 1].unit != Unit::kNone || (between != " to " && between != " and ")) continue;
    all[i - 1].unit = all[i].unit;
    all[i - 1].rough = all[i].rough;
    all[i - 1].scale = all[i].scale;
    all[i - 1].value *= all[i].scale;
    all[i - 1].step *= all[i].scale;
  }
  return all;
}

std::vector<std::string> clauses_of(std::string_view line) {
  std::vector<std::string> all(1);
  for (size_t at = 0; at < line.size(); ++at) {
    bool split = false;
    for (const std::string_view mark : {". ", ": ", "; ", " · ", "  "}) {
      if (split || line.substr(at, mark.size()) != mark) continue;
      split = true;
      at += mark.size() - 1;
    }
    if (split)
      all.emplace_back();
    else
      all.back() += line[at];
  }
  for (std::string& clause : all) {
    if (clause.ends_with(" ·")) clause.resize(clause.size() - std::string_view(" ·").size());
    if (clause.ends_with('.')) clause.pop_back();
  }
  std::erase_if(all, [](const std::string& clause) { return clause.empty(); });
  return all;
}

Mask masked(std::string_view clause) {
  Mask mask;
  for (size_t at = 0; at < clause.size(); ++at) {
    if (!is_digit(clause[at])) {
      if (clause[at] != ' ' && clause[at] != '`') mask.words += clause[at];
      continue;
    }
    const size_t end = after_number(clause, at);
    mask.words += '#';
    mask.numbers += std::string(clause.substr(at, end - at)) + ' ';
    at = end - 1;
  }
  return mask;
}

Numbers::Numbers(const Json& json) { add(json, Unit::kNone, 1); }

void Numbers::add(const Json& json, Unit unit, double scale) {
  // Every heat and step: among so much data any figure would be found by chance.
  static const std::set<std::string> kSeries = {"heat_ms", "step_ms", "losses", "referee_losses", "checks"};
  if (json.is_number()) all_.push_back({unit, json.get<double>() * scale, json.get<double>()});
  if (json.is_array())
    for (const Json& one : json) add(one, unit, scale);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (kSeries.contains(key)) continue;
    const Meaning own = meaning_of(key);
    add(value, own.unit == Unit::kNone ? unit : own.unit, own.unit == Unit::kNone ? scale : own.scale);
  }
}

bool Numbers::hold(const Figure& figure) const {
  const double room = figure.step * (figure.rough ? 1 : 0.5) * (1 + 1e-9) + std::abs(figure.value) * 1e-12;
  const auto near = [&](double value) { return std::abs(std::abs(value) - figure.value) <= room; };
  return std::any_of(all_.begin(), all_.end(), [&](const Number& number) {
    const bool typed =
        figure.unit == Unit::kSeconds || figure.unit == Unit::kBytes || figure.unit == Unit::kFlops;
    if (typed) return number.unit == figure.unit && near(number.value);
    if (figure.unit == Unit::kShare)
      return near(number.value) || near(number.value - 1) || near(1 - number.value);
    return near(number.plain);
  });
}

}  // namespace bakeoff::report
