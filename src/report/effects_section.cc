#include "report/effects_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/baseline_section.h"
#include "report/phrases.h"
#include "summary/effects.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr size_t kMostBars = 24;  // a chart of more is no overview

struct EffectRow {
  const SettingEffect* effect = nullptr;
  const EffectPair* pair = nullptr;
};

std::string changed(const SettingEffect& e) {
  return one_line(fmt::format("{} = {}, not {}", e.setting, e.to, e.from));
}

Json texts_of(const std::map<std::string, std::string>& values) {
  Json out = Json::object();
  for (const auto& [name, value] : values) out[name] = value;
  return out;
}

std::vector<Quantity<EffectRow>> effect_quantities() {
  return {
      {{.key = "setting", .title = "setting", .left = true, .name = true},
       [](const EffectRow& r) { return Json(r.effect->setting); },
       [](const EffectRow& r) { return Cell{changed(*r.effect)}; }},
      {{.key = "from"}, [](const EffectRow& r) { return Json(r.effect->from); }},
      {{.key = "to"}, [](const EffectRow& r) { return Json(r.effect->to); }},
      {{.key = "in", .title = "in", .meaning = "The framework.", .left = true},
       [](const EffectRow& r) { return Json(r.effect->where); },
       [](const EffectRow& r) { return Cell{one_line(r.effect->place)}; }},
      {{.key = "with",
        .title = "with",
        .meaning = "Settings that both contenders share.",
        .priority = 2,
        .left = true},
       [](const EffectRow& r) { return texts_of(r.pair->with); },
       [](const EffectRow& r) {
         const std::string with = one_line(with_in_words(*r.pair));
         return Cell{with.empty() ? kNone : with};
       }},
      {{.key = "before"}, [](const EffectRow& r) { return Json(r.pair->before); }},
      {{.key = "after"}, [](const EffectRow& r) { return Json(r.pair->after); }},
      {{.key = "times_as_fast",
        .title = "as fast",
        .meaning = "How many times as fast the contender is with this value: 1.15 is 1.15x faster.",
        .range_title = "interval",
        .range_priority = 0},
       [](const EffectRow& r) { return r.pair->ratio ? estimate(r.pair->speed) : Json(nullptr); },
       [](const EffectRow& r) { return speed_cell(r.pair->ratio, r.pair->speed, r.pair->verdict); }},
      {{.key = "verdict",
        .title = "verdict",
        .meaning = "What the interval says.",
        .priority = 1,
        .left = true},
       [](const EffectRow& r) { return Json(word(r.pair->verdict)); },
       [](const EffectRow& r) { return Cell{word(r.pair->verdict)}; }},
      {{.key = "heats", .title = "heats", .meaning = "Heats in which both ran.", .priority = 5},
       [](const EffectRow& r) { return r.pair->ratio ? Json(r.pair->ratio->heats) : Json(nullptr); },
       [](const EffectRow& r) {
         return r.pair->ratio && r.pair->ratio->heats > 0 ? Cell{fmt::format("{}", r.pair->ratio->heats)}
                                                          : Cell{};
       }},
      {{.key = "through"},
       [](const EffectRow& r) {
         return r.pair->ratio && !r.pair->ratio->through.empty() ? Json(r.pair->ratio->through)
                                                                 : Json(nullptr);
       }},
      {{.key = "bound"}, [](const EffectRow& r) { return Json(r.pair->ratio && r.pair->ratio->bound); }},
  };
}

std::string note_of(const EffectPair& pair) {
  if (!pair.ratio) return "no heat links the two yet";
  if (pair.ratio->bound) return "a bound: one of the two looked hopeless and was not timed";
  if (!pair.ratio->through.empty())
    return "too seldom in a heat together: by way of " + one_line(pair.ratio->through);
  return "";
}

std::string row_name(const EffectRow& r) {
  const std::string with = one_line(with_in_words(*r.pair));
  return fmt::format("{} in {}{}", changed(*r.effect), one_line(r.effect->place),
                     with.empty() ? "" : ", " + with);
}

// Of a CSV, with the contender that has the value: what it gains over that without it.
void add_effects_csv(const std::vector<EffectRow>& rows, Section& section) {
  std::map<std::string, std::string> by_contender;
  for (const EffectRow& r : rows) {
    std::string& text = by_contender[r.pair->after];
    const Json speed = estimate(r.pair->speed);
    const std::string number = r.pair->ratio ? fmt::format(" {} [{};{}]", plain(speed, "/value"),
                                                           plain(speed, "/low"), plain(speed, "/high"))
                                             : "";
    text += fmt::format("{}{}={} against {}:{} {}", text.empty() ? "" : "; ", r.effect->setting, r.effect->to,
                        r.effect->from, number, word(r.pair->verdict));
  }
  for (const auto& [contender, text] : by_contender) add_fields(section, contender, {{"effects", text}});
}

void add_bars(const std::vector<EffectRow>& rows, Section& section) {
  if (rows.size() > kMostBars) return;
  Picture picture{.x_title = "times as fast with this value"};
  for (const EffectRow& r : rows) {
    if (!r.pair->ratio || r.pair->ratio->bound) continue;
    const Cell cell = speed_cell(r.pair->ratio, r.pair->speed, r.pair->verdict);
    picture.bars.push_back(
        {.name = row_name(r),
         .factor = r.pair->speed,
         .label = cell.text + "  " + cell.range,
         .hint = fmt::format("{}\nagainst {}: {} {}, {}", one_line(r.pair->after), one_line(r.pair->before),
                             cell.text, cell.range, word(r.pair->verdict)),
         .sure = ordered(r.pair->verdict)});
  }
  section.pictures = {std::move(picture)};
}

}  // namespace

std::optional<Section> effects_section(const Summary& s) {
  const std::vector<SettingEffect> effects = effects_of(s);
  std::vector<EffectRow> rows;
  Section section{.key = "effects", .label = "Effects", .title = "Effect of each setting, others equal"};
  Json says = Json::array(), all = Json::array();
  for (const SettingEffect& effect : effects) {
    section.sentences.push_back(one_line(advice(effect, s.margin)));
    for (const EffectPair& pair : effect.pairs) rows.push_back({&effect, &pair});
  }
  if (rows.empty()) return std::nullopt;
  section.columns = columns_of(effect_quantities(), rows);
  for (const EffectRow& row : rows) {
    section.row_names.push_back(row_name(row));
    section.notes.push_back(note_of(*row.pair));
    all.push_back(json_of(effect_quantities(), row));
  }
  for (const std::string& sentence : section.sentences) says.push_back(sentence);
  section.legend = fmt::format(
      "Pairs of contenders that differ in this setting alone. As fast: step time without it over step time with it. "
      "{}",
      together_statement(s));
  section.json = {{"advice", says}, {"pairs", all}};
  add_effects_csv(rows, section);
  add_bars(rows, section);
  return section;
}

}  // namespace bakeoff::report
