// A figure that stands in five formats is written five times, and one of them is soon wrong. So each quantity
// is one entry here: its place in the JSON (the key), its columns in the CSV, its title and meaning for
// readers, and the function that reads it from a row. All formats are made from this list, and self_check.cc
// holds them against each other.
//
// Two kinds of rows have less than the others, and an entry must say so. A row that is not ranked was
// compared with nothing (if_ranked). A row that was not timed, because it looked hopeless, has only a bound
// (if_timed, bounded): shown as a value it would be a false figure.
//
// Priorities say what goes where a terminal or page is narrow: the largest number first, 0 never.

#include "report/ranking.h"

#include <fmt/format.h>

#include <cmath>

#include "records/names.h"
#include "report/phrases.h"
#include "summary/limits.h"
#include "table/text.h"

namespace bakeoff::report {

using namespace table;
namespace {

using Entry = Quantity<Place>;
using Entries = std::vector<Entry>;

// Entries that only ranked rows have a value of.
Json if_ranked(const Place& p, Json value) { return p.ranked ? std::move(value) : Json(nullptr); }
// The same for timed rows only; of the others a bound alone is known.
Json if_timed(const Place& p, double value) {
  return p.ranked && !p.row->at_least && value > 0 ? number(value) : Json(nullptr);
}

std::string share(double value) { return significant(100 * value, 2) + "%"; }
std::string three(double value) { return significant(value, 3); }
std::string joules(double value) { return fmt::format("{:.3g} J", value); }
std::string watts(double value) { return three(value) + " W"; }
std::string megahertz(double value) { return fmt::format("{:.0f} MHz", value / 1e6); }
std::string celsius(double value) { return fmt::format("{:.0f} °C", value); }
std::string grams(double value) { return fmt::format("{:.3g} g", value); }
std::string seconds(double value) { return duration(value * 1e3); }
// Two digits below a hundred: "0", "0.12", "9.5", "1,204".
std::string amount(double value) { return value < 99.5 ? fmt::format("{:.2g}", value) : count(value); }
// "12.3 G", "4.56 M": a count with three digits.
std::string large(double value) {
  if (value >= 1e9) return three(value / 1e9) + " G";
  return value >= 1e6 ? three(value / 1e6) + " M" : count(value);
}

Cell distance(const Place& p) {
  const Row& row = *p.row;
  if (row.logit_distance) return {error_size(*row.logit_distance)};
  if (!row.loss_distance || !row.gradient_distance) return {};
  return {fmt::format("{} · {}", error_size(*row.loss_distance), error_size(*row.gradient_distance))};
}

// An estimate of a row that was not timed is a bound: no value.
Json bounded(const Place& p, const Estimate& of) {
  Json value = if_ranked(p, estimate(of));
  if (p.ranked && p.row->at_least) value["value"] = nullptr;
  return value;
}

// The slower of two per step that starts up sooner is ahead until the step, otherwise after it.
Cell break_even(const Place& p) {
  const Row& row = *p.row;
  const Row& leader = leader_of(*p.summary, row);
  if (&row == &leader || !row.break_even_step || !(*row.break_even_step >= 1) ||
      !std::isfinite(*row.break_even_step))
    return {};
  const bool slower = row.ms_per_step.value >= leader.ms_per_step.value;
  return {fmt::format("{} {}", slower ? "until" : "after", count(std::ceil(*row.break_even_step)))};
}

Cell transfer(const Place& p) {
  const auto& of = p.row->transfer;
  if (!of) return {};
  return {fmt::format("{} {}", duration(static_cast<double>(of->ns) / 1e6),
                      of->of == "data" ? "once" : "a batch")};
}

Json transfer_json(const Place& p) {
  const auto& of = p.row->transfer;
  if (!of) return nullptr;
  return {{"of", of->of}, {"ms", number(static_cast<double>(of->ns) / 1e6)}, {"bytes", of->bytes}};
}

Cell over_native(const Place& p) {
  const auto& of = p.row->over_native;
  if (!of) return {};
  return {.text = p.row->at_least ? "≥ " + times(of->low) : times(of->value),
          .hint = native_limit_of(*p.row)};
}

Json limit_json(const Place& p) {
  const auto& of = p.row->limit;
  if (!of) return nullptr;
  return {{"kind", of->kind}, {"evidence", of->evidence}};
}

Cell limit(const Place& p) {
  const auto& of = p.row->limit;
  return of ? Cell{.text = of->kind, .hint = of->evidence} : Cell{};
}

Cell faults(const Place& p) {
  const Usage& usage = p.row->usage;
  Cell cell = shown(number(usage.faults), amount);
  if (usage.major_faults && *usage.major_faults > 0)
    cell.text += fmt::format(" ({} from disk)", amount(*usage.major_faults));
  return cell;
}

Cell instructions(const Place& p) {
  const Usage& usage = p.row->usage;
  Cell cell = shown(number(usage.instructions), large);
  if (usage.per_cycle) cell.text += fmt::format(" ({:.2f} a cycle)", *usage.per_cycle);
  return cell;
}

Cell parity(const Place& p) {
  constexpr Ink kInks[] = {Ink::kGood, Ink::kWarn, Ink::kBad, Ink::kDim};
  const ParityState state = p.row->parity;
  return {parity_mark(state) + ' ' + parity_word(state), "", kInks[static_cast<int>(state)]};
}

// A quantity that is a number of the row, absent where the row has none.
Entry of(Column column, std::optional<double> (*value)(const Row&), std::string (*show)(double)) {
  return {std::move(column), [value](const Place& p) { return number(value(*p.row)); }, show};
}

const Entries kStanding = {
    {{.key = "rank",
      .csv = {{"rank_best", "/0"}, {"rank_worst", "/1"}},
      .title = "rank",
      .meaning = "The places that the evidence allows."},
     [](const Place& p) {
       return if_ranked(p, Json::array({p.row->rank_best, p.row->rank_worst}));
     },
     [](const Place& p) { return Cell{rank_range(*p.row)}; }},
    {{.title = "contender", .left = true, .name = true},
     nullptr,
     [](const Place& p) {
       return Cell{label(p.row->contender), "",
                   p.row == &p.summary->ranked.front() ? Ink::kBold : Ink::kPlain,
                   one_line(p.row->contender.id)};
     }},
    {{.key = "group",
      .title = "precision",
      .meaning = "What the contender computes in; rows are ranked within one precision alone.",
      .priority = 1,
      .left = true},
     [](const Place& p) { return Json(p.row->group); },
     [](const Place& p) {
       const auto groups = groups_of(*p.summary);
       const bool said = groups.size() > 1 || groups != std::vector<std::string>{"float32"};
       return Cell{said ? p.row->group : ""};
     }},
    {{.key = "distance_from_float32",
      .csv = {{"loss_distance_from_float32", "/loss"},
              {"gradient_distance_from_float32", "/gradients"},
              {"logit_distance_from_float32", "/logits"}},
      .title = "from float32",
      .meaning =
          "Relative distance of the loss and of the gradients on one batch from the same contender in float32; "
          "of answers to prompts that of the logits.",
      .priority = 2,
      .left = true,
      .ink = Ink::kDim,
      .in_legend = true},
     [](const Place& p) {
       return Json{{"loss", number(p.row->loss_distance)},
                   {"gradients", number(p.row->gradient_distance)},
                   {"logits", number(p.row->logit_distance)}};
     },
     distance},
    {{.key = "ties",
      .title = "tie",
      .meaning = kTieLegend,
      .priority = 4,
      .left = true,
      .ink = Ink::kDim,
      .in_legend = true},
     [](const Place& p) { return Json(p.row->ties); },
     [](const Place& p) { return Cell{has_ties(*p.summary) ? p.row->ties : ""}; }},
};

const Entries kSpeed = {
    {{.key = "ms_per_step",
      .csv = {{"ms_per_step", "/value"}, {"ms_per_step_low", "/low"}, {"ms_per_step_high", "/high"}},
      .title = "ms/step",
      .meaning = "Milliseconds of one training step: the leader's time, multiplied by the ratio.",
      .range_title = "interval",
      .range_priority = 6},
     [](const Place& p) { return bounded(p, p.row->ms_per_step); },
     [](const Place& p) { return step_time_cell(*p.row); }},
    {{.key = "ratio",
      .csv = {{"ratio", "/value"}, {"ratio_low", "/low"}, {"ratio_high", "/high"}},
      .title = "ratio",
      .meaning = "Step time over the leader's.",
      .range_title = "interval",
      .range_priority = 1},
     [](const Place& p) { return bounded(p, p.row->ratio); },
     [](const Place& p) { return ratio_cell(*p.summary, *p.row); }},
    {{.csv = {{"verdict", ""}}, .title = "verdict", .priority = 7, .left = true, .below_name = true},
     [](const Place& p) {
       return Json(p.row->behind ? "behind " + p.row->behind->contender : verdict_word(*p.row));
     },
     [](const Place& p) { return Cell{verdict_text(*p.row)}; }},
    {{.key = "verdict", .in_csv = false}, [](const Place& p) { return Json(verdict_word(*p.row)); }},
    {{.key = "behind", .in_csv = false},
     [](const Place& p) {
       const auto& behind = p.row->behind;
       return behind ? Json{{"contender", behind->contender}, {"at_least", number(behind->at_least)}}
                     : Json(nullptr);
     }},
    {{.key = "at_least_times_slower"}, [](const Place& p) { return number(p.row->at_least); }},
    {{.key = "samples_per_second",
      .title = "samples/s",
      .meaning = "Rows of data trained on in a second.",
      .priority = 5},
     [](const Place& p) { return if_timed(p, p.row->samples_per_second); },
     count},
    {{.key = "samples_per_second_interval", .in_csv = false},
     [](const Place& p) {
       const auto rate = p.ranked ? rate_of(*p.summary, *p.row) : std::nullopt;
       if (!rate || !rate->interval) return Json(nullptr);
       return Json{{"low", rate->open_low ? Json(nullptr) : number(rate->low)},
                   {"high", rate->open_high ? Json(nullptr) : number(rate->high)}};
     }},
    {{.key = "steps_per_second",
      .title = "steps/s",
      .meaning = "Training steps in a second.",
      .priority = kLuxury + 1,
      .part = Part::kResources},
     [](const Place& p) { return if_timed(p, 1e3 / p.row->ms_per_step.value); },
     three},
    {{.key = "gflops",
      .title = "GFLOP/s",
      .meaning = "The model's arithmetic over the step time.",
      .priority = kLuxury + 1,
      .part = Part::kResources,
      .ink = Ink::kDim},
     [](const Place& p) { return if_timed(p, p.row->gflops); },
     three},
    {{.key = "threads",
      .title = "threads",
      .meaning = "Threads that the contender computes with, at most its processors.",
      .priority = kLuxury + 4,
      .part = Part::kResources,
      .ink = Ink::kDim},
     [](const Place& p) { return p.ranked && p.row->threads > 0 ? Json(p.row->threads) : Json(nullptr); },
     count},
    {{.key = "share_of_peak",
      .title = "of peak",
      .meaning = "The model's arithmetic over the measured peak of as many threads.",
      .priority = 11,
      .ink = Ink::kDim},
     [](const Place& p) { return if_ranked(p, number(p.row->flop_use)); },
     share},
    {{.key = "share_of_bandwidth",
      .title = "of bandwidth",
      .meaning = "What the model's ops move where nothing is fused, over the measured bandwidth.",
      .priority = 12,
      .part = Part::kResources,
      .ink = Ink::kDim},
     [](const Place& p) { return if_ranked(p, number(p.row->byte_use)); },
     share},
    {{.key = "over_native",
      .csv = {{"over_native", "/value"}, {"over_native_low", "/low"}, {"over_native_high", "/high"}},
      .title = "x plain C++",
      .meaning = "Step time over that of the workload as one plain C++ program, compiled for this machine.",
      .priority = 7,
      .ink = Ink::kDim},
     [](const Place& p) {
       return p.ranked && p.row->over_native ? bounded(p, *p.row->over_native) : Json(nullptr);
     },
     over_native},
    {{.key = "limit",
      .csv = {{"limited_by", "/kind"}, {"limit_evidence", "/evidence"}},
      .title = "limited by",
      .meaning = "What stands out of what the contender was doing; what would help, only a changed run says "
                 "(`bakeoff tune`).",
      .priority = 8,
      .left = true,
      .ink = Ink::kDim},
     limit_json,
     limit},
};

// Of a process's start; rows that are not ranked have none.
Entry start_up(Column column, double StartUp::*part, std::string (*show)(double) = nullptr) {
  return {std::move(column),
          [part](const Place& p) {
            return if_ranked(p, p.row->at_least ? Json(nullptr) : number(p.row->start_up.*part));
          },
          show};
}

const Entries kStart = {
    start_up({.key = "start_up_ms/start", .csv = {{"start_ms", ""}}}, &StartUp::start),
    start_up({.key = "start_up_ms/import", .csv = {{"import_ms", ""}}}, &StartUp::import),
    start_up({.key = "start_up_ms/build", .csv = {{"build_ms", ""}}}, &StartUp::build),
    start_up({.key = "start_up_ms/first_step",
              .csv = {{"first_step_ms", ""}},
              .title = "first step",
              .meaning = "Time of the first step, compilation included.",
              .priority = 2},
             &StartUp::first_step, duration),
    {{.key = "start_up_ms/first_step_cold",
      .csv = {{"first_step_cold_ms", ""}},
      .title = "cold",
      .meaning = "Time of the first step where the framework's compilation cache is empty.",
      .priority = 8},
     [](const Place& p) { return if_ranked(p, number(p.row->start_up.first_step_cold)); },
     duration},
    {{.key = "start_up_ms/total",
      .in_csv = false,
      .title = "start-up",
      .meaning = "Time from the start of the process to the end of its first step.",
      .priority = kLuxury,
      .part = Part::kResources},
     [](const Place& p) {
       return if_ranked(p, p.row->at_least ? Json(nullptr) : number(p.row->start_up.total()));
     },
     duration},
    {{.key = "transfer",
      .csv = {{"transfer_of", "/of"}, {"transfer_ms", "/ms"}, {"transfer_bytes", "/bytes"}},
      .title = "to the device",
      .meaning =
          "Time of a copy from the host by itself: of a batch, or once of data that stay on the device.",
      .priority = 8,
      .in_legend = true},
     transfer_json,
     transfer},
    {{.key = "break_even_step",
      .title = "break-even",
      .meaning =
          "The contender is ahead of the leader in total time, start-up included, until or after that step.",
      .priority = 9,
      .left = true,
      .in_legend = true},
     [](const Place& p) { return number(p.row->break_even_step); },
     break_even},
};

const Entries kMemory = {
    {{.key = "peak_rss_bytes",
      .title = "peak memory",
      .meaning =
          "The most resident memory that the worker had; of several ranks, the sum of each one's own most.",
      .priority = 10},
     [](const Place& p) { return p.row->peak_rss_bytes > 0 ? Json(p.row->peak_rss_bytes) : Json(nullptr); },
     bytes},
    of(
        {.key = "memory/bytes_per_sample",
         .csv = {{"memory_bytes_per_sample", ""}},
         .title = "memory/sample",
         .meaning = "Memory beyond the model as built, over the rows of a batch.",
         .priority = kLuxury + 2,
         .part = Part::kCost},
        [](const Row& row) { return row.memory.per_sample; }, bytes),
    {{.key = "memory/rss_in_bursts_bytes", .csv = {{"rss_in_bursts_bytes", ""}}},
     [](const Place& p) { return number(p.row->memory.in_bursts); }},
    of(
        {.key = "memory/pss_bytes",
         .csv = {{"pss_bytes", ""}},
         .title = "memory (PSS)",
         .meaning =
             "Memory resident after the last burst; a page shared by several processes counts in part for each.",
         .priority = kLuxury + 4,
         .part = Part::kResources},
        [](const Row& row) { return row.memory.pss; }, bytes),
    of(
        {.key = "memory/allocator_peak_bytes",
         .csv = {{"allocator_peak_bytes", ""}},
         .title = "allocator's peak",
         .meaning = "The most memory that the framework's allocator handed out, by its own count.",
         .priority = kLuxury + 4,
         .part = Part::kResources},
        [](const Row& row) { return row.memory.allocator_peak; }, bytes),
};

const Entries kWaits = {
    of(
        {.key = "batch_wait/share",
         .title = "wait",
         .meaning = "Share of its time in which the training loop had no batch.",
         .priority = 9,
         .ink = Ink::kDim,
         .in_legend = true,
         .zero_is_nothing = true},
        [](const Row& row) { return row.wait.share; }, share),
    of(
        {.key = "batch_wait/ms_per_batch",
         .csv = {{"batch_wait_ms", ""}},
         .title = "wait/batch",
         .meaning = "Time that the loop waited for a batch within an epoch.",
         .priority = kLuxury + 4,
         .part = Part::kResources,
         .zero_is_nothing = true},
        [](const Row& row) { return row.wait.batch_ms; }, duration),
    of(
        {.key = "batch_wait/ms_first_of_epoch",
         .csv = {{"first_batch_wait_ms", ""}},
         .title = "wait/first batch",
         .meaning = "Time that the loop waited for the first batch of an epoch.",
         .priority = kLuxury + 4,
         .part = Part::kResources,
         .zero_is_nothing = true},
        [](const Row& row) { return row.wait.first_ms; }, duration),
    of(
        {.key = "batch_wait/ms_per_epoch",
         .csv = {{"epoch_wait_ms", ""}},
         .title = "wait/epoch",
         .meaning = "Time that the loop waited for all batches of an epoch.",
         .priority = kLuxury + 4,
         .part = Part::kResources,
         .zero_is_nothing = true},
        [](const Row& row) { return row.wait.epoch_ms; }, duration),
};

const Entries kUsage = {
    of(
        {.key = "cores_busy",
         .title = "CPUs busy",
         .meaning = "Processor time of the bursts over their wall time.",
         .priority = kLuxury + 2,
         .part = Part::kResources,
         .ink = Ink::kDim},
        [](const Row& row) { return row.usage.cores; }, three),
    of(
        {.key = "waiting_for_processor",
         .title = "waiting for a CPU",
         .meaning = "Share of the time in which a thread wanted a processor and none was free.",
         .priority = kLuxury + 4,
         .part = Part::kResources,
         .zero_is_nothing = true},
        [](const Row& row) { return row.usage.waiting; }, share),
    {{.key = "page_faults_per_step",
      .title = "faults/step",
      .meaning = "Pages of memory that the kernel set up in a step.",
      .priority = kLuxury + 3,
      .part = Part::kResources,
      .ink = Ink::kDim},
     [](const Place& p) { return number(p.row->usage.faults); },
     faults},
    {{.key = "major_page_faults_per_step"}, [](const Place& p) { return number(p.row->usage.major_faults); }},
    of(
        {.key = "context_switches_per_step",
         .title = "switches/step",
         .meaning = "Context switches of all its threads in a step.",
         .priority = kLuxury + 3,
         .part = Part::kResources,
         .ink = Ink::kDim},
        [](const Row& row) { return row.usage.switches; }, amount),
    {{.key = "instructions_per_step",
      .title = "instructions/step",
      .meaning = "Instructions that a step executes outside the kernel.",
      .priority = kLuxury + 4,
      .part = Part::kResources},
     [](const Place& p) { return number(p.row->usage.instructions); },
     instructions},
    {{.key = "instructions_per_cycle"}, [](const Place& p) { return number(p.row->usage.per_cycle); }},
    of(
        {.key = "cache_misses_per_step",
         .title = "cache misses/step",
         .meaning = "Misses of the last cache level in a step, outside the kernel.",
         .priority = kLuxury + 4,
         .part = Part::kResources},
        [](const Row& row) { return row.usage.cache_misses; }, large),
    {{.key = "branch_misses_per_step"}, [](const Place& p) { return number(p.row->usage.branch_misses); }},
    of(
        {.key = "temperature_c",
         .title = "temperature",
         .meaning = "The highest temperature of the processors.",
         .priority = kLuxury + 4,
         .part = Part::kResources},
        [](const Row& row) { return row.usage.temperature_c; }, celsius),
};

// Of a GPU; `title` empty: for programs alone.
Entry gpu(const char* key, const char* title, const char* meaning, std::optional<double> GpuUse::*value,
          std::string (*show)(double) = nullptr) {
  return {{.key = std::string("gpu/") + key,
           .title = title,
           .meaning = meaning,
           .priority = kLuxury + 4,
           .part = Part::kResources},
          [value](const Place& p) { return number(p.row->gpu.*value); },
          show};
}

const Entries kGpu = {
    gpu("busy", "GPU busy", "Share of the time in which some kernel ran on the GPU.", &GpuUse::busy, share),
    gpu("power_w", "GPU power", "Mean power of the GPU's board.", &GpuUse::power_w, watts),
    gpu("joules_per_step", "GPU energy/step", "Energy that the GPU's board took in a step.", &GpuUse::joules,
        joules),
    gpu("memory_bytes", "GPU memory", "The most memory in use on the GPU, by all processes.",
        &GpuUse::memory_bytes, bytes),
    gpu("sm_clock_hz", "GPU clock", "Mean clock of the GPU's multiprocessors.", &GpuUse::sm_clock_hz,
        megahertz),
    gpu("temperature_c", "GPU temperature", "Temperature of the GPU.", &GpuUse::temperature_c, celsius),
    gpu("processes", "", "", &GpuUse::processes),
    gpu("throttled", "GPU throttled", "Share of the time in which the GPU's clocks were held down.",
        &GpuUse::throttled, share),
};

Cell price(const Place& p) {
  const auto& price = p.row->epoch.price;
  if (!price || !std::isfinite(*price)) return {};
  return {fmt::format("{:.3g}", *price) +
          (p.summary->currency.empty() ? "" : " " + one_line(p.summary->currency))};
}

// Energy, money and carbon dioxide.
Entries costs(const Summary& s) {
  const std::string unit = s.currency.empty() ? "unit" : one_line(s.currency);
  return {
      {{.key = "joules_per_step"}, [](const Place& p) { return number(p.row->usage.joules); }},
      {{.key = "joules_per_sample",
        .in_csv = false,
        .title = "J/sample",
        .meaning =
            "Energy of the processors' packages and memory, idle parts included, over the rows of a batch.",
        .priority = kLuxury,
        .part = Part::kCost},
       [](const Place& p) {
         const auto& value = p.row->usage.joules;
         return value && p.summary->batch > 0 ? number(*value / static_cast<double>(p.summary->batch))
                                              : Json(nullptr);
       },
       joules},
      of(
          {.key = "samples_per_joule",
           .title = "samples/J",
           .meaning = "Rows trained on for a joule, the GPU's board included.",
           .priority = kLuxury,
           .part = Part::kCost},
          [](const Row& row) { return row.epoch.samples_per_joule; }, three),
      of(
          {.key = "samples_per_currency_unit",
           .title = "samples/" + unit,
           .meaning = "Rows trained on for one unit of the currency, at the recipe's price of an hour.",
           .priority = kLuxury + 1,
           .part = Part::kCost},
          [](const Row& row) { return row.epoch.samples_per_unit; }, large),
      of(
          {.key = "epoch/seconds",
           .title = "epoch",
           .meaning = "Time of an epoch at the steady rate, start-up left out.",
           .priority = kLuxury + 2,
           .part = Part::kCost},
          [](const Row& row) { return row.epoch.seconds; }, seconds),
      {{.key = "epoch/price",
        .csv = {{"price_per_epoch", ""}},
        .title = "price/epoch",
        .meaning = "Price of an epoch at the recipe's price of an hour.",
        .priority = kLuxury,
        .part = Part::kCost},
       [](const Place& p) { return number(p.row->epoch.price); },
       price},
      {{.key = "epoch/joules", .csv = {{"joules_per_epoch", ""}}},
       [](const Place& p) { return number(p.row->epoch.joules); }},
      of(
          {.key = "epoch/grams_co2",
           .csv = {{"grams_co2_per_epoch", ""}},
           .title = "CO2/epoch",
           .meaning = "Carbon dioxide of an epoch at the recipe's intensity.",
           .priority = kLuxury + 1,
           .part = Part::kCost},
          [](const Row& row) { return row.epoch.grams_co2; }, grams),
  };
}

const Entries kEvidence = {
    {{.key = "heats",
      .title = "heats",
      .meaning = "Heats that the contender took part in, each a fresh process.",
      .priority = kLuxury + 4,
      .part = Part::kResources},
     [](const Place& p) { return Json(p.row->heats); },
     count},
    {{.key = "parity",
      .title = "parity",
      .meaning = "Whether the contender was proven to compute what the referee computes.",
      .priority = 3,
      .left = true,
      .brief = true},
     [](const Place& p) { return Json(parity_word(p.row->parity)); },
     parity},
};

}  // namespace

std::optional<Rate> rate_of(const Summary& s, const Row& row) {
  const double leader = leader_of(s, row).samples_per_second;
  if (row.at_least || !(row.samples_per_second > 0) || !(leader > 0)) return std::nullopt;
  Rate rate{.value = row.samples_per_second};
  if (&row == &leader_of(s, row)) return rate;
  rate.interval = true;
  rate.open_low = !bounded_above(row.ratio);
  rate.open_high = !bounded_below(row.ratio);
  rate.low = rate.open_low ? 0 : leader / row.ratio.high;
  rate.high = rate.open_high ? 0 : leader / row.ratio.low;
  return rate;
}

std::string rank_range(const Row& row) {
  if (row.rank_best <= 0) return kNone;
  if (row.rank_worst <= row.rank_best) return fmt::format("{}", row.rank_best);
  return fmt::format("{}–{}", row.rank_best, row.rank_worst);
}

Cell ratio_cell(const Summary& summary, const Row& row) {
  if (row.at_least) return {"≥ " + ratio(*row.at_least)};
  const bool leads = &row == &leader_of(summary, row);
  return {ratio(row.ratio.value), leads ? "" : interval(row.ratio, ratio)};
}

Cell step_time_cell(const Row& row) {
  if (row.at_least) return {"≥ " + milliseconds(row.ms_per_step.value)};
  return {milliseconds(row.ms_per_step.value), interval(row.ms_per_step, milliseconds)};
}

std::vector<Quantity<Place>> ranking_quantities(const Summary& s) {
  Entries all;
  for (const Entries& part : {kStanding, kSpeed, kStart, kWaits, kMemory, costs(s), kUsage, kGpu, kEvidence})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<FilledColumn> ranking_columns(const Summary& s) {
  std::vector<Place> places;
  for (const Row& row : s.ranked) places.push_back({&s, &row, true});
  std::vector<FilledColumn> columns = columns_of(ranking_quantities(s), places);
  std::erase_if(columns, [](const FilledColumn& column) { return !column.column.name && blank(column); });
  return columns;
}

}  // namespace bakeoff::report
