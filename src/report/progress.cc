#include "report/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "race/outlook.h"
#include "report/layout.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr int kBarWidth = 12;

struct Part {
  std::string text;
  int priority = 0;  // the highest goes first
  Ink ink = Ink::kPlain;
};

std::string clock(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, std::min(seconds, 1e9)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60);
}

// Share done in 0..1: of the parts where they are counted, else of the time; nothing where neither is known.
std::optional<double> share(const ProgressState& state) {
  if (state.total > 0) return std::clamp(static_cast<double>(state.done) / state.total, 0.0, 1.0);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const double left_s = std::max(0.0, std::min(state.left_s.value_or(kNever), state.rest_s.value_or(kNever)));
  if (left_s == kNever || state.elapsed_s + left_s <= 0) return std::nullopt;
  return state.elapsed_s / (state.elapsed_s + left_s);
}

std::string bar(double done) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(done * kBarWidth * 8);
  std::string out;
  for (int i = 0; i < eighths / 8; ++i) out += "█";
  out += kEighths[eighths % 8];
  return "▕" + pad_right(out, kBarWidth) + "▏";
}

// What still runs, and for how long.
std::string past_the_budget(const ProgressState& s) {
  if (s.heat == 0) return "past the budget";
  if (!s.heat_left_s || *s.heat_left_s < 5) return "past the budget: this heat is finished";
  return fmt::format("past the budget: this heat ends in about {}", clock(*s.heat_left_s));
}

// What is left: as expected, where that is known to end before the budget, and of the budget.
std::string ends_in(const ProgressState& s) {
  const std::string budget = s.left_s ? fmt::format("{} of the budget left", clock(*s.left_s)) : "";
  constexpr double kAboutToEnd = 5;
  if (!s.rest_s || *s.rest_s < kAboutToEnd || (s.left_s && *s.left_s <= *s.rest_s)) return budget;
  return fmt::format("about {} to go{}{}", clock(*s.rest_s), budget.empty() ? "" : ", ", budget);
}

std::vector<Part> parts(const ProgressState& s) {
  std::vector<Part> all;
  std::string stage = s.stage == "parity" ? "proofs" : one_line(s.stage);
  if (s.heat > 0) stage += fmt::format(" heat {}", s.heat);
  all.push_back({stage, 0, Ink::kBold});
  if (s.total > 0) all.push_back({fmt::format("{}/{}", std::min(s.done, s.total), s.total), 2});
  std::string time = clock(s.elapsed_s);
  if (s.left_s && *s.left_s < 1)
    time += ", " + past_the_budget(s);
  else if (const std::string to_go = ends_in(s); !to_go.empty())
    time += ", " + to_go;
  all.push_back({time, 1});
  if (!s.leader.empty()) {
    all.push_back(
        {fmt::format("leader {} {} ms", one_line(s.leader), milliseconds(s.leader_ms)), 3, Ink::kGood});
  }
  if (s.contenders > 0 && s.heat > 0) {
    std::string alive = fmt::format("{} of {} in the race", s.survivors, s.contenders);
    if (s.unproven > 0) alive += fmt::format(", {} not proven yet", s.unproven);
    if (s.failed > 0) alive += fmt::format(", {} failed", s.failed);
    all.push_back({alive, 4});
  }
  if (!s.detail.empty()) all.push_back({one_line(s.detail), 5, Ink::kDim});
  return all;
}

int joined_width(const std::vector<Part>& all) {
  int width = 0;
  for (const Part& part : all) width += display_width(part.text) + 3;
  return width - 3;
}

std::string joined(const std::vector<Part>& all, bool colour) {
  std::string out;
  for (const Part& part : all) out += (out.empty() ? "" : " · ") + paint(part.text, part.ink, colour);
  return out;
}

