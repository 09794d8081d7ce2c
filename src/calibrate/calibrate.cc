#include "calibrate/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evidence/variance.h"
#include "proc/interrupt.h"
#include "race/race.h"
#include "tensor/rng.h"

namespace bakeoff {
namespace {

constexpr size_t kLeastBlocks = 5;  // of a group before anything is decided: p can be 1/252
constexpr double kCooldown = 0.05;
// Ends of the first two steps, as fractions of the time.
constexpr double kAllocatorsUntil = 0.45, kOthersUntil = 0.88;
constexpr double kQuickAllocatorsUntil = 0.6, kQuickOthersUntil = 1;

struct ControlTrials {
  Measured entry = {};
  std::vector<Trial> trials = {};
  bool broken = false;  // its workers failed
};

class Calibration {
 public:
  Calibration(const CalibrateOptions& options, const Machine& machine, const RunBlock& run_block,
              const Clock& clock, const Watch& watch)
      : options_(options),
        machine_(machine),
        run_block_(run_block),
        clock_(clock),
        watch_(watch),
        begin_(clock.now_ns()),
        random_(options.seed) {}

  Result<Profile> run() {
    const Controls base = baseline(machine_);
    groups_.push_back(
        {.entry = {.name = fmt::format("default, {} thread{}", base.threads, base.threads == 1 ? "" : "s"),
                   .controls = base,
                   .why = "the measurement that all others are compared with"}});
    const auto allocators = allocator_candidates(base, machine_, options_.quick);
    const auto others = other_candidates(base, machine_, options_.quick);
    for (const auto* list : {&allocators, &others}) {
      tried_ += static_cast<double>(std::count_if(list->begin(), list->end(), [&](const Candidate& c) {
        return c.why_not.empty() && c.controls.threads == base.threads;
      }));
    }
    CHECK_OK(step(0, allocators, options_.quick ? kQuickAllocatorsUntil : kAllocatorsUntil));
    size_t kept = keep_narrowest(0);
    if (!over()) {
      CHECK_OK(step(kept, other_candidates(groups_[kept].entry.controls, machine_, options_.quick),
                    options_.quick ? kQuickOthersUntil : kOthersUntil));
      kept = keep_together(kept);
    }
    return profile(kept);
  }

 private:
  double elapsed() const { return static_cast<double>(clock_.now_ns() - begin_) / 1e9; }
  double budget() const { return options_.minutes * 60; }
  bool over() const { return proc::interrupted() || elapsed() >= budget(); }

  // Measures `against` and the candidates until `until` (a fraction of the time) is reached.
  Status step(size_t against, const std::vector<Candidate>& candidates, double until) {
    std::vector<size_t> members = {against};
    for (const Candidate& c : candidates) {
      groups_.push_back(
          {.entry = {.name = c.name, .controls = c.controls, .why = "not tried: " + c.why_not}});
      if (!c.why_not.empty()) continue;
      groups_.back().entry.why = "not decided: the time was over";
      groups_.back().entry.against = groups_[against].entry.name;
      members.push_back(groups_.size() - 1);
    }
    if (members.size() == 1 && !groups_[against].entry.d.empty()) return Done{};
    return measure(members, until);
  }

  // Rounds of one block of every member. A step that is behind takes from the next one's time.
  Status measure(const std::vector<size_t>& members, double until) {
    double longest = 0;
    while (!over()) {
      const bool enough = std::all_of(members.begin(), members.end(), [&](size_t g) {
        return groups_[g].broken || groups_[g].entry.d.size() >= kLeastBlocks;
      });
      if (elapsed() + longest > (enough ? until : 1.0) * budget() && longest > 0) break;
      const double before = elapsed();
      std::vector<size_t> order = members;
      tensor::shuffle(order, random_);
      for (const size_t g : order) {
        if (over() || groups_[g].broken) continue;
        CHECK_OK(block(g));
      }
      longest = std::max(longest, elapsed() - before);
    }
    return Done{};
  }

