// Most readers look at a report for ten seconds. What they take with them must be true: so these words are
// chosen from the verdict alone (summary/standing.h), never from the order of the times. "A is fastest" needs
// a decided race; contenders that are not decided are all named, or counted; a leader that an unsteady
// contender beat is no winner.
//
// The order of the questions in answer() is the order of what can go wrong: nothing was timed, nothing could
// be ranked, the machine was busy, a contender had no heat yet, a faster one never became steady. Each takes
// the word from those behind it. The doubts below the list say the same in figures: was the work equal, was
// the machine quiet, is it decided, and what to run if not.

#include "report/first_screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/texts.h"
#include "emit/emit.h"
#include "report/charts.h"
#include "report/name_texts.h"
#include "report/phrases.h"
#include "report/ranking.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

constexpr size_t kMostNamed = 3;  // more contenders are counted

using bakeoff::spoken;
std::string spoken(const Row& row) { return spoken(row.contender); }

std::string listed(const std::vector<std::string>& names, const char* last) {
  if (names.size() == 1) return names.front();
  return fmt::format("{}{}{}", join(names.begin(), names.end() - 1, ", "), last, names.back());
}

std::string as_long(const Row& row) {
  return fmt::format("{}{} times as long", row.at_least ? "at least " : "", times(row.ratio.value));
}

std::string answer_of(const Field& field) {
  const std::string leader = spoken(*field.leader);
  if (field.tied.empty() && field.open.empty()) {
    if (!field.probable.empty()) return fmt::format("Not certain yet: {} leads.", leader);
    if (field.behind.empty()) return fmt::format("Only {} could be ranked.", leader);
    const Row& next = *field.behind.front();
    return fmt::format("{} is fastest: {}{} times as fast as the next.", leader,
                       next.at_least ? "at least " : "", times(next.ratio.value));
  }
  std::vector<std::string> names = {leader};
  for (const auto* rows : {&field.tied, &field.open}) {
    for (const Row* row : *rows) names.push_back(spoken(*row));
  }
  const std::string others = fmt::format("{} and {} others", leader, names.size() - 1);
  if (field.open.empty())
    return (names.size() > kMostNamed ? others : listed(names, " and ")) + " are equally fast.";
  return "Too close to call: " +
         (names.size() > kMostNamed ? others + " may be fastest." : listed(names, ", ") + '.');
}

std::string answer(const Summary& s) {
  if (s.interrupted && s.heats == 0) return "Interrupted before anything was timed.";
  if (s.ranked.empty()) return "No contender could be ranked.";
  if (!s.refusal.empty() && s.host.judged < HostTally::kLeastJudged)
    return "No verdict: it is unknown what else ran on the machine.";
  if (!s.refusal.empty()) return "No verdict: the machine was too busy.";
  const std::string of_ranked = answer_of(field_of(s, s.ranked.front().group));
  if (const auto rows = waiting(s); !rows.empty()) {
    const std::string leader = spoken(s.ranked.front());
    return fmt::format("{}; {} had no heat.",
                       s.ranked.size() == 1 ? "Only " + leader + " was raced" : leader + " leads so far",
                       counted(static_cast<int64_t>(rows.size()), "contender"));
  }
  if (s.unsteady.empty()) return of_ranked;
  return fmt::format("No winner: {} was measured faster, but never became steady. Of the others: {}",
                     spoken(s.manifest.contenders, s.unsteady), of_ranked);
}

size_t proven(const Summary& s) {
  size_t n = 0;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) n += row.parity == ParityState::kPassed;
  }
  return n;
}

std::string equal_work(const Summary& s) {
  const size_t all = s.ranked.size() + s.unranked.size(), equal = proven(s);
  if (s.track == ir::Track::kAsIs)
    return "Each uses its framework's own defaults, so they do not all compute the same.";
  if (all == 0) return "";
  if (equal == all && all > 1) return fmt::format("All {} compute the same (proven).", all);
  return fmt::format("{} of {} are proven to compute the same.", equal, all);
}

// Of the first and the last of `rows`.
std::string spread_of(const std::vector<const Row*>& rows, const char* takes) {
  if (rows.empty()) return "";
  std::string text = fmt::format("{} {} {}", spoken(*rows.front()), takes, as_long(*rows.front()));
  if (rows.size() > 1) text += fmt::format(", {} {}", spoken(*rows.back()), as_long(*rows.back()));
  return text + ". ";
}

std::string rest_of(const Summary& s) {
  std::string text;
  if (!s.refusal.empty()) text = "Order as measured, which proves nothing here: " + s.refusal + ". ";
  if (!s.ranked.empty() && s.refusal.empty()) {
    const std::vector<std::string> groups = groups_of(s);
    const Field field = field_of(s, groups.front());
    text = spread_of(field.behind, "takes") + spread_of(field.probable, "probably takes");
    for (size_t i = 1; i < groups.size(); ++i)
      text += fmt::format("In {}: {} ", groups[i], answer_of(field_of(s, groups[i])));
  }
  return text + equal_work(s);
}

