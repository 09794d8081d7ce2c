#pragma once

// PyTorch: one nn.Module per workload, an optimizer of torch.optim, a train step in plain eager style.
//
// The script offers (and the runner's adapter relies on) make_model(), make_optimizer(model),
// train_step(model, optimizer, *inputs) -> loss, load_data(path) -> tuple of tensors, and batches(*tensors),
// an endless iterator. Names in the model's state_dict are the canonical ones, so there is no layout file.
//
// Settings: compile = off | default | reduce-overhead | max-autotune, a visible model.compile(...) in
// make_model(), or cuda_graphs (cuda_graphs.h); channels_last = false | true,
// memory_format=torch.channels_last for model and pictures.

#include "emit/emit.h"

namespace bakeoff::emit {

const Framework& torch_framework();

}  // namespace bakeoff::emit