  Status block(size_t g) {
    ControlTrials& group = groups_[g];
    const stats::Spread so_far = group.entry.spread();
    Happening now{.stage = "calibrate",
                  .detail = so_far.n == 0 ? group.entry.name
                                          : fmt::format("{}: sd {:.2g}% after {} blocks", group.entry.name,
                                                        100 * so_far.sd, so_far.n),
                  .elapsed_s = elapsed(),
                  .left_s = std::max(0.0, budget() - elapsed())};
    watch_(now);
    auto trials = run_block_(group.entry.controls, ++blocks_, now);
    if (proc::interrupted()) return Done{};  // a block cut short is void
    if (!trials) {
      if (g == 0) return trials.error();
      group.broken = true;
      group.entry.why = "not kept: its workers fail (" + trials.error().message + ")";
      return Done{};
    }
    const auto a = heat_value(trials->at(0)), b = heat_value(trials->at(1));
    if (!a || !b) return Done{};
    group.entry.d.push_back(*a - *b);
    group.trials.insert(group.trials.end(), trials->begin(), trials->end());
    return Done{};
  }

  // Decides about the groups that were compared with `against`; returns the ones that passed.
  std::vector<size_t> passed(size_t against) {
    std::vector<size_t> kept;
    const Measured& rival = groups_[against].entry;
    for (size_t g = 0; g < groups_.size(); ++g) {
      Measured& m = groups_[g].entry;
      if (m.against != rival.name || groups_[g].broken) continue;
      if (std::min(m.d.size(), rival.d.size()) < kLeastBlocks) continue;
      m.p = stats::p_narrower(m.d, rival.d, options_.seed);
      const std::string evidence = fmt::format("sd {:.2g}% against {:.2g}%, p {:.2g}", 100 * m.spread().sd,
                                               100 * rival.spread().sd, m.p);
      if (m.controls.threads != rival.controls.threads) {
        m.why = "shown only: a recipe asks for it by race.threads (" + evidence + ")";
      } else if (m.p <= options_.alpha / tried_ && m.spread().sd < rival.spread().sd) {
        m.why = "lowers the noise (" + evidence + ")";
        kept.push_back(g);
      } else {
        m.why = "not kept: no better than chance (" + evidence + ")";
      }
    }
    return kept;
  }

  // Of `found`; `against` where nothing was.
  size_t narrowest(size_t against, const std::vector<size_t>& found) const {
    size_t best = against;
    for (const size_t g : found) {
      if (best == against || groups_[g].entry.spread().sd < groups_[best].entry.spread().sd) best = g;
    }
    return best;
  }

  size_t keep_narrowest(size_t against) {
    const std::vector<size_t> found = passed(against);
    const size_t best = narrowest(against, found);
    for (const size_t g : found) {
      if (g != best) groups_[g].entry.why += ", but " + groups_[best].entry.name + " is better still";
    }
    return best;
  }

  // Several controls that each help: do they together?
  size_t keep_together(size_t against) {
    const std::vector<size_t> found = passed(against);
    const size_t best = narrowest(against, found);
    if (found.size() < 2 || over()) return best;
    Controls all = groups_[against].entry.controls;
    for (const size_t g : found) {
      const Controls& one = groups_[g].entry.controls;
      if (one.huge_pages != groups_[against].entry.controls.huge_pages) all.huge_pages = one.huge_pages;
      if (!one.randomise_addresses) all.randomise_addresses = false;
      all.cooldown_s = std::max(all.cooldown_s, one.cooldown_s);
    }
    groups_.push_back(
        {.entry = {.name = "these together", .controls = all, .against = groups_[best].entry.name}});
    const size_t together = groups_.size() - 1;
    const Status done = measure({best, together}, 1.0);
    Measured& m = groups_[together].entry;
    m.p = stats::p_narrower(groups_[best].entry.d, m.d, options_.seed);
    const bool worse =
        m.p <= options_.alpha || m.d.size() < kLeastBlocks || groups_[together].broken || !done;
    m.why = worse ? fmt::format("not kept: no better than {} alone", groups_[best].entry.name)
                  : "kept: no worse than the best of them alone";
    return worse ? best : together;
  }