std::vector<std::string> what(const Summary& s) {
  std::vector<std::string> all = {s.title.empty() ? "untitled" : one_line(s.title)};
  std::vector<std::string> work = {ir::name(s.scenario)};
  if (s.batch > 0) work.push_back("batch " + count(static_cast<double>(s.batch)));
  const auto groups = groups_of(s);
  work.push_back(groups.empty() ? std::string(emit::kFullPrecision) : join(groups, " and "));
  if (s.parameters > 0) work.push_back(parameters_text(s));
  all.push_back(join(work, ", "));
  const Host& host = s.manifest.host;
  const bool gpu =
      std::any_of(s.ranked.begin(), s.ranked.end(), [](const Row& row) { return row.gpu.on_gpu; });
  std::string machine = one_line(host.cpu);
  if (host.cpus > 0) machine += (machine.empty() ? "" : ", ") + counted(host.cpus, "CPU");
  machine += machine.empty() || s.ranked.empty() ? "" : gpu ? ", on a GPU" : ", no GPU used";
  if (!machine.empty()) all.push_back(machine);
  std::vector<const Texts*> versions;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) versions.push_back(&row.versions);
  }
  for (std::string& version : framework_versions(versions)) all.push_back(std::move(version));
  if (s.manifest.started.size() >= 10) all.push_back(one_line(s.manifest.started.substr(0, 10)));
  return all;
}

std::string word_of(const Summary& s, const Row& row, Finish finish) {
  if (!s.refusal.empty()) return "not judged";
  switch (finish) {
    case Finish::kFastest:
      return s.unsteady.empty() ? "fastest" : "fastest of the steady";
    case Finish::kEqual:
      return "equally fast";
    case Finish::kMayBe:
      return "may be fastest";
    case Finish::kProbably: {
      const Rival* rival = rival_of(s, row);
      return rival && rival->slower ? "probably slower" : "seen in one heat";
    }
    case Finish::kSlower: {
      if (!row.behind) return "slower";
      return "slower than " + spoken(s.manifest.contenders, row.behind->contender);
    }
    case Finish::kNoResult:
      break;
  }
  return "no result";
}

std::string range_of(const Row& row) {
  const bool below = bounded_below(row.ratio), above = bounded_above(row.ratio);
  if (row.at_least) return "";
  if (below && above) return fmt::format("{} to {}", times(row.ratio.low), times(row.ratio.high));
  if (below) return times(row.ratio.low) + " or more";
  return above ? "up to " + times(row.ratio.high) : "no bound yet";
}

std::vector<FirstRow> rows_of(const Summary& s) {
  std::vector<FirstRow> rows;
  const auto groups = groups_of(s);
  for (const Series& series : all_series(s)) {
    const Row& row = *series.row;
    FirstRow out{.row = &row, .series = series.index, .name = shown_name(row.contender)};
    if (series.ranked) {
      out.finish = finish_of(s, row);
      out.rate = rate_of(s, row);
      const bool leads = &row == &leader_of(s, row);
      out.ratio = row.ratio.value;
      out.against = leads ? "fastest measured" : as_long(row);
      if (!leads) out.range = range_of(row);
      if (groups.size() > 1) out.group = row.group;
    } else {
      out.against = unranked_reason(row, false);
    }
    out.word = word_of(s, row, out.finish);
    rows.push_back(std::move(out));
  }
  return rows;
}

// Wide enough for every value and every bound, but not for a bound beyond twice the fastest.
double scale_of(const std::vector<FirstRow>& rows) {
  double fastest = 0, most = 0;
  for (const FirstRow& row : rows) {
    if (row.rate) fastest = std::max(fastest, row.rate->value);
  }
  for (const FirstRow& row : rows) {
    if (row.rate) most = std::max({most, row.rate->value, std::min(row.rate->high, 2 * fastest)});
  }
  return most * 1.04;
}

Doubt about_work(const Summary& s) {
  const size_t all = s.ranked.size() + s.unranked.size();
  Doubt doubt{.title = fmt::format("Equal work: {} of {} proven", proven(s), all),
              .link = "parity",
              .link_text = "how"};
  doubt.good = proven(s) == all;
  double worst = 0;
  bool known = false;
  for (const Row& row : s.ranked) {
    if (!row.proof) continue;
    for (const ParityCheck& check : row.proof->checks) {
      if (check.what != "float64 gradients" && check.what != "float64 prediction") continue;
      if (s.predicts() != (check.what == "float64 prediction")) continue;
      known = true;
      worst = std::max(worst, check.error);
    }
  }
  if (s.track == ir::Track::kAsIs)
    doubt.text = "own defaults: what differs is listed under Defaults";
  else if (known)
    doubt.text =
        fmt::format("in float64 every {} within {} of the referee's",
                    s.predicts() ? "prediction lies" : "gradient lies", worst > 0 ? error_size(worst) : "0");
  return doubt;
}

