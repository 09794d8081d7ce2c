// A published ratio and a measured one are of different machines, versions and often networks, so they are
// never subtracted. What is compared is the order: who was faster then, and who is faster here, with "no gap"
// as a result of its own on either side, by the margin of the race.
//
// Shares say what one setting explains of a gap. They need a contender that differs in that setting alone
// (differing_setting) and were raced like any other, so their intervals hold together with the race's. They
// are left out where the gap is within the margin: a share of nearly nothing is huge and says nothing.

#include "suite/reproduction.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/nearest.h"
#include "base/texts.h"
#include "suite/gap_share.h"
#include "suite/suite_run.h"
#include "summary/effects.h"
#include "summary/pair_ratios.h"
#include "table/numbers.h"

namespace bakeoff::suite {
namespace {

using recipe::StudyRow;

std::optional<double> published_ratio(const StudyRow& row, const recipe::PublishedFigure& figure,
                                      const std::string& reference) {
  for (const recipe::PublishedFigure& other : row.figures) {
    if (other.contender == reference && std::isfinite(figure.value / other.value))
      return figure.value / other.value;
  }
  return std::nullopt;
}

const Row* ranked_row(const Summary& s, const std::string& id) {
  const auto found = std::ranges::find(s.ranked, id, [](const Row& row) { return row.contender.id; });
  return found == s.ranked.end() ? nullptr : &*found;
}

// Why a contender of a race has no time, or is not in it.
std::string why_no_time(const Summary& s, const std::string& id) {
  for (const Row& row : s.unranked) {
    if (row.contender.id == id)
      return row.failure ? fmt::format("{} is not ranked: {}", id, row.failure->reason)
                         : fmt::format("{} is not ranked", id);
  }
  return ranked_row(s, id) != nullptr ? "" : fmt::format("the recipe does not name {}", id);
}

Order order_of(std::optional<double> published, PairVerdict today, double margin) {
  if (!published) return Order::kNotPublished;
  if (today == PairVerdict::kUndecided) return Order::kUndecided;
  const bool gap_then = std::abs(std::log(*published)) > std::log1p(margin),
             gap_now = today != PairVerdict::kSame;
  if (!gap_then || !gap_now)
    return gap_then ? Order::kNoGapHere : gap_now ? Order::kNoGapPublished : Order::kAgrees;
  return (*published < 1) == (today == PairVerdict::kFaster) ? Order::kAgrees : Order::kReversed;
}

// Every setting of `ends` that another contender of the race has switched, and nothing else.
void add_shares(const Summary& s, const PairRatios& ratios, const recipe::Confound& confound,
                ReplayedLine& line) {
  const std::string& reference = line.reference;
  for (const std::string& end : {line.contender, reference}) {
    const Row* own = ranked_row(s, end);
    for (const Row& other : s.ranked) {
      const std::string setting = differing_setting(own->contender, other.contender);
      if (std::ranges::find(confound.settings, setting) == confound.settings.end()) continue;
      const std::string& id = other.contender.id;
      const bool of_line = end == line.contender;
      const auto change = of_line ? ratios.between(end, id) : ratios.between(id, end);
      const auto left = of_line ? ratios.between(id, reference) : ratios.between(line.contender, id);
      if (!change || change->bound || id == line.contender || id == reference) continue;
      const Estimate open = {1, 0, std::numeric_limits<double>::infinity()};
      line.shares.push_back({.confound = confound.name,
                             .setting = setting,
                             .contender = end,
                             .from = value_of(own->contender, setting),
                             .to = value_of(other.contender, setting),
                             .share = share_of_gap(change->ratio, line.today->ratio,
                                                   left && !left->bound ? left->ratio : open)});
    }
  }
}

ReplayedLine line_of(const recipe::PublishedStudy& study, const StudyRow& row,
                     const recipe::PublishedFigure& figure, const std::string& reference, const Summary* s,
                     const PairRatios* ratios) {
  ReplayedLine line{.contender = figure.contender,
                    .reference = reference,
                    .published = published_ratio(row, figure, reference)};
  if (s == nullptr) return line;
  for (const std::string& id : {reference, figure.contender})
    if (line.note.empty()) line.note = why_no_time(*s, id);
  if (!line.note.empty()) return line;
  line.today = ratios->between(figure.contender, reference);
  if (!line.today) {
    line.note = "no heat links it with the reference, or it computes in another precision";
    return line;
  }
  if (!s->refusal.empty()) {
    line.order = Order::kNotJudged;
    return line;
  }
  line.order = order_of(line.published, compared(line.today->ratio, s->margin), s->margin);
  // Of a gap within the margin shares say nothing, and are huge.
  if (line.today->bound || std::abs(std::log(line.today->ratio.value)) <= std::log1p(s->margin)) return line;
  for (const recipe::Confound& confound : study.confounds) add_shares(*s, *ratios, confound, line);
  return line;
}

ReplayedRow replayed(const recipe::PublishedStudy& study, const StudyRow& row, const Input* input) {
  ReplayedRow out{.row = row, .asked = input != nullptr || !row.why_not.empty(), .failure = row.why_not};
  if (!out.asked) out.failure = "is not among the rows of this replay";
  if (input != nullptr) out.failure = input->failure;
  if (input != nullptr && input->summary) out.folder = input->folder;
  const Summary* s = input != nullptr && input->summary ? &*input->summary : nullptr;
  std::optional<PairRatios> ratios;
  if (s != nullptr) {
    ratios.emplace(*s);
    out.refusal = s->refusal;
    out.title = s->title;
    out.track = s->track;
    out.alpha = s->alpha;
    out.margin = s->margin;
    out.contenders = s->manifest.contenders;
    out.gpu = std::ranges::any_of(s->ranked, [](const Row& one) { return one.gpu.on_gpu; });
    if (!s->outlooks.empty()) out.rest = rest_in_words(s->outlooks.front());
  }
  for (auto reference = row.references.begin(); reference != row.references.end(); ++reference) {
    for (const recipe::PublishedFigure& figure : row.figures) {
      // Of two references one ratio is enough.
      if (std::find(row.references.begin(), reference + 1, figure.contender) == reference + 1)
        out.lines.push_back(line_of(study, row, figure, *reference, s, ratios ? &*ratios : nullptr));
    }
  }
  return out;
}

Status check_rows(const recipe::PublishedStudy& study, const std::vector<std::string>& wanted) {
  std::vector<std::string> known;
  for (const StudyRow& row : study.rows)
    if (row.why_not.empty()) known.push_back(row.name);
  for (const std::string& name : wanted) {
    const auto row = std::ranges::find(study.rows, name, &StudyRow::name);
    if (row == study.rows.end())
      return Error{.message = fmt::format("the study has no row '{}'", name), .remedy = suggest(name, known)};
    if (!row->why_not.empty())
      return Error{.message = fmt::format("row '{}' cannot be raced: {}", name, row->why_not),
                   .remedy = "rows that can: " + join(known, ", ")};
  }
  return Done{};
}

}  // namespace

std::string word(Order order) {
  constexpr std::array kWords = {"not published", "not raced", "not judged",  "undecided",
                                 "agrees",        "reversed",  "no gap here", "gap here alone"};
  return kWords[static_cast<size_t>(order)];
}

Result<Record> record_of(const recipe::StudyText& text, double minutes,
                         const std::vector<std::string>& rows) {
  TRY(const recipe::PublishedStudy study, recipe::parse_study(text.text, text.file, text.shipped));
  CHECK_OK(check_rows(study, rows));
  CHECK_OK(check_count(study.rows.size(), text.file.string()));
  Record record{.name = study.name,
                .file = text.file.string(),
                .started = utc_now(),
                .minutes = minutes > 0 ? minutes : study.minutes,
                .every = study.every,
                .study = text.text};
  std::optional<Error> first;
  bool any = false;
  for (const StudyRow& row : study.rows) {
    if (!row.why_not.empty() || (!rows.empty() && std::ranges::find(rows, row.name) == rows.end())) continue;
    const auto recipe = add_entry(record, row.recipe, row.name, row.with);
    any |= recipe.has_value();
    if (!recipe && !first) first = recipe.error();
  }
  if (any) return record;
  if (first) return *first;
  return Error{.message = fmt::format("no row of '{}' can be raced here", study.name),
               .where = text.file.string(),
               .remedy = "`bakeoff reproduce` says why"};
}

Result<recipe::PublishedStudy> study_of(const Record& record) {
  if (record.study.empty())
    return Error{.message = fmt::format("'{}' is a suite and replays no study", record.name),
                 .remedy = "`bakeoff suite --report` and `--resume` take it"};
  return recipe::parse_study(record.study, record.file, true);
}

Reproduction reproduction_of(const recipe::PublishedStudy& study, const std::vector<Input>& inputs) {
  Reproduction out{.study = study};
  for (const StudyRow& row : study.rows) {
    const auto input = std::ranges::find(inputs, row.name, &Input::name);
    out.rows.push_back(replayed(study, row, input == inputs.end() ? nullptr : &*input));
    out.interrupted |= input != inputs.end() && input->summary && input->summary->interrupted;
  }
  return out;
}

bool replicates(const Reproduction& r) {
  return std::ranges::all_of(r.rows, [&](const ReplayedRow& row) {
    return !row.raced() || (row.row.instead.empty() && (row.gpu || r.study.gpu.empty()));
  });
}

std::string headline(const Reproduction& r) {
  int raced = 0, small = 0, on_gpu = 0;
  for (const ReplayedRow& row : r.rows) {
    if (!row.raced()) continue;
    ++raced;
    small += !row.row.instead.empty();
    on_gpu += row.gpu;
  }
  if (raced == 0) return "Nothing was raced: the published ratios stand alone.";
  if (replicates(r))
    return fmt::format("{} of the study, raced on another machine: order and ratios are compared.",
                       table::counted(raced, "row"));
  std::vector<std::string> why;
  if (!r.study.gpu.empty() && on_gpu < raced)
    why.push_back(fmt::format("no GPU was used here (the study's figures are of {})", r.study.gpu));
  if (small > 0)
    why.push_back(
        fmt::format("{} of {} rows raced differ from the study in network or spelling", small, raced));
  return fmt::format("Not a replication: {}. Ratios here show what the settings do on this machine.",
                     join(why, ", and "));
}

std::string why_no_share(const Reproduction& r, const recipe::Confound& confound) {
  if (!confound.why_not.empty()) return confound.why_not;
  bool crossed = false, open = false;
  for (const ReplayedRow& row : r.rows) {
    for (const ReplayedLine& line : row.lines) {
      for (const GapShare& share : line.shares) {
        if (share.confound != confound.name) continue;
        if (share.known()) return "";
        open = true;
      }
    }
    for (const Contender& a : row.contenders)
      for (const Contender& b : row.contenders)
        crossed |= std::ranges::find(confound.settings, differing_setting(a, b)) != confound.settings.end();
  }
  return open ? "too few heats were run for an interval of any"
         : crossed
             ? "no contender with a published figure has a certain gap beyond the margin, and one beside it that "
               "differs in this alone"
             : "no race here has two contenders that differ in it alone";
}

}  // namespace bakeoff::suite
