// The MLP of recipes/mlp_deep.toml in LibTorch, as one would type it.
//
//   mlp_deep data.safetensors weights.safetensors

#include <torch/torch.h>

#include <map>
#include <string>

#include "bursts.h"
#include "tensors.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

int main(int, char** argv) {
  const torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::manual_seed(1);
  auto data = bakeoff::read_safetensors(argv[1]);
  const auto x = data["x"].to(torch::kFloat32).to(device);
  const auto y = data["y"].to(torch::kInt64).to(device);

  const double rate = dropout(0.5);
  nn::Sequential model(nn::Linear(100, 256), nn::BatchNorm1d(256), nn::ReLU(), nn::Dropout(rate),
                       nn::Linear(256, 128), nn::BatchNorm1d(128), nn::ReLU(), nn::Dropout(rate),
                       nn::Linear(128, 10));
  {
    torch::NoGradGuard guard;
    const std::map<std::string, std::string> layers = {
        {"0", "fc1"}, {"1", "bn1"}, {"4", "fc2"}, {"5", "bn2"}, {"8", "fc3"}};
    auto weights = bakeoff::read_safetensors(argv[2]);
    for (auto& p : model->named_parameters()) {
      p.value().copy_(weights[layers.at(p.key().substr(0, 1)) + p.key().substr(1)]);
    }
  }
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-3).eps(1e-7));

  torch::Tensor loss;
  constexpr int64_t kBatch = 1000;
  const int64_t batches = x.size(0) / kBatch;
  int64_t step = 0;
  for (Bursts bursts; bursts.wait();) {
    for (int i = 0; i < bursts.steps(); ++i) {
      const int64_t first = step++ % batches * kBatch;
      optimizer.zero_grad();
      loss = F::cross_entropy(model->forward(x.slice(0, first, first + kBatch)),
                              y.slice(0, first, first + kBatch));
      loss.backward();
      optimizer.step();
    }
    bursts.done(loss.item<double>());
  }
}
