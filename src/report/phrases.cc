#include "report/phrases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/texts.h"
#include "records/names.h"
#include "summary/baseline.h"
#include "summary/standing.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

// Of one step: "12.4 GFLOP", "0.31 MFLOP".
std::string flops(double gflop) {
  if (gflop >= 0.1) return significant(gflop, 3) + " GFLOP";
  return gflop >= 1e-4 ? significant(gflop * 1e3, 3) + " MFLOP" : significant(gflop * 1e6, 3) + " kFLOP";
}

void append_sentence(std::string& text, const std::string& more) {
  if (more.empty() || text.find(more) != std::string::npos) return;
  if (!text.empty()) text += "; ";
  text += more;
}

}  // namespace

std::string verdict_word(const Row& row) {
  return row.verdict == RowVerdict::kRefused ? word(PairVerdict::kNotJudged) : verdict_of(row);
}

std::string verdict_text(const Row& row) {
  if (!row.behind) return lowered(one_line(verdict_word(row)));
  return fmt::format("behind {} by at least {}", one_line(row.behind->contender),
                     percent(row.behind->at_least - 1));
}

std::string parity_mark(ParityState state) {
  switch (state) {
    case ParityState::kPassed:
      return "✓";
    case ParityState::kReported:
      return "≠";
    case ParityState::kFailed:
      return "✗";
    case ParityState::kNotRun:
      break;
  }
  return kNone;
}

std::string parity_word(ParityState state) {
  switch (state) {
    case ParityState::kPassed:
      return "proven";
    case ParityState::kReported:
      return "differs";
    case ParityState::kFailed:
      return "fails";
    case ParityState::kNotRun:
      break;
  }
  return "not run";
}

std::string unranked_reason(const Row& row, bool with_stage) {
  std::string text;
  if (row.failure) {
    const std::string stage(name(row.failure->stage));
    const std::string reason = one_line(row.failure->reason);
    const bool named = !with_stage || stage.empty() || reason.rfind(stage, 0) == 0;
    text = reason.empty() ? fmt::format("failed at {}", stage) : named ? reason : stage + ": " + reason;
  }
  // In the as-is track a difference is no reason.
  if (row.proof && !row.proof->diverges_at.empty() && row.parity != ParityState::kReported) {
    const std::string tensor = one_line(row.proof->diverges_at);
    if (text.find(tensor.substr(tensor.rfind('/') + 1)) == std::string::npos) {
      append_sentence(text, fmt::format("diverges at {} by {}", tensor, error_size(row.proof->divergence)));
    }
  }
  if (row.proof && row.parity != ParityState::kReported)
    append_sentence(text, one_line(row.proof->explanation));
  if (text.empty()) return row.parity == ParityState::kFailed ? "parity: fails" : "no measurement was kept";
  return text;
}

std::string track_label(const Summary& summary) {
  return ir::name(summary.track) + " track" +
         (summary.scenario == ir::Scenario::kPredict ? ", predictions: a step is one batch forward"
          : summary.predicts()                       ? ", generation: a step answers each prompt of one batch"
                                                     : "");
}

std::string track_meaning(const Summary& summary) {
  if (summary.track == ir::Track::kAsIs) {
    return "Every framework with its own defaults, as a user gets them by writing the obvious code. What "
           "differs "
           "is listed in the fairness diff.";
  }
  return "The same mathematics, precision, initial weights, batches and order everywhere, proven before any "
         "clock started.";
}

std::string range_beside(const table::Cell& cell) { return cell.range == kNone ? "" : cell.range; }

std::string heats_in_words(const Summary& s) {
  const std::string heats = counted(s.heats, "heat");
  return s.elapsed_s > 0 ? fmt::format("{}, {} together", heats, duration(s.elapsed_s * 1e3)) : heats;
}

std::string parameters_text(const Summary& s) {
  const std::string trained = count(static_cast<double>(s.parameters));
  if (s.frozen == 0) return trained + " parameters";
  return fmt::format("{} trained and {} frozen parameters", trained, count(static_cast<double>(s.frozen)));
}

std::vector<std::string> facts(const Summary& s) {
  std::vector<std::string> all;
  if (s.batch > 0) all.push_back(fmt::format("batch {}", count(static_cast<double>(s.batch))));
  if (s.parameters > 0) all.push_back(parameters_text(s));
  if (s.gflop_per_step > 0) all.push_back(flops(s.gflop_per_step) + " per step");
  // Random numbers must not be mistaken for a data set.
  if (const std::string data = one_line(s.manifest.data_description);
      data.find("synthetic samples") != std::string::npos)
    all.push_back(data);
  all.push_back(heats_in_words(s));
  return all;
}

