#pragma once

// Which nn.Module each node of a workload becomes, and how the forward pass reaches modules and parameters.
//
// A node whose parameters are <layer>.weight, <layer>.bias, ... becomes an nn layer of that name; dotted
// layers sit in nested nn.ModuleDict. A parameter that is tied, shared under other attributes or oddly named
// is registered by itself, and its op is called through torch.nn.functional. A block (emit/blocks.h) is a module
// of a class of its own; blocks that fill a list sit in an nn.ModuleList, layers in a row in an nn.Sequential
// (emit/torch/sequences.h). Either way the keys of state_dict() are the canonical names.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "emit/blocks.h"
#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/loops.h"
#include "emit/torch/call.h"
#include "emit/torch/recurrences.h"
#include "emit/torch/sequences.h"
#include "emit/torch_cells.h"

namespace bakeoff::emit::torch {

inline constexpr size_t kColumns = 88;  // longest line of a script

class Modules {
 public:
  // Of the nodes of a stretch, with names relative to its path. Fails where PyTorch cannot hold a parameter
  // under its name (a layer called "train"). `blocks` outlives the modules.
  static Result<Modules> plan(const Request& request, const std::vector<ir::Type>& types,
                              const Stretch& stretch, const Blocks& blocks);

  // Fails where the name of a parameter is also the path of others.
  static Status check_names(const ir::Workload& workload);

  // "self.conv1", "self.block1.conv1"; empty for a node without a module of its own.
  std::string module_of(const ir::Node& node) const;
  std::string module_of(const Block& block) const;
  // "self.encoder" where that is a list, all of whose modules are these, in this order; else "".
  std::string list_of(const std::vector<const Block*>& blocks) const;
  std::string list_of(const std::vector<const Sequence*>& sequences) const;
  // The sequence that begins with a node; null if there is none.
  const Sequence* sequence_at(int node) const;
  // The recurrence that begins with a node; null if there is none.
  const Recurrence* recurrence_at(int node) const;
  // "self.lstm"
  std::string module_of(const Recurrence& recurrence) const {
    return expression(stretch_.relative(recurrence.path));
  }
  const std::vector<Cell>& cells() const { return cells_; }
  // The call of a cell that begins with a node; null if there is none.
  const Cell* cell_at(int node) const;
  // "self.cell"
  std::string module_of(const Cell& cell) const { return expression(stretch_.relative(cell.path)); }
  // "self.features"
  std::string module_of(const Sequence& sequence) const { return expression(sequence.path); }
  // "self.conv1.weight"
  std::string parameter(ir::ParamId id) const;
  // Of the stretch: those that are printed as loops.
  const std::vector<Loop>& loops() const { return loops_; }
  // True where a module has a parameter that the workload has not: the second bias of an LSTM.
  bool freezes_biases() const;
  // The body of __init__ after super().__init__().
  void print(CodeWriter& out) const;

 private:
  // A child of the model: a layer, a block, or a container with children and loose parameters.
  struct Entry {
    std::string key;
    Call layer = {};  // empty head: a container
    bool block = false;
    std::vector<Entry> children = {};
    std::vector<ir::ParamId> loose = {};
    std::vector<Call> items = {};  // of an nn.Sequential: its layers and what lies between them
    // Its children are called 0, 1, 2, ...: an nn.ModuleList or nn.Sequential.
    bool list() const;
  };
  // Where a parameter is: in the module at a path, under a name.
  struct Place {
    std::string path;
    std::string leaf;
  };

  Modules(const Request& request, const Stretch& stretch, const Blocks& blocks)
      : request_(&request), stretch_(stretch), blocks_(&blocks) {}
  std::string expression(const std::string& path) const;
  std::string list_of(const std::vector<std::string>& paths) const;
  // Whether a loop covers the node but prints another one for it.
  bool in_other_iteration(int node) const;
  Status add_block(const Block& block);
  Status add_node(const ir::Node& node, const std::vector<ir::Type>& types);
  Status add_layer(const ir::Node& node, const std::string& path, Call layer);
  Status add_sequence(const Sequence& sequence, const std::vector<ir::Type>& types);
  Status add_recurrence(const Recurrence& recurrence, const std::vector<ir::Type>& types);
  const Cell* cell_of(const ir::Node& node) const;
  Status add_cell(const Cell& cell);
  Status add_loose(ir::ParamId id);
  Result<Entry*> insert(const std::string& path);
  void add_dropout(const ir::Node& node);
  void make_weights(Entry& entry) const;
  void print_child(CodeWriter& out, const Entry& entry) const;
  void print_entry(CodeWriter& out, const Entry& entry, const std::string& head,
                   const std::string& tail) const;
  bool print_short(CodeWriter& out, const std::string& head, const Entry& entry,
                   const std::string& tail) const;
  void print_list(CodeWriter& out, const std::string& head, const Entry& entry,
                  const std::string& tail) const;
  void print_sequence(CodeWriter& out, const std::string& head, const Entry& entry,
                      const std::string& tail) const;
  void print_loose(CodeWriter& out, const std::string& path, const Entry& entry) const;
  // LSTMs with a bias have two of them in torch.
  void print_frozen_biases(CodeWriter& out) const;
  void print_own_init(CodeWriter& out, const std::string& name, ir::ParamId id) const;

  const Request* request_;
  Stretch stretch_;
  const Blocks* blocks_;
  Entry root_;
  std::vector<Sequence> sequences_;
  std::vector<Recurrence> recurrences_;
  std::vector<Loop> loops_;
  std::vector<Cell> cells_;
  std::map<double, std::string> dropouts_;            // outside of blocks and sequences: paths, by rate
  std::map<const ir::Node*, std::string> module_of_;  // paths
  std::map<std::string, const ir::Node*> layers_;     // path -> the node that made it
  std::map<ir::ParamId, Place> held_;
};

}  // namespace bakeoff::emit::torch
