#include "summary/summary_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "evidence/evidence.h"
#include "records/controls.h"
#include "summary/limits.h"
#include "table/numbers.h"
#include "worker/grants.h"

namespace bakeoff {
namespace {

std::string duration(double seconds) { return table::duration(seconds * 1e3); }

// What all contenders ran under, and where that comes from.
void add_controls(const Summary& s, const recipe::Recipe& recipe, std::vector<std::string>& notes) {
  for (const std::string& note : s.manifest.notes) notes.push_back(note);
  const auto calibration = [&](const char* key) {
    const auto found = s.manifest.calibration.find(key);
    return found == s.manifest.calibration.end() ? std::string() : found->second;
  };
  const std::string controls =
      s.manifest.controls.empty()
          ? (recipe.race.allocator == "default" ? "none" : describe({.allocator = recipe.race.allocator}))
          : describe(controls_from(s.manifest.controls));
  if (controls != "none")
    notes.push_back(fmt::format("Set for every contender that does not state it itself: {}.", controls));
  if (const std::string measured = calibration("measured"); !measured.empty()) {
    notes.push_back(fmt::format("Machine profile of {} ({}).{}{}", measured, calibration("with"),
                                calibration("prediction").empty() ? "" : " ", calibration("prediction")));
  }
}

// How rows were measured, where that is worth a word.
void add_remarks(const Summary& s, std::vector<std::string>& notes) {
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) {
      for (const std::string& remark : row.remarks)
        notes.push_back(fmt::format("{}: {}.", row.contender.id, remark));
    }
  }
}

// Names the contenders of which the budget's end left no timed burst audited.
void add_audits(const std::vector<Trial>& trials, std::vector<std::string>& notes) {
  std::map<std::string, bool> due;  // by contender: whether one was audited
  for (const Trial& trial : trials) {
    if (!trial.not_audited.empty()) due.emplace(trial.contender, false);
  }
  for (const Trial& trial : trials) {
    if (!trial.audits.empty() && due.contains(trial.contender)) due[trial.contender] = true;
  }
  std::vector<std::string> without;
  for (const auto& [contender, audited] : due) {
    if (!audited) without.push_back(contender);
  }
  if (without.empty()) return;
  notes.push_back(fmt::format(
      "The budget ended before the referee had computed a timed burst of {} again: that it did the "
      "work it was proven for rests on the proofs alone.",
      join(without, ", ")));
}

// What racing spared, and what the reported times rest on.
void add_race_notes(const Summary& s, const std::vector<Trial>& trials, std::vector<std::string>& notes) {
  if (s.ranked.size() < 2 || !s.decided) return;
  const RaceCost& cost = s.cost;
  if (cost.raced_s < 0.99 * cost.uniform_s) {
    notes.push_back(fmt::format(
        "Racing took {}; timing every contender in all {} heats for the same guarantee would have taken {}.",
        duration(cost.raced_s), cost.heats, duration(cost.uniform_s)));
  }
  std::vector<std::string> again;
  for (const Row& row : s.ranked) {
    if (row.confirmed > 0 && &row == &leader_of(s, row)) again.push_back(row.contender.id);
  }
  if (again.empty()) return;
  notes.push_back(fmt::format(
      "The time of {1} comes from {0} confirmation heats that did not influence the ranking. Every "
      "other time is the leader's time multiplied by the ratio of the race.",
      confirmed_heats(trials), join(again, ", ")));
}

// How far every framework is from the workload as plain C++.
void add_native_limit(const Summary& s, std::vector<std::string>& notes) {
  const Row* native = native_row(s);
  if (native == nullptr) return;
  std::vector<std::string> all;
  for (const Row& row : s.ranked) {
    if (!row.over_native || is_native(row.contender.framework)) continue;
    all.push_back(row.contender.id + ' ' + over_native_text(row));
  }
  if (!all.empty())
    notes.push_back(fmt::format(
        "What this machine can do: {} is the workload as one program of plain C++, compiled for it, without a "
        "framework. Times as long as plain C++ needs on this machine: {}.",
        native->contender.id, join(all, "; ")));
}