namespace {

std::string proven_so_far(const Summary& s) {
  size_t proven = 0;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) proven += row.parity == ParityState::kPassed;
  }
  return fmt::format("{} of {} proven", proven,
                     counted(static_cast<int64_t>(s.ranked.size() + s.unranked.size()), "contender"));
}

}  // namespace

std::string headline(const Summary& s) {
  std::string text = one_line(s.sentence);
  if (text.empty() && s.ranked.empty()) text = "No contender could be ranked.";
  if (text.empty()) {
    text = fmt::format("{} leads{}", spoken(s.ranked.front().contender), s.decided ? "." : "; undecided.");
  }
  if (!s.interrupted) return text;
  if (s.heats == 0)
    text = "Interrupted before anything was timed: " + proven_so_far(s) + '.';
  else
    text += " The run was interrupted: this is what was measured so far.";
  text += " A heat that was running is not counted.";
  if (!s.run.empty() && s.outlooks.empty())
    text += fmt::format(" `{}` continues.",
                        s.fleet ? command_to_decide(s, s.run) : "bakeoff run --resume " + one_line(s.run));
  return text;
}

std::vector<VariancePart> variance_parts(const Variance& variance) {
  std::vector<VariancePart> parts;
  // What is estimated as nothing has its upper 95% bound.
  const auto add = [&](const char* what, const std::optional<double>& sd, const char* meaning,
                       const std::optional<double>& high = std::nullopt) {
    if (!sd) return;
    if (*sd < 0.00005 && high && *high > 1) return;  // a bound above 100% says nothing
    parts.push_back({what, deviation(*sd, high), meaning});
  };
  add("heats", variance.heats, "the state of the machine; the same for all of a heat, so it cancels",
      variance.heats_high);
  add("processes", variance.processes, "starting the worker again", variance.processes_high);
  add("bursts", variance.bursts, "another burst of the same process", variance.bursts_high);
  add("steps", variance.steps, "another step of the same burst");
  if (variance.cheapest_bursts) {
    parts.push_back({"bursts for each process", std::to_string(*variance.cheapest_bursts),
                     "that reach a given precision in the least time"});
  }
  return parts;
}

bool has_ties(const Summary& summary) {
  std::set<std::pair<std::string, char>> seen;  // letters of different groups have nothing in common
  for (const Row& row : summary.ranked) {
    for (const char letter : row.ties) {
      if (!seen.insert({row.group, letter}).second) return true;
    }
  }
  return false;
}

std::string roofline_statement(const Roofline& r) {
  std::string text =
      fmt::format("Of peak: the model's arithmetic over the {} GFLOP/s that {} reached here ({})",
                  significant(r.peak_flops / 1e9, 3), counted(r.threads, "thread"), one_line(r.peak_of));
  if (r.fewest_threads < r.threads)
    text += "; a contender with fewer threads is compared with what its number of threads reached";
  if (r.gemm_flops > 0)
    text += fmt::format("; the best matrix product of a library ({}) reaches {:.0f}% of it",
                        one_line(r.gemm_of), 100 * r.gemm_flops / r.peak_flops);
  if (r.bytes_per_s > 0) {
    text += fmt::format(
        ". Of bandwidth: what its ops read and write, nothing fused, over the {} GB/s of {}; above "
        "100% the framework moves less",
        significant(r.bytes_per_s / 1e9, 3), one_line(r.level));
  }
  text += fmt::format(". Limits measured {}", one_line(r.measured));
  if (!r.disturbed.empty())
    text += fmt::format(" while other work ran, so they are too low: {}", one_line(r.disturbed));
  return text + ".";
}

std::string titled(const Column& column) {
  std::string title = column.title, meaning = column.meaning;
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title + ": " + meaning;
}

std::string quoted(const std::string& text) {
  const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+,=@:%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string command_to_decide(const Summary& s, const std::string& run) {
  const std::string folder = quoted(one_line(run));
  return s.fleet ? fmt::format("bakeoff fleet collect {} --wait", folder)
                 : fmt::format("bakeoff run --resume {} --until decided", folder);
}

std::string error_statement(const Summary& s) {
  return fmt::format("error rate {} over all verdicts and intervals of ratios together, margin {}",
                     percent(s.alpha), percent(s.margin));
}

}  // namespace bakeoff::report
