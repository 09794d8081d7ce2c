#pragma once

// Maps an emitted native program to the runner protocol. The program is included unchanged into a namespace of its own,
// where its main() is never called, and once more in another with numbers in double for the proofs. Its struct Network
// has all that is asked for here (src/emit/native/program.cc).
//
//   namespace train_native {
//   ...
//   }
//   BAKEOFF_NATIVE(train_native)

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker.h"

namespace bakeoff {

// A program in one precision. All memory that its network has is made once, for the life of the process.
class Program {
 public:
  virtual ~Program() = default;
  virtual int64_t batch() const = 0;
  virtual int64_t rows() const = 0;        // of the data
  virtual int64_t parameters() const = 0;  // trained numbers
  // Weights and data as the files have them, a fresh optimizer, the first row next.
  virtual void load(const std::string& weights, const std::string& data, bool dropout) = 0;
  virtual void restore() = 0;  // the weights as loaded, a fresh optimizer
  virtual void rewind() = 0;   // the first row next
  virtual void next_batch() = 0;
  // On the present batch: trains, and gives the loss before the update; or predicts, and keeps what it gives.
  virtual double step() = 0;
  virtual bool predicts() const = 0;
  virtual void forget() = 0;                         // what was kept
  virtual std::vector<ToldOutput> told() const = 0;  // of what is kept
  // Rows, loss, output, gradients and buffers of one step without its update, the optimizer's update from given gradients;
  // of a prediction the output.
  virtual std::vector<std::string> prove(int64_t first, int64_t count, const std::string& gradients,
                                         const std::string& out) = 0;
  virtual void nudge(const std::string& changes) = 0;
  virtual std::map<std::string, double> sums() const = 0;  // of every trained parameter
  virtual std::vector<std::string> save(const std::string& out) const = 0;
  virtual std::vector<double> rates(const std::vector<int64_t>& steps) = 0;  // empty: constant
  // Of each input of the present batch its shape and its numbers in 32 bits.
  virtual std::vector<std::pair<std::vector<int64_t>, std::string>> inputs() = 0;
};

template <typename Idiom>
class ProgramOf : public Program {
 public:
  using Network = typename Idiom::Network;
  using Real = typename Idiom::Real;
  using Tensor = typename Idiom::Tensor;
  using Tensors = std::map<std::string, Tensor>;
  static constexpr bool kTrains = requires(Network & network) { network.gradients; };
  static constexpr size_t kMostKept = size_t{1} << 28;  // bytes of outputs

  int64_t batch() const override { return Idiom::kBatch; }
  int64_t rows() const override { return network_.data_rows; }
  int64_t parameters() const override {
    int64_t all = 0;
    for (const auto& p : network_.table) all += p.trained ? p.count : 0;
    return all;
  }
  bool predicts() const override { return !kTrains; }

  void load(const std::string& weights, const std::string& data, bool dropout) override {
    network_.load_weights(weights);
    network_.load_data(data);
    initial_.clear();
    for (const auto& p : network_.table) initial_.insert(initial_.end(), at(p), at(p) + p.count);
    if constexpr (requires { network_.dropping; }) network_.dropping = dropout;
    restore();
    rewind();
  }
  void restore() override {
    auto from = initial_.begin();
    for (const auto& p : network_.table) {
      std::copy(from, from + p.count, at(p));
      from += p.count;
    }
    network_.pack(0, 1);
    if constexpr (kTrains) network_.restart();
  }
  void rewind() override { network_.first_row = 0; }
  void next_batch() override { network_.next_batch(); }
  double step() override {
    if constexpr (kTrains) {
      return static_cast<double>(network_.train_step());
    } else {
      network_.forward();
      kept_.push_back(network_.outputs());
      size_t bytes = 0;
      for (const auto& [name, tensor] : kept_.back()) bytes += tensor.bytes.size();
      if (kept_.size() > 1 && kept_.size() * bytes > kMostKept) kept_.pop_front();
      return 0;
    }
  }

