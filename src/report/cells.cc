#include "report/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

std::string rank_range(const Row& row) {
  if (row.rank_best <= 0) return kNone;
  if (row.rank_worst <= row.rank_best) return fmt::format("{}", row.rank_best);
  return fmt::format("{}–{}", row.rank_best, row.rank_worst);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

// The slower of two per step that starts up sooner is ahead until the step, otherwise after it.
std::string break_even(const Row& row, const Row& leader) {
  if (!row.break_even_step || !std::isfinite(*row.break_even_step) || *row.break_even_step < 1) return kNone;
  const bool slower = row.ms_per_step.value >= leader.ms_per_step.value;
  return fmt::format("{} {}", slower ? "until" : "after", count(std::ceil(*row.break_even_step)));
}

std::string transfer(const Row& row) {
  if (!row.transfer) return kNone;
  return fmt::format("{} {}", duration(static_cast<double>(row.transfer->ns) / 1e6),
                     row.transfer->of == "data" ? "once" : "a batch");
}

std::string positive(double value, std::string (*show)(double)) { return value > 0 ? show(value) : kNone; }

std::string use(double share) { return std::isfinite(share) ? significant(100 * share, 2) + "%" : kNone; }

void append_sentence(std::string& text, const std::string& more) {
  if (more.empty() || text.find(more) != std::string::npos) return;
  if (!text.empty()) text += "; ";
  text += more;
}

}  // namespace

Cells cells(const Summary& summary, const Row& row) {
  const Row& leader = leader_of(summary, row);
  const bool leads = &row == &leader;
  Cells c;
  c.rank = rank_range(row);
  c.name = one_line(row.contender.id);
  const auto groups = groups_of(summary);
  if (groups.size() > 1 || groups != std::vector<std::string>{"float32"}) c.group = row.group;
  if (row.loss_distance && row.gradient_distance)
    c.distance = fmt::format("{} · {}", error_size(*row.loss_distance), error_size(*row.gradient_distance));
  c.ties = row.ties;
  c.verdict = lower(one_line(row.verdict));
  if (row.behind) {
    c.verdict = fmt::format("behind {} by at least {}", one_line(row.behind->contender),
                            percent(row.behind->at_least - 1));
  }
  c.ms = milliseconds(row.ms_per_step.value);
  c.ms_interval = interval(row.ms_per_step, milliseconds);
  c.ratio = ratio(row.ratio.value);
  c.ratio_interval = leads ? kNone : interval(row.ratio, ratio);
  c.rate = positive(row.samples_per_second, count);
  c.gflops = row.gflops > 0 ? significant(row.gflops, 3) : kNone;
  c.flop_use = row.flop_use ? use(*row.flop_use) : kNone;
  c.byte_use = row.byte_use ? use(*row.byte_use) : kNone;
  c.start = duration(row.start_up.total());
  c.first_step = duration(row.start_up.first_step);
  c.first_step_cold = row.start_up.first_step_cold ? duration(*row.start_up.first_step_cold) : kNone;
  c.transfer = transfer(row);
  c.break_even = leads ? kNone : break_even(row, leader);
  c.memory = positive(static_cast<double>(row.peak_rss_bytes), bytes);
  c.parity = parity_mark(row.parity) + ' ' + parity_word(row.parity);
  c.heats = fmt::format("{}", row.heats);
  if (row.at_least) {
    c.ms = "≥ " + c.ms;
    c.ratio = "≥ " + ratio(*row.at_least);
    c.ms_interval = c.ratio_interval = c.start = c.first_step = c.first_step_cold = kNone;
  }
  return c;
}

namespace {

// Two digits below ten, none lost above: "0", "0.12", "9.5", "1,204".
std::string amount(double value) { return value < 99.5 ? fmt::format("{:.2g}", value) : count(value); }

template <typename Show>
std::string or_none(const std::optional<double>& value, Show show) {
  return value && std::isfinite(*value) ? show(*value) : kNone;
}

std::string faults_text(const Usage& usage) {
  const std::string text = or_none(usage.faults, amount);
  const bool disk = usage.major_faults && *usage.major_faults > 0;
  return disk ? fmt::format("{} ({} from disk)", text, amount(*usage.major_faults)) : text;
}

}  // namespace

namespace {

// "12.3 G", "4.56 M": a count with three digits.
std::string large(double value) {
  if (value >= 1e9) return significant(value / 1e9, 3) + " G";
  return value >= 1e6 ? significant(value / 1e6, 3) + " M" : count(value);
}

void fill_memory_and_gpu(const Row& row, Cells& c) {
  c.pss = or_none(row.memory.pss, bytes);
  c.sample_memory = or_none(row.memory.per_sample, bytes);
  c.allocator = or_none(row.memory.allocator_peak, bytes);
  c.gpu_busy = or_none(row.gpu.busy, use);
  c.gpu_power = or_none(row.gpu.power_w, [](double v) { return significant(v, 3) + " W"; });
  c.gpu_energy = or_none(row.gpu.joules, [](double v) { return fmt::format("{:.3g} J", v); });
  c.gpu_memory = or_none(row.gpu.memory_bytes, bytes);
  c.gpu_clock = or_none(row.gpu.sm_clock_hz, [](double v) { return fmt::format("{:.0f} MHz", v / 1e6); });
  c.gpu_throttled = or_none(row.gpu.throttled, use);
}

}  // namespace