// Drops the least important parts; the last of them is shortened instead where a useful rest of it fits.
void shrink(std::vector<Part>& all, int width) {
  while (all.size() > 1 && joined_width(all) > width) {
    const auto worst = std::max_element(all.begin(), all.end(),
                                        [](const Part& a, const Part& b) { return a.priority < b.priority; });
    const int rest = display_width(worst->text) - (joined_width(all) - width);
    if (rest >= 12) {
      worst->text = fit(worst->text, rest);
    } else {
      all.erase(worst);
    }
  }
  if (!all.empty() && joined_width(all) > width) all.front().text = fit(all.front().text, width);
}

}  // namespace

std::string progress_line(const ProgressState& state, int width, bool colour, int frame) {
  static constexpr const char* kSpinner[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
  const std::optional<double> done = share(state);
  const bool has_bar = done && width >= 60;
  std::string lead = std::string(kSpinner[static_cast<unsigned>(frame) % 10]) + ' ';
  if (has_bar) lead += paint(bar(*done), Ink::kDim, colour) + ' ';
  const int lead_width = 2 + (has_bar ? kBarWidth + 3 : 0);
  std::vector<Part> all = parts(state);
  shrink(all, std::max(width - lead_width, 1));
  return width <= lead_width ? fit(state.stage, width) : lead + joined(all, colour);
}

namespace {

std::string to_go(const Standing& standing, std::optional<double> left_s) {
  const double s = *standing.to_go_s;
  const std::string amount = s < 90     ? fmt::format("{:.0f} s", std::ceil(s / 10) * 10)
                             : s < 7200 ? fmt::format("{:.0f} min", s / 60)
                                        : fmt::format("{:.0f} h", s / 3600);
  const std::string text =
      fmt::format("{} {} to go", standing.to_go_at_least ? "more than" : "about", amount);
  if (!left_s || *left_s >= s) return text;
  return text + (*left_s < 5 ? ", the budget ends" : fmt::format(", the budget has {}", clock(*left_s)));
}

}  // namespace

std::string standing_line(const ProgressState& s, const Standing& standing, int width, bool colour) {
  std::vector<Part> all = {
      {fmt::format("heat {}", s.heat), 0, Ink::kBold},
      {fmt::format("{} {} ms", one_line(s.leader), milliseconds(s.leader_ms)), 1, Ink::kGood}};
  if (standing.next.empty() || standing.decided) {
    all.push_back({standing.decided ? "decided" : "others have not run yet", 2});
  } else {
    const Estimate of{standing.ratio, standing.low, standing.high};
    all.push_back({"then " + one_line(standing.next), 5});
    const std::string bounds = interval(of, ratio);
    all.push_back({ratio(of.value) + (bounds == kNone ? "" : ' ' + bounds), 2});
    if (standing.slower) all.push_back({sure_in_words(standing.slower) + " sure", 3});
    if (standing.to_go_s) all.push_back({to_go(standing, s.left_s), 4});
    if (!standing.slower)
      all.push_back({standing.to_go_s ? "how sure: not known yet" : "how sure, how long: not known yet", 3});
  }
  if (standing.refused)
    all.push_back({fmt::format("no verdict: host busy in {} of {} rounds", standing.busy, standing.judged), 1,
                   Ink::kWarn});
  else if (standing.busy > 0)
    all.push_back(
        {fmt::format("host busy in {} of {} rounds", standing.busy, standing.judged), 5, Ink::kDim});
  if (s.contenders > 0)
    all.push_back({fmt::format("{} of {} in the race", s.survivors, s.contenders), 6, Ink::kDim});
  if (width > 0) shrink(all, width);
  return joined(all, colour);
}

std::string progress_text(const ProgressState& state) { return joined(parts(state), false); }

bool worth_a_line(const ProgressState& last, const ProgressState& now) {
  return last.stage != now.stage || last.heat != now.heat || last.leader != now.leader ||
         last.survivors != now.survivors || last.failed != now.failed || last.done != now.done ||
         now.elapsed_s - last.elapsed_s >= 30;
}

}  // namespace bakeoff::report
