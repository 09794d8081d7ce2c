#pragma once

// Prints the lines of build_model: one statement for each node of the graph.
//
// A node with parameters is a layer, named after its parameters ("block1.conv.weight" -> block1_conv), one
// layer object for all nodes that share them; all others are calls of functions (Dialect::op) or layers
// without weights.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "emit/blocks.h"
#include "emit/code_writer.h"
#include "emit/keras/dialect.h"
#include "emit/layout.h"
#include "emit/loops.h"
#include "emit/namer.h"
#include "emit/slices.h"
#include "ir/training.h"
#include "ir/workload.h"

namespace bakeoff::emit::keras {

// Prints `head[item, item, ...]tail`, wrapped as the formatter does.
void print_list(CodeWriter& out, const std::string& head, const std::vector<std::string>& items,
                const std::string& tail = "");

// What a script needs, found while its parts are printed.
struct ModelNeeds {
  std::set<std::string> classes = {};     // that build_model calls and helpers.py does not have
  std::vector<std::string> targets = {};  // the variable for each parameter, by ParamId
};

class Printer {
 public:
  Printer(const ir::Workload& w, const std::vector<ir::Type>& t, const LayoutPlan& l,
          const ir::Training& training, const Dialect& dialect, const std::string& backend,
          ModelNeeds& needs);

  // From here on it prints a stretch for a function of its own, in which layers' names begin with `prefix`.
  void enter(const Stretch& stretch);
  // What it has printed of the stretch; empty where that needs layers of other parts.
  std::optional<Printed> printed() const;

  // Finds the layers and their names. An error names a parameter that unlike layers share.
  Status plan_layers();

  // The Python name of input `i` of the node in print, after a conversion of its layout where one is needed.
  std::string input(const ir::Node& node, size_t i);
  // A value in some order of axes: its variable, or that of its transpose, which is printed.
  std::string in_order(ir::ValueId id, Order to);
  Order held(ir::ValueId id) const { return plan.values[static_cast<size_t>(id)]; }
  // `reads`: what it is computed of, where that is a block.
  std::string value_name(ir::ValueId id, const std::vector<ir::ValueId>& reads = {});
  // The variable of a value that nothing reads behind node `n`; empty: something does.
  std::string left_over(ir::ValueId id, int n) const;
  // A name that nothing else has.
  std::string fresh(const std::string& wish) {
    return names_.name("fresh " + wish + std::to_string(serial_++), wish);
  }
  // The value of the node in print is an expression that needs no variable.
  void fixed(const std::string& expression) { fixed_[workload.output_of(node)] = expression; }
  bool reuses =
      true;  // variables serve several values; not among loops, whose nodes are printed in another order
  // The value of the node in print is that of a variable. A loop may give the variable another one.
  void same_as(const std::string& variable);
  // A real number in an expression.
  std::string literal(double value) const;
  // The Python name of the first input that the model takes.
  std::string first_input();
  const ir::Shape& shape(ir::ValueId id) const { return types[static_cast<size_t>(id)].shape; }
  // The axes of the node's first input, as the node reads it.
  Axes axes() const { return {reads(), shape(workload.nodes[static_cast<size_t>(node)].inputs[0]).size()}; }
  Order reads(size_t i = 0) const { return plan.reads[static_cast<size_t>(node)][i]; }
  std::string op(std::string_view name) const { return dialect.op(name); }
  bool equalised() const { return training.equalised(); }

