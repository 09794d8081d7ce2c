// Whatever a report says is decided here, and the order of the steps in Summariser::summary() matters,
// because each changes what the next one may say. First the verdicts, for each group of equal precision with
// its own share of alpha. Then the numbers that need the leader's. Then rows that break a law of physics are
// taken out, with their pairs and outlooks. Only then the sentence is written, from what is left. At last the
// host may withdraw all of it (refuse), and ids become names.
//
// A step in another place does not fail, it contradicts: a sentence would name a leader whose row is gone.
// Verdicts come from the pair table alone; no time of a row decides one (see the header).

#include "summary/summarise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/files.h"
#include "emit/emit.h"
#include "evidence/evidence.h"
#include "evidence/groups.h"
#include "evidence/heats.h"
#include "evidence/host_rounds.h"
#include "evidence/machine_use.h"
#include "evidence/precision.h"
#include "evidence/sign_notes.h"
#include "evidence/warm_up.h"
#include "ir/cost.h"
#include "ir/text.h"
#include "parity/proof_variants.h"
#include "plan/recorded_recipe.h"
#include "recipe/published_table.h"
#include "recipe/recipe.h"
#include "records/controls.h"
#include "records/names.h"
#include "records/why.h"
#include "stats/distributions.h"
#include "stats/planning.h"
#include "stats/racing.h"
#include "stats/trimmed.h"
#include "summary/devices.h"
#include "summary/limits.h"
#include "summary/nodes_section.h"
#include "summary/pair_ratios.h"
#include "summary/published.h"
#include "summary/row_checks.h"
#include "summary/summarise_studies.h"
#include "summary/summary_notes.h"
#include "summary/summary_parts.h"

namespace bakeoff {
namespace {

// The machine's roofs for this number of threads; empty if it was not measured.
using RoofsOver = std::function<std::optional<Roofline>(int threads)>;

// The records of a run, with what follows from them for every row.
class Summariser {
 public:
  Summariser(const Manifest& manifest, const std::vector<Parity>& parities, const std::vector<Trial>& trials,
             recipe::Recipe recipe, ir::Cost cost, RoofsOver roofs_over)
      : manifest_(manifest),
        parities_(parities),
        trials_(trials),
        recipe_(std::move(recipe)),
        cost_(cost),
        roofs_over_(std::move(roofs_over)) {}

  Result<Summary> summary(std::vector<Source> sources) {
    std::vector<size_t> contenders;  // that ever passed the gate, in the recipe's order
    for (size_t i = 0; i < manifest_.contenders.size(); ++i) {
      if (may_race(i)) contenders.push_back(i);
    }
    Summary s = header(std::move(sources));
    s.spoken_of = {.nodes = count_nodes(trials_), .about = stats::About::kTheirKind};
    for (const Contender& contender : manifest_.contenders) rows_.push_back(base_row(contender));
    fill_unranked(s);
    std::vector<std::string> signs;
    for (const Group& group : groups_of(manifest_.contenders, contenders, recipe_.alpha)) {
      std::vector<std::string> ids;
      for (const size_t i : group.members) ids.push_back(manifest_.contenders[i].id);
      TRY(const stats::PairTable table, tabulate(trials_, ids, recipe_.margin));
      stats::RankingOptions options = racing_options(recipe_, trials_, ids).ranking;
      options.alpha = group.alpha;
      const stats::Ranking ranking = rank_of_nodes(table, options, s.spoken_of);
      note_promise(s, promise_of(recipe_, trials_, ids), ranking, table, options);
      fill_rows(s, ranking, group);
      add_pairs(ranking, ids, s);
      for (std::string& note : sign_notes(table, ids)) signs.push_back(std::move(note));
      if (auto open = outlook(recipe_, trials_, ids, group.alpha)) s.outlooks.push_back(std::move(*open));
    }
    fill_against_leader(s);
    fill_use(s);
    take_out_broken(s, manifest_.data_rows);
    keep_pairs_of_ranked(s);
    hold_against_native(s);
    s.decided = !s.ranked.empty() && !any_undecided(s) && waiting(s).empty();
    keep_what_is_open(s);
    s.sentence = verdict_sentence(s);
    if (!manifest_.published_text.empty()) {
      TRY(s.published, recipe::parse_published(manifest_.published_text, "run.json"));
      std::vector<std::pair<std::string, double>> measured;
      for (const Row& row : s.ranked) {
        if (!row.at_least) measured.emplace_back(row.contender.id, row.ms_per_step.value);
      }
      compare_with(*s.published, measured);
    }
    judge_host(s);
    find_faster_unsteady(s);
    add_variance(s);
    s.cost = race_cost(trials_);
    s.notes = notes_of(s, recipe_, parities_, trials_);
    s.notes.insert(s.notes.end(), signs.begin(), signs.end());
    // Until here sentences name contenders by their ids.
    s.sentence = with_names(manifest_.contenders, s.sentence);
    for (std::string& note : s.notes) note = with_names(manifest_.contenders, note);
    return s;
  }

