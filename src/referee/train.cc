#include "referee/train.h"

namespace bakeoff::referee {

Result<TrainingRun> train(const ir::Workload& workload, const ir::Optimizer& optimizer, Weights weights,
                          std::span<const Inputs> batches, const TrainOptions& options) {
  TrainingRun run{.losses = {}, .weights = std::move(weights), .state = initial_state({})};
  run.state = initial_state(run.weights);
  for (size_t k = 0; k < batches.size(); ++k) {
    if (options.stop && options.stop()) return Error{"interrupted"};
    EvalOptions eval{.threads = options.threads};
    if (options.dropout_seed) eval.dropout = DropoutMasks{.seed = *options.dropout_seed, .step = k};
    Evaluation e;
    if (k == 0 && options.first != nullptr) {
      e = *options.first;
    } else {
      TRY(e, evaluate(workload, run.weights, batches[k], eval));
    }
    if (options.watch) options.watch(k, e);
    run.losses.push_back(e.loss);
    step(optimizer, e.gradients, run.state, run.weights);
    Weights& statistics =
        options.running_variance == VarianceForm::kBiased ? e.running.biased : e.running.unbiased;
    for (size_t p = 0; p < statistics.size(); ++p) {
      if (!statistics[p].data.empty()) run.weights[p] = std::move(statistics[p]);
    }
  }
  return run;
}

}  // namespace bakeoff::referee
