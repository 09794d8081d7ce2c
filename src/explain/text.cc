// The answer in the order in which a reader needs it: whether the two scripts do the same work, where the
// time goes, the lines, then causes with their evidence, gain and change. Sentences that the HTML page has
// too are in words.h. The JSON has all causes that were tried, with shares and factors as numbers.

#include "table/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.h"
#include "explain/explain.h"
#include "explain/words.h"
#include "table/quantity.h"

namespace bakeoff::explain {
namespace {

using table::paragraph;

constexpr size_t kFirstCauses = 3;  // that are shown without --all

struct Writer {
  const Explanation& e;
  int width;
  std::string out = {};

  void line(const std::string& text, const std::string& first = "", const std::string& next = "") {
    out += paragraph(text, width, first, next) + "\n";
  }

  void headline() { line(explain::headline(e)); }

  void work() {
    if (e.work.empty()) return;
    line("NOT THE SAME WORK:");
    for (const WorkDifference& row : e.work)
      line(fmt::format("{}: {} against {}", row.what, row.first, row.second), "  ", "    ");
  }

  void environment() {
    for (const WorkDifference& row : e.environment)
      line(fmt::format("environment: {}: {} against {}", row.what, row.first, row.second), "", "  ");
  }

  void phases() {
    out += "\n";
    std::string head = fmt::format("{:<28}", "where the time goes, s");
    for (const Subject& s : e.subjects) head += table::pad_left(s.name.substr(0, 24), 26);
    out += head + "\n";
    for (size_t i = 0; i < e.subjects[0].profile.phases.size(); ++i) {
      std::string row = fmt::format("  {:<26}", e.subjects[0].profile.phases[i].title);
      for (const Subject& s : e.subjects)
        row += table::pad_left(fmt::format("{:.2f}", s.profile.phases[i].seconds), 26);
      out += row + "\n";
    }
    std::string total = fmt::format("  {:<26}", "in all");
    for (const Subject& s : e.subjects) total += table::pad_left(total_words(s), 26);
    out += total + "\n";
    if (const std::string shared = phases_words(e); !shared.empty()) line(shared, "  ", "    ");
    out += "\n";
  }

  void accounts() {
    const auto table = explain::accounts(e);
    for (size_t r = 0; r < table.size(); ++r) {
      std::string row = fmt::format("{:<{}}", r == 0 ? table[r][0] : "  " + table[r][0], 34);
      for (size_t i = 1; i < table[r].size(); ++i)
        row += table::pad_left(table[r][i].substr(0, 24), i == 1 ? 20 : 26);
      out += row + "\n";
    }
    if (!table.empty()) out += "\n";
  }

  void lines() {
    for (const Subject& s : e.subjects) {
      const auto seen = hot_lines(s);
      if (seen.empty()) continue;
      line(fmt::format("lines of {} in which {} seen most often:", s.name,
                       s.whole ? "it was" : "its steps were"));
      for (const auto& [share, text] : seen) line(text, fmt::format("  {:>4}  ", share), "        ");
    }
    for (const Subject& s : e.subjects) {
      const auto books = loop_books(s);
      if (!books.empty()) line(fmt::format("loops of {}, and what they do:", s.name));
      for (const auto& [share, text] : books) line(text, fmt::format("  {:>4}  ", share), "        ");
    }
    for (const Subject& s : e.subjects) {
      std::string ops;
      for (const auto& [share, text] : hot_ops(s)) ops += (ops.empty() ? "" : "; ") + share + " " + text;
      if (!ops.empty()) line(fmt::format("ops of {}, by a profile of two steps: {}", s.name, ops), "", "  ");
    }
    const auto code = differing_lines(e);
    if (!code.empty())
      line(fmt::format("lines that {} (-) and {} (+) do not share:", e.subjects[0].name, e.subjects[1].name));
    for (const auto& [mark, text] : code) out += fmt::format("{:>7} {}\n", mark, text);
    out += "\n";
  }

  void cause(size_t number, const Cause& c) {
    const std::string where = place(e, c);
    line(c.suspect.rule->cause + (where.empty() ? "" : " (" + where + ")"), fmt::format("{:>2}. ", number),
         "    ");
    line(fmt::format("{} ({})", c.suspect.suspicion.evidence, c.suspect.rule->id), "    seen: ", "      ");
    line(gain_words(e, c), "    gain: ", "      ");
    if (c.without)
      line(fmt::format("left out of all together, steps take {} times as long", with_interval(*c.without)),
           "    ", "      ");
    line(change_words(c), "    change: ", "      ");
    if (const auto lines = diff(e, c)) {
      out += "    - " + lines->first + "\n";
      if (!lines->second.empty()) out += "    + " + lines->second + "\n";
    }
    if (c.suspect.rule->numbers) line(numbers_words(e, c), "    numbers: ", "      ");
    line(fmt::format("bakeoff explain --rule {}", c.suspect.rule->id), "    more: ", "      ");
  }