 private:
  // A ranking for this kind of nodes if it decides everything, else for these nodes; `options` then say so, too.
  static stats::Ranking rank_of_nodes(const stats::PairTable& table, stats::RankingOptions& options,
                                      SpokenOf& spoken_of) {
    stats::Ranking ranking = stats::rank(table, options);
    const size_t open = ranking.race.still_undecided.size();
    spoken_of.rivals += ranking.order.size() - (ranking.order.empty() ? 0 : 1);
    if (options.about == stats::About::kTheirKind) {
      spoken_of.decided_of_kind += ranking.order.size() - std::min(ranking.order.size(), open + 1);
      if (open == 0) return ranking;
      options.about = stats::About::kTheseNodes;
      ranking = stats::rank(table, options);
    }
    spoken_of.about = stats::About::kTheseNodes;
    return ranking;
  }

  bool as_is() const { return recipe_.training.track == ir::Track::kAsIs; }

  std::optional<Parity> proof_of(const std::string& id) const {
    for (const Parity& p : parities_) {
      if (p.contender == id) return p;
    }
    return std::nullopt;
  }

  bool may_race(size_t i) const {
    if (!manifest_.not_started[i].reason.empty()) return false;
    const auto proof = proof_of(manifest_.contenders[i].id);
    return proof && !proof->failure && (as_is() || proof->passed());
  }

  std::vector<const Trial*> trials_of(const std::string& id, bool sound_only) const {
    std::vector<const Trial*> found;
    for (const Trial& t : trials_) {
      if (t.contender == id && (!sound_only || heat_value(t))) found.push_back(&t);
    }
    return found;
  }

  // Zero where a heat's duration is not recorded.
  static double total_s(const std::map<int, int64_t>& heats) {
    double s = 0;
    for (const auto& [number, ns] : heats) {
      if (ns <= 0) return 0;
      s += static_cast<double>(ns) / 1e9;
    }
    return s;
  }

  Summary header(std::vector<Source> sources) const {
    Summary s;
    s.title = manifest_.recipe_name;
    s.track = recipe_.training.track;
    s.scenario = recipe_.training.scenario;
    s.margin = recipe_.margin;
    s.alpha = recipe_.alpha;
    s.batch = recipe_.training.batch;
    std::map<int, int64_t> heats;  // by number: their durations
    for (const Trial& t : trials_) heats[t.heat] = std::max(heats[t.heat], t.heat_ns);
    s.heats = static_cast<int>(heats.size());
    s.elapsed_s = total_s(heats);
    s.gflop_per_step = static_cast<double>(cost_.flops()) / 1e9;
    s.parameters = recipe_.workload.parameter_count();
    s.frozen = recipe_.workload.frozen_count();
    s.model = model_bytes(recipe_);
    s.manifest = manifest_;
    s.currency = recipe_.cost.currency;
    s.not_sampled = never_sampled(trials_);
    s.baseline = manifest_.baseline;
    s.sources = std::move(sources);
    return s;
  }

