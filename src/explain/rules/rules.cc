// How rules become suspects, and what rules of several frameworks share.
//
// `booked` is a share of the time that is compared, whatever that is, so each helper converts from its own
// base: shares of steps (of_steps), looks at the stack (of_looks), seconds of the watched steps
// (part_of_watched). Shares from looks are a sample of the stack each 5 ms; at_least() gives the lower end of
// their 99% interval, so that a cause is not named by chance.
//
// Lines are changed and found by POSIX expressions and not by std::regex, which takes the compiler two
// seconds and may overflow the stack on a long line; of a line only the first 1,000 characters are looked at.

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "base/json_text.h"
#include "base/texts.h"
#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

constexpr double kMostlyCompiles = 0.5;  // of the watched steps' time
constexpr double kPartOfRun = 0.2;
constexpr size_t kMatched = 1000;  // characters of a line that a pattern is matched with

int64_t line_of(const Source& source, const std::string& place) {
  return place.empty() ? 0 : first_line(source, Pattern(place.c_str()));
}

// Of a whole run.
double part_of_steps(const Profile& profile) {
  double steps = 0;
  for (const Phase& phase : profile.phases)
    if (phase.key == "steps" || phase.key == "waits" || phase.key == "epochs" || phase.key == "run")
      steps += phase.seconds;
  return profile.total_s > 0 ? steps / profile.total_s : 0;
}

}  // namespace

Pattern::Pattern(const char* expression) {
  if (regcomp(&compiled_, expression, REG_EXTENDED) != 0)
    throw std::invalid_argument(fmt::format("no regular expression: {}", expression));
}

bool Pattern::in(const std::string& text) const {
  return regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
}

std::optional<std::string> Pattern::replaced(const std::string& text, const std::string& by) const {
  std::array<regmatch_t, 10> groups;
  if (regexec(&compiled_, text.c_str(), groups.size(), groups.data(), 0) != 0) return std::nullopt;
  const auto part = [&](int begin, int end) { return begin < 0 ? "" : text.substr(begin, end - begin); };
  std::string made = part(0, groups[0].rm_so);
  for (size_t at = 0; at < by.size(); ++at) {
    if (by[at] == '$' && at + 1 < by.size() && std::isdigit(static_cast<unsigned char>(by[at + 1]))) {
      const regmatch_t& group = groups[by[++at] - '0'];
      made += part(group.rm_so, group.rm_eo);
    } else {
      made += by[at];
    }
  }
  return made + text.substr(groups[0].rm_eo);
}

int64_t first_line(const Source& source, const Pattern& pattern) {
  for (const Source::File& file : source.files()) {
    for (int64_t number = file.first; const std::string& line : file.lines) {
      ++number;
      const std::string_view begin = trimmed(line);
      const bool code = !begin.starts_with("#") && !line.starts_with("import ") && !line.starts_with("from ");
      if (code && pattern.in(line.substr(0, kMatched))) return number;
    }
  }
  return 0;
}

std::string share(double value) { return fmt::format("{:.0f}%", 100 * value); }

std::string input_words(const Subject& s) {
  const double part = s.input_share();
  if (part <= s.profile.wait_share) return "waiting for data takes " + share(part) + " of its steps";
  return fmt::format("its pipeline alone needs {:.2g} ms for a batch, {} of a step", 1e3 * s.seen.input_s,
                     share(part));
}

double without(double part) { return 1 / std::max(0.01, 1 - part); }

Json fact(const Subject& s, const char* name) {
  const auto found = s.facts().find(name);
  return found != s.facts().end() && found->is_structured() ? *found : Json::array();
}

Json first_of(const Json& list) {
  return list.is_array() && !list.empty() && list.front().is_object() ? list.front() : Json::object();
}

Json loader(const Subject& s, const char* name) { return first_of(fact(s, "loaders")).value(name, Json()); }

Json fact_of_other(const Subject& s, const char* name) {
  const auto found = s.other.find(name);
  return found != s.other.end() && found->is_structured() ? *found : Json::array();
}

double number_of_other(const Subject& s, const char* name) {
  const auto found = s.other.find(name);
  return found != s.other.end() && found->is_number() ? found->get<double>() : 0;
}

