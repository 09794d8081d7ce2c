#include "evidence/sign_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bakeoff {
namespace {

constexpr size_t kPairsNamed = 3;  // pairs that a note names

// "a against b (figures), c against d (figures), and 4 more pairs".
class Pairs {
 public:
  void add(const std::string& a, const std::string& b, const std::string& figures) {
    ++count_;
    if (count_ > kPairsNamed) return;
    text_ += fmt::format("{}{} against {} ({})", text_.empty() ? "" : ", ", a, b, figures);
  }
  bool empty() const { return count_ == 0; }
  std::string text() const {
    if (count_ <= kPairsNamed) return text_;
    return fmt::format("{}, and {} more pair{}", text_, count_ - kPairsNamed,
                       count_ == kPairsNamed + 1 ? "" : "s");
  }

 private:
  size_t count_ = 0;
  std::string text_;
};

std::string gap_percent(double d) { return fmt::format("{:.1f}%", 100 * std::expm1(std::abs(d))); }

// Empty: no pair depends on the node.
std::string node_note(const stats::PairTable& table, const std::vector<std::string>& contenders) {
  Pairs nodes;
  for (size_t a = 0; a < table.contenders(); ++a)
    for (size_t b = a + 1; b < table.contenders(); ++b)
      if (const auto spread = table.signs(a, b).nodes)
        nodes.add(contenders[a], contenders[b],
                  fmt::format("by {} (sd) between {} nodes, {:.0f}% of the variance of a heat, {} heats",
                              gap_percent(spread->sd), spread->nodes, 100 * spread->share, spread->heats));
  if (nodes.empty()) return "";
  return fmt::format(
      "The difference between two contenders depends on the node, which their intervals allow for: {}.",
      nodes.text());
}

}  // namespace

std::vector<std::string> sign_notes(const stats::PairTable& table,
                                    const std::vector<std::string>& contenders) {
  Pairs modes, correlated, steal, stalls;
  for (size_t a = 0; a < table.contenders(); ++a) {
    for (size_t b = a + 1; b < table.contenders(); ++b) {
      const stats::Signs signs = table.signs(a, b);
      if (const stats::StallGap gap = table.stalls(a, b); gap.decides)
        stalls.add(contenders[gap.gap > 0 ? a : b], contenders[gap.gap > 0 ? b : a],
                   fmt::format("by {:.1f} ± {:.1f}% more, over {} heats", 100 * std::abs(gap.gap),
                               100 * gap.half_width, gap.heats));
      if (signs.modes)
        modes.add(contenders[a], contenders[b],
                  fmt::format("{} groups, {} apart, within which {:.1f}% of the variance is left, {} heats",
                              signs.modes->groups, gap_percent(signs.modes->apart), 100 * signs.modes->left,
                              signs.modes->heats));
      if (signs.correlation)
        correlated.add(contenders[a], contenders[b],
                       fmt::format("correlation {:.2f} over {} heats", signs.correlation->lag1,
                                   signs.correlation->heats));
      if (signs.steal)
        steal.add(
            contenders[a], contenders[b],
            fmt::format("{:+.1f}% for each percent stolen, correlation {:.2f} over {} heats with {:.1f}% to "
                        "{:.1f}% stolen",
                        signs.steal->slope, signs.steal->correlation, signs.steal->heats,
                        100 * signs.steal->low, 100 * signs.steal->high));
    }
  }
  std::vector<std::string> notes;
  if (const std::string nodes = node_note(table, contenders); !nodes.empty()) notes.push_back(nodes);
  if (!modes.empty())
    notes.push_back(
        fmt::format("The heats' differences between two contenders fall into groups, as if processes "
                    "ran in one of a few modes: {}.",
                    modes.text()));
  if (!correlated.empty())
    notes.push_back(
        fmt::format("The difference between two contenders resembles that of the heat before, so "
                    "these heats carry less information than their number suggests: {}.",
                    correlated.text()));
  if (!steal.empty())
    notes.push_back(
        fmt::format("The difference between two contenders moves with the processor time that the "
                    "hypervisor takes, so it holds in the conditions of this race and may be different "
                    "on a quieter machine: {}.",
                    steal.text()));
  if (!notes.empty())
    notes.push_back(
        "For these pairs a verdict also needs the agreement of a test that assumes only symmetric "
        "differences (docs/verdicts.md); under such noise verdicts can still be wrong "
        "more often than the stated error rate.");
  if (!stalls.empty())
    notes.push_back(fmt::format(
        "Some contenders pause now and then, so that a few of their bursts take much longer. Verdicts "
        "normally leave the slowest quarter of the bursts out; where the pauses of two contenders "
        "differ, all bursts count. That is so for {} (how much more pauses lengthen the first one's "
        "steps).",
        stalls.text()));
  return notes;
}

}  // namespace bakeoff
