#include "records/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>

#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "table/text.h"

namespace bakeoff {

using table::one_line;
namespace {

void add_settings_of(const emit::Framework& framework, const Contender& contender, ShownName& shown) {
  std::set<std::string> known;
  for (const emit::Setting& setting : framework.settings) {
    known.insert(setting.name);
    const auto at = contender.settings.find(setting.name);
    if (at == contender.settings.end()) continue;
    const emit::Framework* backend = setting.always_named ? emit::find_framework(at->second) : nullptr;
    if (backend)
      shown.name += " on " + backend->title;
    else if (at->second != setting.fallback)
      shown.settings.emplace_back(one_line(setting.name), one_line(at->second));
  }
  for (const auto& [other, value] : contender.settings) {
    if (!known.contains(other)) shown.settings.emplace_back(one_line(other), one_line(value));
  }
}

using Names = std::vector<std::pair<std::string, std::string>>;  // id and spoken(), long ids first

Names names_of(const std::vector<Contender>& contenders) {
  Names names;
  for (const Contender& contender : contenders) names.emplace_back(one_line(contender.id), spoken(contender));
  std::ranges::stable_sort(names, std::ranges::greater{}, [](const auto& name) { return name.first.size(); });
  return names;
}

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_-/'`").find(c) != std::string_view::npos;
}

// Whether text[begin, end) is a word of its own: in "torch.compile", "torch[jit]" and "backend = torch" it is not.
bool stands_alone(std::string_view text, size_t begin, size_t end) {
  if (begin > 0 && (in_word(text[begin - 1]) || text[begin - 1] == '=')) return false;
  if (begin > 1 && text.substr(begin - 2, 2) == "= ") return false;
  if (end >= text.size()) return true;
  const bool goes_on = text[end] == '.' && end + 1 < text.size() && in_word(text[end + 1]);
  return !in_word(text[end]) && text[end] != '[' && !goes_on;
}

std::string replaced(const Names& names, const std::string& text) {
  std::string out;
  bool code = false;
  for (size_t at = 0; at < text.size();) {
    code ^= text[at] == '`';
    const auto name = std::ranges::find_if(names, [&](const auto& one) {
      return !code && !one.first.empty() && text.compare(at, one.first.size(), one.first) == 0 &&
             stands_alone(text, at, at + one.first.size());
    });
    out += name == names.end() ? std::string(1, text[at]) : name->second;
    at += name == names.end() ? 1 : name->first.size();
  }
  return out;
}

}  // namespace

std::string ShownName::settings_text() const {
  std::vector<std::string> parts;
  for (const auto& [setting, value] : settings)
    parts.push_back(value == "true" ? setting : fmt::format("{} = {}", setting, value));
  return join(parts, ", ");
}

std::string ShownName::whole() const {
  const std::string text = settings_text();
  return text.empty() ? name : name + " · " + text;
}

ShownName shown_name(const Contender& contender) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  const bool by_settings =
      contender.id == contender.framework || contender.id.starts_with(contender.framework + '[');
  if (!framework || !contender.own_script.empty() || !by_settings) return {one_line(contender.id), {}};
  ShownName shown{framework->title, {}};
  add_settings_of(*framework, contender, shown);
  for (const auto& [control, value] : contender.stated)
    shown.settings.emplace_back(one_line(control), one_line(value));
  return shown;
}

std::string label(const Contender& contender) { return shown_name(contender).whole(); }

std::string spoken(const Contender& contender) {
  const ShownName shown = shown_name(contender);
  const std::string settings = shown.settings_text();
  return settings.empty() ? shown.name : fmt::format("{} ({})", shown.name, settings);
}

std::string spoken(const recipe::Contender& c) {
  return spoken(Contender{.id = c.id,
                          .framework = c.framework,
                          .settings = c.settings,
                          .own_script = c.script.string(),
                          .stated = c.controls});
}

std::string spoken(const std::vector<Contender>& contenders, const std::string& id) {
  const auto found = std::ranges::find(contenders, id, &Contender::id);
  return found == contenders.end() ? one_line(id) : spoken(*found);
}

std::string label(const std::vector<Contender>& contenders, const std::string& text) {
  for (const Contender& contender : contenders) {
    const std::string id = one_line(contender.id);
    if (text == contender.id || text == id) return label(contender);
    if (text.starts_with(id + ", ")) return label(contender) + text.substr(id.size());
  }
  return text;
}

std::string with_names(const std::vector<Contender>& contenders, const std::string& sentence) {
  return replaced(names_of(contenders), sentence);
}

Watch with_names(std::vector<Contender> contenders, Watch watch) {
  return [contenders = std::move(contenders), watch = std::move(watch)](Happening now) {
    now.leader = spoken(contenders, now.leader);
    if (now.standing) now.standing->next = spoken(contenders, now.standing->next);
    for (std::string* text : {&now.detail, &now.remark}) *text = with_names(contenders, *text);
    watch(now);
  };
}

void name_contenders(const std::vector<Contender>& contenders, table::Section& section) {
  for (table::FilledColumn& column : section.columns) {
    if (!column.column.name) continue;
    for (table::Cell& cell : column.cells) {
      std::string named = label(contenders, cell.text);
      if (named != cell.text && cell.hint.empty()) cell.hint = cell.text;
      cell.text = std::move(named);
    }
  }
  for (std::string& name : section.row_names) name = label(contenders, name);
  Names names = names_of(contenders);
  std::erase_if(names, [](const auto& one) { return one.first.find('[') == std::string::npos; });
  section.title = replaced(names_of(contenders), section.title);
  for (std::string* text : {&section.legend, &section.next}) *text = replaced(names, *text);
  for (auto* texts : {&section.sentences, &section.notes}) {
    for (std::string& text : *texts) text = replaced(names, text);
  }
}

}  // namespace bakeoff
