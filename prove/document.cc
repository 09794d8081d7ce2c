// The tables and the plot of docs/measured/verdicts.md.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "prove/report.h"

namespace bakeoff::prove {
namespace {

namespace fs = std::filesystem;

std::string percent(double part, double whole) { return fmt::format("{:.1f}", 100 * part / whole); }

std::string claims_table(const Report& report) {
  std::string text = "| # | claim | bar | seen | |\n|---|---|---|---|---|\n";
  for (const Claim& claim : report.claims()) {
    const char* word = claim.open      ? "**open**"
                       : !claim.barred ? "no bar"
                       : claim.held    ? "held"
                                       : "**missed**";
    text += fmt::format("| {} | {} | {} | {} | {} |\n", claim.id, claim.what, claim.bar, claim.seen, word);
  }
  return text;
}

// Rows: rules; columns: noises.
std::string contest_table(const Report& report, int Score::*hits) {
  std::string text = "| rule | processes |";
  std::string line = "|---|---|";
  for (const Contest& contest : report.contests) {
    text += " " + contest.noise + " |";
    line += "---|";
  }
  text += "\n" + line + "\n";
  for (size_t r = 0; r < rules().size(); ++r) {
    text += fmt::format("| {} | {} |", rules()[r].name, rules()[r].processes);
    for (const Contest& contest : report.contests) {
      text += " " + percent(contest.scores[r].*hits, contest.traces) + " |";
    }
    text += "\n";
  }
  return text;
}

// Mean over the noises.
double average(const Report& report, size_t rule, int Score::*hits) {
  double sum = 0;
  for (const Contest& contest : report.contests) {
    sum += static_cast<double>(contest.scores[rule].*hits) / contest.traces;
  }
  return sum / static_cast<double>(report.contests.size());
}

std::string escaped(std::string text) {
  for (size_t at = 0; (at = text.find('>', at)) != std::string::npos;) text.replace(at, 1, "&gt;");
  return text;
}

struct Plot {
  static constexpr double kLeft = 60, kTop = 30, kWidth = 520, kHeight = 380;
  static double x(double share) { return kLeft + kWidth * std::sqrt(share); }  // the small ones matter
  static double y(double share) { return kTop + kHeight * (1 - share); }
};

std::string axes() {
  std::string text;
  for (const double share : {0.0, 0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 1.0}) {
    text += fmt::format(
        "<line x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}' stroke='#ddd'/>"
        "<text x='{0:.1f}' y='{3}' text-anchor='middle'>{4:g}%</text>\n",
        Plot::x(share), Plot::y(1), Plot::y(0), Plot::y(0) + 16, 100 * share);
  }
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    text += fmt::format(
        "<line x1='{1}' x2='{2}' y1='{0}' y2='{0}' stroke='#ddd'/>"
        "<text x='{3}' y='{4}' text-anchor='end'>{5:g}%</text>\n",
        Plot::y(share), Plot::x(0), Plot::x(1), Plot::x(0) - 6, Plot::y(share) + 4, 100 * share);
  }
  return text;
}

struct Box {
  double left = 0, right = 0, top = 0, bottom = 0;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

// A label beside its point, on the side and at the height where it covers least of what is `taken`.
struct Label {
  Box box;
  bool on_the_left = false;
};
Label place_label(double x, double y, size_t letters, const std::vector<Box>& taken) {
  constexpr double kGap = 8, kLetter = 5.8, kHeight = 11;
  const double width = kLetter * static_cast<double>(letters);
  Label best;
  long least = -1;
  for (const double lift : {0.0, 12.0, -12.0, 24.0, -24.0}) {
    for (const bool left : {false, true}) {
      const double from = left ? x - kGap - width : x + kGap, top = y - kHeight / 2 + lift;
      const Label label = {{from, from + width, top, top + kHeight}, left};
      const long covered =
          std::count_if(taken.begin(), taken.end(), [&](const Box& box) { return box.meets(label.box); });
      if (least >= 0 && covered >= least) continue;
      least = covered;
      best = label;
    }
  }
  return best;
}

std::string points(const Report& report) {
  std::string text;
  std::vector<Box> taken = {{-1e9, Plot::x(0), -1e9, 1e9}};  // beyond the axis
  std::vector<std::pair<double, double>> at;
  for (size_t r = 0; r < rules().size(); ++r) {
    const double x = Plot::x(average(report, r, &Score::false_verdicts));
    const double y = Plot::y(average(report, r, &Score::found_2));
    at.emplace_back(x, y);
    taken.push_back({x - 5, x + 5, y - 5, y + 5});
  }
  for (size_t r = 0; r < rules().size(); ++r) {
    const auto& [x, y] = at[r];
    const Label label = place_label(x, y, rules()[r].name.size(), taken);
    taken.push_back(label.box);
    const char* colour = r < 2 ? "#c0392b" : "#2c3e50";
    text += fmt::format(
        "<circle cx='{:.1f}' cy='{:.1f}' r='4' fill='{}'/>"
        "<text x='{:.1f}' y='{:.1f}' text-anchor='{}' fill='{}'>{}</text>\n",
        x, y, colour, label.on_the_left ? label.box.right : label.box.left, label.box.bottom - 1.5,
        label.on_the_left ? "end" : "start", colour, escaped(rules()[r].name));
  }
  return text;
}

std::string plot(const Report& report) {
  return "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 780 460' font-family='sans-serif' "
         "font-size='11'>\n"
         "<rect width='780' height='460' fill='white'/>\n" +
         axes() +
         fmt::format(
             "<text x='{}' y='450' text-anchor='middle'>identical contenders called different (mean over "
             "all noises; axis by square root)</text>\n"
             "<text x='{}' y='18'>a slowdown of 2% found</text>\n",
             Plot::kLeft + Plot::kWidth / 2, Plot::kLeft) +
         points(report) + "</svg>\n";
}

// Error when the marks are missing.
Status replace_between(std::string& text, const std::string& mark, const std::string& with) {
  const std::string begin = "<!-- " + mark + " -->\n", end = "<!-- end " + mark + " -->";
  const size_t from = text.find(begin), to = text.find(end);
  if (from == std::string::npos || to == std::string::npos || to < from) {
    return Error{fmt::format("no lines \"<!-- {0} -->\" and \"<!-- end {0} -->\"", mark)};
  }
  text.replace(from + begin.size(), to - from - begin.size(), with);
  return Done{};
}

Status write(const fs::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) return Error{.message = "cannot be written", .where = file.string()};
  return Done{};
}

}  // namespace

Status write_document(const Report& report, const Options& options, double seconds) {
  if (options.document.empty()) return Done{};
  std::ifstream in(options.document);
  if (!in) return Error{.message = "cannot be read", .where = options.document};
  std::stringstream whole;
  whole << in.rdbuf();
  std::string text = whole.str();
  CHECK_OK(replace_between(
      text, "claims",
      fmt::format("Tier {}, seed {}, {:.0f} minutes{}.\n\n", options.full ? "full" : "quick", options.seed,
                  std::ceil(seconds / 60), options.recorded.empty() ? "" : ", with recorded blocks") +
          claims_table(report)));
  if (!report.contests.empty()) {
    CHECK_OK(replace_between(text, "false verdicts", contest_table(report, &Score::false_verdicts)));
    CHECK_OK(replace_between(text, "found 2%", contest_table(report, &Score::found_2)));
    CHECK_OK(replace_between(text, "found 5%", contest_table(report, &Score::found_5)));
    CHECK_OK(write(fs::path(options.document).parent_path() / "images" / "verdicts.svg", plot(report)));
  }
  return write(options.document, text);
}

}  // namespace bakeoff::prove
