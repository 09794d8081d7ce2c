#pragma once

// Builds a workload node by node; for the zoo and for tests.
//
//   Builder b("mlp");
//   Value x = b.input("x", {DType::kF32, {kBatch, 100}}), y = b.input("y", {DType::kI32, {kBatch}});
//   Value h = b.relu(b.linear(x, "fc1", 128));
//   return b.finish(b.softmax_cross_entropy(b.linear(h, "fc2", 10), y));

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::ir {

class Builder {
 public:
  using Value = ValueId;
  struct Conv {
    int64_t channels = 1;
    std::vector<int64_t> kernel = {3, 3};  // as many numbers as axes of places
    std::vector<int64_t> stride = {};      // empty: 1 on every axis
    std::vector<int64_t> pad = {};         // before, after of each axis; empty: none
    std::vector<int64_t> dilation = {};    // empty: 1 on every axis
    int64_t groups = 1;
    bool bias = true;
    std::vector<int64_t> output_pad = {};  // of a transposed convolution; empty: none
  };

  explicit Builder(std::string name);

  Value input(std::string name, Type type);
  Value conv_transpose(Value x, const std::string& layer, const Conv& conv);
  Value conv(Value x, const std::string& layer, const Conv& conv);
  Value linear(Value x, const std::string& layer, int64_t features, bool bias = true);
  Value batch_norm(Value x, const std::string& layer, double eps = 1e-5, double momentum = 0.1);
  // Which parameters a norm has.
  struct Affine {
    bool weight = true, bias = true;
  };
  Value layer_norm(Value x, const std::string& layer, int64_t dims = 1, double eps = 1e-5,
                   Affine has = {true, true});
  Value rms_norm(Value x, const std::string& layer, int64_t dims, double eps, bool weight = true);
  Value group_norm(Value x, const std::string& layer, int64_t groups, double eps = 1e-5,
                   Affine has = {true, true});
  Value embedding(Value ids, const std::string& layer, int64_t rows, int64_t width,
                  std::optional<int64_t> padding_idx = {});
  // x + the first rows of a table of `rows`, for x of N,T,F.
  Value position_embedding(Value x, const std::string& layer, int64_t rows);
  Value constant(double value);
  // The parameter `name` as a value.
  Value parameter_value(const std::string& name, Shape sizes);
  // Freezes the parameters whose names begin so.
  void freeze(const std::string& prefix);
  // Parameters are called as in torch: <layer>.weight_ih_l0, <layer>.weight_hh_l0, <layer>.bias_ih_l0.
  Value lstm(Value x, const std::string& layer, int64_t units, bool bias = true, bool reverse = false);
  // Likewise, with bias_hh_l0.
  Value gru(Value x, const std::string& layer, int64_t units, bool bias = true, bool reverse = false);
  // A linear layer whose weight is the table of the embedding `table`; `bias` is the name of its bias.
  Value tied_linear(Value x, const std::string& table, const std::string& bias);
  // Any op without parameters; attributes left out take the op table's fallback.
  Value apply(Op op, std::vector<Value> inputs, std::vector<Attribute> attributes = {});
  Value relu(Value x) { return apply(Op::kRelu, {x}); }
  Value softmax_cross_entropy(Value logits, Value labels) {
    return apply(Op::kSoftmaxCrossEntropy, {logits, labels});
  }
  // Names the value made last (default names are h1, h2, ...).
  Value named(Value value, const std::string& name);

  const Shape& shape(Value value) const { return types_[static_cast<size_t>(value)].shape; }
  // Names the last value "loss", verifies, gives the workload. A builder that was fed shapes that do not fit
  // reports the first misfit here.
  Result<Workload> finish(Value loss);

 private:
  // `weight`: the first two sizes of the weight.
  Value convolution(Op op, Value x, const std::string& layer, const Conv& conv, Shape weight);
  Value add(Node node);
  void add_affine(Node& node, const std::string& layer, const Shape& sizes, Affine has);
  Slot parameter(std::string slot, std::string name, Shape shape, Role role);

  Workload workload_;
  std::vector<Type> types_;
  std::string first_error_;
};

}  // namespace bakeoff::ir
