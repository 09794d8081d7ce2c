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
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker.h"

namespace bakeoff {

// The numbers of parameters, gradients or a loss by name, as files have them.
using Numbers = std::map<std::string, std::vector<double>>;

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
  virtual double step() = 0;  // on the present batch: the loss before the update
  // Rows, loss, output, gradients and buffers of one step without its update, the optimizer's update from given gradients.
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

  int64_t batch() const override { return Idiom::kBatch; }
  int64_t rows() const override { return network_.data_rows; }
  int64_t parameters() const override { return Network::kTrained; }

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
    network_.restart();
  }
  void rewind() override { network_.first_row = 0; }
  void next_batch() override { network_.next_batch(); }
  double step() override { return static_cast<double>(network_.train_step()); }

  std::vector<std::string> prove(int64_t first, int64_t count, const std::string& gradients,
                                 const std::string& out) override {
    if (count > Idiom::kBatch)
      throw AdapterError("the program has room for " + std::to_string(Idiom::kBatch) + " rows");
    restore();
    network_.set_batch(first, count);
    if constexpr (requires { network_.masks; }) ++network_.masks;
    std::map<std::string, Tensor> all;
    all["loss"] = Idiom::tensor_of({network_.loss_and_gradients()}, {});
    all["output"] = network_.output();
    for (const auto& p : network_.table) {
      const Real* const values = p.trained ? network_.gradients : network_.parameters;
      const std::string name = std::string(p.trained ? "grad/" : "buffer/") + p.name;
      all[name] = Idiom::tensor_of(Idiom::canonical(p, values), p.shape);
    }
    if (!gradients.empty()) update_from(gradients, all);
    restore();
    Idiom::save(out, all);
    return names_of(all);
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
    std::map<std::string, Tensor> all;
    for (const auto& p : network_.table) {
      all[p.name] = Idiom::tensor_of(Idiom::canonical(p, network_.parameters), p.shape);
      if constexpr (requires { network_.averages; }) {
        if (p.trained)
          all["ema/" + p.name] = Idiom::tensor_of(Idiom::canonical(p, network_.averages), p.shape);
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
  void update_from(const std::string& file, std::map<std::string, Tensor>& all) {
    restore();
    const auto given = Idiom::load(file);
    for (const auto& p : network_.table) {
      if (!p.trained) continue;
      const std::vector<Real> gradient = held(given, p);
      std::copy(gradient.begin(), gradient.end(), network_.gradients + p.at);
    }
    network_.update();
    for (const auto& p : network_.table) {
      if (p.trained)
        all["update/" + p.name] = Idiom::tensor_of(Idiom::canonical(p, network_.parameters), p.shape);
    }
  }

  Network network_;
  std::vector<Real> initial_;  // in the order of the table
  std::map<std::string, Tensor> changes_;
};

// The programs of this worker, by the name of their namespace: in single and in double precision.
struct Pair {
  std::function<std::unique_ptr<Program>()> single, wide;
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
    static auto canonical(const name::Parameter& p, const Real* values) {                         \
      return name::canonical(p, values);                                                          \
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

#define BAKEOFF_NATIVE(name)                                                                               \
  BAKEOFF_NATIVE_IDIOM(name)                                                                               \
  BAKEOFF_NATIVE_IDIOM(name##_wide)                                                                        \
  static const bool name##_listed =                                                                        \
      ::bakeoff::programs()                                                                                \
          .emplace(#name, ::bakeoff::Pair{                                                                 \
                              [] { return std::make_unique<::bakeoff::ProgramOf<name##_idiom>>(); },       \
                              [] { return std::make_unique<::bakeoff::ProgramOf<name##_wide_idiom>>(); }}) \
          .second;

// Serves the programs listed so far.
int serve_programs(int argc, char** argv);

}  // namespace bakeoff