  Profile profile(size_t kept) {
    Profile p{.minutes = elapsed() / 60, .complete = !proc::interrupted()};
    groups_[kept].entry.kept = true;
    p.kept = groups_[kept].entry.controls;
    if (const auto variance =
            variance_of(groups_[kept].trials, names_of(groups_[kept].trials), false, 0.03, 0.01)) {
      p.processes_sd = variance->processes;
      p.bursts_sd = variance->bursts;
      p.steps_sd = variance->steps;
      p.cheapest_bursts = variance->cheapest_bursts;
    }
    const ProcessCost cost = process_cost(groups_[kept].trials);
    p.start_s = cost.start_s;
    p.burst_s = cost.burst_s;
    for (ControlTrials& group : groups_) p.entries.push_back(std::move(group.entry));
    return p;
  }

  static std::vector<std::string> names_of(const std::vector<Trial>& trials) {
    std::vector<std::string> names;
    for (const Trial& t : trials) {
      if (std::find(names.begin(), names.end(), t.contender) == names.end()) names.push_back(t.contender);
    }
    return names;
  }

  const CalibrateOptions& options_;
  const Machine& machine_;
  const RunBlock& run_block_;
  const Clock& clock_;
  const Watch& watch_;
  int64_t begin_;
  tensor::Rng random_;
  std::vector<ControlTrials> groups_;
  double tried_ = 0;
  int blocks_ = 0;
};

std::string refused(const Machine& machine, const WorkerSpec& spec) {
  return machine.refusal ? machine.refusal(spec).value_or("") : "";
}

}  // namespace

Controls baseline(const Machine& machine) {
  Controls base{.threads = static_cast<int>(std::max<size_t>(1, machine.cpus.size()))};
  if (!refused(machine, {.cpus = machine.cpus}).empty()) base.pin = "none";
  return base;
}

std::vector<Candidate> allocator_candidates(const Controls& base, const Machine& machine, bool quick) {
  std::vector<Candidate> all;
  Controls tuned = base;
  tuned.allocator = "tuned";
  all.push_back({"tuned glibc malloc", tuned, {}});
  for (const char* name : {"jemalloc", "mimalloc", "tcmalloc"}) {
    Controls other = base;
    other.allocator = name;
    const auto library = allocator_library(name, machine.root);
    all.push_back({name, other, !library ? library.error().line() : quick ? "left out by --quick" : ""});
  }
  return all;
}

std::vector<Candidate> other_candidates(const Controls& base, const Machine& machine, bool quick) {
  std::vector<Candidate> all;
  const auto add = [&](const char* name, bool in_quick, const std::string& why_not, auto change) {
    Controls controls = base;
    change(controls);
    all.push_back({name, controls,
                   !why_not.empty()     ? why_not
                   : quick && !in_quick ? "left out by --quick"
                                        : ""});
  };
  add("no address randomisation", false, refused(machine, {.randomise_addresses = false}),
      [](Controls& c) { c.randomise_addresses = false; });
  add("no transparent huge pages", false, refused(machine, {.huge_pages = false}),
      [](Controls& c) { c.huge_pages = "off"; });
  const bool glibc = base.allocator == "default" || base.allocator == "tuned";
  add("malloc requests huge pages", false, glibc ? "" : base.allocator + " is not glibc's",
      [](Controls& c) { c.huge_pages = "malloc"; });
  add("cooldown", false, "", [](Controls& c) { c.cooldown_s = kCooldown; });
  std::string no_pin = base.threads <= 1 ? "there is one CPU only" : "";
  if (no_pin.empty() && !machine.cpus.empty()) no_pin = refused(machine, {.cpus = {machine.cpus.front()}});
  add("one thread, pinned", true, no_pin, [&](Controls& c) {
    c.threads = 1;
    c.pin = "auto";
  });
  return all;
}

Result<Profile> calibrate(const CalibrateOptions& options, const Machine& machine, const RunBlock& run_block,
                          const Clock& clock, const Watch& watch) {
  return Calibration(options, machine, run_block, clock, watch).run();
}

}  // namespace bakeoff
