#pragma once

// Which member of the model each node of a workload becomes, and how the forward pass reaches it.
//
// A node whose parameters are <layer>.weight, <layer>.bias, ... becomes an nn module of that name; the dotted
// layer "block1.conv1" is the member block1_conv1, registered as "conv1" of a module "block1". A parameter
// that is tied, shared under other attributes or oddly named is a Tensor member, and its op is called as a
// function. A block (emit/blocks.h) is a member of a struct of its own; blocks that fill a list are an
// nn::ModuleList. Either way the keys of named_parameters() and named_buffers() are the canonical names.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "emit/blocks.h"
#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/loops.h"
#include "emit/namer.h"
#include "emit/torch_cells.h"

namespace bakeoff::emit::libtorch {

class Modules {
 public:
  // Of the nodes of a stretch, with names relative to its path. `names` knows what members cannot be called; it
  // gets theirs. References outlive the modules.
  Modules(const Request& request, const std::vector<ir::Type>& types, const Stretch& stretch,
          const Blocks& blocks, Namer& names);

  // "conv1"; empty for a node without a module of its own.
  const std::string& module_of(const ir::Node& node) const;
  const std::vector<Cell>& cells() const { return cells_; }
  // The call of a cell that begins with a node; null if there is none.
  const Cell* cell_at(int node) const;
  const std::string& module_of(const Cell& cell) const { return names_of_cells_.at(cell.path); }
  // "conv1->weight", "tied_bias"
  const std::string& parameter(ir::ParamId id) const { return held_.at(id); }
  // "layer1_0", "encoder->at<EncoderBlockImpl>(1).forward"
  const std::string& call_of(const Block& block) const { return calls_.at(&block); }
  // "encoder" where that is a list of these blocks alone, all of one family; else "".
  std::string list_of(const std::vector<const Block*>& blocks) const;
  // Of the stretch: those that are printed as loops.
  const std::vector<Loop>& loops() const { return loops_; }
  bool empty() const { return members_.empty(); }
  // True where a module has a parameter that the workload has not: the second bias of an LSTM.
  bool freezes_biases() const { return freezes_biases_; }
  // The body of the constructor.
  void print_registration(CodeWriter& out) const;
  // The data members.
  void print_members(CodeWriter& out) const;

 private:
  struct Member {
    std::string name;         // of the C++ member
    std::string path;         // "block1.conv1", "tied_bias"
    std::string declaration;  // "nn::Conv2d conv1{nn::Conv2dOptions(1, 32, 3)}"
    std::string function;  // "register_module", "register_parameter", "register_buffer"; empty: for a cache
    std::vector<std::string> init = {};  // statements: the framework's own initial value
  };

  void add_block(const Block& block);
  void add_list(const std::string& path, const std::vector<const Block*>& blocks);
  void add_node(const ir::Node& node, const std::vector<ir::Type>& types);
  void add_layer(const ir::Node& node, const std::string& path, const std::vector<ir::Type>& types);
  // Whether the node's parameters are a cell's, which then is a member.
  bool add_cell(const ir::Node& node);
  void add_loose(ir::ParamId id);
  void add_dropout(const ir::Node& node);
  std::vector<std::string> own_init(const std::string& name, ir::ParamId id) const;

  const Request& request_;
  Stretch stretch_;
  const Blocks& blocks_;
  Namer& names_;
  // Of an iteration that no loop prints.
  bool in_other_iteration(int node) const;
  std::vector<Loop> loops_;
  std::vector<Cell> cells_;
  std::map<std::string, std::string> names_of_cells_;  // by path
  std::map<double, std::string> dropouts_;             // outside of blocks: members, by rate
  std::map<const Block*, std::string> calls_;
  std::map<std::string, std::vector<const Block*>> lists_;  // by member
  std::vector<Member> members_;
  std::map<const ir::Node*, std::string> module_of_;
  std::map<std::string, const ir::Node*> layers_;  // path -> the node that made it
  std::map<ir::ParamId, std::string> held_;        // parameter -> expression
  bool freezes_biases_ = false;
};

}  // namespace bakeoff::emit::libtorch
