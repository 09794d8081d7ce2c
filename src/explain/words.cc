// Terminal, page, JSON and progress must say the same of a finding, so whatever is a judgement is worded here
// once: when a gap may be called real, when "about" stands before a number that has no interval, what is said
// where nothing is certain. The words follow Finding and the intervals alone. A number that no heat bounds is
// never shown with an interval, and a booked cause is never called confirmed.

#include "explain/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "table/text.h"

namespace bakeoff::explain {

using table::significant;

namespace {
constexpr double kHotShare = 0.05;  // least share of the looks at a stack for a line to be shown
constexpr size_t kMostHotLines = 5;
constexpr size_t kMostHotOps = 6;
constexpr size_t kMostDiffering = 24;  // lines of both scripts that are shown
constexpr double kToldAccount = 0.02;  // least share of all looks for an account of a loop to be shown
constexpr int kLongLine = 80;          // columns
constexpr double kSomeLeft = 1.02;     // a larger rest of a gap is said
constexpr double kTold = 0.02;         // least share of the gap for a phase to be named
constexpr double kLater = 1;           // s: a start that becomes longer by more is said

// Accounts of runners/bakeoff_observe/accounts.py.
const std::pair<const char*, const char*> kAccounts[] = {
    {"input", "loaders and pipelines"},
    {"model", "layers, losses, jitted functions"},
    {"weights", "weights made of other weights"},
    {"backward", "backward pass"},
    {"optimizer", "optimizer"},
    {"compile", "tracing and compiling"},
    {"ops", "other ops of the framework"},
    {"read", "reading results"},
    {"fit", "fit, predict and the like"},
    {"callbacks", "callbacks"},
    {"arrays", "NumPy and the like"},
    {"save", "saving and logging"},
    {"own", "its own lines and their calls"},
};

std::string duration(double s) {
  const double size = std::abs(s);
  if (size >= 1) return significant(s, 3) + " s";
  return size >= 1e-3 ? significant(1e3 * s, 3) + " ms" : significant(1e6 * s, 3) + " us";
}

bool is_bounded(const Estimate& e) { return table::bounded_below(e) || table::bounded_above(e); }
}  // namespace

std::string unit(const Explanation& e) {
  return e.subjects[0].whole ? "run" : e.subjects[0].by_step ? "step" : "sample";
}

std::string with_interval(const Estimate& e) {
  const auto three = [](double value) { return significant(value, 3); };
  if (!is_bounded(e)) return "about " + three(e.value);
  return fmt::format("{} {}", three(e.value), table::interval(e, three));
}

std::string gap_words(const Explanation& e) {
  return fmt::format("{} takes {} times as long per {} as {}{}", e.subjects[0].name,
                     is_bounded(*e.gap) ? with_interval(*e.gap) : significant(e.gap->value, 3), unit(e),
                     e.subjects[1].name,
                     is_bounded(*e.gap) ? ""
                     : e.heats == 0     ? ", each observed once"
                                        : fmt::format(", in too few heats ({}) for an interval", e.heats));
}

std::string headline(const Explanation& e) {
  const Subject& s = e.subjects[0];
  if (e.subjects.size() == 1) {
    if (s.whole)
      return fmt::format("{}: a run{} takes {} s from start to end.", s.name,
                         s.stepless() ? "" : fmt::format(" of {} steps", s.profile.steps),
                         significant(s.profile.total_s, 3));
    const double rate = s.samples() / s.step_with_waits_s();
    if (s.number("batch") <= 0)
      return fmt::format("{}: a step takes {} ms.", s.name, significant(1e3 * s.step_with_waits_s(), 3));
    return fmt::format("{}: a step of {:.0f} samples takes {} ms, {:.0f} samples/s.", s.name, s.samples(),
                       significant(1e3 * s.step_with_waits_s(), 3), rate);
  }
  const Subject& other = e.subjects[1];
  if (!e.gap) return fmt::format("{} and {} could not be compared.", s.name, other.name);
  const std::string takes = gap_words(e) + ".";
  if (e.early)
    return fmt::format(
        "{} is slower in its first steps: in the observed runs a {} took {}, and {} in {}. After them no gap is "
        "certain: {}",
        s.name, unit(e), duration(s.mean_s()), duration(other.mean_s()), other.name, takes);
  if (!e.equal) return takes;
  if (e.gap->high < 1 / 1.02)
    return fmt::format("{} is the slower one: name it first. {}", other.name, takes);
  return (e.gap->high < 1.02 ? "There is no gap: " : "No gap is certain: ") + takes;
}

std::string nothing_words(const Explanation& e) {
  const auto open = std::ranges::count(e.causes, Finding::kOpen, &Cause::finding);
  const std::string gap = e.gap_is_certain() ? "The gap is real" : "The gap was seen and is not certain";
  std::string text = e.subjects.size() > 1 ? gap + ", and no cause was found for it."
                                           : "Nothing that was tried makes it faster.";
  if (open == 0) return text;
  text = e.subjects.size() > 1 ? gap + ", and no cause is certain" : "Nothing is certain to make it faster";
  return text + fmt::format("; {} not decided within the time (--all, --seconds).",
                            open == 1 ? "one suspect is" : fmt::format("{} suspects are", open));
}

std::string place(const Explanation& e, const Cause& cause) {
  return place_of(e.subjects[0], cause.suspect.line);
}

std::string remark_words(const Remark& r) {
  const std::string line = r.line > 0 ? fmt::format(":{}", r.line) : "";
  return fmt::format("{}{}: {} ({})", r.script, line, r.text, r.id);
}

std::string phases_words(const Explanation& e) {
  if (e.subjects.size() < 2 || e.equal) return "";
  const auto gaps = gap_by_phase(e.subjects[0], e.subjects[1]);
  double whole = 0;
  std::string parts;
  for (const Phase& gap : gaps) whole += gap.seconds;
  if (whole <= 0) return "";
  for (const Phase& gap : gaps)
    if (std::abs(gap.seconds) > kTold * whole)
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", gap.title, duration(gap.seconds));
  return fmt::format("Of the gap of {} per {} in the observed runs: {}.", duration(whole), unit(e), parts);
}

// A change that compiles makes the start longer; after how many steps that is won back.
std::string pays_words(const Explanation& e, const Cause& c) {
  const Subject& s = e.subjects[0];
  if (c.on_top || s.whole || c.later_s < kLater) return "";
  const double saved = s.step_with_waits_s() * (1 - 1 / c.measured->value);
  return fmt::format("; the start takes {} longer, which pays after {} steps", duration(c.later_s),
                     significant(std::ceil(c.later_s / saved), 2));
}

std::string gain_words(const Explanation& e, const Cause& c) {
  if (c.finding == Finding::kBooked)
    return fmt::format("booked: {} spent at least {:.0f}% of {} time on it{}",
                       e.subjects[0].whole ? "the observed run" : "the steps of the observed run",
                       std::floor(100 * *c.suspect.suspicion.booked), e.subjects[0].whole ? "its" : "their",
                       c.reason.empty() ? "" : "; no run confirms it: " + c.reason);
  std::string text;
  // The change may save more than was booked.
  if (c.suspect.suspicion.most && c.measured->low <= *c.suspect.suspicion.most)
    text = fmt::format("at most {}; ", significant(*c.suspect.suspicion.most, 3));
  if (c.first) text += fmt::format("first heat {}; ", significant(c.first->value, 3));
  text += fmt::format("confirmed {} times as fast", with_interval(*c.measured));
  if (c.suspect.rule->takes_other_lines()) text += ", with the other script's lines";
  text += pays_words(e, c);
  if (c.on_top) text += ", without the greater causes";
  if (c.beyond)
    text += fmt::format("; {} gains less by the same, which makes the gap {} times as small",
                        e.subjects[1].name, with_interval(*c.beyond));
  return text;
}

std::string change_words(const Cause& c) { return filled(c.suspect.rule->change, c.suspect.suspicion.value); }

std::optional<std::pair<std::string, std::string>> diff(const Explanation& e, const Cause& c) {
  const Source& source = e.subjects[0].source;
  if (!source.has(c.suspect.line)) return std::nullopt;
  const std::string line = source.line(c.suspect.line);
  const auto changed = changed_line(c.suspect, line);
  if (!changed) return std::nullopt;
  return std::pair(line, *changed);
}

std::string shell_line(const Explanation& e) {
  std::string variables;
  for (const Cause& c : e.causes)
    if (c.finding == Finding::kConfirmed && std::string(c.suspect.rule->thrown) == kEnvironment)
      for (const auto& [name, value] : c.suspect.suspicion.value.items())
        variables += fmt::format("{}={} ", name, value.get<std::string>());
  return variables.empty() ? ""
                           : fmt::format("{}python {}", variables, join(e.subjects[0].spec.arguments, " "));
}

std::string numbers_words(const Explanation& e, const Cause& c) {
  if (!c.losses && c.finding == Finding::kBooked) return "they may change";
  if (!c.losses) return "they may change; its losses could not be read";
  if (*c.losses == 0) return "they may change; losses of its first steps are the same";
  std::string text =
      fmt::format("they may change; losses of its first steps differ by {:.1g} at most", *c.losses);
  if (e.losses) text += fmt::format(" (of two runs as it is: {:.1g})", *e.losses);
  return text + ", relatively";
}

std::string finding_words(const Cause& c) {
  if (c.finding == Finding::kFailed) return "not tried to the end: " + c.reason;
  if (c.finding == Finding::kCovered)
    return fmt::format("a gain of {}, which a more special cause explains", with_interval(*c.measured));
  if (c.finding == Finding::kShared)
    return "both scripts have it, and the gap is explained without it, so it was not tried";
  const std::string what = c.finding == Finding::kOpen ? "not certain" : "no gain";
  const auto& seen = c.measured ? c.measured : c.first;
  return seen ? fmt::format("{} ({})", what, with_interval(*seen)) : what;
}

std::vector<AccountTimes> account_times(const std::vector<Subject>& subjects) {
  std::vector<AccountTimes> all;
  for (const auto& [key, title] : kAccounts) {
    AccountTimes row{title};
    for (const Subject& s : subjects) {
      const auto found = s.seen.accounts.find(key);
      row.seconds.push_back(found == s.seen.accounts.end() ? 0 : found->second * s.looked_at_s());
    }
    if (std::ranges::max(row.seconds) > 0) all.push_back(std::move(row));
  }
  std::ranges::sort(all, std::greater<>{},
                    [](const AccountTimes& row) { return std::ranges::max(row.seconds); });
  return all;
}

std::vector<std::vector<std::string>> accounts(const Explanation& e) {
  std::vector<AccountTimes> rows = account_times(e.subjects);
  if (rows.empty()) return {};
  AccountTimes rest{"not looked at, as its start"}, all{"in all"};
  for (const Subject& s : e.subjects) {
    rest.seconds.push_back(std::max(0.0, s.mean_s() - s.looked_at_s()));
    all.seconds.push_back(s.mean_s());
  }
  if (e.subjects[0].whole) rows.push_back(std::move(rest));
  rows.push_back(std::move(all));
  const double whole = std::ranges::max(rows.back().seconds);
  const auto [scale, unit_word] = whole >= 1      ? std::pair(1.0, "s")
                                  : whole >= 1e-3 ? std::pair(1e3, "ms")
                                                  : std::pair(1e6, "us");
  std::vector<std::vector<std::string>> table = {
      {fmt::format("what a {} does{}, {}", unit(e), e.subjects[0].whole ? "" : " in the mean", unit_word)}};
  for (const Subject& s : e.subjects) table[0].push_back(s.name);
  for (const AccountTimes& row : rows) {
    table.push_back({row.title});
    for (const double value : row.seconds) table.back().push_back(fmt::format("{:.2f}", scale * value));
  }
  return table;
}

std::string applied_words(const Explanation& e) {
  if (!e.applied_failure.empty())
    return fmt::format("A copy of {} with the lines marked + does not run, so more has to change: {}",
                       e.subjects[0].name, e.applied_failure);
  if (!e.applied) return "";
  return fmt::format("A copy of {} with the lines marked + in place of those marked - is {} times as fast.",
                     e.subjects[0].name, with_interval(*e.applied));
}

std::string residual_words(const Explanation& e) {
  if (!e.residual || e.residual->value <= kSomeLeft) return "";
  return fmt::format("{}: {} is left of the gap.", e.has_booked() ? "Not confirmed" : "Not explained",
                     with_interval(*e.residual));
}

std::string total_words(const Subject& s) {
  return fmt::format("{:.2f}", s.profile.total_s) +
         (s.stepless() ? "" : fmt::format(" ({} steps)", s.profile.steps));
}

std::vector<std::pair<std::string, std::string>> hot_lines(const Subject& s) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const HotLine& one : s.seen.lines) {
    if (one.share < kHotShare || all.size() == kMostHotLines) break;
    const std::string line = trimmed_line(s, one.line);
    if (!s.whole && (line.starts_with("import ") || line.starts_with("from "))) continue;  // no step
    const std::string text = s.source.has(one.line)
                                 ? place_of(s, one.line) + ": " + table::fit(line, kLongLine)
                                 : "a file that cannot be read, in " + one.function;
    all.emplace_back(fmt::format("{:.0f}%", 100 * one.share), text);
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> loop_books(const Subject& s) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const LoopBook& loop : s.seen.books) {
    std::vector<std::pair<double, std::string>> parts;
    for (const auto& [key, title] : kAccounts)
      if (const auto found = loop.accounts.find(key);
          found != loop.accounts.end() && found->second >= kToldAccount)
        parts.emplace_back(-found->second, fmt::format("{} {:.0f}%", title, 100 * found->second));
    std::ranges::sort(parts);
    std::vector<std::string> texts;
    for (const auto& [part, text] : parts) texts.push_back(text);
    all.emplace_back(fmt::format("{:.0f}%", 100 * loop.share()),
                     fmt::format("{}: {} {}", place_of(s, loop.line),
                                 table::fit(trimmed_line(s, loop.line), kLongLine), join(texts, ", ")));
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> differing_lines(const Explanation& e) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CodeTime& code : e.subjects[0].code) {
    const Difference& one = code.text;
    const auto [file, number] = e.subjects[0].source.place(one.line);
    const std::string where = fmt::format("{}{}{}", file, file.empty() ? "" : ":", number);
    for (size_t i = 0; i < one.mine.size(); ++i)
      all.emplace_back((i == 0 ? where + " " : "") + "-", one.mine[i]);
    for (size_t i = 0; i < one.other.size(); ++i)
      all.emplace_back((i == 0 && one.mine.empty() ? where + " " : "") + "+", one.other[i]);
    if (all.size() > kMostDiffering) return {};
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> hot_ops(const Subject& s) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const OpTime& op : op_times(s)) {
    const double part = op.seconds / s.mean_s();
    if (op.name.empty() || part < kHotShare || all.size() == kMostHotOps) continue;
    all.emplace_back(fmt::format("{:.0f}%", 100 * part),
                     fmt::format("{}, {} a step", op.name, table::counted(std::llround(op.calls), "call")));
  }
  return all;
}

std::optional<double> hook_share(const Subject& s) {
  if (!s.seen.hook_s || s.profile.step_s <= 0) return std::nullopt;
  return *s.seen.hook_s / s.step_with_waits_s();
}

std::string hook_words(const Explanation& e) {
  std::string text;
  for (const Subject& s : e.subjects)
    if (const auto share = hook_share(s))
      text += fmt::format("{}{}% of a step of {}", text.empty() ? " Hooks took at most " : ", ",
                          significant(100 * *share, 1), s.name);
  return text.empty() ? text : text + ".";
}

}  // namespace bakeoff::explain
