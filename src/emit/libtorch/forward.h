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
#include "emit/libtorch/modules.h"
#include "emit/namer.h"
#include "emit/op_functions.h"
#include "emit/slices.h"

namespace bakeoff::emit::libtorch {

class ForwardPrinter {
 public:
  // `inputs` are the C++ names of the workload's inputs; all references outlive the printer.
  ForwardPrinter(CodeWriter& out, const Request& request, const Modules& modules, const Blocks& blocks,
                 const std::vector<ir::Type>& types, const std::vector<std::string>& inputs, Namer names);

  // Prints "Tensor forward(...) {" to "}".
  void print(const OpFunctions<ForwardPrinter>& functions);
  // Prints the body of a stretch and returns the rest of it. Its formals are parameters: "const Tensor& mask".
  Printed print(const OpFunctions<ForwardPrinter>& functions, const Stretch& stretch);

  // For these functions (emit/libtorch/ops.h).
  const ir::Workload& workload() const { return workload_; }
  const ir::Shape& shape(ir::ValueId id) const { return types_[static_cast<size_t>(id)].shape; }
  // The expression for a value; ends the value's life where this is its last use.
  std::string use(ir::ValueId id);
  const std::string& module_of(const ir::Node& node) const { return modules_.module_of(node); }
  // The parameter in a slot; "{}", an undefined tensor, if the slot is empty.
  std::string param(const ir::Node& node, std::string_view slot) const;
  void call(const std::string& head, const std::vector<std::string>& arguments);
  void binary(const std::string& a, char symbol, const std::string& b);
  void sum_or_product(const ir::Node& node, char symbol);
  // An op that is spelled (ir/spelling.h).
  void spelled(const ir::Node& node);
  // The value of the node in print is an expression that needs no variable.
  void fixed(const std::string& expression);
  // The variable that holds this value, which depends on an input of the workload alone; assigns it where no
  // statement with this key has been printed before. `expression` is a format of the input's name.
  std::string once(const std::string& key, const std::string& wish, ir::ValueId input,
                   std::string_view expression);

 private:
  struct Pending {
    ir::ValueId value = -1;
    std::string text;
    bool binary = false;  // needs parentheses as an operand
  };

  void print_nodes(const OpFunctions<ForwardPrinter>& functions);
  // These three return the index of the last node that they have printed; print_slice() returns -1 if none is.
  int print_at(const OpFunctions<ForwardPrinter>& functions, int n);
  int print_slice(int n);
  int print_split(const Split& split, ir::ValueId from);
  void print_rolled(const OpFunctions<ForwardPrinter>& functions, const Loop& loop);
  void print_body(const OpFunctions<ForwardPrinter>& functions, const Rolling& rolling);
  void print_return(ir::ValueId value);
  void print_fill(ir::ValueId id, ir::ValueId other);
  int print_blocks(const Block& first);
  void print_cell(const Cell& cell);
  // A variable for `value`, which replaces `before`: the same variable if that is free.
  std::string variable_after(ir::ValueId before, ir::ValueId value);
  std::string shared(const Shared& value);
  void finish(std::string text, bool binary);
  bool may_fold(const ir::Node& consumer) const;
  void flush();
  std::string pick_variable(ir::ValueId value);
  bool escapes(ir::ValueId value) const;
  int last_use(ir::ValueId value) const;

  CodeWriter& out_;
  const ir::Workload& workload_;
  const Modules& modules_;
  const Blocks& blocks_;
  const std::vector<ir::Type>& types_;
  const std::vector<std::string>& inputs_;
  Namer names_;
  std::map<ir::ValueId, std::string> variables_;
  std::set<ir::ValueId> fixed_;     // values that are no variable but an expression: numbers, parameters
  std::vector<std::string> order_;  // all variables, oldest first
  std::vector<std::string> free_;   // variables whose value is dead
  std::map<std::string, std::string> once_;  // variables of once(), by key
  std::optional<Pending> pending_;
  Stretch stretch_;             // of the nodes that are printed
  int node_ = 0;                // index of the node being printed; of a block its last one
  std::vector<int> readers_;    // last_readers(workload_)
  std::set<ir::ValueId> used_;  // by use()
  std::vector<Shared> shared_;  // of once() in a stretch, which its caller passes
  Slices slices_;
  const Rolling* rolling_ = nullptr;             // of the loop in print
  std::map<int, std::string> lists_;             // the joins of what loops have filled, by node
  std::map<ir::ValueId, std::string> declared_;  // variables of the loop's finals
  std::map<ir::ValueId, int> held_until_;        // values that a loop reads: the node in whose place it is
};

// How many of the workload's inputs forward() takes: the first ones, up to the last that anything but the
// loss reads. Those among them that only the loss reads are parameters without a name.
size_t forward_arity(const ir::Workload& workload);
bool read_by_model(const ir::Workload& workload, ir::ValueId input);

}  // namespace bakeoff::emit::libtorch
