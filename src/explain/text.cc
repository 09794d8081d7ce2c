#include "table/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/explain.h"
#include "table/quantity.h"

namespace bakeoff::explain {
namespace {

using table::paragraph;

std::string factor(const Estimate& e) { return table::significant(e.value, 3); }

std::string with_interval(const Estimate& e) {
  return fmt::format("{} [{}, {}]", factor(e), table::significant(e.low, 3), table::significant(e.high, 3));
}

std::string file_line(const Subject& subject, const Cause& cause) {
  return cause.suspect.line > 0 ? fmt::format(" ({}:{})", subject.name, cause.suspect.line) : "";
}

std::string change(const Cause& cause) {
  const nlohmann::json& value = cause.suspect.suspicion.value;
  return fmt::format(fmt::runtime(cause.suspect.rule->change), value.dump());
}

struct Writer {
  const Explanation& e;
  int width;
  std::string out = {};

  void line(const std::string& text, const std::string& first = "", const std::string& next = "") {
    out += paragraph(text, width, first, next) + "\n";
  }

  void headline() {
    const Subject& s = e.subjects[0];
    const double rate = s.samples() / (s.profile.step_s / std::max(0.01, 1 - s.profile.wait_share));
    const std::string speed =
        fmt::format("{}: a step of {:.0f} samples takes {} ms, {:.0f} samples/s", s.name, s.samples(),
                    table::significant(1e3 * s.samples() / rate, 3), rate);
    if (e.subjects.size() == 1) return line(speed + ".");
    const Subject& other = e.subjects[1];
    if (!e.gap) return line(fmt::format("{} and {} could not be compared.", s.name, other.name));
    if (e.equal && e.gap->high < 1.02) {
      return line(fmt::format("There is no gap: {} takes {} times as long per sample as {}.", s.name,
                              with_interval(*e.gap), other.name));
    }
    if (e.equal) {
      return line(fmt::format("No gap is certain: {} takes {} times as long per sample as {}.", s.name,
                              with_interval(*e.gap), other.name));
    }
    line(fmt::format("{} takes {} times as long per sample as {}.", s.name, with_interval(*e.gap),
                     other.name));
  }

  void work() {
    if (e.work.empty()) return;
    line("NOT THE SAME WORK:");
    for (const WorkDifference& row : e.work)
      line(fmt::format("{}: {} against {}", row.what, row.first, row.second), "  ", "    ");
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
    for (const Subject& s : e.subjects)
      total += table::pad_left(fmt::format("{:.2f} ({} steps)", s.profile.total_s, s.profile.steps), 26);
    out += total + "\n\n";
  }

  void cause(size_t number, const Cause& c) {
    line(fmt::format("{}{}", c.suspect.rule->cause, file_line(e.subjects[0], c)),
         fmt::format("{:>2}. ", number), "    ");
    line(fmt::format("{} ({})", c.suspect.suspicion.evidence, c.suspect.rule->id), "    seen: ", "      ");
    std::string predicted;
    if (c.suspect.suspicion.most)
      predicted = fmt::format("at most {}; ", table::significant(*c.suspect.suspicion.most, 3));
    if (c.first) predicted += fmt::format("first heat {}; ", factor(*c.first));
    line(fmt::format("{}confirmed {} times as fast{}", predicted, with_interval(*c.measured),
                     c.on_top ? ", without the greater causes" : ""),
         "    gain: ", "      ");
    if (c.without)
      line(fmt::format("left out of all together, steps take {} times as long", with_interval(*c.without)),
           "    ", "      ");
    line(change(c), "    change: ", "      ");
    if (c.suspect.rule->numbers) line(numbers(c), "    numbers: ", "      ");
    line(fmt::format("bakeoff explain --rule {}", c.suspect.rule->id), "    more: ", "      ");
  }

  // What its first losses say of a change that may change numbers.
  std::string numbers(const Cause& c) const {
    if (!c.losses) return "they may change; its losses could not be read";
    std::string text = fmt::format("they may change; losses of its first steps differ by {} at most",
                                   table::significant(*c.losses, 2));
    if (e.losses) text += fmt::format(" (of two runs as it is: {})", table::significant(*e.losses, 2));
    return text + ", relatively";
  }

  void causes() {
    const size_t confirmed = e.confirmed();
    if (e.equal) return;
    if (confirmed == 0) {
      line(e.subjects.size() > 1 ? "The gap is real, and no cause was found for it."
                                 : "Nothing was found that makes it faster.");
      return;
    }
    size_t number = 0;
    for (const Cause& c : e.causes)
      if (c.finding == Finding::kConfirmed && number < 3) cause(++number, c);
    if (confirmed > 3) line(fmt::format("and {} more: --all", confirmed - 3));
    if (e.together && confirmed > 1)
      line(fmt::format("All together: {} times as fast.", with_interval(*e.together)));
    if (e.residual) line(fmt::format("Not explained: {} is left of the gap.", with_interval(*e.residual)));
  }