Doubt about_machine(const Summary& s) {
  const HostTally& host = s.host;
  if (host.judged == 0)
    return {
        .title = "Was the machine quiet? Unknown",
        .text = host.absent.empty() ? "no round of bursts was long enough to be judged" : host.absent.front(),
        .link = "notes",
        .link_text = "what it means",
        .good = false};
  if (host.busy == 0)
    return {.title = "The machine was quiet",
            .text = fmt::format("in all of {}", counted(host.judged, "round"))};
  return {.title = fmt::format("The machine was busy: {} of {}", host.busy, counted(host.judged, "round")),
          .text = one_line(host.worst),
          .link = "notes",
          .link_text = "what it means",
          .good = false};
}

Doubt about_decision(const Summary& s, const std::string& run) {
  const std::string repeat = command_to_repeat(s);
  if (s.interrupted || (!s.decided && !s.ranked.empty() && s.refusal.empty())) {
    Doubt doubt{.title = s.interrupted ? "Interrupted: to go on" : "To settle it", .good = false};
    if (!run.empty()) doubt.command = command_to_decide(s, run);
    if (const auto rows = waiting(s); !rows.empty())
      doubt.text =
          fmt::format("{} had no heat yet.", counted(static_cast<int64_t>(rows.size()), "contender"));
    for (const Outlook& outlook : s.outlooks) {
      if (!doubt.text.empty()) doubt.text += ' ';
      doubt.text += with_names(s.manifest.contenders, rest_in_words(outlook));
    }
    return doubt;
  }
  if (!s.refusal.empty())
    return {.title = "To get a verdict",
            .text = "run it again when the machine is idle",
            .command = repeat,
            .good = false};
  if (!s.unsteady.empty())
    return {.title = "To get a winner",
            .text = fmt::format("{} must become steady first: a longer warm-up may do",
                                spoken(s.manifest.contenders, s.unsteady)),
            .command = repeat.empty() ? "" : repeat + " --set race.warmup_steps=100",
            .good = false};
  return {.title = "Decided", .text = "after " + heats_in_words(s), .command = repeat};
}

// "0.92 s PyTorch to 4.0 s Keras on JAX", over the ranked rows that have the value.
Doubt spread(const Summary& s, const char* title, const char* link, double (*value)(const Row&),
             std::string (*show)(double)) {
  const Row *least = nullptr, *most = nullptr;
  for (const Row& row : s.ranked) {
    if (row.at_least || !(value(row) > 0)) continue;
    if (!least || value(row) < value(*least)) least = &row;
    if (!most || value(row) > value(*most)) most = &row;
  }
  if (!least || least == most) return {};
  return {.title = title,
          .text = fmt::format("{} {} to {} {}", show(value(*least)), spoken(*least), show(value(*most)),
                              spoken(*most)),
          .link = link,
          .link_text = "all"};
}

// The options that changed the recipe, as its text's first line names them (recipe/changes.h): " --batch 64". Words are
// quoted one by one, as a run of somebody else's may name anything.
std::string changes_of(const Manifest& manifest) {
  const std::string begin = fmt::format("# {} with ", manifest.recipe_file);
  if (!manifest.recipe_text.starts_with(begin + "--")) return "";
  const std::string line =
      manifest.recipe_text.substr(begin.size(), manifest.recipe_text.find('\n') - begin.size());
  std::string options;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) options += ' ' + quoted(one_line(line.substr(at, end - at)));
    at = end + 1;
  }
  return options;
}

std::string script_of(const Summary& s) {
  if (s.ranked.empty() || !s.refusal.empty()) return "";
  return one_line(s.ranked.front().contender.script);
}

}  // namespace

std::string shown_run(const std::string& run) {
  const std::filesystem::path path(run);
  const std::filesystem::path folder = path.parent_path().filename();
  return folder == "runs"     ? (folder / path.filename()).string()
         : path.is_absolute() ? path.filename().string()
                              : run;
}

std::string command_to_repeat(const Summary& s) {
  const std::string file = std::filesystem::path(one_line(s.manifest.recipe_file)).filename().string();
  return file.empty() ? "" : "bakeoff run " + quoted(file) + changes_of(s.manifest);
}

FirstScreen first_screen(const Summary& s, const std::string& run) {
  FirstScreen out{.what = what(s), .answer = answer(s), .rest = rest_of(s), .rows = rows_of(s)};
  out.most = scale_of(out.rows);
  if (s.ranked.size() > 1 && s.refusal.empty())
    out.confidence =
        fmt::format("All verdicts and intervals hold together with {}; gaps below {} count as equal.",
                    percent(1 - s.alpha), percent(s.margin));
  if (std::any_of(out.rows.begin(), out.rows.end(),
                  [](const FirstRow& row) { return row.finish == Finish::kProbably; }))
    out.confidence +=
        fmt::format(" Probably: at least {:g}% sure by this look alone, no guarantee.", 100 * kProbable);
  out.fastest_script = script_of(s);
  out.doubts = {about_work(s), about_machine(s), about_decision(s, run),
                spread(
                    s, "Start-up", "start", [](const Row& row) { return row.start_up.total(); }, duration),
                spread(
                    s, "Memory", s.model.weights > 0 ? "memory" : "usage",
                    [](const Row& row) { return static_cast<double>(row.peak_rss_bytes); }, bytes)};
  std::erase_if(out.doubts, [](const Doubt& doubt) { return doubt.title.empty(); });
  return out;
}

}  // namespace bakeoff::report