  void causes() {
    const size_t named = e.named();
    if (e.equal) return;
    if (named == 0) {
      line(nothing_words(e));
      suspects();
      return;
    }
    size_t number = 0;
    const size_t shown = e.tuned ? named : kFirstCauses;
    for (const Cause& c : e.causes)
      if (c.named() && number < shown) cause(++number, c);
    if (named > shown) line(fmt::format("and {} more: --all", named - shown));
    if (const std::string shell = shell_line(e); !shell.empty()) line("Start it so: " + shell, "", "  ");
    if (e.together && std::ranges::count(e.causes, Finding::kConfirmed, &Cause::finding) > 1)
      line(fmt::format("All together: {} times as fast.", with_interval(*e.together)));
    if (const std::string applied = applied_words(e); !applied.empty()) line(applied);
    if (const std::string left = residual_words(e); !left.empty()) line(left);
    suspects();
  }

  // By name: what was seen may be the cause, and nothing measured says so.
  void suspects() {
    size_t shown = 0;
    for (const Cause& c : e.causes) {
      const bool open = c.finding == Finding::kOpen || c.finding == Finding::kFailed;
      const bool told_place = c.suspect.line > 0 && std::ranges::any_of(e.causes, [&](const Cause& named) {
                                return named.named() && named.suspect.line == c.suspect.line;
                              });
      const bool line_alone = told_place || (c.suspect.rule->of_place() && e.named() > 0);
      if (!open || line_alone || c.shared || e.told(c) ||
          c.suspect.suspicion.evidence.starts_with("nothing") || shown == kFirstCauses)
        continue;
      ++shown;
      const std::string where = place(e, c);
      line(fmt::format("not certain: {}{}: {}", c.suspect.rule->cause,
                       where.empty() ? "" : " (" + where + ")", c.suspect.suspicion.evidence),
           "", "  ");
    }
  }

