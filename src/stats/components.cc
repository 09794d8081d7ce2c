// One function for each line of the header's table, from steps to heats: each needs the components found
// before it, whose share of the sum of squares is `known`. P has the weight 2 (m - 1), because V_ih and
// V_jh both contain it. Cell::own is the part of V that comes from bursts and steps.

#include "stats/components.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "stats/planning.h"

namespace bakeoff::stats {
namespace {

// A sum of squares equals variance * weight + known.
struct Moment {
  double squares = 0, weight = 0, known = 0;
  std::optional<double> solved() const {
    if (weight <= 0) return std::nullopt;
    return std::max(0.0, (squares - known) / weight);
  }
};

double squares_about_mean(std::span<const double> values) {
  double mean = 0, squares = 0;
  for (const double v : values) mean += v / static_cast<double>(values.size());
  for (const double v : values) squares += (v - mean) * (v - mean);
  return squares;
}

// A process's mean, and the variance that its own bursts and steps give it.
struct Cell {
  double mean = 0;
  double own = 0;
};

std::vector<ProcessRecord> sound(std::span<const ProcessRecord> processes) {
  std::vector<ProcessRecord> kept;
  for (ProcessRecord p : processes) {
    std::erase_if(p.bursts, [](const BurstRecord& b) { return !std::isfinite(b.log_ms) || b.steps < 1; });
    if (!p.bursts.empty()) kept.push_back(std::move(p));
  }
  return kept;
}

std::optional<double> step_variance(const std::vector<ProcessRecord>& processes) {
  Moment moment;
  for (const ProcessRecord& p : processes) {
    for (const BurstRecord& b : p.bursts) {
      if (b.seen < 2 || !std::isfinite(b.step_variance)) continue;
      moment.squares += static_cast<double>(b.seen - 1) * b.step_variance;
      moment.weight += static_cast<double>(b.seen - 1);
    }
  }
  return moment.solved();
}

std::optional<double> burst_variance(const std::vector<ProcessRecord>& processes, double step) {
  Moment moment;
  for (const ProcessRecord& p : processes) {
    const double b = static_cast<double>(p.bursts.size());
    std::vector<double> means;
    double of_steps = 0;
    for (const BurstRecord& burst : p.bursts) {
      means.push_back(burst.log_ms);
      of_steps += step / static_cast<double>(burst.steps);
    }
    moment.squares += squares_about_mean(means);
    moment.weight += b - 1;
    moment.known += (1 - 1 / b) * of_steps;
  }
  return moment.solved();
}

using Cells = std::map<size_t, std::map<int, Cell>>;  // contender, heat

Cells cells_of(const std::vector<ProcessRecord>& processes, double burst, double step) {
  Cells cells;
  for (const ProcessRecord& p : processes) {
    const double b = static_cast<double>(p.bursts.size());
    Cell cell;
    for (const BurstRecord& one : p.bursts) {
      cell.mean += one.log_ms / b;
      cell.own += (burst + step / static_cast<double>(one.steps)) / (b * b);
    }
    cells[p.contender][p.heat] = cell;
  }
  return cells;
}

std::optional<double> process_variance(const Cells& cells, int64_t& degrees) {
  Moment moment;
  int64_t most = 0;
  for (auto a = cells.begin(); a != cells.end(); ++a) {
    for (auto b = std::next(a); b != cells.end(); ++b) {
      std::vector<double> differences;
      double own = 0;
      for (const auto& [heat, cell] : a->second) {
        const auto met = b->second.find(heat);
        if (met == b->second.end()) continue;
        differences.push_back(cell.mean - met->second.mean);
        own += cell.own + met->second.own;
      }
      const double m = static_cast<double>(differences.size());
      if (m < 2) continue;
      moment.squares += squares_about_mean(differences);
      moment.weight += 2 * (m - 1);
      moment.known += (1 - 1 / m) * own;
      most = std::max(most, static_cast<int64_t>(m) - 1);
    }
  }
  // In a full table of c contenders and m heats the residuals have (c - 1)(m - 1) degrees of freedom.
  degrees = most * std::max<int64_t>(0, static_cast<int64_t>(cells.size()) - 1);
  return moment.solved();
}

std::optional<double> heat_variance(const Cells& cells, double process) {
  Moment moment;
  for (const auto& [contender, heats] : cells) {
    std::vector<double> means;
    double known = 0;
    for (const auto& [heat, cell] : heats) {
      means.push_back(cell.mean);
      known += process + cell.own;
    }
    const double m = static_cast<double>(means.size());
    if (m < 2) continue;
    moment.squares += squares_about_mean(means);
    moment.weight += m - 1;
    moment.known += (1 - 1 / m) * known;
  }
  return moment.solved();
}

}  // namespace

std::optional<double> Components::pair_variance(double bursts_each) const {
  if (!process || !burst) return std::nullopt;
  return 2 * (*process + (*burst + step.value_or(0) / std::max(steps, 1.0)) / bursts_each);
}

Components components(std::span<const ProcessRecord> all) {
  const std::vector<ProcessRecord> processes = sound(all);
  Components found;
  double bursts = 0, steps = 0;
  for (const ProcessRecord& p : processes) {
    bursts += static_cast<double>(p.bursts.size());
    for (const BurstRecord& b : p.bursts) steps += static_cast<double>(b.steps);
  }
  if (processes.empty()) return found;
  found.bursts = bursts / static_cast<double>(processes.size());
  found.steps = steps / bursts;
  found.step = step_variance(processes);
  found.burst = burst_variance(processes, found.step.value_or(0));
  const Cells cells = cells_of(processes, found.burst.value_or(0), found.step.value_or(0));
  found.process = process_variance(cells, found.process_degrees);
  if (found.process) found.heat = heat_variance(cells, *found.process);
  return found;
}

std::optional<int64_t> cheapest_bursts(const Components& found, double start_cost, double burst_cost) {
  if (!found.process || !found.burst) return std::nullopt;
  const double within = *found.burst + found.step.value_or(0) / std::max(found.steps, 1.0);
  return steps_per_block(start_cost, burst_cost, within, *found.process);
}

}  // namespace bakeoff::stats
