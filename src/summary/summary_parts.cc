#include "summary/summary_parts.h"

#include <algorithm>

#include "stats/trimmed.h"

namespace bakeoff {
namespace {

double ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

// Values of one contender's sound trials.
template <typename Get>
std::vector<double> collect(const std::vector<const Trial*>& trials, Get get) {
  std::vector<double> values;
  for (const Trial* trial : trials) values.push_back(get(*trial));
  return values;
}

}  // namespace

StartUp start_up(std::vector<const Trial*> trials, const std::optional<Parity>& proof) {
  StartUp s;
  if (std::any_of(trials.begin(), trials.end(), [](const Trial* t) { return t->alone; }))
    std::erase_if(trials, [](const Trial* t) { return !t->alone; });
  if (trials.empty()) return s;
  s.start = stats::median(collect(trials, [](const Trial& t) { return ms(t.start_ns); }));
  s.import = stats::median(collect(trials, [](const Trial& t) { return ms(t.import_ns); }));
  s.build = stats::median(collect(trials, [](const Trial& t) { return ms(t.build_ns); }));
  std::vector<double> warm, cold;
  for (const Trial* t : trials) (t->cold ? cold : warm).push_back(ms(t->first_step_ns));
  s.first_step = stats::median(warm.empty() ? cold : warm);
  if (!cold.empty())
    s.first_step_cold = stats::median(cold);
  else if (proof && proof->first_step_cold_ns > 0)
    s.first_step_cold = ms(proof->first_step_cold_ns);
  return s;
}

std::optional<Transfer> transfer_of(const std::vector<const Trial*>& trials) {
  std::vector<Transfer> all;
  for (const Trial* trial : trials) {
    if (trial->transfer) all.push_back(*trial->transfer);
  }
  if (all.empty()) return std::nullopt;
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
  std::nth_element(all.begin(), middle, all.end(),
                   [](const Transfer& a, const Transfer& b) { return a.ns < b.ns; });
  return *middle;
}

ModelBytes model_bytes(const recipe::Recipe& recipe) {
  constexpr double kFloat32 = 4;
  double weights = 0;
  for (const ir::Parameter& parameter : recipe.workload.parameters)
    weights += static_cast<double>(ir::elements(parameter.shape)) * kFloat32;
  if (recipe.training.predicts()) return {.weights = weights};
  const double trained = static_cast<double>(recipe.workload.parameter_count()) * kFloat32;
  const ir::Optimizer& optimizer = recipe.training.optimizer;
  const double slots = optimizer.adam() ? 2
                                        : (optimizer.kind == ir::OptimizerKind::kRmsprop ? 1 : 0) +
                                              (optimizer.momentum > 0 ? 1 : 0);
  return {.weights = weights, .gradients = trained, .optimizer = slots * trained};
}

RowVerdict row_verdict(stats::Verdict verdict) {
  switch (verdict) {
    case stats::Verdict::kFaster:
      return RowVerdict::kFaster;
    case stats::Verdict::kSame:
      return RowVerdict::kSame;
    case stats::Verdict::kSlower:
      return RowVerdict::kSlower;
    case stats::Verdict::kMateriallySlower:
      return RowVerdict::kMateriallySlower;
    case stats::Verdict::kUndecided:
      break;
  }
  return RowVerdict::kUndecided;
}

std::vector<double> step_times(const Trial& trial) {
  std::vector<double> steps, bursts;
  for (const int64_t ns : trial.step_ns) steps.push_back(ms(ns));
  for (const Burst& b : trial.bursts) bursts.push_back(b.ms_per_step());
  const double work = stats::mean(bursts);
  return !steps.empty() && marks_show_work(stats::mean(steps), work) ? steps : bursts;
}

}  // namespace bakeoff