Maybe recompiled(const Subject& s) {
  const int64_t steps = s.watched_steps > 0 ? s.watched_steps : s.profile.steps;
  const double seconds = 1e-9 * static_cast<double>(s.seen.compile_ns);
  const bool often = s.seen.compiles >= 3 && s.seen.compiles * 20 >= steps;
  const bool long_ones = s.seen.compiles > 0 && s.watched_s > 0 && seconds > kMostlyCompiles * s.watched_s;
  if (s.stepless() || (!often && !long_ones)) return {};
  Suspicion found{
      .evidence = fmt::format("{} compilations in {} steps after the first ones", s.seen.compiles, steps),
      .most = without(seconds / s.profile.total_s)};
  const auto booked = part_of_watched(s, seconds);
  if (!booked) return found;
  found.evidence += fmt::format(": {:.2g} of {:.2g} s", seconds, s.watched_s);
  found.most = without(*booked);
  // What compiles in its first steps alone is warming up.
  const auto late =
      std::ranges::count_if(s.seen.compile_steps, [&](int64_t step) { return 2 * step >= steps; });
  if (3 * late >= static_cast<int64_t>(s.seen.compile_steps.size())) found.booked = booked;
  return found;
}

// JAX gives a list of reasons by function, TensorFlow an object that holds one.
std::string reasons_of(const Subject& s, const std::vector<std::string>& kinds) {
  std::string all;
  const Json retraces = fact(s, "retraces");
  for (const auto& [function, of] : retraces.items()) {
    std::string names;
    const Json reasons = of.is_object() ? of.value("reasons", Json::array()) : of;
    for (const Json& reason : reasons) {
      const std::string text = reason.is_string() ? reason.get<std::string>() : "";
      for (const std::string& kind : kinds)
        if (text.ends_with(": " + kind))
          names += (names.empty() ? "" : ", ") + text.substr(0, text.size() - kind.size() - 2);
    }
    if (!names.empty()) all += fmt::format("{}{} of {}", all.empty() ? "" : "; ", names, function);
  }
  return all;
}

Maybe compiles_longer(const Subject& s) {
  const double more_s = s.start_compile_s - s.other_compile_s;
  if (!s.whole || s.other_s <= 0 || more_s < kPartOfGap * (s.mean_s() - s.other_s)) return {};
  if (more_s < kPartOfRun * s.mean_s()) return {};
  return Suspicion{.evidence = fmt::format(
                       "until its first steps are made it traces and compiles for {:.2g} of {:.2g} s, the "
                       "other script for {:.2g} s",
                       s.start_compile_s, s.mean_s(), s.other_compile_s),
                   .most = without(more_s / s.mean_s()),
                   .booked = more_s / s.mean_s()};
}

double of_steps(double part, const Subject& s) { return s.whole ? part * part_of_steps(s.profile) : part; }

double of_looks(double part, const Subject& s) { return part * s.looked_at_s() / s.mean_s(); }

double account_s(const Subject& s, const char* account) {
  const auto found = s.seen.accounts.find(account);
  return found == s.seen.accounts.end() ? 0 : found->second * s.looked_at_s();
}

double more_of_account(const Subject& s, const char* account) {
  const auto other = s.other_accounts.find(account);
  return account_s(s, account) - (other == s.other_accounts.end() ? 0 : other->second);
}

double at_least(double part, const Subject& s) {
  const double looks = std::max(1.0, (s.watched_s + (s.whole ? s.start_s : 0)) / 0.005);
  return std::max(0.0, part - 2.33 * std::sqrt(part * (1 - part) / looks));
}

std::optional<double> part_of_watched(const Subject& s, double seconds) {
  if (s.watched_s <= 0 || s.watched_steps < 1) return std::nullopt;
  if (s.whole) return std::min(1.0, seconds / s.profile.total_s);
  return std::min(1.0, seconds / s.watched_s);
}

Maybe defined_anew(const Subject& s) {
  auto suspicion = recompiled(s);
  if (!suspicion || dump(fact(s, "retraces")).find("a new function") == std::string::npos) return {};
  suspicion->evidence += ", of functions that are defined again each time";
  return suspicion;
}

Maybe printed(const Subject& s) {
  const std::string verbose = s.text("verbose");  // of `fit`, which writes its bar past print
  const bool bar = s.seen.kind == "fit" && (verbose == "1" || verbose == "auto");
  if (s.output_bytes < kPrintedBytes || s.profile.step_s > 0.1 || bar) return {};
  return Suspicion{fmt::format("it prints {:.0f} bytes a step", s.output_bytes)};
}

