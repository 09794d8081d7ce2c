#pragma once

// Maps the idiom of a LibTorch program, emitted or its user's own, to the runner protocol.
//
// The program is included unchanged into its own namespace, where its main() is never called. It must define:
//
//   Model make_model();                           // a TORCH_MODULE, on its device, in training mode
//   Optimizer make_optimizer(Model& model);       // a torch::optim::Optimizer
//   Tensor train_step(Model&, torch::optim::Optimizer&, const Tensor&...);  // zero_grad .. step; the loss
//   std::tuple<Tensor, ...> load_data(const std::string& path);             // one per input, rows first
//   class Batches;                                // Batches(load_data(..)), then next() without end: a tuple
//   constexpr int64_t kBatchSize;
//
// One that answers prompts has no optimizer and no train_step, but constexpr int64_t kPrompt, kWords,
//
//   class Answer;                // Answer(model, rows), then next(choose = likeliest): the next word of each row
//   Tensor predict_step(const Model&, const Tensor& rows);                  // kWords words of each row
//
// and BAKEOFF_ANSWERS(generate_libtorch) below. The caches of its model are no buffers.
//
// The model's forward() takes the first inputs of train_step and gives the prediction, or a tuple that begins
// with it. Parameters and buffers have the canonical names. The compiled adapter is per program; a worker
// may hold several.
//
//   namespace train_libtorch {
//   #include "/run/train_libtorch.cc"
//   }
//   BAKEOFF_SCRIPT(train_libtorch)

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/torch.h>

#include <algorithm>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>

#include "batch_hashes.h"
#include "tensors.h"
#include "worker.h"

namespace bakeoff {

// Stands in for the program's optimizer where only gradients are wanted: step() keeps a copy of them.
class GradientProbe : public torch::optim::Optimizer {
 public:
  explicit GradientProbe(const std::vector<torch::Tensor>& parameters)
      : Optimizer(parameters, std::make_unique<torch::optim::SGDOptions>(0.0)) {}
  torch::Tensor step(LossClosure closure = nullptr) override;
  bool stepped() const { return stepped_; }
  const std::vector<torch::Tensor>& gradients() const {
    return gradients_;
  }  // in the order of the parameters

 private:
  bool stepped_ = false;
  std::vector<torch::Tensor> gradients_;
};

// A program that is built: model, data, optimizer.
class Built {
 public:
  virtual ~Built() = default;
  virtual torch::nn::Module& model() = 0;
  virtual torch::optim::Optimizer& optimizer() = 0;
  virtual int64_t batch() const = 0;
  virtual void load(const std::string& data, torch::ScalarType dtype) = 0;
  virtual int64_t rows() const = 0;
  // A fresh optimizer, and the first row of the data next.
  virtual void restart(bool train) = 0;
  // A fresh optimizer; the data goes on where it stands.
  virtual void forget() = 0;
  // What the program's Batches give next.
  virtual std::vector<torch::Tensor> next_batch() = 0;
  // The loss of the next batch, before its update. Notes in `waits` how long the batch took to come.
  virtual torch::Tensor step() = 0;
  // The same on rows of the data and with another optimizer.
  virtual torch::Tensor step(int64_t first, int64_t count, torch::optim::Optimizer& optimizer) = 0;
  virtual torch::Tensor predict(int64_t first, int64_t count) = 0;
  // The optimizer's average of a parameter; undefined: it keeps none.
  virtual torch::Tensor average(const torch::Tensor& parameter) = 0;
  // The optimizer's learning rate of a step; nothing: it is constant.
  virtual std::optional<double> rate(int64_t step) = 0;
  // Of a program that answers prompts: the words of the next batch; the next word of the present answers, after the
  // last one of the next batch; logits and words of rows, the logits for the words of the data.
  virtual bool answers() const { return false; }
  virtual torch::Tensor answer() { return {}; }
  virtual torch::Tensor word() { return {}; }
  virtual std::pair<torch::Tensor, torch::Tensor> answer(int64_t, int64_t) { return {}; }
  WaitClock waits;
};

template <typename Idiom>
class BuiltOf : public Built {
 public:
  BuiltOf() : model_(Idiom::make_model()) {}
  torch::nn::Module& model() override { return *model_; }
  torch::optim::Optimizer& optimizer() override { return *optimizer_; }
  int64_t batch() const override { return Idiom::kBatch; }

  void load(const std::string& file, torch::ScalarType dtype) override {
    data_ = std::apply(
        [dtype](const auto&... inputs) {
          return Data((inputs.is_floating_point() ? inputs.to(dtype) : inputs)...);
        },
        Idiom::load_data(file));
  }
  int64_t rows() const override { return std::get<0>(data_).size(0); }

  void restart(bool train) override {
    optimizer_.reset();
    if (train) optimizer_.reset(new Optimizer(Idiom::make_optimizer(model_)));
    batches_.reset();
    waits.restart(std::max<int64_t>(1, rows() / Idiom::kBatch));
  }
  void forget() override { optimizer_.reset(new Optimizer(Idiom::make_optimizer(model_))); }
  std::vector<torch::Tensor> next_batch() override {
    return std::apply([](const auto&... inputs) { return std::vector<torch::Tensor>{inputs...}; }, next());
  }
  torch::Tensor step() override {
    const int64_t start = now_ns();
    const Data batch = next();
    waits.came(now_ns() - start);
    return step_on(batch, *optimizer_);
  }
  torch::Tensor step(int64_t first, int64_t count, torch::optim::Optimizer& optimizer) override {
    return step_on(some(first, count), optimizer);
  }
  torch::Tensor predict(int64_t first, int64_t count) override {
    return predict_from(some(first, count), std::make_index_sequence<std::tuple_size_v<Data>>());
  }

