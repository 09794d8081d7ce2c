#include "cli/shared_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>

#include "cli/usage.h"

namespace bakeoff::cli {
namespace {

// "5%", "0.05".
std::optional<double> share_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  if (std::string_view(end) == "%") return value / 100;
  return *end == '\0' ? std::optional(value) : std::nullopt;
}

constexpr double kLongest = 1e7;  // minutes: 19 years, in nanoseconds a 64-bit number

// "6", "6min", "6m", "90s", "1h", "20pairs". Null: it is none of these, not above 0, or beyond any run.
std::optional<Budget> parse_budget(const std::string& text, const BudgetForm& form) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  if (end == text.c_str() || !(number > 0 && number < 1e9)) return std::nullopt;
  if (form.pairs && unit == "pairs" && number == std::floor(number))
    return Budget{.pairs = static_cast<int64_t>(number)};
  static const std::map<std::string, double> kMinutes = {
      {"", 1}, {"min", 1}, {"m", 1}, {"s", 1.0 / 60}, {"h", 60}};
  const auto of = kMinutes.find(unit);
  if (of == kMinutes.end() || number * of->second > kLongest) return std::nullopt;
  return Budget{.minutes = number * of->second};
}

}  // namespace

void add_budget(CLI::App& sub, const std::function<void(const Budget&)>& take, const BudgetForm& form,
                const std::string& doc) {
  sub.add_option_function<std::string>(
         "--budget", [take, form](const std::string& text) { take(*parse_budget(text, form)); }, doc)
      ->check(CLI::Validator(
          [form](const std::string& text) {
            return parse_budget(text, form) ? std::string() : std::string(form.wrong);
          },
          form.type));
}

void add_format(CLI::App& sub, std::string& format) {
  sub.add_option("--format", format, "text, json, markdown or csv")
      ->check(one_of({"text", "json", "markdown", "csv"}))
      ->capture_default_str();
}

void add_profile(CLI::App& sub, std::string& profile) {
  sub.add_option("--profile", profile,
                 "machine profile of `bakeoff calibrate`, or none; default profile.json in the bakeoff home");
}

void add_baseline(CLI::App& sub, std::string& baseline) {
  sub.add_option(
      "--baseline", baseline,
      "contender that the others are compared with, by its id as in JSON (torch, or keras[backend=jax]); adds a table "
      "of how many times as fast the others are");
}

void add_share(CLI::App& sub, const std::string& name, double& into, double most, const std::string& doc) {
  const std::string wrong = fmt::format("must be above 0 and below {:g}%: 5%, or 0.05", 100 * most);
  sub.add_option_function<std::string>(
         name, [&into](const std::string& text) { into = *share_of(text); }, doc)
      ->check(CLI::Validator(
          [most, wrong](const std::string& text) {
            const auto share = share_of(text);
            return share && *share > 0 && *share < most ? std::string() : wrong;
          },
          "SHARE"));
}

void add_interpreter(CLI::App& sub, std::string& framework, std::filesystem::path& python) {
  sub.add_option("--framework", framework,
                 "of a script: framework whose environment runs it; default the one that it imports");
  sub.add_option("--python", python, "of a script: interpreter that runs it, in place of an environment's");
}

double at_least(double time) { return std::getenv("BAKEOFF_BRIEF") != nullptr ? 0.1 : time; }

}  // namespace bakeoff::cli
