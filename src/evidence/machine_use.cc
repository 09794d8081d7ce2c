// What a step must move is counted here, not what it does move: parameters, gradients, optimizer state and
// batch, each once. Activations may stay in caches, and frameworks differ in what they keep, so anything more
// would be a guess about the contender that is judged. Counted this way a share of the memory's limit is
// never overstated. Which limit is meant follows from the same number: the nearest level of memory that holds
// all of it. The peak of arithmetic is that of the precision that the contender's settings allow, since a
// contender that may round products to bfloat16 could exceed the one of float32.

#include "evidence/machine_use.h"

#include <algorithm>
#include <cstdlib>

#include "emit/all/frameworks.h"
#include "ir/dropout.h"
#include "ir/op_table.h"
#include "ir/verify.h"
#include "recipe/recipe.h"

namespace bakeoff {
namespace {

constexpr double kFloat = 4;

// The rate of `threads` cores: at most that many times the rate of one, and at most the rate of all.
double of_threads(const roofline::Rate& rate, int64_t threads) {
  if (threads <= 0) return std::max(rate.one, rate.all);
  return std::min(std::max(rate.one, rate.all), rate.one * static_cast<double>(threads));
}

// Bytes that a prediction must move: parameters, except tables (of which it reads some rows), and its inputs.
double least_bytes_to_predict(const ir::Workload& workload, int64_t batch) {
  double numbers = 0;
  for (const ir::Parameter& parameter : workload.parameters) {
    if (parameter.role != ir::Role::kTable) numbers += static_cast<double>(ir::elements(parameter.shape));
  }
  for (ir::ValueId id = 0; id < static_cast<int>(workload.inputs.size()); ++id) {
    const ir::Shape& shape = workload.inputs[static_cast<size_t>(id)].type.shape;
    const std::vector<int> readers = ir::consumers(workload, id);
    const bool read = !readers.empty() && readers.front() < workload.model_end();
    if (read || id == workload.prediction()) numbers += static_cast<double>(ir::elements(shape, batch));
  }
  return kFloat * numbers;
}

// Bytes that a training step must move: parameters, gradients, optimizer state, and its batch.
double least_bytes(const ir::Workload& workload, const ir::Training& training) {
  if (training.predicts()) return least_bytes_to_predict(workload, training.batch);
  double bytes = static_cast<double>(ir::optimizer_bytes_per_scalar(training.optimizer)) *
                 static_cast<double>(workload.parameter_count());
  for (const ir::Input& input : workload.inputs) {
    const auto number = static_cast<double>(ir::elements(input.type.shape, training.batch));
    bytes += kFloat * number;
  }
  return bytes;
}

// Capacity of the caches that these threads use, at most one cache each; 0 threads: of all caches.
double capacity_of(const roofline::Level& level, int64_t threads) {
  const int64_t all = std::max<int64_t>(level.caches, 1);
  return static_cast<double>(level.capacity * (threads > 0 ? std::min(all, threads) : all));
}

// The nearest level that holds `bytes`; the last one otherwise.
const roofline::Level* level_for(const roofline::Limits& limits, double bytes, int64_t threads) {
  for (const roofline::Level& level : limits.levels) {
    if (level.capacity == 0 || capacity_of(level, threads) >= bytes) return &level;
  }
  return limits.levels.empty() ? nullptr : &limits.levels.back();
}

// The peak that bounds a contender: that of float32, or that of bfloat16 if a setting allows products to be
// rounded to it.
double peak_of(const Contender& contender, const roofline::Limits& limits) {
  double peak = 0;
  const auto take = [&](const char* dtype) {
    if (const roofline::Peak* p = limits.peak(dtype)) peak = std::max({peak, p->ops.one, p->ops.all});
  };
  take("f32");
  if (peak > 0 && emit::precision_group(contender.settings) != emit::kFullPrecision) take("bf16");
  return peak;
}

// The fastest matrix product of any GPU in any precision; 0: none was measured.
double gpu_peak_of(const roofline::Limits& limits) {
  double peak = 0;
  for (const roofline::Gpu& gpu : limits.gpus) {
    for (const roofline::Gpu::Tensor& product : gpu.gemm) peak = std::max(peak, product.ops);
  }
  return peak;
}

int64_t steps_per_call(const Contender& contender) {
  const emit::Framework* framework = emit::find_framework(contender.framework);
  return framework == nullptr ? 1 : emit::steps_per_call(*framework, contender.settings);
}

}  // namespace

int threads_of(const Texts& effective, int cpus) {
  int threads = std::max(cpus, 1);
  if (const auto at = effective.find("cpus"); at != effective.end()) {
    if (const auto allowed = recipe::parse_cpus(at->second); allowed && !allowed->empty())
      threads = std::min(threads, static_cast<int>(allowed->size()));
  }
  const auto at = effective.find("threads");
  const int64_t stated = at == effective.end() ? 0 : std::atoll(at->second.c_str());
  return stated > 0 ? static_cast<int>(std::min<int64_t>(threads, stated)) : threads;
}

std::optional<Roofline> roofline_of(const roofline::Limits& limits, const ir::Workload& workload,
                                    const ir::Training& training, int64_t threads) {
  if (training.generates()) return std::nullopt;
  const roofline::Peak* peak = limits.peak("f32");
  const auto cost = ir::step_cost(workload, training);
  const auto kinds = ir::cost_by_op(workload, training.batch);
  if (peak == nullptr || !cost || !kinds) return std::nullopt;
  const int over = static_cast<int>(threads > 0 ? threads : limits.cpus);
  Roofline r{.threads = over,
             .fewest_threads = over,
             .peak_flops = of_threads(peak->ops, threads),
             .peak_of = peak->dtype + ", " + peak->isa};
  if (const roofline::Peak* half = limits.peak("bf16")) r.bf16_flops = of_threads(half->ops, threads);
  for (const roofline::Gemm& gemm : limits.gemms) {
    const double rate = of_threads(gemm.ops, threads);
    if (gemm.dtype == "f32" && rate > r.gemm_flops) r.gemm_flops = rate, r.gemm_of = gemm.library;
  }
  for (const roofline::Level& level : limits.levels)
    r.roofs.push_back({level.name, of_threads(level.best(), threads)});
  const double touched = static_cast<double>(cost->bytes_forward + cost->bytes_optimizer);
  if (const roofline::Level* level = level_for(limits, touched, threads)) {
    r.level = level->name;
    r.bytes_per_s = of_threads(level->best(), threads);
  }
  r.flops = static_cast<double>(cost->flops());
  r.bytes = static_cast<double>(cost->bytes());
  for (const ir::OpCost& kind : *kinds) {
    const ir::Cost cost_of = training.predicts() ? kind.cost.forward() : kind.cost;
    r.kinds.push_back(
        {ir::info(kind.op).name, static_cast<double>(cost_of.flops()), static_cast<double>(cost_of.bytes())});
  }
  std::stable_sort(r.kinds.begin(), r.kinds.end(),
                   [](const auto& a, const auto& b) { return a.flops > b.flops; });
  return r;
}

TrialBounds trial_bounds(const Contender& contender, const Parity* proof, const ir::Workload& workload,
                         const ir::Training& training, int cores, const roofline::Limits* limits) {
  TrialBounds bounds{
      .cores = static_cast<double>(cores), .batch = training.batch, .per_call = steps_per_call(contender)};
  if (training.generates()) return bounds;  // what a word costs at least is not counted yet
  // The user's script may do other work, unless it is proven to do the same.
  const bool proven = proof != nullptr && proof->passed() && training.track == ir::Track::kEqualised;
  const bool own = !contender.own_script.empty() && !proven;
  if (const auto flops = ir::needed_flops(workload, training); flops && !own) {
    bounds.flops_per_step = *flops;
    bounds.bytes_per_step = least_bytes(workload, training);
  }
  const bool equal_work = training.track == ir::Track::kEqualised && !ir::drops(workload);
  if (proof != nullptr && !proof->failure && equal_work) {
    for (size_t i = 0; i < proof->losses.size(); ++i)
      bounds.losses[static_cast<int64_t>(i) + 1] = proof->losses[i];
  }
  if (limits == nullptr) return bounds;
  bounds.peak_flops = peak_of(contender, *limits);
  bounds.gpu_peak_flops = gpu_peak_of(*limits);
  double capacity = 0;
  for (const roofline::Level& level : limits->levels) {
    const roofline::Rate best = level.best();
    bounds.levels.emplace_back(capacity, std::max(best.one, best.all));
    capacity += capacity_of(level, 0);
  }
  return bounds;
}

std::map<std::string, TrialBounds> bounds_of(const Manifest& manifest, const std::vector<Parity>& parities,
                                             const ir::Workload& workload, const ir::Training& training,
                                             const MachineReport* machine, const MachineReport* peak) {
  std::map<std::string, TrialBounds> bounds;
  const MachineReport* usable = machine != nullptr && machine->disturbed.empty() ? machine : peak;
  for (const Contender& contender : manifest.contenders) {
    const auto proof = std::find_if(parities.begin(), parities.end(),
                                    [&](const Parity& p) { return p.contender == contender.id; });
    bounds[contender.id] =
        trial_bounds(contender, proof == parities.end() ? nullptr : &*proof, workload, training,
                     manifest.host.cpus, usable != nullptr ? &usable->limits : nullptr);
  }
  return bounds;
}

}  // namespace bakeoff