// Some frameworks do work between epochs; if epochs are short, that is a large part of every step.
void add_epoch_note(const Summary& s, int64_t batch, std::vector<std::string>& notes) {
  constexpr int64_t kLongEpoch = 100;  // steps
  const int64_t steps = s.manifest.data_rows / std::max<int64_t>(1, batch);
  if (s.predicts() || steps < 1 || steps >= kLongEpoch) return;
  std::set<std::string> loops;
  for (const Row& row : s.ranked) {
    if (const emit::Framework* framework = emit::find_framework(row.contender.framework))
      loops.insert(framework->between_epochs);
  }
  loops.erase("");
  if (loops.empty()) return;
  notes.push_back(fmt::format(
      "An epoch of this data is {} step{}: the work of {} between epochs is part of every step, a "
      "larger part than with longer epochs.",
      steps, steps == 1 ? "" : "s", join(loops, " or ")));
}

// What stands apart from float32, how far, and whether the machine computes in it at all.
void add_precision_notes(const Summary& s, std::vector<std::string>& notes) {
  bool variants = false;
  std::vector<std::string> said;
  for (const auto* rows : {&s.ranked, &s.unranked}) {
    for (const Row& row : *rows) {
      if (row.group == "float32") continue;
      variants = true;
      const std::string note = row.group + ": " + row.support + ".";
      if (row.support.empty() || std::find(said.begin(), said.end(), note) != said.end()) continue;
      said.push_back(note);
    }
  }
  if (!variants) return;
  notes.push_back(
      "Each precision is a group: every ratio is to the leader of its group. The distance of a variant is "
      "that of its loss and of its gradients on one batch, of answers that of its logits, from its float32 "
      "counterpart, which was proven in its place.");
  notes.insert(notes.end(), said.begin(), said.end());
}

// What the verdicts owe to a promise of low noise.
void add_promise_notes(const Summary& s, std::vector<std::string>& notes) {
  if (s.promise.stated <= 0) return;
  const std::string promise = fmt::format(
      "{} that restarting the processes adds at most {:.2g}% of noise to a ratio (standard deviation)",
      s.promise.by_recipe ? "the recipe's own promise (race.noise_ceiling)"
                          : "the promise taken from this machine's profile",
      100 * s.promise.stated);
  if (!s.promise.withdrawn.empty()) {
    notes.push_back(fmt::format("The race's own data contradict {}: {}. No verdict rests on it.", promise,
                                s.promise.withdrawn));
  } else if (s.rests_on_promise) {
    notes.push_back(fmt::format(
        "Some verdicts rest on {}; without it they would need more heats. It is used only in heats "
        "that nothing disturbed, from the second on.",
        promise));
  }
}

// The recipe as a command names it.
std::string recipe_to_name(const Summary& s) {
  const std::string file = std::filesystem::path(s.manifest.recipe_file).filename().string();
  return file.empty() ? "RECIPE" : file;
}

void add_host_notes(const Summary& s, std::vector<std::string>& notes) {
  const HostTally& host = s.host;
  const bool refused = !s.refusal.empty();
  if (refused && host.judged < HostTally::kLeastJudged) {
    notes.push_back(
        "It is unknown whether other work ran during the race, so no verdict is given. Race for longer, or on "
        "a machine whose /proc/stat counts; `--set race.max_busy=1` gives a verdict anyway, "
        "whose error rate then holds only if other work slowed all contenders alike.");
  } else if (refused) {
    notes.push_back(fmt::format(
        "The times were measured while other work ran. Run again on a quiet machine (`bakeoff run "
        "--resume` adds heats). `bakeoff run {} --set race.max_busy=1` gives a verdict however many rounds were "
        "disturbed; its error rate then holds only if the other work slowed all contenders alike, which nothing checks.",
        recipe_to_name(s)));
  } else if (host.busy > 0) {
    notes.push_back(fmt::format("The host disturbed {} of {} rounds that count, for example: {}.", host.busy,
                                host.judged, host.worst));
  }
  const auto on_gpu = [](const Row& row) { return row.gpu.on_gpu; };
  if (host.busy > 0 && std::ranges::any_of(s.ranked, on_gpu)) {
    notes.push_back(
        "The rule about the host judges its processors. Contenders that compute on a GPU wait for these only "
        "where they start kernels or load samples; what else ran on the GPU stands in the remarks on their rows.");
  }
  if (host.reruns > 0) {
    notes.push_back(
        fmt::format("{} of {} rounds of bursts were disturbed and run again by the recipe's rule: {}.",
                    host.reruns, host.rounds + host.reruns, host.worst));
  }
  if (!host.absent.empty())
    notes.push_back(fmt::format("Not measured on this host: {}.", join(host.absent, "; ")));
}

}  // namespace

