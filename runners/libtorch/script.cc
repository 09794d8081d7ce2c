#include "script.h"

#include <filesystem>

namespace bakeoff {
namespace {

using torch::Tensor;

constexpr const char* kOptions[] = {"channels_last", "precision", "cache"};

// torch's exceptions carry a stack of C++ calls, which belongs into the traceback.
template <typename Act>
auto guarded(Act act) {
  try {
    return act();
  } catch (const c10::Error& error) {
    throw AdapterError(error.what_without_backtrace(), error.what());
  }
}

void barrier() {
  if (torch::cuda::is_available()) torch::cuda::synchronize();
}

// The few facts of torch's build that change how fast it is. No regular expressions: they take seconds to
// compile.
void describe_build(Json& effective) {
  struct Fact {
    const char *key, *before, *ends;
  };
  static constexpr Fact kWanted[] = {{"blas", "BLAS_INFO=", ", \n"},
                                     {"lapack", "LAPACK_INFO=", ", \n"},
                                     {"cpu_capability", "CPU capability usage: ", " \n"},
                                     {"mkldnn", "MKL-DNN v", " \n"},
                                     {"mkl", "Math Kernel Library Version ", " \n"},
                                     {"openmp", "OpenMP ", " \n"},
                                     {"parallel_backend", "ATen parallel backend: ", "\n"}};
  const std::string text = at::show_config() + at::get_parallel_info();
  for (const Fact& fact : kWanted) {
    const size_t found = text.find(fact.before);
    if (found == std::string::npos) continue;
    const size_t begin = found + std::string(fact.before).size();
    effective[fact.key] = text.substr(begin, text.find_first_of(fact.ends, begin) - begin);
  }
}

bool channels_last(torch::nn::Module& model) {
  bool any = false;
  for (const Tensor& p : model.parameters()) {
    // Kernels of one pixel or one channel are contiguous in both formats.
    if (p.dim() != 4 || p.size(1) == 1 || p.size(2) * p.size(3) == 1) continue;
    if (!p.is_contiguous(torch::MemoryFormat::ChannelsLast)) return false;
    any = true;
  }
  return any;
}

Tensor like(const Tensor& value, const Tensor& target) {
  return torch::empty_like(target).copy_(value).detach();  // in the target's dtype, device and memory format
}

// Half precision has no place in the files that are compared.
Tensor wide(const Tensor& value) {
  return value.is_floating_point() && value.element_size() < 4 ? value.to(torch::kFloat32) : value;
}

// A parameter that is not trained and adds nothing: the second bias of an LSTM. The workload knows no such.
bool constant_zero(const Tensor& parameter) {
  return parameter.is_leaf() && !parameter.requires_grad() && !parameter.any().item<bool>();
}

class LibtorchAdapter : public Adapter {
 public:
  Json import_framework(const ImportRequest& request) override {
    return guarded([&] { return start(request); });
  }
  Json build(const BuildRequest& request) override {
    return guarded([&] { return make(request); });
  }
  std::vector<std::string> parity(const ParityRequest& request) override {
    return guarded([&] { return prove(request); });
  }
  Losses losses(int64_t steps) override {
    return guarded([&] { return first_losses(steps); });
  }
  Burst run(int64_t steps, Ring& ring) override {
    return guarded([&] { return burst(steps, ring); });
  }
  void restore() override {
    guarded([&] {
      load_initial();
      if (!built_->answers()) {
        need_optimizer();
        built_->forget();
      }
      barrier();
    });
  }
  void nudge(const std::string& changes) override {
    guarded([&] {
      const torch::NoGradGuard no_grad;
      const Tensors mine = state();
      if (!changes.empty()) changes_ = read_safetensors(changes);
      for (const auto& [name, change] : changes_) {
        const auto target = mine.find(name);
        if (target == mine.end()) throw AdapterError("the model trains no '" + name + "'");
        Tensor(target->second).add_(like(change, target->second));
      }
    });
  }
  std::vector<std::string> batch_hashes(int64_t count,
                                        const std::vector<std::vector<int64_t>>& row_shapes) override {
    return guarded([&] { return first_batches(count, row_shapes); });
  }
  std::vector<std::string> write_state(const std::string& out) override {
    return guarded([&] {
      Tensors all = state();
      for (const auto& [name, parameter] : trained_) {
        const Tensor average = built_->average(parameter);
        if (average.defined()) all["ema/" + name] = average;
      }
      std::vector<std::string> names;
      for (const auto& [name, tensor] : all) names.push_back(name);
      write_safetensors(out, all);
      return names;
    });
  }
  std::vector<double> rates(const std::vector<int64_t>& steps) override {
    return guarded([&] {
      need_optimizer();
      std::vector<double> all;
      for (const int64_t step : steps) {
        if (const auto rate = built_->rate(step)) all.push_back(*rate);
      }
      return all;
    });
  }