  Row base_row(const Contender& contender) const {
    Row row{.contender = contender, .group = group_of(contender), .proof = proof_of(contender.id)};
    if (row.proof && !row.proof->failure) {
      row.parity = row.proof->passed() ? ParityState::kPassed
                   : as_is()           ? ParityState::kReported
                                       : ParityState::kFailed;
      row.effective = row.proof->effective;
      row.versions = row.proof->versions;
    }
    const auto sound = trials_of(contender.id, true);
    row.start_up = start_up(sound, row.proof);
    // One heat alone says nothing of its own noise.
    const auto again = std::count_if(sound.begin(), sound.end(), [](const Trial* t) { return t->confirms; });
    const bool confirmed = again > 1;
    row.confirmed = confirmed ? static_cast<int>(again) : 0;
    row.transfer = transfer_of(sound);
    for (const Trial* t : sound) {
      if (confirmed && !t->confirms) continue;  // what chose the winner flatters it
      row.heat_ms.push_back(std::exp(*heat_value(*t)));
      for (const double step : step_times(*t)) row.step_ms.push_back(step);
      row.peak_rss_bytes = std::max(row.peak_rss_bytes, t->peak_rss_bytes);
      row.effective = t->effective;
      row.versions = t->versions;
    }
    if (row.proof) {
      row.loss_distance = loss_distance(*row.proof);
      row.gradient_distance = gradient_distance(*row.proof);
      row.logit_distance = logit_distance(*row.proof);
    }
    row.support = support_of(row);
    row.usage = usage_of(sound);
    row.wait = input_wait_of(sound, manifest_.data_rows / std::max<int64_t>(1, recipe_.training.batch));
    row.memory = memory_of(sound, recipe_.training.batch);
    row.gpu = gpu_use_of(sound);
    row.remarks = remarks_on(trials_of(contender.id, false));
    row.heats = static_cast<int>(sound.size());
    if (const auto unsteady = not_steady_.find(contender.id); unsteady != not_steady_.end())
      row.drift = unsteady->second.drift;
    return row;
  }

  std::string support_of(const Row& row) const {
    const auto device = row.effective.find("device");
    const auto units = manifest_.host.more.find("vector units");
    return precision_support(row.group, device == row.effective.end() ? "cpu" : device->second,
                             units == manifest_.host.more.end() ? "" : units->second);
  }

  // Why a contender is not ranked; nullopt if it may be.
  std::optional<Failure> why_not(size_t i, const Row& row) const {
    if (!manifest_.not_started[i].reason.empty()) return manifest_.not_started[i];
    if (row.proof && row.proof->failure) return row.proof->failure;
    if (row.parity == ParityState::kFailed) {
      return Failure{Stage::kParity,
                     fmt::format("not the same computation: {} differs by {:.2g}{}", row.proof->diverges_at,
                                 row.proof->divergence,
                                 row.proof->explanation.empty() ? "" : " (" + row.proof->explanation + ")"),
                     {}};
    }
    for (const Trial* t : trials_of(row.contender.id, false)) {
      if (t->failure) return t->failure;
      if (t->invalid) return Failure{Stage::kRun, *t->invalid, {}};
    }
    if (hopeless_.contains(row.contender.id)) return std::nullopt;
    if (const auto unsteady = not_steady_.find(row.contender.id); unsteady != not_steady_.end())
      return Failure{Stage::kWarmUp, unsteady->second.text(), {}};
    if (const std::string look = looked_hopeless(row.contender.id);
        row.proof && row.heats == 0 && !look.empty())
      return Failure{Stage::kRun, look, {}};
    return not_yet(row);
  }

  // The failure of a contender that did nothing wrong: the run ended before it was timed.
  static std::optional<Failure> not_yet(const Row& row) {
    if (!row.proof) return Failure{Stage::kEnvironment, "was not run: the run ended before its turn", {}};
    if (row.heats == 0)
      return Failure{
          Stage::kRun,
          fmt::format(
              "was {}, but not raced: the run ended before its first heat; `bakeoff run --resume` goes on",
              row.parity == ParityState::kReported ? "compared with the referee" : "proven equal"),
          {}};
    return std::nullopt;
  }

  // Why a contender is not ranked of which only first steps were timed, in too few heats. Empty: it is not one.
  std::string looked_hopeless(const std::string& id) const {
    std::string look;
    for (const Trial* t : trials_of(id, false)) {
      if (t->dropped.empty()) continue;
      look = fmt::format(
          "looked too slow to be timed ({}), and the run ended before it was looked at again "
          "on a quiet host",
          t->dropped);
    }
    return look;
  }