  void rest() {
    size_t number = 0;
    for (const Cause& c : e.causes)
      if (c.finding == Finding::kConfirmed && ++number > 3) cause(number, c);
    for (const Cause& c : e.causes) {
      if (c.finding == Finding::kConfirmed) continue;
      std::string what = c.finding == Finding::kFailed ? "not tried to the end: " + c.reason : "no gain";
      if (c.finding == Finding::kOpen) what = "not certain";
      const auto& seen = c.measured ? c.measured : c.first;
      if (c.finding != Finding::kFailed && seen) what += fmt::format(" ({})", with_interval(*seen));
      line(fmt::format("{}: {}", c.suspect.rule->cause, what), "  ", "    ");
    }
  }
};

const char* word(Finding finding) {
  switch (finding) {
    case Finding::kConfirmed:
      return "confirmed";
    case Finding::kNoGain:
      return "no gain";
    case Finding::kOpen:
      return "not certain";
    case Finding::kFailed:
      return "failed";
  }
  return "";
}

table::Json json_of(const std::optional<Estimate>& estimate) {
  return estimate ? table::estimate(*estimate) : table::Json();
}

table::Json json_of(const Subject& s) {
  table::Json phases = table::Json::object();
  for (const Phase& phase : s.profile.phases) phases[phase.key] = phase.seconds;
  return {{"name", s.name},
          {"framework", s.framework()},
          {"steps", s.profile.steps},
          {"step_seconds", s.profile.step_s},
          {"samples_of_a_step", s.samples()},
          {"wait_share", s.profile.wait_share},
          {"phases_seconds", phases},
          {"total_seconds", s.profile.total_s},
          {"peak_rss_bytes", s.seen.peak_rss_bytes},
          {"facts", table::Json::parse(s.seen.facts.dump())}};
}

}  // namespace

std::string to_text(const Explanation& explanation, int width, bool all) {
  Writer writer{explanation, width};
  writer.headline();
  writer.work();
  writer.phases();
  writer.causes();
  if (all) writer.rest();
  const auto tried = std::ranges::count_if(explanation.causes,
                                           [](const Cause& c) { return c.finding != Finding::kConfirmed; });
  if (!all && tried > 0 && !explanation.equal)
    writer.line(fmt::format("{} more {} tried and not confirmed: --all shows them.", tried,
                            tried == 1 ? "cause was" : "causes were"));
  for (const std::string& note : explanation.notes) writer.line("note: " + note, "", "  ");
  writer.line(fmt::format("{} heats of fresh processes, {:.0f} s.", explanation.heats, explanation.seconds));
  return writer.out;
}

std::string to_json(const Explanation& e) {
  table::Json out;
  out["scripts"] = table::Json::array();
  for (const Subject& s : e.subjects) out["scripts"].push_back(json_of(s));
  out["work"] = table::Json::array();
  for (const WorkDifference& row : e.work)
    out["work"].push_back({{"what", row.what}, {"values", {row.first, row.second}}});
  out["gap"] = json_of(e.gap);
  out["gap_confirmed"] = e.gap.has_value() && !e.equal;
  out["causes"] = table::Json::array();
  for (const Cause& c : e.causes) {
    const bool named = c.finding == Finding::kConfirmed && !e.equal;
    out["causes"].push_back({{"rule", c.suspect.rule->id},
                             {"key", c.suspect.rule->key},
                             {"cause", c.suspect.rule->cause},
                             {"confirmed", named},
                             {"finding", word(c.finding)},
                             {"evidence", c.suspect.suspicion.evidence},
                             {"most", table::number(c.suspect.suspicion.most)},
                             {"first_heat", json_of(c.first)},
                             {"gain", json_of(c.measured)},
                             {"without", json_of(c.without)},
                             {"change", change(c)},
                             {"on_top", c.on_top},
                             {"may_change_numbers", c.suspect.rule->numbers},
                             {"loss_change", table::number(c.losses)},
                             {"line", c.suspect.line > 0 ? table::Json(c.suspect.line) : table::Json()},
                             {"reason", c.reason}});
  }
  out["together"] = json_of(e.together);
  out["residual"] = json_of(e.residual);
  out["loss_change_of_equal_runs"] = table::number(e.losses);
  out["heats"] = e.heats;
  out["seconds"] = e.seconds;
  out["notes"] = e.notes;
  return out.dump(2) + "\n";
}

}  // namespace bakeoff::explain