  void forget() override { kept_.clear(); }
  std::vector<ToldOutput> told() const override {
    std::vector<ToldOutput> all;
    if constexpr (!kTrains) {
      for (const Tensors& outputs : kept_) {
        const std::vector<double> numbers = Idiom::template numbers<double>({{"", joined(outputs)}}, "");
        ToldOutput& one = all.emplace_back(static_cast<int64_t>(numbers.size()), numbers.back());
        for (const double number : numbers) one.squares += number * number;
      }
    }
    return all;
  }

  std::vector<std::string> prove(int64_t first, int64_t count, const std::string& gradients,
                                 const std::string& out) override {
    if (count > Idiom::kBatch)
      throw AdapterError("the program has room for " + std::to_string(Idiom::kBatch) + " rows");
    restore();
    network_.set_batch(first, count);
    if constexpr (!kTrains) {
      network_.forward();
      Idiom::save(out, {{"output", joined(network_.outputs())}});
      return {"output"};
    } else {
      return prove_step(gradients, out);
    }
  }
  void nudge(const std::string& changes) override {
    if (!changes.empty()) changes_ = Idiom::load(changes);
    for (const auto& p : network_.table) {
      if (!changes_.contains(p.name)) continue;
      const std::vector<Real> added = held(changes_, p);
      for (int64_t i = 0; i < p.count; ++i) at(p)[i] += added[static_cast<size_t>(i)];
    }
    network_.pack(0, 1);
  }
  std::map<std::string, double> sums() const override {
    std::map<std::string, double> all;
    for (const auto& p : network_.table) {
      if (!p.trained) continue;
      double& sum = all[p.name] = 0;
      for (int64_t i = 0; i < p.count; ++i) sum += static_cast<double>(at(p)[i]);
    }
    return all;
  }
  std::vector<std::string> save(const std::string& out) const override {
    if constexpr (!kTrains) throw AdapterError("a prediction changes no weights");
    Tensors all;
    for (const auto& p : network_.table) {
      if constexpr (kTrains) all[p.name] = Idiom::tensor_of(canonical(p, network_.parameters), p.shape);
      if constexpr (requires { network_.averages; }) {
        if (p.trained) all["ema/" + p.name] = Idiom::tensor_of(canonical(p, network_.averages), p.shape);
      }
    }
    Idiom::save(out, all);
    return names_of(all);
  }
  std::vector<double> rates(const std::vector<int64_t>& steps) override {
    std::vector<double> all;
    if constexpr (requires { network_.learning_rate(0); }) {
      for (const int64_t step : steps) all.push_back(network_.learning_rate(step));
    }
    return all;
  }

  std::vector<std::pair<std::vector<int64_t>, std::string>> inputs() override {
    std::vector<std::pair<std::vector<int64_t>, std::string>> all;
    for (const Tensor& tensor : network_.batch()) {
      const std::map<std::string, Tensor> one = {{"", tensor}};
      const bool whole = tensor.dtype == "I32";
      all.emplace_back(tensor.shape, whole ? bytes_of(Idiom::template numbers<int32_t>(one, ""))
                                           : bytes_of(Idiom::template numbers<float>(one, "")));
    }
    return all;
  }