  void rest() {
    size_t number = 0;
    for (const Cause& c : e.causes)
      if (c.named() && ++number > kFirstCauses && !e.tuned) cause(number, c);
    for (const Cause& c : e.causes) {
      if (c.named()) continue;
      line(fmt::format("{}: {}", c.suspect.rule->cause, finding_words(c)), "  ", "    ");
    }
  }
};

const char* word(Finding finding) {
  switch (finding) {
    case Finding::kConfirmed:
      return "confirmed";
    case Finding::kBooked:
      return "booked";
    case Finding::kNoGain:
      return "no gain";
    case Finding::kOpen:
      return "not certain";
    case Finding::kFailed:
      return "failed";
    case Finding::kCovered:
      return "covered by another cause";
    case Finding::kShared:
      return "in both scripts";
  }
  return "";
}

// With both ends however far they are: a gain of 150 [1.3, 17,000] is confirmed by its lower one.
table::Json json_of(const std::optional<Estimate>& e) {
  if (!e) return {};
  return {
      {"value", table::number(e->value)}, {"low", table::number(e->low)}, {"high", table::number(e->high)}};
}

table::Json json_of_diff(const Explanation& e, const Cause& c) {
  const auto lines = diff(e, c);
  return lines ? table::Json{{"before", lines->first}, {"after", lines->second}} : table::Json();
}

// The line of a script, or of a file that it imports.
table::Json with_place(table::Json row, const Subject& s, int64_t line) {
  const auto [file, number] = s.source.place(line);
  row["file"] = number == 0 ? table::Json() : table::Json(file.empty() ? s.file : file);
  row["line"] = number == 0 ? table::Json() : table::Json(number);
  return row;
}

table::Json json_of_code(const Subject& s) {
  table::Json all = table::Json::array();
  for (const CodeTime& one : s.code)
    all.push_back(with_place({{"values", {one.text.mine, one.text.other}}}, s, one.text.line));
  return all;
}

table::Json json_of(const Subject& s) {
  table::Json phases = table::Json::object();
  for (const Phase& phase : s.profile.phases) phases[phase.key] = phase.seconds;
  table::Json lines = table::Json::array();
  for (const HotLine& one : s.seen.lines)
    lines.push_back(with_place({{"function", one.function}, {"share", one.share}}, s, one.line));
  table::Json ops = table::Json::array();
  for (const OpTime& op : s.seen.ops)
    ops.push_back({{"name", op.name}, {"seconds_of_a_step", op.seconds}, {"calls_of_a_step", op.calls}});
  table::Json books = table::Json::array();
  for (const LoopBook& loop : s.seen.books)
    books.push_back(with_place({{"accounts_share", loop.accounts}}, s, loop.line));
  return {{"name", s.name},
          {"framework", s.framework()},
          {"steps", s.profile.steps},
          {"step_seconds", s.profile.step_s},
          {"samples_of_a_step", s.samples()},
          {"wait_share", s.profile.wait_share},
          {"phases_seconds", phases},
          {"total_seconds", s.profile.total_s},
          {"peak_rss_bytes", s.seen.peak_rss_bytes},
          {"lines", lines},
          {"accounts_share", s.seen.accounts},
          {"loops", books},
          {"ops", ops},
          {"hooks_share_of_a_step", table::number(hook_share(s))},
          {"facts", parse_json<table::Json>(dump(s.seen.facts))}};
}

}  // namespace

std::string to_text(const Explanation& explanation, int width, bool all) {
  Writer writer{explanation, width};
  writer.headline();
  writer.work();
  writer.environment();
  writer.phases();
  writer.accounts();
  writer.lines();
  writer.causes();
  if (all) writer.rest();
  for (const Remark& remark : explanation.remarks) writer.line("seen: " + remark_words(remark), "", "  ");
  const auto tried = std::ranges::count_if(explanation.causes, [](const Cause& c) {
    return !c.named() && c.finding != Finding::kCovered && c.finding != Finding::kShared;
  });
  if (!all && tried > 0 && !explanation.equal)
    writer.line(fmt::format("{} more {} tried and not confirmed: --all shows them.", tried,
                            tried == 1 ? "cause was" : "causes were"));
  for (const std::string& note : explanation.notes) writer.line("note: " + note, "", "  ");
  writer.line(fmt::format("{} heats of fresh processes, {:.0f} s.{}", explanation.heats, explanation.seconds,
                          hook_words(explanation)));
  return writer.out;
}

std::string to_json(const Explanation& e) {
  table::Json out;
  out["scripts"] = table::Json::array();
  for (const Subject& s : e.subjects) out["scripts"].push_back(json_of(s));
  out["work"] = table::Json::array();
  for (const WorkDifference& row : e.work)
    out["work"].push_back({{"what", row.what}, {"values", {row.first, row.second}}});
  out["environment"] = table::Json::array();
  for (const WorkDifference& row : e.environment)
    out["environment"].push_back({{"what", row.what}, {"values", {row.first, row.second}}});
  out["code"] = json_of_code(e.subjects[0]);
  out["per"] = unit(e);
  out["gap"] = json_of(e.gap);
  out["gap_confirmed"] = e.gap_is_certain() && !e.equal;
  out["gap_by_phase_seconds"] = table::Json::object();
  if (e.subjects.size() > 1)
    for (const Phase& gap : gap_by_phase(e.subjects[0], e.subjects[1]))
      out["gap_by_phase_seconds"][gap.key] = gap.seconds;
  out["causes"] = table::Json::array();
  for (const Cause& c : e.causes) {
    const bool confirmed = c.finding == Finding::kConfirmed && !e.equal;
    const table::Json row = {{"rule", c.suspect.rule->id},
                             {"key", c.suspect.rule->key},
                             {"cause", c.suspect.rule->cause},
                             {"confirmed", confirmed},
                             {"named", c.named() && !e.equal},
                             {"booked_share", table::number(c.suspect.suspicion.booked)},
                             {"finding", word(c.finding)},
                             {"evidence", c.suspect.suspicion.evidence},
                             {"most", table::number(c.suspect.suspicion.most)},
                             {"first_heat", json_of(c.first)},
                             {"gain", json_of(c.measured)},
                             {"starts_later_seconds", c.later_s},
                             {"without", json_of(c.without)},
                             {"change", change_words(c)},
                             {"diff", json_of_diff(e, c)},
                             {"on_top", c.on_top},
                             {"in_both", c.shared},
                             {"beyond_gain_of_second", json_of(c.beyond)},
                             {"may_change_numbers", c.suspect.rule->numbers},
                             {"loss_change", table::number(c.losses)},
                             {"reason", c.reason}};
    out["causes"].push_back(with_place(row, e.subjects[0], c.suspect.line));
  }
  out["remarks"] = table::Json::array();
  for (const Remark& r : e.remarks)
    out["remarks"].push_back({{"script", r.script}, {"rule", r.id}, {"text", r.text}, {"line", r.line}});
  out["together"] = json_of(e.together);
  out["applied"] = json_of(e.applied);
  out["applied_failure"] = e.applied_failure;
  out["residual"] = json_of(e.residual);
  out["loss_change_of_equal_runs"] = table::number(e.losses);
  out["shell"] = e.equal ? "" : shell_line(e);
  out["others_share_of_processors"] = e.others;
  out["heats"] = e.heats;
  out["seconds"] = e.seconds;
  out["notes"] = e.notes;
  return dump(out, 2) + "\n";
}

}  // namespace bakeoff::explain
