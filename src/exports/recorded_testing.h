#pragma once

// Test only: a run with one contender of every kind, named as badly as can be.

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "exports/recorded.h"

namespace bakeoff::exports {

inline constexpr const char* kEvil = "../..\"/><script>alert(1)</script>&\x1b[31m\n\xff";

inline Trial sample_trial(const std::string& contender, int heat) {
  Trial trial{.contender = contender, .heat = heat, .started = "2026-11-21T08:00:10Z"};
  trial.first_step_ns = 2'000'000'000;
  for (int i = 0; i < 4; ++i)
    trial.bursts.push_back({.ns = 1'000'000'000, .steps = 10, .used = {{"cpu_s", 1.5}}});
  trial.warmup_bursts = 1;
  trial.void_bursts.push_back({.ns = 3'000'000'000, .steps = 10});
  return trial;
}

inline Row sample_row(const std::string& id, ParityState parity, std::optional<Failure> failure = {}) {
  Row row{.contender = {.id = id, .framework = "torch", .settings = {{"a", "1"}, {"b", kEvil}}},
          .parity = parity,
          .failure = std::move(failure)};
  row.versions["torch"] = "2.13.0+cpu";
  return row;
}

inline Recorded sample_recorded() {
  Recorded run{.run = "run-1"};
  Summary& s = run.summary;
  s.title = "tiny";
  s.batch = 100;
  s.manifest.started = "2026-11-21T08:00:00Z";
  Row best = sample_row(kEvil, ParityState::kPassed);
  best.rank_best = best.rank_worst = 1;
  best.ms_per_step = {100, 0, std::numeric_limits<double>::infinity()};
  best.ratio = {1, 1, 1};
  best.heats = 2;
  s.ranked = {best};
  Row wrong = sample_row("wrong", ParityState::kFailed, Failure{Stage::kParity, "gradients differ", ""});
  wrong.proof = Parity{.contender = "wrong", .checks = {{"float64 gradients", "grad/w", 0.5, 1e-8, false}}};
  s.unranked = {
      wrong, sample_row("crashed", ParityState::kPassed, Failure{Stage::kRun, "exit code 1", "Traceback"}),
      sample_row("missing", ParityState::kNotRun, Failure{Stage::kEnvironment, "no environment", ""}),
      sample_row("waiting", ParityState::kPassed, Failure{Stage::kRun, "the run ended before", ""})};
  for (const auto* rows : {&s.ranked, &s.unranked})
    for (const Row& row : *rows) s.manifest.contenders.push_back(row.contender);
  s.manifest.not_started.resize(s.manifest.contenders.size());
  s.manifest.not_started[3] = {Stage::kEnvironment, "no environment", ""};
  run.trials = {sample_trial(kEvil, 1), sample_trial(kEvil, 2)};
  run.parities = {{.contender = kEvil, .losses = {2.5, std::numeric_limits<double>::quiet_NaN(), 1.5}},
                  *wrong.proof,
                  {.contender = "crashed"},
                  {.contender = "waiting"}};
  FitTrial fit{.contender = kEvil, .seed = 1, .started = "2026-11-21T09:00:00Z"};
  fit.stretches = {{.ns = 1'000'000'000, .steps = 10, .losses = {{1, 2.0}, {10, 1.0}}},
                   {.ns = 1'000'000'000, .steps = 10, .losses = {{20, 0.5}}}};
  fit.on_held = TargetLook{.steps = 20, .ns = 2'000'000'000, .loss = 0.7, .accuracy = 0.9};
  run.fits = {fit};
  return run;
}

}  // namespace bakeoff::exports
