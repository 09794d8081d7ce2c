#pragma once

// Which nn.Module each node of a workload becomes, and how the forward pass reaches modules and parameters.
//
// A node whose parameters are <layer>.weight, <layer>.bias, ... becomes an nn layer of that name; dotted
// layers sit in nested nn.ModuleDict. A parameter that is tied, shared under other attributes or oddly named
// is registered by itself, and its op is called through torch.nn.functional. Either way the keys of
// state_dict() are the canonical names.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "emit/code_writer.h"
#include "emit/emit.h"

namespace bakeoff::emit::torch {

// "3" for {3, 3}, else "(3, 5)".
std::string per_axis(const std::vector<int64_t>& values);

// A Python call: head(arguments...)tail.
struct Call {
  std::string head;
  std::vector<std::string> arguments;
  std::string tail = {};
};

class Modules {
 public:
  // Fails where PyTorch cannot hold a parameter under its name (a layer called "train").
  static Result<Modules> plan(const Request& request, const std::vector<ir::Type>& types);

  // "self.conv1", "self.block1["conv1"]"; empty for a node without a module of its own.
  const std::string& module_of(const ir::Node& node) const;
  // "self.conv1.weight"
  std::string parameter(ir::ParamId id) const;
  // True where a module has a parameter that the workload has not: the second bias of an LSTM.
  bool freezes_biases() const;
  // The body of __init__ after super().__init__().
  void print(CodeWriter& out) const;

 private:
  // A child of the model: a layer, or a container with children and loose parameters.
  struct Entry {
    std::string key;
    Call layer = {};  // empty head: a container
    std::vector<Entry> children = {};
    std::vector<ir::ParamId> loose = {};
  };

  explicit Modules(const Request& request) : request_(&request) {}
  Status add_node(const ir::Node& node, const std::vector<ir::Type>& types);
  Status add_layer(const ir::Node& node, const std::string& path, Call layer);
  Status add_loose(ir::ParamId id);
  Result<Entry*> insert(const std::string& path);
  void add_dropout(const ir::Node& node);
  void print_entry(CodeWriter& out, const Entry& entry, bool top) const;
  void print_loose(CodeWriter& out, const std::string& owner, const Entry& entry) const;
  // LSTMs with a bias have two of them in torch.
  void print_frozen_biases(CodeWriter& out) const;
  void print_own_init(CodeWriter& out, const std::string& name, ir::ParamId id) const;

  const Request* request_;
  Entry root_;
  std::map<const ir::Node*, std::string> module_of_;
  std::map<std::string, const ir::Node*> layers_;  // layer -> the node that made it
  std::map<ir::ParamId, std::string> held_;        // parameter -> expression
};

}  // namespace bakeoff::emit::torch