  // Prints `output = head(arguments)`, with `tail` behind.
  void assign(const std::string& head, const std::vector<std::string>& arguments,
              const std::string& tail = "");
  // Prints `output = layers.Class(arguments, name=...)(x)`, or the call of the layer made before. `variables`
  // maps the op's slots to the layer's variables ("weight" -> "kernel").
  void layer(const ir::Node& node, const std::string& head, std::vector<std::string> arguments,
             const std::string& x, const std::map<std::string, std::string>& variables);
  // Whether several nodes call its layer.
  bool shared(const ir::Node& node) const;
  // Where the node in print is a linear one whose weight belongs to another layer: that layer's variable in
  // the script; else empty.
  std::string tied_owner() const;
  // A batch norm whose scale and shift are frozen, and whose statistics move.
  bool fixes_scale(const ir::Node& here) const;
  bool tied_to_embedding() const;
  // The variable that holds head(input `i` of the node, option), computed where no such statement has been
  // printed before; in a stretch its caller passes it.
  std::string once(const std::string& wish, const std::string& head, const ir::Node& node, size_t i,
                   const std::string& option);
  std::string shared_value(const Shared& value);
  // The value is held by this variable.
  void name_value(ir::ValueId id, const std::string& variable) { fixed_[id] = held_[id] = variable; }
  const Namer& names() const { return names_; }
  void need_class(const std::string& text) { needs_.classes.insert(text); }
  // What build_model and its parts, the `script`, call.
  std::string helpers(const std::string& script) const;

  const ir::Workload& workload;
  const std::vector<ir::Type>& types;
  const LayoutPlan& plan;
  const ir::Training& training;
  const Dialect& dialect;
  CodeWriter out;
  Slices slices;          // of the workload
  Loops loops;            // of the workload
  Stretch stretch;        // in print
  std::string backend;    // "tensorflow", "jax", "torch"
  std::string half = {};  // "float16": what Keras 2 is told to cast to; empty: nothing
  bool mixed = false;     // Keras 3: activations are in half precision
  // By ParamId: frozen weights whose layers compute in `policy`, "bfloat16", alone.
  std::vector<bool> in_half = {};
  std::string policy = {};
  Namer layer_names;
  int node = 0;  // in print

  // Prints the statements of `body` as a loop; layers and what is computed once come before it.
  void loop(const Rolling& rolling, const std::function<void()>& body);
  const Rolling* rolling = nullptr;  // of the loop in print
  std::set<int> read_by_loops = {};  // numbers and parameters that have been printed for a loop
  // Lists that loops have filled, behind the function that joins their items, by its node.
  std::map<int, std::pair<std::string, std::string>> lists = {};
  Namer& namer() { return names_; }

 private:
  struct Layer {
    std::string name;  // Keras's
    int uses = 0;
    std::string variable = {};  // of the script, once made; empty for a layer used once
  };
  std::string value_name_of_input(ir::ValueId id);
  std::string new_name(ir::ValueId id, const std::vector<ir::ValueId>& reads);
  Namer names_;
  Namer reserved_;                                  // what names_ was at first
  std::map<ir::ValueId, std::string> input_names_;  // of the workload's inputs that a stretch reads
  int serial_ = 0;
  std::map<std::pair<ir::Op, std::vector<ir::ParamId>>, Layer> layers_;
  std::map<int, int> tied_;                  // node -> the node whose layer owns its weight
  std::map<std::string, std::string> once_;  // variables of once(), by expression
  // Some parameter of the node is frozen; of a norm that fixes_scale() the layer itself sees to that.
  bool freezes(const ir::Node& here) const;
  Status check_frozen(const ir::Node& here) const;

  // The name of a layer as an expression.
  std::string quoted_name(const Layer& layer);

  std::map<ir::ValueId, std::string> held_;   // the variables of values
  std::vector<int> readers_;                  // last_readers()
  std::map<ir::ValueId, std::string> fixed_;  // values that are expressions or have variables of other names
  Printed printed_;                           // of a stretch
  bool apart_ = true;                         // it needs no layer of other parts
  CodeWriter* before_loop_ = nullptr;         // while a loop's body is printed
  CodeWriter& once_writer() { return before_loop_ == nullptr ? out : *before_loop_; }
  ModelNeeds& needs_;
};

}  // namespace bakeoff::emit::keras