  void fill_unranked(Summary& s) const {
    for (size_t i = 0; i < manifest_.contenders.size(); ++i) {
      Row row = rows_[i];
      row.failure = why_not(i, row);
      row.waits = row.failure && row.failure == not_yet(row);
      if (row.failure || !may_race(i)) s.unranked.push_back(std::move(row));
    }
  }

  void fill_rows(Summary& s, const stats::Ranking& ranking, const Group& group) const {
    std::vector<Row> rows(group.members.size());
    std::vector<bool> ranked(group.members.size(), false);
    for (size_t e = 0; e < rows.size(); ++e) {
      const size_t i = group.members[e];
      rows[e] = rows_[i];
      ranked[e] = !why_not(i, rows[e]) && !hopeless_.contains(rows[e].contender.id);
    }
    const size_t first = s.ranked.size();
    std::vector<size_t> order;
    for (const size_t e : ranking.order) {
      if (ranked[e]) order.push_back(e);
    }
    // A lone survivor was never compared and stands in no order.
    for (size_t e = 0; e < rows.size(); ++e) {
      if (ranked[e] && std::find(order.begin(), order.end(), e) == order.end()) order.push_back(e);
    }
    for (const size_t e : order) {
      Row& row = rows[e];
      const stats::Place& place = ranking.places[e];
      const stats::Standing& standing = ranking.race.standings[e];
      row.rank_best = static_cast<int>(place.best);
      row.rank_worst = static_cast<int>(place.worst);
      row.ties = place.letters;
      const bool leads = ranking.race.leader == e || order.size() == 1;
      row.verdict = leads ? RowVerdict::kLeader : row_verdict(standing.verdict);
      // Out by its comparison with a third: its own interval does not say that it is slower than the leader.
      if (!leads && standing.eliminated_by && standing.eliminated_by != ranking.race.leader &&
          standing.interval.low <= 0) {
        row.verdict = RowVerdict::kBehindAnother;
        row.behind = Behind{manifest_.contenders[group.members[*standing.eliminated_by]].id,
                            std::exp(standing.behind)};
      }
      row.ratio =
          leads ? Estimate{1, 1, 1}
                : with_known_ends({std::exp(standing.pairs > 0 ? standing.gap : standing.effect.value_or(0)),
                                   std::exp(standing.interval.low), std::exp(standing.interval.high)});
      s.ranked.push_back(std::move(row));
    }
    std::vector<Row> last;
    for (Row& row : rows) {
      if (hopeless_.contains(row.contender.id)) last.push_back(std::move(row));
    }
    rank_last(s, first, std::move(last));
  }

  // Hopeless contenders, behind the ranked ones of their group, which begin at `first`: slowest last.
  void rank_last(Summary& s, size_t first, std::vector<Row> rows) const {
    const auto seen = [&](const Row& row) { return hopeless_.at(row.contender.id); };
    std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return seen(a) < seen(b); });
    const size_t timed = s.ranked.size() - first;
    if (timed == 0) {
      for (Row& row : rows) {
        row.failure = Failure{
            Stage::kRun,
            "looked too slow to be timed in two heats, and no ranked contender is left to compare it with",
            {}};
        s.unranked.push_back(std::move(row));
      }
      return;
    }
    size_t ahead = 0;
    for (size_t i = first; i < first + timed; ++i) {
      if (s.ranked[i].ratio.high <= stats::kBoundOfHopeless)
        ++ahead;
      else
        s.ranked[i].rank_worst += static_cast<int>(rows.size());
    }
    if (timed == 1 && !rows.empty())  // it met no timed contender, and is still ahead of these
      s.ranked[first].rank_best = s.ranked[first].rank_worst = 1, ahead = 1;
    for (Row& row : rows) {
      row.at_least = stats::kBoundOfHopeless;
      row.rank_best = static_cast<int>(ahead + 1);
      row.rank_worst = static_cast<int>(timed + rows.size());
      row.verdict = RowVerdict::kAtLeast;
      row.ratio = {*row.at_least, *row.at_least, std::numeric_limits<double>::infinity()};
      row.remarks.push_back(fmt::format(
          "its fastest step in {} fresh processes took {:.3g} times as long as the leader's; it was "
          "not timed further, and the bound of {:g} leaves room for noise",
          trials_of(row.contender.id, false).size(), seen(row), *row.at_least));
      s.ranked.push_back(std::move(row));
    }
  }

