#pragma once

// The body of forward(): statements that read as one would write them by hand: activations around the layer
// they follow, one variable reused along a chain.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/loops.h"
#include "emit/namer.h"
#include "emit/op_functions.h"
#include "emit/slices.h"
#include "emit/torch/modules.h"

namespace bakeoff::emit::torch {

class ForwardPrinter {
 public:
  // `input_names` are the Python names of the workload's inputs; all references outlive the printer.
  ForwardPrinter(CodeWriter& out, const Request& request, const Modules& modules, const Blocks& blocks,
                 const std::vector<ir::Type>& types, const std::vector<std::string>& input_names,
                 Namer names);

  // Prints "def forward(...)" of the model with its body.
  void print(const OpFunctions<ForwardPrinter>& functions);
  // The body of forward() of a stretch; nothing if it reads values that cannot be passed.
  std::optional<Printed> print(const OpFunctions<ForwardPrinter>& functions, const Stretch& stretch);

  // For these functions (emit/torch/ops.h).
  const Request& request() const { return request_; }
  const ir::Shape& shape(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape; }
  // The Python expression for a value; ends the value's life where this is its last use.
  std::string use(ir::ValueId id);
  // self.layer(arguments), or function(arguments, parameters and `options`) where the node has no module.
  void layer(const ir::Node& node, const std::string& input, const std::string& function,
             const std::vector<std::string>& slots, const std::vector<std::string>& options);
  void call(const std::string& head, std::vector<std::string> arguments, const std::string& tail = "");
  // head(what was called last, arguments)
  void around(const std::string& head, std::vector<std::string> arguments);
  // a + b and the like, or function(a, b) where that is too long.
  void binary(const std::string& a, const std::string& symbol, const std::string& b,
              const std::string& function);
  // The variable that holds this value, which depends on an input of the workload alone; assigns it where no
  // statement with this key has been printed before. `expression` is a format of the input's name.
  std::string once(const std::string& key, const std::string& wish, ir::ValueId input,
                   std::string_view expression);
  std::string module_of(const ir::Node& node) const { return modules_.module_of(node); }
  const ir::Shape& shape_of(const ir::Node& node, std::string_view slot) const {
    return workload_.parameters[static_cast<size_t>(node.param(slot))].shape;
  }
  std::string parameter(const ir::Node& node, std::string_view slot) const {
    return modules_.parameter(node.param(slot));
  }
  // The join in print is what forward() returns one by one.
  bool returns(const ir::Node& node) const {
    return request_.training.predicts() && workload_.join() == node_ && node.op == ir::Op::kJoin;
  }
  // An op that is spelled (ir/spelling.h).
  void spelled(const ir::Node& node);
  // torch's attention wants heads before tokens. leaves_to_attention() leaves out a transposition that only swaps the
  // two for attention; heads_first() then returns the value before it.
  bool leaves_to_attention(const ir::Node& transpose);
  std::string heads_first(ir::ValueId id);
  // The value of the node in print is an expression that needs no variable.
  void fixed(const std::string& expression);
  void sum_or_product(const ir::Node& node, const std::string& symbol, const std::string& function);

 private:
  struct Pending {
    ir::ValueId value = -1;
    Call call;
    std::string flat;     // the whole expression on one line
    bool binary = false;  // needs parentheses as an operand
  };

  void print_nodes(const OpFunctions<ForwardPrinter>& functions);
  // Prints a node, or all nodes from it on that are one statement; returns the index of the last one.
  int print_at(const OpFunctions<ForwardPrinter>& functions, int n);
  void print_rolled(const OpFunctions<ForwardPrinter>& functions, const Loop& loop);
  // Prints slices that are one statement; returns the index of its last node, or -1 if there are none.
  int print_slices(int node);
  void print_fill(ir::ValueId id, ir::ValueId other);
  void print_block(const Block& block);
  void print_cell(const Cell& cell);
  // A variable for `value`, which replaces `before`: the same variable if that is free.
  std::string variable_after(ir::ValueId before, ir::ValueId value);
  // This block, or the chain from it on that fills a list.
  std::vector<const Block*> list_from(const Block& block) const;
  void print_loop(const std::vector<const Block*>& chain);
  // The same for sequences.
  std::vector<const Sequence*> list_from(const Sequence& sequence) const;
  void print_sequences(const std::vector<const Sequence*>& chain);
  // `arguments`: those of each module of the list, first the value that it replaces. `last`: the last one's last node.
  void print_calls(const std::string& list, std::vector<std::string> arguments, int last);
  std::vector<std::string> arguments_of(const Block& block);
  std::string shared(const Shared& value);
  void finish(Call call, std::string flat, bool binary);
  bool may_fold(const ir::Node& consumer) const;
  void flush();
  // Where a line will begin: the body of a block is printed by itself, and stands in a class later.
  size_t column() const { return static_cast<size_t>(out_.column()) + (stretch_.path.empty() ? 0 : 8); }
  void assign(const std::string& target, const Pending& pending);
  std::string pick_variable(ir::ValueId value);
  bool escapes(ir::ValueId value) const;
  std::vector<ir::ValueId> outputs() const;  // of forward()
  int last_use(ir::ValueId value) const;

  CodeWriter& out_;
  const Request& request_;
  const ir::Workload& workload_;
  const Modules& modules_;
  const Blocks& blocks_;
  const std::vector<ir::Type>& types_;
  const std::vector<std::string>& inputs_;
  Namer names_;
  std::map<ir::ValueId, std::string> variables_;
  std::set<ir::ValueId> fixed_;  // values that are no variable but an expression: numbers, parameters
  std::set<ir::ValueId> used_;
  std::set<ir::ValueId> left_;                  // results of transpositions that are left out
  std::map<ir::ValueId, std::string> read_as_;  // as the expression of the latest reader has it
  std::vector<std::string> order_;              // all variables, oldest first
  std::map<std::string, std::string> once_;     // variables of once(), by key
  std::vector<Shared> shared_;                  // of once() in a stretch, which its caller passes
  std::vector<std::string> free_;               // variables whose value is dead
  std::optional<Pending> pending_;
  Slices slices_;
  std::map<ir::ValueId, int>
      held_until_;                    // values that a loop reads, and the node in whose place it is printed
  const Rolling* rolling_ = nullptr;  // of the loop in print
  std::map<int, Call> lists_;  // lists that loops have filled, each with the call that joins it, by node
  Stretch stretch_;            // of the nodes that are printed
  int node_ = 0;               // index of the node being printed; of a block its last one
  std::vector<int> readers_;   // last_readers(workload_)
};

// The type of a function that returns `count` values: "Tensor", "tuple[Tensor, Tensor]".
std::string tensors(size_t count);

// Inputs that forward() takes: those read by anything but the loss, in order.
std::vector<ir::ValueId> forward_inputs(const ir::Workload& workload);

}  // namespace bakeoff::emit::torch