  bool answers() const override { return built_->answers(); }
  std::vector<ToldOutput> outputs() override {
    return guarded([&] {
      std::vector<ToldOutput> all;
      for (const Tensor& words : said_) {
        const Tensor flat = words.flatten().to(torch::kCPU, torch::kInt64).contiguous();
        const Tensor numbers = flat.to(torch::kFloat64);
        all.push_back({flat.numel(),
                       numbers[-1].item<double>(),
                       numbers.square().sum().item<double>(),
                       {flat.data_ptr<int64_t>(), flat.data_ptr<int64_t>() + flat.numel()}});
      }
      return all;
    });
  }
  void request() override {
    guarded([&] {
      built_->word();
      barrier();
    });
  }

 private:
  Json start(const ImportRequest& request) {
    for (const auto& [option, value] : request.options) {
      const auto known = [&](const char* name) { return option == name; };
      if (std::none_of(std::begin(kOptions), std::end(kOptions), known)) {
        throw AdapterError("unknown option '" + option + "' of framework libtorch");
      }
    }
    // The call switches off MKL's own choice of fewer threads for small products. Setting only
    // OMP_NUM_THREADS keeps that choice.
    if (at::get_num_threads() != request.threads) at::set_num_threads(request.threads);
    const bool cuda = torch::cuda::is_available();
    Json effective = {{"threads", at::get_num_threads()},
                      {"interop_threads", static_cast<int64_t>(at::get_num_interop_threads())},
                      {"compiler", kCompiler}};
    describe_build(effective);
    return {{"versions", {{"torch", TORCH_VERSION}}},
            {"device", cuda ? "cuda:0" : "cpu"},
            {"effective", effective}};
  }

  Json make(const BuildRequest& request) {
    built_.reset();
    const std::string name = std::filesystem::path(request.script).stem().string();
    const auto program = programs().find(name);
    if (program == programs().end()) throw AdapterError("this worker was not compiled from '" + name + "'");
    if (request.data.empty()) throw AdapterError("libtorch needs a data file");
    if (!request.layout.empty()) throw AdapterError("libtorch knows no layout file");
    dtype_ = request.float64 ? torch::kFloat64 : torch::kFloat32;
    torch::set_default_dtype(c10::scalarTypeToTypeMeta(dtype_));
    torch::manual_seed(1);  // a program's own seed comes after this one
    built_ = program->second();
    if (!built_->answers()) built_->model().train();
    if (request.float64) {  // else what the program stores in half precision stays so
      for (const auto& [key, tensor] : state())
        if (tensor.is_floating_point()) Tensor(tensor).set_data(tensor.to(dtype_));
    }
    if (!request.dropout) no_dropout();
    if (!request.weights.empty()) load_weights(read_safetensors(request.weights));
    built_->load(request.data, dtype_);
    initial_.clear();
    for (const auto& [key, tensor] : state()) initial_[key] = tensor.detach().clone();
    train_ = request.train && !built_->answers();
    trained_ = parameters_of_model();
    built_->restart(train_);
    return effective();
  }