  // Whether the verdicts of a group would be others without the promise.
  static void note_promise(Summary& s, const Promise& promise, const stats::Ranking& ranking,
                           const stats::PairTable& table, stats::RankingOptions options) {
    if (promise.stated <= 0) return;
    if (s.promise.withdrawn.empty()) s.promise = promise;
    options.ceiling = 0;
    const stats::Race without = stats::race_state(table, options);
    for (size_t i = 0; i < without.standings.size(); ++i) {
      s.rests_on_promise |= without.standings[i].verdict != ranking.race.standings[i].verdict ||
                            without.leader != ranking.race.leader;
    }
  }

  // What needs the leader's own numbers.
  void fill_against_leader(Summary& s) const {
    for (auto from = s.ranked.begin(); from != s.ranked.end();) {  // a group after the other
      const auto to =
          std::find_if(from, s.ranked.end(), [&](const Row& r) { return r.group != from->group; });
      std::stable_partition(from, to, [](const Row& r) { return r.verdict == RowVerdict::kLeader; });
      fill_against_leader(from, to);
      from = to;
    }
  }

  static std::vector<double> logs_of(const std::vector<double>& values) {
    std::vector<double> logs;
    for (const double value : values) logs.push_back(std::log(value));
    return logs;
  }

  // Half the width of the 99% interval of the mean log of a row's heats.
  static double half_width_of_log(const std::vector<double>& heat_ms) {
    if (heat_ms.size() < 2) return std::numeric_limits<double>::infinity();
    const auto n = static_cast<double>(heat_ms.size());
    const double t = stats::student_quantile(n - 1, 0.995);
    return t * std::sqrt(stats::variance(logs_of(heat_ms)) / n);
  }

  void fill_against_leader(std::vector<Row>::iterator from, std::vector<Row>::iterator to) const {
    const Row& leader = *from;
    const double leader_ms = std::exp(stats::mean(logs_of(leader.heat_ms)));
    for (auto at = from; at != to; ++at) {
      Row& row = *at;
      if (row.at_least) {
        const double bound = *row.at_least * leader.ms_per_step.value;
        row.ms_per_step = {bound, bound, std::numeric_limits<double>::infinity()};
        continue;
      }
      const double centre = leader_ms * row.ratio.value;
      // Heats differ by the machine's state too, so this interval is wider than that of a ratio.
      const double half = half_width_of_log(row.heat_ms);
      const Estimate factor = with_known_ends({1, std::exp(-half), std::exp(half)});
      row.ms_per_step = {centre, centre * factor.low, centre * factor.high};
      row.samples_per_second = static_cast<double>(recipe_.training.batch) / centre * 1e3;
      row.gflops = static_cast<double>(cost_.flops()) / 1e6 / centre;
      row.epoch =
          epoch_cost(centre, manifest_.data_rows, recipe_.training.batch, row.usage, row.gpu, recipe_.cost);
      const auto cost = [](const Row& r) {
        return stats::RunCost{r.start_up.total() - r.ms_per_step.value, r.ms_per_step.value};
      };
      if (&row == &leader) continue;
      const stats::BreakEven even = stats::break_even(cost(row), cost(leader));
      if (even.leader_cheaper_from && *even.leader_cheaper_from > 0) {
        row.break_even_step = static_cast<double>(*even.leader_cheaper_from);
      }
    }
  }

  // How far from the machine's limits. An own script may do other work than the model's.
  void fill_use(Summary& s) const {
    std::set<int> threads;
    for (Row& row : s.ranked) {
      row.threads = threads_of(row.effective, manifest_.host.cpus);
      if (row.gpu.on_gpu || row.at_least) continue;  // the roofs are the processors'
      threads.insert(row.threads);
      if (!roofs_over_ || !row.contender.own_script.empty()) continue;
      const auto roofs = roofs_over_(row.threads);
      if (!roofs) continue;
      const bool full = row.group == emit::kFullPrecision;
      const double peak = full ? roofs->peak_flops : row.group == "bfloat16" ? roofs->bf16_flops : 0;
      if (peak > 0) row.flop_use = row.gflops * 1e9 / peak;
      if (full && roofs->bytes_per_s > 0)  // what float32 moves
        row.byte_use = roofs->bytes / (row.ms_per_step.value / 1e3) / roofs->bytes_per_s;
    }
    if (roofs_over_ && !threads.empty()) s.roofline = roofs_over_(*threads.rbegin());
    if (s.roofline) s.roofline->fewest_threads = *threads.begin();
    for (Row& row : s.ranked) row.limit = limit_of(row);
  }

