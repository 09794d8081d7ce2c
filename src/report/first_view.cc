#include "report/first_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/csv.h"
#include "report/first_screen.h"
#include "report/phrases.h"
#include "report/svg.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

const char* class_of(Finish finish) {
  constexpr const char* kClasses[] = {"best", "best", "maybe", "probably", "slower", "none"};
  return kClasses[static_cast<int>(finish)];
}

std::string width_of(double value, double most) {
  return fmt::format("{:.1f}", most > 0 ? std::clamp(100 * value / most, 0.0, 100.0) : 0.0);
}

// "1,060 to 3,440 samples/s": what the line over a bar shows, for those who do not see it.
std::string in_words(const Rate& rate) {
  if (!rate.interval) return "";
  if (rate.open_low && rate.open_high) return "no bound yet";
  if (rate.open_low) return fmt::format("at most {} samples/s", count(rate.high));
  if (rate.open_high) return fmt::format("at least {} samples/s", count(rate.low));
  return fmt::format("{} to {} samples/s", count(rate.low), count(rate.high));
}

// A command that may break between its words alone. Escaped.
std::string unbroken(const std::string& command) {
  std::string markup;
  for (size_t at = 0; at < command.size();) {
    const size_t end = std::min(command.find(' ', at), command.size());
    markup += (at > 0 ? " " : "") +
              fmt::format("<span class=\"w\">{}</span>", escape_markup(command.substr(at, end - at)));
    at = end + 1;
  }
  return markup;
}

View bar_view(const FirstRow& row, double most) {
  View v;
  v.texts = {{"bar_class", class_of(row.finish)},
             {"bar_name", row.name.name},
             {"bar_settings", row.name.settings_text()},
             {"bar_group", row.group},
             {"bar_rate", row.rate ? count(row.rate->value) : kNone},
             {"bar_against", row.against},
             {"bar_range", row.range},
             {"bar_word", row.word}};
  v.flags = {{"timed", row.finish != Finish::kNoResult},
             {"has_bar_settings", !row.name.settings.empty()},
             {"has_bar_group", !row.group.empty()},
             {"has_bar_range", !row.range.empty()},
             {"has_bar", row.rate.has_value()},
             {"has_whisker", row.rate && row.rate->interval && !(row.rate->open_low && row.rate->open_high)},
             {"open_low", row.rate && row.rate->open_low},
             {"open_high", row.rate && row.rate->open_high}};
  if (!row.rate) return v;
  const double low = row.rate->open_low ? 0 : std::min(row.rate->low, most);
  const double high = row.rate->open_high ? most : std::min(row.rate->high, most);
  v.texts["bar_width"] = width_of(row.rate->value, most);
  v.texts["whisker_left"] = width_of(low, most);
  v.texts["whisker_width"] = width_of(high - low, most);
  v.texts["whisker_text"] = in_words(*row.rate);
  return v;
}

void add_script(const Summary& s, const FirstScreen& first, bool sources, View& page) {
  page.flags["has_take"] = !first.fastest_script.empty();
  page.flags["has_take_source"] = false;
  page.texts["take_title"] =
      s.decided && s.unsteady.empty() ? "Take the fastest script" : "Take the fastest script so far";
  page.texts["take_file"] = first.fastest_script;
  for (const Source& source : s.sources) {
    if (!sources || source.file != first.fastest_script) continue;
    page.flags["has_take_source"] = true;
    page.texts["take_source"] = clean(source.text);
  }
}

}  // namespace

void add_first_screen(const Summary& s, bool sources, View& page) {
  const FirstScreen first = first_screen(s, shown_run(s.run));
  for (size_t i = 1; i < first.what.size(); ++i)
    page.lists["what"].push_back({{{"fact", first.what[i]}}, {}, {}});
  page.texts["answer"] = first.answer;
  page.texts["rest"] = first.rest;
  page.texts["confidence"] = first.confidence;
  page.flags["has_rest"] = !first.rest.empty();
  page.flags["has_confidence"] = !first.confidence.empty();
  page.flags["has_bars"] = !first.rows.empty();
  for (const FirstRow& row : first.rows) {
    View bar = bar_view(row, first.most);
    page.flags["has_intervals"] |= bar.flags["has_whisker"];
    page.lists["bars"].push_back(std::move(bar));
    page.flags["has_open"] |= row.rate && row.rate->open_low != row.rate->open_high;
  }
  add_script(s, first, sources, page);
  for (const Doubt& doubt : first.doubts) {
    View v;
    v.texts = {{"doubt_title", doubt.title},     {"doubt_text", doubt.text},
               {"doubt_command", doubt.command}, {"doubt_markup", unbroken(doubt.command)},
               {"doubt_link", doubt.link},       {"doubt_link_text", doubt.link_text}};
    v.flags = {{"doubt_good", doubt.good},
               {"has_doubt_link", !doubt.link.empty()},
               {"has_doubt_command", !doubt.command.empty()}};
    page.lists["doubts"].push_back(std::move(v));
  }
  const std::string name = s.title.empty() ? "bakeoff" : one_line(s.title);
  page.texts["csv"] = s.ranked.empty() ? "" : render_csv(s);
  page.texts["csv_name"] = name + ".csv";
  page.flags["has_csv"] = !s.ranked.empty();
  page.texts["json_command"] =
      s.run.empty() ? "" : fmt::format("bakeoff report {} --format json", quoted(shown_run(s.run)));
  page.flags["has_json_command"] = !s.run.empty();
  page.texts["repeat"] = command_to_repeat(s);
  page.flags["has_repeat"] = !page.texts["repeat"].empty();
}

}  // namespace bakeoff::report
