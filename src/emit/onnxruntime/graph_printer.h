#pragma once

// Prints the body of build_model: an `add(op, inputs, output, attributes)` for each ONNX node, and before it
// the constants that it needs beside the weights. Values keep the workload's names.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/forward_printer.h"
#include "emit/op_functions.h"
#include "ir/workload.h"

namespace bakeoff::emit::onnxruntime {

class GraphPrinter {
 public:
  // `caches_grow`: by each word.
  GraphPrinter(CodeWriter& out, const Graph& graph, bool caches_grow = false);

  // The nodes up to the prediction; gives the names of the graph's outputs.
  std::vector<std::string> print();
  // The graph's name of a value: of an input or of one that has been printed.
  const std::string& name(ir::ValueId id) const { return names_.at(id); }

  // For the functions of the table: of the node in print.
  std::string input(size_t i = 0) const { return names_.at(node().inputs[i]); }
  std::string param(std::string_view slot) const;
  const ir::Shape& shape(ir::ValueId id) const { return graph_.types[static_cast<size_t>(id)].shape; }
  const ir::Shape& input_shape(size_t i = 0) const { return shape(node().inputs[i]); }
  const ir::Shape& output_shape() const { return shape(graph_.workload.output_of(node_)); }
  const ir::Shape& param_shape(std::string_view slot) const {
    return graph_.workload.parameters[static_cast<size_t>(node().param(slot))].shape;
  }
  const ir::Node& node() const { return graph_.workload.nodes[static_cast<size_t>(node_)]; }

  // Prints the ONNX node whose output is the value of the node in print.
  void add(const std::string& op, const std::vector<std::string>& inputs,
           const std::vector<std::string>& attributes = {});
  // Prints an ONNX node for an intermediate result; gives the name of its output, "<value>.<part>".
  std::string step(const std::string& op, const std::string& part, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& attributes = {});
  // Prints a constant "<stem>.<part>" with this Python expression, once; gives its name. `stem` empty: the
  // node's value.
  std::string constant(const std::string& part, const std::string& expression, const std::string& stem = "");
  // Prints the ONNX node that puts `inputs` into a cache of the node in print; gives the name of the new cache.
  std::string update(std::string_view slot, const std::string& op, std::vector<std::string> inputs);
  bool caches_grow() const { return caches_grow_; }
  // The parameters that are caches, which the graph reads, and the outputs that follow them in the next step.
  const std::vector<std::pair<ir::ParamId, std::string>>& caches() const { return caches_; }
  // The name of a value that several nodes share; empty until one has printed it.
  std::string& shared(const std::string& key) { return constants_[key]; }
  // Makes the value of the node in print its first input, or a constant or parameter; prints nothing.
  void alias() { names_[graph_.workload.output_of(node_)] = input(); }
  void name_constant(const std::string& name) { names_[graph_.workload.output_of(node_)] = name; }

 private:
  std::string unique(const std::string& wish);
  void print_add(const std::string& op, const std::vector<std::string>& inputs, const std::string& output,
                 const std::vector<std::string>& attributes);

  CodeWriter& out_;
  const Graph& graph_;
  bool caches_grow_;
  std::vector<std::pair<ir::ParamId, std::string>> caches_;
  std::map<ir::ValueId, std::string> names_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> constants_;  // name by stem, part and expression
  int node_ = 0;
};

const OpFunctions<GraphPrinter>& op_functions();

// "[1, 2]", and for names "[\"a\", \"b\"]".
std::string list_of(const std::vector<int64_t>& numbers);
std::string list_of(const std::vector<std::string>& names);

}  // namespace bakeoff::emit::onnxruntime