 private:
  template <typename Parameter>
  Real* at(const Parameter& p) const {
    return network_.parameters + p.at;
  }
  template <typename T>
  static std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  static std::vector<std::string> names_of(const std::map<std::string, Tensor>& tensors) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : tensors) names.push_back(name);
    return names;
  }
  template <typename Parameter>
  static std::vector<Real> held(const std::map<std::string, Tensor>& tensors, const Parameter& p) {
    return Idiom::turned(Idiom::template numbers<Real>(tensors, p.name), p.view, p.perm);
  }
  // Outputs side by side, row by row, in the order in which the network lists them.
  Tensor joined(const Tensors& outputs) const {
    if (outputs.size() == 1) return outputs.begin()->second;
    const int64_t rows = outputs.begin()->second.shape.at(0);
    std::vector<Real> all;
    for (int64_t row = 0; row < rows; ++row) {
      for (const std::string& name : network_.output_names) {
        const std::vector<Real> one = Idiom::template numbers<Real>(outputs, name);
        const int64_t width = static_cast<int64_t>(one.size()) / rows;
        all.insert(all.end(), one.begin() + row * width, one.begin() + (row + 1) * width);
      }
    }
    return Idiom::tensor_of(all, {rows, static_cast<int64_t>(all.size()) / rows});
  }
  std::vector<std::string> prove_step(const std::string& gradients, const std::string& out) {
    if constexpr (requires { network_.masks; }) ++network_.masks;
    Tensors all;
    all["loss"] = Idiom::tensor_of({network_.loss_and_gradients()}, {});
    all["output"] = network_.output();
    for (const auto& p : network_.table) {
      const Real* const values = p.trained ? network_.gradients : network_.parameters;
      const std::string name = std::string(p.trained ? "grad/" : "buffer/") + p.name;
      all[name] = Idiom::tensor_of(canonical(p, values), p.shape);
    }
    if (!gradients.empty()) update_from(gradients, all);
    restore();
    Idiom::save(out, all);
    return names_of(all);
  }
  void update_from(const std::string& file, Tensors& all) {
    restore();
    const auto given = Idiom::load(file);
    for (const auto& p : network_.table) {
      if (!p.trained) continue;
      const std::vector<Real> gradient = held(given, p);
      std::copy(gradient.begin(), gradient.end(), network_.gradients + p.at);
    }
    network_.update();
    for (const auto& p : network_.table) {
      if (p.trained) all["update/" + p.name] = Idiom::tensor_of(canonical(p, network_.parameters), p.shape);
    }
  }

  Network network_;
  std::vector<Real> initial_;  // in the order of the table
  Tensors changes_;
  std::deque<Tensors> kept_;  // outputs of the last steps
};

// The programs of this worker, by the name of their namespace: in single and in double precision, with as many threads
// as they make here.
struct Pair {
  std::function<std::unique_ptr<Program>()> single, wide;
  std::function<int64_t()> threads;
};
std::map<std::string, Pair>& programs();

// Maps names that a namespace can only offer to a type that a template can take.
#define BAKEOFF_NATIVE_IDIOM(name)                                                                \
  struct name##_idiom {                                                                           \
    using Network = name::Network;                                                                \
    using Real = name::Real;                                                                      \
    using Tensor = name::Tensor;                                                                  \
    static constexpr int64_t kBatch = name::kBatch;                                               \
    static auto load(const std::string& path) { return name::load_safetensors(path); }            \
    static void save(const std::string& path, const std::map<std::string, Tensor>& all) {         \
      name::save_safetensors(path, all);                                                          \
    }                                                                                             \
    static Tensor tensor_of(const std::vector<Real>& values, const std::vector<int64_t>& shape) { \
      return name::tensor_of(values, shape);                                                      \
    }                                                                                             \
    static auto turned(const std::vector<Real>& values, const std::vector<int64_t>& shape,        \
                       const std::vector<int64_t>& perm) {                                        \
      return name::turned(values, shape, perm);                                                   \
    }                                                                                             \
    template <typename T>                                                                         \
    static auto numbers(const std::map<std::string, Tensor>& all, const std::string& key) {       \
      return name::numbers<T>(all, key);                                                          \
    }                                                                                             \
  };

#define BAKEOFF_NATIVE(name)                                                                              \
  BAKEOFF_NATIVE_IDIOM(name)                                                                              \
  BAKEOFF_NATIVE_IDIOM(name##_wide)                                                                       \
  static const bool name##_listed =                                                                       \
      ::bakeoff::programs()                                                                               \
          .emplace(#name, ::bakeoff::Pair{                                                                \
                              [] { return std::make_unique<::bakeoff::ProgramOf<name##_idiom>>(); },      \
                              [] { return std::make_unique<::bakeoff::ProgramOf<name##_wide_idiom>>(); }, \
                              [] { return std::min(name::Network::kShares, name::default_threads()); }})  \
          .second;

// Serves the programs listed so far.
int serve_programs(int argc, char** argv);

}  // namespace bakeoff