Maybe called(const Subject& s, const std::vector<std::string>& beginnings) {
  const Json calls = fact(s, "calls_per_step"), lines = fact(s, "lines");
  double rate = 0, most = 0;
  std::string name;
  for (const auto& [word, each] : calls.items()) {
    // "model.predict" is not "model.predict_on_batch".
    const auto begins = [&](const std::string& b) {
      return word.starts_with(b) && (word.size() == b.size() || word[b.size()] != '_');
    };
    if (!each.is_number() || std::ranges::none_of(beginnings, begins)) continue;
    rate += each.get<double>();
    if (each.get<double>() > most) most = each, name = word;
  }
  if (rate < kOnce) return {};
  const Json each_s = fact(s, "call_seconds_per_step");
  double seconds = 0;
  for (const auto& [word, took] : each_s.items())
    if (std::ranges::any_of(beginnings, [&](const std::string& b) { return word.starts_with(b); }) &&
        took.is_number())
      seconds += took.get<double>();
  if (s.stepless() && seconds < kPartOfRun * s.mean_s()) return {};
  return Suspicion{.evidence = fmt::format("{:.{}f} calls of {} {}", most, s.stepless() ? 0 : 1, name,
                                           s.stepless() ? "in its run" : "a step"),
                   .line = lines.is_object() ? lines.value(name, int64_t{0}) : 0,
                   .booked = s.stepless()
                                 ? seconds / s.mean_s()
                                 : part_of_watched(s, seconds * static_cast<double>(s.watched_steps))};
}

Maybe uncompiled(const Subject& s) {
  const Json loop = fact(s, "eager_loop");
  if (!loop.is_object()) return {};
  const std::string name = loop.value("function", "");
  std::string evidence = name.empty() ? "its loop computes op by op, outside of any compiled function"
                                      : "'" + name + "' computes op by op in Python";
  return Suspicion{.evidence = std::move(evidence), .line = loop.value("line", int64_t{0})};
}

Maybe other_threads(const Subject& s, int processors) {
  const double threads = s.number("threads", processors), other = number_of_other(s, "threads");
  if (threads < 1) return {};
  if (other >= 1 && other != threads)
    return Suspicion{fmt::format("{:.0f} threads, and {:.0f} in the other script", threads, other),
                     {},
                     static_cast<int64_t>(other)};
  if (threads == processors) return {};
  return Suspicion{fmt::format("{:.0f} threads on {} processors", threads, processors), {}, processors};
}

std::string filled(std::string text, const Json& value) {
  if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, dump(value));
  return text;
}

std::optional<std::string> changed_line(const Suspect& suspect, const std::string& line) {
  const Rule& rule = *suspect.rule;
  if (rule.from == nullptr) return std::nullopt;
  const auto changed = Pattern(rule.from).replaced(line, filled(rule.to, suspect.suspicion.value));
  return changed && trimmed(*changed).empty() ? "" : changed;
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> joined;
    for (auto part : {common_rules, line_rules, op_rules, torch_rules, keras_rules, tensorflow_rules,
                      jax_rules, otherwise_rules})
      std::ranges::move(part(), std::back_inserter(joined));
    return joined;
  }();
  return all;
}

std::vector<Suspect> suspects(const Subject& subject, int processors, bool tuning) {
  std::vector<Suspect> found;
  for (const Rule& rule : rules()) {
    if (!subject.uses(rule.framework)) continue;
    std::vector<Suspicion> all;
    if (auto suspicion = rule.suspect(subject, processors)) {
      all = std::move(suspicion->also);
      all.insert(all.begin(), std::move(*suspicion));
    } else if (tuning && rule.tries != nullptr)
      for (nlohmann::json& value : rule.tries(subject, processors))
        all.push_back({.evidence = "nothing; it was tried", .value = std::move(value)});
    for (Suspicion& one : all) {
      if (subject.whole && one.most) one.most = without(part_of_steps(subject.profile) * (1 - 1 / *one.most));
      const int64_t line = one.line > 0 ? one.line : line_of(subject.source, rule.place);
      found.push_back({&rule, std::move(one), line});
    }
  }
  std::ranges::stable_sort(found, std::greater<>{},
                           [](const Suspect& s) { return s.suspicion.most.value_or(1.0); });
  return found;
}

}  // namespace bakeoff::explain