  Json effective() {
    int64_t parameters = 0;
    for (const auto& [name, p] : parameters_of_model()) parameters += p.numel();
    return {{"batch", built_->batch()},
            {"parameters", parameters},
            {"dtype", dtype_ == torch::kFloat64 ? "float64" : "float32"},
            {"channels_last", channels_last(built_->model())}};
  }

  void no_dropout() {
    for (const auto& module : built_->model().modules()) {
      if (auto* dropout = module->as<torch::nn::Dropout>()) dropout->options.p(0);
      if (auto* dropout = module->as<torch::nn::Dropout2d>()) dropout->options.p(0);
    }
  }

  // In the model's order.
  std::vector<std::pair<std::string, Tensor>> parameters_of_model() const {
    std::vector<std::pair<std::string, Tensor>> all;
    for (const auto& item : built_->model().named_parameters()) {
      if (!constant_zero(item.value())) all.emplace_back(item.key(), item.value());
    }
    return all;
  }

  // Every parameter and buffer but the counters of BatchNorm.
  Tensors state() const {
    Tensors all;
    for (const auto& [name, parameter] : parameters_of_model()) all[name] = parameter;
    for (const auto& item : built_->model().named_buffers()) {
      if (!item.key().ends_with("num_batches_tracked")) all[item.key()] = item.value();
    }
    return all;
  }

  void load_weights(const Tensors& weights) {
    const torch::NoGradGuard no_grad;
    const Tensors mine = state();
    for (const auto& [name, value] : weights) {
      const auto target = mine.find(name);
      if (target == mine.end()) throw AdapterError("the model has no '" + name + "'");
      if (target->second.sizes() != value.sizes()) {
        throw AdapterError("'" + name + "' of the model has shape " + c10::str(target->second.sizes()) +
                           ", the workload's has " + c10::str(value.sizes()));
      }
      Tensor(target->second).copy_(value);
    }
    for (const auto& [name, tensor] : mine) {
      if (!weights.contains(name)) throw AdapterError("the model has '" + name + "', the workload has not");
    }
  }

  // The initial state.
  void reset() {
    load_initial();
    built_->restart(train_);
  }

  void load_initial() {
    const torch::NoGradGuard no_grad;
    for (const auto& [name, tensor] : state()) Tensor(tensor).copy_(initial_.at(name));
    built_->model().zero_grad();
  }

  void need_optimizer() const {
    if (!train_) throw AdapterError("this build has no optimizer");
  }

  std::vector<std::string> prove(const ParityRequest& request) {
    if (request.first + request.count > built_->rows()) {
      throw AdapterError("the data has " + std::to_string(built_->rows()) + " rows, not " +
                         std::to_string(request.first + request.count));
    }
    reset();
    Tensors out;
    if (built_->answers()) {
      const auto [logits, words] = built_->answer(request.first, request.count);
      out = {{"output", wide(logits)}, {"words", words.to(torch::kFloat64)}};
      write_safetensors(request.out, out);
      return {"output", "words"};
    }
    one_step(request, out);
    reset();
    // A program with weights in half precision computes inside the autocast of its step alone. Nothing compares its outputs:
    // its float32 counterpart is what is proven.
    bool half = false;
    for (const auto& [key, tensor] : state())
      half = half || (tensor.is_floating_point() && tensor.element_size() < 4);
    if (!half) out["output"] = built_->predict(request.first, request.count);
    if (!request.grads_in.empty()) update(read_safetensors(request.grads_in), out);
    reset();
    write_safetensors(request.out, out);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : out) names.push_back(name);
    return names;
  }