namespace {

// "a, b, c and 7 others".
std::string named(const std::vector<std::string>& names) {
  constexpr size_t kMost = 4;
  if (names.size() <= kMost) return join(names, ", ");
  return fmt::format("{} and {} others", join(names.begin(), names.begin() + kMost - 1, ", "),
                     names.size() - kMost + 1);
}

// " (between 1.12 and 1.18)", " (1.12 or more)"; empty where no end is known.
std::string range_in_words(const Estimate& ratio) {
  const bool below = table::bounded_below(ratio), above = table::bounded_above(ratio);
  if (below && above)
    return fmt::format(" (between {} and {})", table::times(ratio.low), table::times(ratio.high));
  if (below) return fmt::format(" ({} or more)", table::times(ratio.low));
  return above ? fmt::format(" ({} at most)", table::times(ratio.high)) : "";
}

// Of a group that is not decided.
std::string open_sentence(const Summary& s, const Row& leader, const std::string& words,
                          std::vector<std::string> open) {
  const auto outlook = std::find_if(s.outlooks.begin(), s.outlooks.end(),
                                    [&](const Outlook& o) { return o.leader == leader.contender.id; });
  std::string rest;
  if (outlook != s.outlooks.end()) {
    open.clear();
    for (const Rival& rival : outlook->rivals)
      open.push_back(
          fmt::format("{} ({})", rival.contender,
                      rival.slower ? sure_in_words(rival.slower) + " sure" : "not known yet how sure"));
    rest = ' ' + rest_in_words(*outlook);
  }
  return fmt::format("{} decided yet: {} is the fastest so far, {} ms a step, ahead of {}.{}",
                     words.empty() ? "Not" : words + "not", leader.contender.id,
                     table::milliseconds(leader.ms_per_step.value), named(open), rest);
}

// Of the rows of one group, best first. `words`: "in bfloat16, ", where there are several groups.
std::string group_sentence(const Summary& s, const std::vector<const Row*>& rows, const std::string& words) {
  const double margin = s.margin;
  const Row& leader = *rows.front();
  const std::string name = words + leader.contender.id;
  if (rows.size() == 1) return fmt::format("{}only {} could be ranked.", words, leader.contender.id);
  std::vector<std::string> tied, open;
  for (const Row* row : rows) {
    if (row->verdict == RowVerdict::kSame) tied.push_back(row->contender.id);
    if (row->verdict == RowVerdict::kUndecided) open.push_back(row->contender.id);
  }
  if (tied.empty() && open.empty()) {
    const Row& next = *rows[1];
    if (next.at_least)
      return fmt::format("{} is the fastest here: the next, {}, takes at least {} times as long.", name,
                         next.contender.id, table::times(*next.at_least));
    return fmt::format("{} is the fastest here: the next, {}, takes {} times as long{}.", name,
                       next.contender.id, table::times(next.ratio.value), range_in_words(next.ratio));
  }
  if (open.empty())
    return fmt::format("{} leads, tied with {} within {:g}%.", name, named(tied), 100 * margin);
  return open_sentence(s, leader, words, open);
}

// Of the leader and the runner-up.
void add_limit_note(const Summary& s, std::vector<std::string>& notes) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(2, s.ranked.size()); ++i)
    if (const auto& limit = s.ranked[i].limit)
      text += fmt::format("{}{} is limited by {} ({})", text.empty() ? "" : "; ", s.ranked[i].contender.id,
                          limit->kind, limit->evidence);
  if (!text.empty()) notes.push_back(text + ". `bakeoff tune` tries what would help.");
}

}  // namespace

