#include "report/outlook_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/names.h"
#include "report/phrases.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using Entries = std::vector<Quantity<Rival>>;

constexpr double kWidest = 1;  // a gap of 100% is decided by any interval that says something

Cell sure(const std::optional<double>& sure) {
  return {sure_in_words(sure), "", sure ? Ink::kPlain : Ink::kDim};
}

Entries quantities() {
  return {
      {{.key = "contender", .title = "contender", .left = true, .name = true},
       [](const Rival& r) { return Json(r.contender); },
       [](const Rival& r) { return Cell{one_line(r.contender)}; }},
      {{.key = "heats"}, [](const Rival& r) { return Json(r.heats); }},
      {{.key = "ratio",
        .title = "ratio",
        .meaning = "Step time over the leader's.",
        .range_title = "interval",
        .range_priority = 0},
       [](const Rival& r) { return estimate(r.ratio); },
       ratio},
      {{.key = "slower_than_leader",
        .title = "slower",
        .meaning = "How sure it is that it is slower than the leader: the confidence of this look alone."},
       [](const Rival& r) { return number(r.slower); },
       [](const Rival& r) { return sure(r.slower); }},
      {{.key = "slower_than_previous",
        .title = "than above",
        .meaning = "How sure it is that it is slower than the one above: the confidence of this look alone.",
        .priority = 3},
       [](const Rival& r) { return number(r.slower_than_previous); },
       [](const Rival& r) { return sure(r.slower_than_previous); }},
      {{.key = "deciding_half_width",
        .title = "decides",
        .meaning = "Half the width that its interval needs if the gap is as seen.",
        .priority = 2,
        .left = true},
       [](const Rival& r) { return number(r.deciding); },
       [](const Rival& r) {
         if (r.deciding > kWidest) return Cell{};
         return Cell{fmt::format("±{}%{}", significant(100 * r.deciding, 2), r.as_same ? " same" : "")};
       }},
      {{.key = "decides"}, [](const Rival& r) { return Json(r.as_same ? "same" : "order"); }},
  };
}

Json to_json(const Outlook& outlook) {
  Json rivals = Json::array();
  for (const Rival& rival : outlook.rivals) rivals.push_back(json_of(quantities(), rival));
  const auto of = [](const stats::Rest& rest) {
    return Json{{"heats", number(rest.heats)},
                {"seconds", number(rest.seconds)},
                {"low_s", number(rest.low_s)},
                {"high_s", number(rest.high_s)},
                {"at_least", rest.more}};
  };
  return {{"leader", outlook.leader},
          {"rivals", rivals},
          {"waiting", outlook.waiting},
          {"rest", outlook.rest ? of(*outlook.rest) : Json(nullptr)},
          {"wider_margin", number(outlook.wider_margin)},
          {"rest_at_wider_margin", outlook.wider_margin ? of(outlook.rest_of_wider) : Json(nullptr)}};
}

std::string legend(const Summary& s, const Outlook& outlook) {
  const auto any = [&](bool (*is)(const Rival&)) {
    return std::any_of(outlook.rivals.begin(), outlook.rivals.end(), is);
  };
  std::string text = fmt::format(
      "Interval: valid at any look (error rate {} of all together). Slower: how sure it is that the contender is "
      "slower than the leader, by the paired differences of its heats; the confidence of this look alone, no "
      "guarantee.",
      percent(s.alpha));
  if (any([](const Rival& r) { return r.deciding <= kWidest; }))
    text += " Decides: how narrow the interval has to become if the gap is as seen";
  if (any([](const Rival& r) { return r.as_same; }))
    text += fmt::format("; same: within the margin of {}", percent(s.margin));
  return text.ends_with('.') ? text : text + '.';
}

// "3 to 15 minutes".
std::string span(double low_s, double high_s) {
  const bool seconds = high_s < 90, minutes = high_s < kLongRest;
  const double unit = seconds ? 1 : minutes ? 60 : 3600;
  return fmt::format("{} to {} {}", significant(low_s / unit, 2), count(std::ceil(high_s / unit)),
                     seconds   ? "seconds"
                     : minutes ? "minutes"
                               : "hours");
}

std::string what_is_next(const Outlook& outlook) {
  std::string text = rest_in_words(outlook);
  if (!outlook.rest || outlook.rest->more || outlook.rest->seconds >= kLongRest) return text;
  return text + fmt::format(" With gaps and noise as seen, 8 of 10 such races take {}.",
                            span(outlook.rest->low_s, outlook.rest->high_s));
}

}  // namespace

std::vector<Section> outlook_sections(const Summary& s) {
  std::vector<Section> all;
  for (const Outlook& outlook : s.outlooks) {
    const auto leader = std::find_if(s.ranked.begin(), s.ranked.end(),
                                     [&](const Row& row) { return row.contender.id == outlook.leader; });
    if (leader == s.ranked.end()) continue;
    Section section{.key = all.empty() ? "outlook" : "outlook-" + leader->group,
                    .label = "Open",
                    .title = fmt::format("Fastest so far: {}, {} ms a step; not decided against",
                                         one_line(outlook.leader), milliseconds(leader->ms_per_step.value)),
                    .legend = legend(s, outlook),
                    .columns = columns_of(quantities(), outlook.rivals),
                    .next = with_names(s.manifest.contenders, what_is_next(outlook)),
                    .json = to_json(outlook)};
    if (outlook.rivals.size() < 2)
      std::erase_if(section.columns,
                    [](const FilledColumn& column) { return column.column.key == "slower_than_previous"; });
    if (!s.run.empty()) section.command = command_to_decide(s, s.run);
    for (const Rival& rival : outlook.rivals) section.row_names.push_back(one_line(rival.contender));
    section.notes.resize(outlook.rivals.size());
    name_contenders(s.manifest.contenders, section);
    all.push_back(std::move(section));
  }
  return all;
}

}  // namespace bakeoff::report