  // Drops outlooks of removed rows, and outlooks whose leader was removed.
  static void keep_what_is_open(Summary& s) {
    const auto reads = [&](const std::string& id, RowVerdict verdict) {
      return std::any_of(s.ranked.begin(), s.ranked.end(),
                         [&](const Row& row) { return row.contender.id == id && row.verdict == verdict; });
    };
    for (Outlook& outlook : s.outlooks)
      std::erase_if(outlook.rivals,
                    [&](const Rival& rival) { return !reads(rival.contender, RowVerdict::kUndecided); });
    std::erase_if(s.outlooks, [&](const Outlook& outlook) {
      return outlook.rivals.empty() || !reads(outlook.leader, RowVerdict::kLeader);
    });
  }

  static bool any_undecided(const Summary& s) {
    return std::ranges::any_of(s.ranked,
                               [](const Row& row) { return row.verdict == RowVerdict::kUndecided; });
  }

  // Over all ranked contenders together.
  void add_variance(Summary& s) const {
    std::vector<std::string> ids;
    for (const Row& row : s.ranked) {
      if (row.group == s.ranked.front().group && !row.at_least) ids.push_back(row.contender.id);
    }
    if (ids.size() < 2) return;
    const auto rivals = static_cast<double>(manifest_.contenders.size() - 1);
    // Only with a verdict can be said how many heats would have been enough.
    const auto undecided = s.refusal.empty() ? std::optional(any_undecided(s)) : std::nullopt;
    s.variance = variance_of(trials_, ids, undecided, recipe_.margin, recipe_.alpha / rivals);
  }

  // If the host disturbed most rounds, reruns included, or its state is unknown, there is no verdict and no
  // leader.
  void judge_host(Summary& s) const {
    s.host = tally(trials_);
    const auto refusal = s.host.refusal(recipe_.race.host);
    const bool nothing_said = std::all_of(s.ranked.begin(), s.ranked.end(), [](const Row& row) {
      return row.verdict == RowVerdict::kLeader || row.verdict == RowVerdict::kUndecided;
    });
    if (!refusal || (nothing_said && !s.host.busy_throughout(recipe_.race.host))) return;
    refuse(s, *refusal);
  }

  // A contender whose steps drift is not ranked, but may end faster than the leader, which then is not the fastest.
  void find_faster_unsteady(Summary& s) const {
    if (!s.refusal.empty() || s.ranked.empty()) return;
    const Row& leader = s.ranked.front();
    for (const Row& row : s.unranked) {
      const auto drifts = not_steady_.find(row.contender.id);
      if (drifts == not_steady_.end() || row.group != leader.group || !row.failure ||
          row.failure->stage != Stage::kWarmUp || drifts->second.last_ms >= leader.ms_per_step.value)
        continue;
      s.unsteady = row.contender.id;
      s.sentence = fmt::format(
          "{} was measured faster than all others, {:.3g} ms a step in the end, but never became steady, so it is not "
          "ranked. Of the others: {}",
          row.contender.id, drifts->second.last_ms, s.sentence);
      return;
    }
  }

  static void refuse(Summary& s, const std::string& why) {
    s.refusal = why;
    s.decided = false;
    s.outlooks.clear();
    s.sentence = fmt::format("No verdict: {}.", why);
    for (Row& row : s.ranked) {
      row.verdict = RowVerdict::kRefused;
      row.ties.clear();
      row.rank_best = 1;
      row.rank_worst = static_cast<int>(s.ranked.size());
    }
    // As measured, each group for itself.
    for (auto begin = s.ranked.begin(); begin != s.ranked.end();) {
      const auto end =
          std::find_if(begin, s.ranked.end(), [&](const Row& row) { return row.group != begin->group; });
      std::stable_sort(begin, end,
                       [](const Row& a, const Row& b) { return a.ms_per_step.value < b.ms_per_step.value; });
      begin = end;
    }
  }

