#pragma once

// The IR that is being built from an ONNX graph: nodes, parameters, names, and its text.

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/type.h"
#include "onnx/array.h"

namespace bakeoff::onnx {

using ir::kBatch;
using Attributes = std::vector<std::pair<std::string, std::string>>;
using Params = std::vector<std::pair<std::string, std::string>>;  // slot, name of the parameter

std::string ir_word(const std::string& text);   // a name that the IR can hold; never empty
std::string numbers_text(const Ints& numbers);  // "N,3,4"
std::string real_text(double number);

struct GraphNode {
  std::string op = {}, output = {};
  std::vector<std::string> inputs = {};
  Params params = {};
  Attributes attributes = {};
  Shape shape = {};
  std::string source = {};  // the op of ONNX
  std::string where = {};   // the node's name
};

struct GraphParameter {
  std::string name = {};
  ArrayPtr array = {};
  bool frozen = false;
  std::string source = {};  // the initialiser that it is made of; empty: none
  bool apart = false;       // one of several copies of that
};

class Graph {
 public:
  // Adds a node; its value's name. Its name begins with `base`.
  std::string node(const std::string& op, std::vector<std::string> inputs, Shape shape,
                   Attributes attributes = {}, Params params = {});
  // The same numbers in another shape: a reshape of a reshape is one.
  std::string reshape(const std::string& value, const Shape& shape);
  std::string transpose(const std::string& value, const Ints& perm);
  void input(const std::string& name, Shape shape);
  const Shape& shape(const std::string& value) const { return shapes_.at(value); }
  GraphNode* producer(const std::string& value);  // null for an input

  // Declares a parameter and gives its name. The same numbers of the file in the same shape are one parameter.
  std::string parameter(const std::string& wanted, const ArrayPtr& array, bool frozen,
                        const std::string& source, bool share = true);

  // The nodes that `result` depends on.
  std::vector<const GraphNode*> live(const std::string& result) const;
  std::string line(const GraphNode& node) const;
  const std::map<std::string, GraphParameter>& parameters() const { return parameters_; }
  std::string unique(const std::string& wanted);
  // The value that a node gives is called `name`; a node that gave one of this name takes the old one. False: an input has it.
  bool rename(const std::string& value, const std::string& name);

  std::string base = "h", source = {}, where = {};  // of the nodes that are added now

 private:
  std::vector<GraphNode> nodes_;
  std::map<std::string, size_t> by_output_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, GraphParameter> parameters_;
  std::multimap<int64_t, std::string> by_origin_;
  std::set<std::string> names_;        // of values
  std::set<std::string> lower_names_;  // of parameters, in lower case
  std::map<std::string, int> counters_;
};

}  // namespace bakeoff::onnx