  torch::Tensor average(const torch::Tensor& parameter) override {
    if constexpr (requires { optimizer_->average(parameter); }) return optimizer_->average(parameter);
    return {};
  }
  std::optional<double> rate(int64_t step) override {
    if constexpr (requires { optimizer_->rate(step); }) return optimizer_->rate(step);
    return std::nullopt;
  }

 protected:
  using Model = decltype(Idiom::make_model());
  using Optimizer = decltype(Idiom::make_optimizer(std::declval<Model&>()));
  using Data = decltype(Idiom::load_data(std::string()));
  using Batches = typename Idiom::Batches;

  Data some(int64_t first, int64_t count) const {
    const auto device =
        model_->parameters().empty() ? torch::Device(torch::kCPU) : model_->parameters().front().device();
    return std::apply(
        [&](const auto&... inputs) { return Data(inputs.slice(0, first, first + count).to(device)...); },
        data_);
  }
  Data next() {
    if (!batches_) batches_.emplace(data_);
    return batches_->next();
  }
  Model model_;
  Data data_;

 private:
  torch::Tensor step_on(const Data& batch, torch::optim::Optimizer& optimizer) {
    return std::apply([&](const auto&... inputs) { return Idiom::train_step(model_, optimizer, inputs...); },
                      batch);
  }
  // forward() with as many of the first inputs as it takes.
  template <size_t... I>
  torch::Tensor predict_from(const Data& batch, std::index_sequence<I...>) {
    if constexpr (requires { typename Idiom::Answer; }) {
      return {};
    } else if constexpr (requires { model_->forward(std::get<I>(batch)...); }) {
      return first_of(model_->forward(std::get<I>(batch)...));
    } else {
      static_assert(sizeof...(I) > 1, "forward() takes none of the inputs of train_step");
      return predict_from(batch, std::make_index_sequence<sizeof...(I) - 1>());
    }
  }
  static torch::Tensor first_of(const torch::Tensor& prediction) { return prediction; }
  template <typename... More>
  static torch::Tensor first_of(const std::tuple<torch::Tensor, More...>& outputs) {
    return std::get<0>(outputs);
  }

  std::unique_ptr<Optimizer> optimizer_;
  std::optional<Batches> batches_;
};

template <typename Idiom>
class AnswersOf : public BuiltOf<Idiom> {
 public:
  bool answers() const override { return true; }
  torch::Tensor answer() override { return Idiom::predict_step(this->model_, std::get<0>(this->next())); }
  torch::Tensor word() override {
    if (said_ % Idiom::kWords == 0) answer_.emplace(this->model_, std::get<0>(this->next()));
    ++said_;
    return answer_->next();
  }
  std::pair<torch::Tensor, torch::Tensor> answer(int64_t first, int64_t count) override {
    const torch::Tensor rows = std::get<0>(this->some(first, count));
    typename Idiom::Answer following(this->model_, rows);
    std::vector<torch::Tensor> logits;
    for (int64_t n = 0; n < Idiom::kWords; ++n) {
      following.next([&](const torch::Tensor& seen) {
        logits.push_back(seen);
        return rows.select(1, Idiom::kPrompt + n);
      });
    }
    return {torch::stack(logits, 1), Idiom::predict_step(this->model_, rows)};
  }

 private:
  std::optional<typename Idiom::Answer> answer_;
  int64_t said_ = 0;
};

// The programs of this worker, by the name of their namespace.
using Factory = std::function<std::unique_ptr<Built>()>;
std::map<std::string, Factory>& programs();

// Maps names that a namespace can only offer to a type that a template can take.
#define BAKEOFF_SCRIPT(name)                                                                   \
  struct name##_idiom {                                                                        \
    using Batches = name::Batches;                                                             \
    static constexpr int64_t kBatch = name::kBatchSize;                                        \
    static auto make_model() { return name::make_model(); }                                    \
    static auto make_optimizer(auto& model) { return name::make_optimizer(model); }            \
    static auto load_data(const std::string& path) { return name::load_data(path); }           \
    static auto train_step(auto& model, auto& optimizer, const auto&... inputs) {              \
      return name::train_step(model, optimizer, inputs...);                                    \
    }                                                                                          \
  };                                                                                           \
  static const bool name##_listed =                                                            \
      ::bakeoff::programs()                                                                    \
          .emplace(#name, [] { return std::make_unique<::bakeoff::BuiltOf<name##_idiom>>(); }) \
          .second;

#define BAKEOFF_ANSWERS(name)                                                                     \
  struct name##_idiom {                                                                           \
    using Batches = name::Batches;                                                                \
    using Answer = name::Answer;                                                                  \
    static constexpr int64_t kBatch = name::kBatchSize;                                           \
    static constexpr int64_t kPrompt = name::kPrompt, kWords = name::kWords;                      \
    static auto make_model() { return name::make_model(); }                                       \
    static auto make_optimizer(auto& model) { return torch::optim::SGD(model->parameters(), 0); } \
    static auto load_data(const std::string& path) { return name::load_data(path); }              \
    static auto predict_step(const auto& model, const torch::Tensor& rows) {                      \
      return name::predict_step(model, rows);                                                     \
    }                                                                                             \
    static torch::Tensor train_step(auto&, auto&, const auto&...) {                               \
      throw ::bakeoff::AdapterError("a program that answers prompts does not train");             \
    }                                                                                             \
  };                                                                                              \
  static const bool name##_listed =                                                               \
      ::bakeoff::programs()                                                                       \
          .emplace(#name, [] { return std::make_unique<::bakeoff::AnswersOf<name##_idiom>>(); })  \
          .second;

// Serves the programs listed so far.
int serve_programs(int argc, char** argv);

}  // namespace bakeoff
