#pragma once

// A row of the summary as the texts that every renderer shows, so that terminal, Markdown and HTML agree.

#include <string>
#include <vector>

#include "summary/summary.h"

namespace bakeoff::report {

struct Cells {
  std::string rank;             // "1", "2–4"
  std::string name;             // Contender::id on one line
  std::string group;            // "bfloat16"; empty where all are in float32
  std::string distance;         // "0.0021 · 0.034": of loss and gradients from the float32 twin
  std::string ties;             // "a", "ab"
  std::string verdict;          // lower case: "leader", "slower", "undecided"
  std::string ms;               // "75.6"
  std::string ms_interval;      // "[75.1, 76.2]"
  std::string ratio;            // "1.013"
  std::string ratio_interval;   // "[0.998, 1.027]"; "–" for the leader
  std::string rate;             // samples/s, "3,386"
  std::string gflops;           // "165"
  std::string flop_use;         // "72%": of the measured peak
  std::string byte_use;         // "38%": of the measured bandwidth
  std::string threads;          // "2"
  std::string cores;            // "1.93": processors busy
  std::string waiting;          // "2.1%": of the time in which a thread wanted a processor
  std::string faults;           // page faults a step, "1,204"; "12 (3 from disk)"
  std::string switches;         // context switches a step
  std::string energy;           // "0.41 J" a sample
  std::string wait;             // for batches, "0.3%" of the time
  std::string wait_batch;       // "0.21 ms": for a batch within an epoch
  std::string wait_first;       // "310 ms": for the first of an epoch
  std::string wait_epoch;       // "0.36 s": for all batches of an epoch
  std::string epoch;            // duration of an epoch, "23.4 s"
  std::string price;            // of an epoch, "0.012 USD"
  std::string co2;              // "1.2 g"
  std::string per_joule;        // samples, "2.44"
  std::string per_unit;         // samples of a unit of the currency, "9.14 M"
  std::string start;            // process start up to the end of the first step, "2.31 s"
  std::string first_step;       // "352 ms"
  std::string first_step_cold;  // "20.7 s", "–" where it was not measured
  std::string transfer;         // "812 µs a batch", "35 ms once": of a copy to the device
  std::string break_even;     // "until 1,204": ahead of the leader in total time up to that step; "after 96"
  std::string memory;         // "1.12 GiB"
  std::string pss;            // shared pages divided by those who share them
  std::string sample_memory;  // "1.3 MiB": beyond the model as built, over the rows of a batch
  std::string allocator;      // the framework's own peak
  std::string instructions;   // a step outside the kernel, "12.3 G (2.1 a cycle)"
  std::string misses;         // of the caches, a step
  std::string temperature;    // "61 °C"
  std::string gpu_busy, gpu_power, gpu_energy, gpu_memory, gpu_clock, gpu_throttled;
  std::string parity;  // "✓ proven", "≠ differs", "✗ fails", "– not run"
  std::string heats;
};

// Against the leader of its group.
Cells cells(const Summary& summary, const Row& row);
// Those of what it used and what an epoch costs.
void fill_usage(const Summary& summary, const Row& row, Cells& cells);

std::string parity_mark(ParityState state);  // "✓", "≠", "✗", "–"
std::string parity_word(ParityState state);  // "proven", "differs", "fails", "not run"

// Why a row is not ranked, one line: "parity: gradient of conv1.weight ...: matches epsilon inside the root".
std::string unranked_reason(const Row& row, bool with_stage = true);

// "equalised track" | "as-is track": stands in the header of everything.
std::string track_label(const Summary& summary);

// One sentence on what the label promises.
std::string track_meaning(const Summary& summary);

// "batch 256", "563,018 parameters", "12.5 GFLOP per step", "9 heats", "4 min 12 s": what is known of them.
std::vector<std::string> facts(const Summary& summary);

// The verdict sentence; one of our own where the summary has none. Says so when the run was interrupted.
std::string headline(const Summary& summary);

// Where the variance is: "processes" "3.1%" "starting the worker again", ...; unknown parts are left out.
struct VariancePart {
  std::string what, sd, meaning;
};
std::vector<VariancePart> variance_parts(const Variance& variance);

// Whether two ranked rows share a letter, that is, whether the letters say anything.
bool has_ties(const Summary& summary);
inline constexpr const char* kTieLegend =
    "Contenders that share a letter are not told apart by the evidence.";

// "Of peak: model FLOPs over the measured 190 GFLOP/s (f32, avx2) ...": what the two shares are of.
std::string roofline_statement(const Roofline& roofline);

// "error rate 1% over all verdicts and intervals of ratios together, margin 3%".
std::string error_statement(const Summary& summary);

}  // namespace bakeoff::report
