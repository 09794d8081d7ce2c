// The CNN of recipes/mnist_cnn.toml in LibTorch, as one would type it.
//
//   mnist_cnn data.safetensors weights.safetensors

#include <torch/torch.h>

#include "bursts.h"
#include "tensors.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;

struct NetImpl : nn::Module {
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, conv3{nullptr}, conv4{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr};

  NetImpl() {
    conv1 = register_module("conv1", nn::Conv2d(1, 32, 3));
    conv2 = register_module("conv2", nn::Conv2d(32, 32, 3));
    conv3 = register_module("conv3", nn::Conv2d(32, 32, 3));
    conv4 = register_module("conv4", nn::Conv2d(32, 64, 3));
    fc1 = register_module("fc1", nn::Linear(4096, 128));
    fc2 = register_module("fc2", nn::Linear(128, 10));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1->forward(x));
    x = torch::relu(conv2->forward(x));
    x = torch::max_pool2d(x, 2);
    x = torch::relu(conv3->forward(x));
    x = torch::relu(conv4->forward(x));
    x = torch::relu(fc1->forward(x.flatten(1)));
    return fc2->forward(x);
  }
};
TORCH_MODULE(Net);

int main(int, char** argv) {
  constexpr int64_t kBatch = 256;
  const torch::Device device = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  auto data = bakeoff::read_safetensors(argv[1]);
  const auto x = (data["x"].to(torch::kFloat32) / 255).to(device);
  const auto y = data["y"].to(torch::kInt64).to(device);

  Net model;
  {
    torch::NoGradGuard guard;
    auto weights = bakeoff::read_safetensors(argv[2]);
    for (auto& p : model->named_parameters()) p.value().copy_(weights[p.key()]);
  }
  model->to(device);
  torch::optim::RMSprop optimizer(model->parameters(),
                                  torch::optim::RMSpropOptions(1e-4).alpha(0.9).eps(1e-7));

  torch::Tensor loss;
  const int64_t batches = x.size(0) / kBatch;
  int64_t step = 0;
  for (Bursts bursts; bursts.wait();) {
    for (int i = 0; i < bursts.steps(); ++i) {
      const int64_t first = step++ % batches * kBatch;
      optimizer.zero_grad();
      loss = F::cross_entropy(model(x.slice(0, first, first + kBatch)), y.slice(0, first, first + kBatch));
      loss.backward();
      optimizer.step();
    }
    bursts.done(loss.item<double>());
  }
}