std::string spoken_of_text(const SpokenOf& of) {
  if (of.nodes == 1) return "of this node";
  return of.about == stats::About::kTheseNodes
             ? fmt::format("of these {} nodes", of.nodes)
             : fmt::format("of machines of this kind, from {} nodes", of.nodes);
}

std::string verdict_sentence(const Summary& s) {
  if (s.ranked.empty()) return "No contender could be ranked; the reasons are below.";
  if (const auto rows = waiting(s); !rows.empty()) {
    std::vector<std::string> ids;
    for (const Row* row : rows) ids.push_back(row->contender.id);
    Summary others = s;
    std::erase_if(others.unranked, [](const Row& row) { return row.waits; });
    return fmt::format("Not decided: the run ended before {} had a heat ({}). {}",
                       table::counted(static_cast<int64_t>(rows.size()), "contender"), named(ids),
                       s.ranked.size() == 1 ? "Raced so far: " + s.ranked.front().contender.id + '.'
                                            : "Of the others: " + verdict_sentence(others));
  }
  if (s.ranked.size() == 1) return fmt::format("Only {} could be ranked.", s.ranked.front().contender.id);
  const std::vector<std::string> groups = groups_of(s);
  std::string text;
  for (const std::string& group : groups) {
    std::vector<const Row*> rows;
    for (const Row& row : s.ranked) {
      if (row.group == group) rows.push_back(&row);
    }
    if (!text.empty()) text += ' ';
    text += group_sentence(s, rows, groups.size() > 1 ? "In " + group + ", " : "");
  }
  if (s.rests_on_promise && s.promise.by_recipe)
    text += fmt::format(" This rests on the recipe's own promise of at most {:.2g}% of noise by restarts.",
                        100 * s.promise.stated);
  return text +
         fmt::format(
             " All verdicts and ratios' intervals together{} are wrong with probability {:g}% at most{}.",
             s.spoken_of.nodes > 1 ? ", " + spoken_of_text(s.spoken_of) + "," : "", 100 * s.alpha,
             std::any_of(s.ranked.begin(), s.ranked.end(), [](const Row& r) { return r.at_least; })
                 ? ", bounds of contenders that were not timed aside"
                 : "");
}

std::vector<std::string> notes_of(const Summary& s, const recipe::Recipe& recipe,
                                  const std::vector<Parity>& parities, const std::vector<Trial>& trials) {
  std::vector<std::string> notes;
  add_limit_note(s, notes);
  add_native_limit(s, notes);
  add_host_notes(s, notes);
  add_promise_notes(s, notes);
  add_remarks(s, notes);
  add_audits(trials, notes);
  add_race_notes(s, trials, notes);
  if (!s.decided && s.refusal.empty() && s.ranked.size() > 1) {
    notes.push_back(
        "The leader was not measured again, as the race is undecided: its time comes from the heats that made "
        "it the leader, so it includes its luck in them.");
  }
  if (const auto reused =
          std::count_if(parities.begin(), parities.end(), [](const Parity& p) { return p.reused; });
      reused > 0) {
    notes.push_back(
        fmt::format("{} of {} parity proofs are those of an earlier run with the same script, weights, "
                    "data, packages and machine; `bakeoff run --prove-again` repeats them.",
                    reused, parities.size()));
  }
  if (recipe.training.track == ir::Track::kAsIs) {
    notes.push_back(
        "As-is track: every framework with its own defaults. The rows do different work where the "
        "fairness diff says so; do not compare them with an equalised run.");
  }
  add_epoch_note(s, recipe.training.batch, notes);
  add_precision_notes(s, notes);
  for (const Contender& contender : s.manifest.contenders) {
    if (contender.compile_ns == 0) continue;
    notes.push_back(
        fmt::format("{} was compiled in {:.1f} s by {} before the race; no time here includes it.",
                    contender.id, static_cast<double>(contender.compile_ns) / 1e9, contender.compiler));
  }
  add_controls(s, recipe, notes);
  return notes;
}

}  // namespace bakeoff