void fill_usage(const Summary& s, const Row& row, Cells& c) {
  fill_memory_and_gpu(row, c);
  c.instructions = or_none(row.usage.instructions, [&](double v) {
    return large(v) + (row.usage.per_cycle ? fmt::format(" ({:.2f} a cycle)", *row.usage.per_cycle) : "");
  });
  c.misses = or_none(row.usage.cache_misses, large);
  c.temperature = or_none(row.usage.temperature_c, [](double v) { return fmt::format("{:.0f} °C", v); });
  c.threads = row.threads > 0 ? fmt::format("{}", row.threads) : kNone;
  c.cores = or_none(row.usage.cores, [](double v) { return significant(v, 3); });
  c.waiting = or_none(row.usage.waiting, use);
  c.faults = faults_text(row.usage);
  c.switches = or_none(row.usage.switches, amount);
  c.energy = or_none(row.usage.joules, [&](double v) {
    return s.batch > 0 ? fmt::format("{:.3g} J", v / static_cast<double>(s.batch)) : kNone;
  });
  c.wait = or_none(row.wait.share, use);
  c.wait_batch = or_none(row.wait.batch_ms, duration);
  c.wait_first = or_none(row.wait.first_ms, duration);
  c.wait_epoch = or_none(row.wait.epoch_ms, duration);
  c.epoch = or_none(row.epoch.seconds, [](double v) { return duration(v * 1e3); });
  c.price = or_none(row.epoch.price, [&](double v) {
    return fmt::format("{:.3g}", v) + (s.currency.empty() ? "" : " " + one_line(s.currency));
  });
  c.per_joule = or_none(row.epoch.samples_per_joule, [](double v) { return significant(v, 3); });
  c.per_unit = or_none(row.epoch.samples_per_unit, large);
  c.co2 = or_none(row.epoch.grams_co2, [](double v) { return fmt::format("{:.3g} g", v); });
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
    const std::string stage = one_line(row.failure->stage);
    const std::string reason = one_line(row.failure->reason);
    const bool named = !with_stage || stage.empty() || reason.rfind(stage, 0) == 0;
    text = reason.empty() ? fmt::format("failed at {}", stage) : named ? reason : stage + ": " + reason;
  }
  if (row.proof && !row.proof->diverges_at.empty()) {
    const std::string tensor = one_line(row.proof->diverges_at);
    if (text.find(tensor.substr(tensor.rfind('/') + 1)) == std::string::npos) {
      append_sentence(text, fmt::format("diverges at {} by {}", tensor, error_size(row.proof->divergence)));
    }
  }
  if (row.proof) append_sentence(text, one_line(row.proof->explanation));
  if (text.empty()) return row.parity == ParityState::kFailed ? "parity: fails" : "no measurement was kept";
  return text;
}

std::string track_label(const Summary& summary) {
  return (summary.track.empty() ? "unnamed" : one_line(summary.track)) + " track" +
         (summary.predicts ? ", predictions: a step is one batch forward" : "");
}

std::string track_meaning(const Summary& summary) {
  if (summary.track == "as-is") {
    return "Every framework with its own defaults, as a user gets them by writing the obvious code. What "
           "differs "
           "is listed in the fairness diff.";
  }
  return "The same mathematics, precision, initial weights, batches and order everywhere, proven before any "
         "clock started.";
}

std::vector<std::string> facts(const Summary& s) {
  std::vector<std::string> all;
  if (s.batch > 0) all.push_back(fmt::format("batch {}", count(static_cast<double>(s.batch))));
  if (s.parameters > 0) all.push_back(count(static_cast<double>(s.parameters)) + " parameters");
  if (s.gflop_per_step > 0) all.push_back(significant(s.gflop_per_step, 3) + " GFLOP per step");
  // Nobody is to take drawn numbers for a data set.
  if (const std::string data = one_line(s.manifest.data_description);
      data.find("synthetic samples") != std::string::npos)
    all.push_back(data);
  all.push_back(counted(s.heats, "heat"));
  if (s.elapsed_s > 0) all.push_back(duration(s.elapsed_s * 1e3));
  return all;
}

std::string headline(const Summary& s) {
  std::string text = one_line(s.sentence);
  if (text.empty() && s.ranked.empty()) text = "No contender could be ranked.";
  if (text.empty()) {
    text =
        fmt::format("{} leads{}", one_line(s.ranked.front().contender.id), s.decided ? "." : "; undecided.");
  }
  if (s.interrupted && text.find("nterrupted") == std::string::npos) {
    text += " The run was interrupted: this is what was measured so far.";
  }
  return text;
}

std::vector<VariancePart> variance_parts(const Variance& variance) {
  std::vector<VariancePart> parts;
  // What is estimated as nothing has its upper 95% bound.
  const auto add = [&](const char* what, const std::optional<double>& sd, const char* meaning,
                       const std::optional<double>& high = std::nullopt) {
    if (!sd) return;
    const bool nothing = *sd < 0.00005 && high;
    parts.push_back(
        {what, fmt::format("{}{:.2f}%", nothing ? "at most " : "", 100 * (nothing ? *high : *sd)), meaning});
  };
  add("heats", variance.heats, "the state of the machine; the same for all of a heat, so it cancels",
      variance.heats_high);
  add("processes", variance.processes, "starting the worker again", variance.processes_high);
  add("bursts", variance.bursts, "another burst of the same process", variance.bursts_high);
  add("steps", variance.steps, "another step of the same burst");
  if (variance.cheapest_bursts) {
    parts.push_back({"bursts that cost least", std::to_string(*variance.cheapest_bursts),
                     "of a process, for the precision they buy"});
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
    text += "; a contender with fewer threads is held against what so many reached";
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
    text += fmt::format(" beside other work, so that they are too low: {}", one_line(r.disturbed));
  return text + ".";
}

std::string error_statement(const Summary& s) {
  return fmt::format("error rate {} over all verdicts and intervals of ratios together, margin {}",
                     percent(s.alpha), percent(s.margin));
}

}  // namespace bakeoff::report