  // Loss, gradients and buffers of one training step.
  void one_step(const ParityRequest& request, Tensors& out) {
    const auto named = parameters_of_model();
    if (named.empty()) throw AdapterError("the model has no parameters");
    std::vector<Tensor> parameters;
    for (const auto& [name, parameter] : named) parameters.push_back(parameter);
    GradientProbe probe(parameters);
    out["loss"] = wide(built_->step(request.first, request.count, probe)).clone();
    if (!probe.stepped()) throw AdapterError("train_step does not call optimizer.step()");
    for (size_t i = 0; i < named.size(); ++i) out["grad/" + named[i].first] = probe.gradients()[i];
    for (const auto& item : built_->model().named_buffers()) {
      if (!item.key().ends_with("num_batches_tracked"))
        out["buffer/" + item.key()] = wide(item.value()).clone();
    }
  }

  // The parameters after one update from `gradients`, from the initial state.
  void update(const Tensors& gradients, Tensors& out) {
    need_optimizer();
    reset();
    const auto named = parameters_of_model();
    for (const auto& [name, parameter] : named) {
      const auto given = gradients.find(name);
      if (given == gradients.end()) throw AdapterError("no gradient is given for '" + name + "'");
      Tensor(parameter).mutable_grad() = like(given->second, parameter);
    }
    built_->optimizer().step();
    for (const auto& [name, parameter] : named) out["update/" + name] = wide(parameter.detach()).clone();
  }

  Losses first_losses(int64_t steps) {
    need_optimizer();
    reset();
    std::vector<Tensor> kept;
    const int64_t start = now_ns();
    kept.push_back(built_->step());
    barrier();
    const int64_t first = now_ns();
    for (int64_t n = 1; n < steps; ++n) kept.push_back(built_->step());
    barrier();
    Losses found{.first_ns = first - start, .ns = now_ns() - start};
    for (const Tensor& loss : kept) found.losses.push_back(loss.item<double>());
    return found;
  }

  std::vector<std::string> first_batches(int64_t count, const std::vector<std::vector<int64_t>>& row_shapes) {
    built_->restart(train_);
    std::vector<std::string> hashes;
    for (int64_t n = 0; n < count; ++n) hashes.push_back(batch_hash(built_->next_batch(), row_shapes));
    reset();
    return hashes;
  }

  // The outputs of a burst are asked for right after it, if at all.
  Burst answers(int64_t steps, Ring& ring) {
    said_.clear();
    const int64_t start = now_ns();
    for (int64_t n = 0; n < steps; ++n) {
      said_.push_back(built_->answer());
      ring.mark();
    }
    barrier();
    return {.ns = now_ns() - start};
  }

  Burst burst(int64_t steps, Ring& ring) {
    if (built_->answers()) return answers(steps, ring);
    need_optimizer();
    std::vector<Tensor> kept;
    built_->waits.take();
    const int64_t start = now_ns();
    for (int64_t n = 0; n < steps; ++n) {
      kept.push_back(built_->step().detach());
      ring.mark();
    }
    barrier();
    Burst done{.ns = now_ns() - start, .wait = built_->waits.take(), .sums = sums()};
    for (const Tensor& loss : kept) done.losses.push_back(loss.item<double>());
    done.loss = done.losses.back();
    return done;
  }

  // Of every trained parameter.
  std::map<std::string, double> sums() const {
    std::map<std::string, double> seen;
    for (const auto& [name, parameter] : trained_) seen[name] = parameter.detach().sum().item<double>();
    return seen;
  }

  torch::ScalarType dtype_ = torch::kFloat32;
  std::unique_ptr<Built> built_;
  std::vector<Tensor> said_;  // words of the last burst
  Tensors initial_, changes_;
  std::vector<std::pair<std::string, Tensor>> trained_;
  bool train_ = true;
};

}  // namespace

Tensor GradientProbe::step(LossClosure) {
  stepped_ = true;
  gradients_.clear();
  for (const Tensor& p : param_groups()[0].params()) {
    gradients_.push_back(p.grad().defined() ? p.grad().clone() : torch::zeros_like(p));
  }
  return {};
}

std::map<std::string, Factory>& programs() {
  static std::map<std::string, Factory> all;
  return all;
}

int serve_programs(int argc, char** argv) {
  LibtorchAdapter adapter;
  return serve(argc, argv, adapter);
}

}  // namespace bakeoff