  const Manifest& manifest_;
  const std::vector<Parity>& parities_;
  const std::vector<Trial>& trials_;
  recipe::Recipe recipe_;
  ir::Cost cost_;
  std::vector<Row> rows_;  // of every contender, before it is ranked
  std::map<std::string, double> hopeless_ = hopeless(trials_);
  std::map<std::string, NotSteady> not_steady_ = not_steady(trials_, recipe_.margin);
  RoofsOver roofs_over_;
};

// What no change of its settings can exceed, as far as the race knows.
std::string ceiling(const Summary& s, const std::string& contender) {
  const auto row = std::ranges::find(s.ranked, contender, [](const Row& r) { return r.contender.id; });
  const std::string limit = row == s.ranked.end() ? "" : native_limit_of(*row);
  return limit.empty() ? "" : fmt::format(" The most that {} could gain: {}.", contender, limit);
}

// A folder as a command writes it: relative if it lies in the working directory.
std::string from_here(const std::filesystem::path& folder) {
  std::error_code failed;
  const std::filesystem::path here = std::filesystem::current_path(failed);
  const std::filesystem::path relative = std::filesystem::absolute(folder, failed).lexically_relative(here);
  const bool below = !failed && !relative.empty() && *relative.begin() != "..";
  return (below ? relative : folder).string();
}

}  // namespace

Result<Summary> summarise(const Manifest& manifest, const std::vector<Parity>& parities,
                          const std::vector<Trial>& trials, std::vector<Source> sources,
                          const MachineReport* machine, const MachineReport* peak) {
  TRY(recipe::Recipe recipe, recorded_recipe(manifest));
  TRY(ir::Cost cost, ir::step_cost(recipe.workload, recipe.training));
  if (recipe.training.generates()) cost = {};  // of a pass over whole rows: a word costs less
  const std::vector<Trial> checked =
      mark_broken(trials, bounds_of(manifest, parities, recipe.workload, recipe.training, machine, peak));
  RoofsOver roofs_over;
  if (machine != nullptr) {
    roofs_over = [machine, workload = recipe.workload, training = recipe.training](int threads) {
      auto roofs = roofline_of(machine->limits, workload, training, threads);
      if (roofs) roofs->measured = machine->measured, roofs->disturbed = machine->disturbed;
      return roofs;
    };
  }
  return Summariser(manifest, parities, checked, std::move(recipe), cost, std::move(roofs_over))
      .summary(std::move(sources));
}

Result<Summary> summarise(const RunDirectory& directory) {
  TRY(const Manifest manifest, directory.manifest());
  TRY(const auto parities, directory.read<Parity>());
  TRY(const auto trials, directory.read<Trial>());
  std::vector<Source> sources;
  for (const Contender& contender : manifest.contenders) {
    const auto known = std::any_of(sources.begin(), sources.end(),
                                   [&](const Source& s) { return s.file == contender.script; });
    TRY(auto text, directory.script(contender.script));
    if (!known && text) sources.push_back({contender.script, std::move(*text)});
  }
  std::string note;
  const auto machine = machine_of_run(directory.path(), manifest.host, note);
  const auto peak = run_peak(directory.path(), manifest.host);
  TRY(Summary summary, summarise(manifest, parities, trials, std::move(sources),
                                 machine ? &*machine : nullptr, peak ? &*peak : nullptr));
  summary.run = from_here(directory.path());
  if (auto devices = devices_section(summary)) summary.studies.push_back(std::move(*devices));
  CHECK_OK(add_studies(directory, summary));
  if (auto nodes = nodes_section(summary, trials)) {
    summary.fleet = true;
    summary.studies.push_back(std::move(*nodes));
  }
  if (!note.empty()) summary.notes.push_back(note);
  TRY(const auto whys, directory.read<Why>());
  if (!whys.empty() && summary.refusal.empty())
    summary.sentence += ' ' + sentence(whys.back()) + ceiling(summary, whys.back().contender);
  return summary;
}

}  // namespace bakeoff
