#pragma once

// Prints the forward pass of a Python framework that works on N,H,W,C and plain functions (JAX, TensorFlow):
// one statement per node, with variables named as one would by hand.
//
// It prints the nodes that the loss depends on, without the loss itself; in a graph that predicts, the nodes that
// the prediction depends on, without dropout. A node whose input dies with
// it takes over that input's variable ("x = relu(x)"), unless the workload gave its value a name of its own.
// Values held in another order than a node reads are transposed inside its argument list.

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emit/blocks.h"
#include "emit/code_writer.h"
#include "emit/layout.h"
#include "emit/loops.h"
#include "emit/namer.h"
#include "emit/op_functions.h"
#include "emit/slices.h"
#include "emit/spelling.h"
#include "ir/workload.h"

namespace bakeoff::emit {

// Everything an emitter knows about the graph before it prints; references outlive it.
struct Graph {
  const ir::Workload& workload;
  const std::vector<ir::Type>& types;
  const LayoutPlan& plan;
  std::vector<std::string> inputs;  // Python names of the workload's inputs
  std::vector<int> live;            // nodes that the loss depends on, without the loss
  bool predicts = false;            // the graph of Scenario::kPredict

  bool has(ir::Op op) const;  // among the live nodes
  // Inputs that the forward pass takes: those read by a live node, and the prediction where that is an input.
  std::vector<ir::ValueId> forward_inputs() const;
  // What the forward pass gives.
  std::vector<ir::ValueId> outputs() const;
  // The order of axes in which the losses are given a value: one of outputs(), or an input.
  Order given(ir::ValueId id) const;
  // The Python names of forward_inputs().
  std::vector<std::string> forward_names() const;
  // Slices that are one statement.
  Slices slices = {};
  Loops loops = {};
  // Loops are given to the framework (jax.lax.scan, tf.range), not unrolled by Python. `traced`: the printer has met one.
  bool trace_loops = false;
  mutable bool traced = false;
  // True where no live node uses some trained parameter.
  bool has_idle_parameters() const;
};

// True where a live node of this op satisfies `holds`.
bool any_live(const Graph& graph, ir::Op op, bool (*holds)(const ir::Node&));

Graph make_graph(const ir::Workload& workload, const std::vector<ir::Type>& types, const LayoutPlan& plan,
                 Namer& names, bool predicts = false);
// Statements of loss_fn in which `loss` is made of the outputs and of inputs. `outputs`: their variables.
// `print(loss, prediction, target, variable)` prints those of one loss.
using PrintLoss = std::function<void(const ir::Node& loss, const std::string& prediction,
                                     const std::string& target, const std::string& variable)>;
void print_losses(CodeWriter& out, const Graph& graph, const std::vector<std::string>& outputs, Namer names,
                  const std::string& transpose, const PrintLoss& print);
// What loss_fn calls the outputs: the workload's own name for the prediction if it has one.
std::vector<std::string> loss_arguments(const Graph& graph, Namer& names);
// Different dropout rates of live nodes in order of first use; none where the graph predicts.
std::vector<double> dropout_rates(const Graph& graph);
// The constant that holds a rate: "DROPOUT_RATE", "DROPOUT_RATE_2", ...
std::string dropout_constant(const Graph& graph, double rate);

// How a script calls blocks.
class BlockCalls {
 public:
  virtual ~BlockCalls() = default;
  // How many blocks of a chain, from its first one on, one loop can call; 1: no loop.
  virtual size_t loop(const std::vector<const Block*>& chain) const = 0;
  // Prints `variable = block(inputs, ...)`; of several blocks in a loop, in which the first input is the variable.
  virtual void print(CodeWriter& out, const std::string& variable, const std::vector<std::string>& inputs,
                     const std::vector<const Block*>& chain) const = 0;
};

// Dropouts among the live nodes of a range; none where the graph predicts.
int dropouts(const Graph& graph, int first, int end);

// Where a block is, as an expression of Python: "encoder.0", f"{prefix}.attention" within another path, in a loop
// over i from its number on f"encoder.{i}".
std::string block_path(const std::string& path, const std::string& within, char separator, bool loop);
// The number at the end of its path; -1 if it has no number.
int block_number(const Block& block);
// How many blocks of a chain have one family, the same arguments and successive numbers at the end of one path.
size_t numbered_alike(const Blocks& blocks, const std::vector<const Block*>& chain);

class ForwardPrinter {
 public:
  // `transpose`: the framework's function, called as transpose(value, (0, 2, 3, 1)). `params`: the expression
  // of each parameter, by ParamId. `explicit_norms`: normalisations state epsilon and momentum. `half`: the
  // script's function that rounds a parameter to half precision; empty: it computes in float32.
  ForwardPrinter(CodeWriter& out, const Graph& graph, std::string transpose, std::vector<std::string> params,
                 Namer names, bool explicit_norms, std::string half = "");

  // Prints the live nodes of the model.
  void print(const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks, const BlockCalls& calls);
  // Prints those of a stretch, which ends in "return value", for a function of its own. Returns all but the body.
  Printed print(const OpFunctions<ForwardPrinter>& functions, const Stretch& stretch, const Blocks& blocks,
                const BlockCalls& calls);

  // Expression of an input of the present node, in the order in which the node reads it.
  std::string input(size_t i = 0) const;
  // A parameter in the precision that products are in; full_param: as it is stored.
  std::string param(std::string_view slot) const;
  std::string full_param(std::string_view slot) const;
  // What a step of decoding hands to attention besides the names of its caches: the dict that has them.
  const std::string& cache_argument() const { return cache_; }
  void caches_in(std::string dict) { cache_ = std::move(dict); }
  // By ParamId: parameters that are stored in half precision.
  void stored_in_half(std::vector<bool> stored) { stored_ = std::move(stored); }
  bool stored_in_half(std::string_view slot) const;
  bool mixed() const { return !half_.empty(); }  // activations are in half precision
  // True for the weight of a linear that is also an embedding's table: it is stored O,I.
  bool stored_as_table(std::string_view slot) const;
  bool has(std::string_view slot) const { return node().has(slot); }
  const ir::Node& node() const { return graph_.workload.nodes[static_cast<size_t>(node_)]; }
  int index() const { return node_; }
  const Stretch& stretch() const { return stretch_; }
  const Graph& graph() const { return graph_; }
  bool explicit_norms() const { return explicit_norms_; }
  const ir::Shape& shape(ir::ValueId id) const { return graph_.types[static_cast<size_t>(id)].shape; }
  const ir::Shape& input_shape() const { return shape(node().inputs[0]); }
  bool broadcasts() const { return shape(node().inputs[0]) != shape(node().inputs[1]); }
  const ir::Shape& output_shape() const { return shape(graph_.workload.output_of(node_)); }
  // The number of the dropout in print among those of the stretch, as an expression: "3", in a loop "2 * t + 3".
  std::string dropout_number() const;
  // The axes of the node's first input, as the node reads it.
  Axes axes() const { return {reads(), input_shape().size()}; }
  // The order in which the node reads its first input.
  Order reads() const { return graph_.plan.reads[static_cast<size_t>(node_)][0]; }
  Order gives() const { return graph_.plan.output(graph_.workload, node_); }

  // variable = head(arguments)
  void assign(const std::string& head, const std::vector<std::string>& arguments);
  // After assign: variable = head(variable, arguments)
  void again(const std::string& head, const std::vector<std::string>& arguments);
  // assign and again of what adds up elements, forward or for its gradient. Among activations in half
  // precision it is variable = in_float32(head, ...), a function of the script.
  void assign_full(const std::string& head, const std::vector<std::string>& arguments);
  void again_full(const std::string& head, const std::vector<std::string>& arguments);
  // variable = `flat`, or where that is too long head(arguments)
  void assign_flat(const std::string& flat, const std::string& head,
                   const std::vector<std::string>& arguments);
  // variable = head([part, part, ...], option)
  void assign_sequence(const std::string& head, const std::vector<std::string>& parts,
                       const std::string& option);
  // An op in this spelling.
  void spelled(const ir::Spelling& spelling);
  // The value of the node in print is an expression that needs no variable: a number, a parameter.
  void fixed(const std::string& expression);
  // variable = the input's variable
  void alias();
  // The outputs. `widen`: a format string that is put around real outputs.
  std::vector<std::string> results(const std::string& widen = "{}") const;

 private:
  std::string value(ir::ValueId id, Order wanted) const;
  Order held(ir::ValueId id) const { return graph_.plan.values[static_cast<size_t>(id)]; }
  // The variable for the node's value. `block`: the node is the last of a block that reads these inputs.
  std::string target() { return target(node().inputs, false); }
  std::string target(const std::vector<ir::ValueId>& inputs, bool block);
  std::string new_variable(ir::ValueId id);
  bool is_free(const std::string& variable) const;
  void print_nodes(const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks,
                   const BlockCalls& calls);
  void print_fill(ir::ValueId id, const std::string& other);
  // Loops (forward_loops.cc). `PrintBody`: prints one iteration, without the nodes that are given.
  using PrintBody = std::function<void(const std::set<int>& given)>;
  // A slice of one place that lax.scan hands to the iterations: `variable`, of an array along whose first axis it moves.
  struct Scanned {
    int node;
    std::string variable, source;
  };
  bool tensorflow() const { return transpose_.starts_with("tf."); }
  bool traceable(const Loop& loop) const;
  void print_loop(const Loop& loop, const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks,
                  const BlockCalls& calls);
  bool starts_alone(const Rolling& rolling, ir::ValueId id) const;
  void print_for(Rolling& rolling, const PrintBody& body);
  bool hands_out(const Loop& loop) const;
  void print_scan(Rolling& rolling, const Blocks& blocks, const PrintBody& body);
  std::vector<Scanned> scanned(const Loop& loop, const Blocks& blocks);
  // What a loop has collected: the function that joins the list; empty for a TensorArray.
  struct Collection {
    std::string join, list;
    bool stacks = false;
  };
  int print_places(const Loop::Moving& moving);
  void print_collected(const Collection& made);
  // Slices that are one statement; these and the next give the index behind the last node of what they have printed.
  int print_index(const std::string& index, bool select);
  int print_split(const Split& split);
  int print_at(int n, const OpFunctions<ForwardPrinter>& functions, const Blocks& blocks,
               const BlockCalls& calls);
  int print_blocks(const Block& first, const Blocks& blocks, const BlockCalls& calls);

  CodeWriter& out_;
  const Graph& graph_;
  std::string transpose_;
  std::vector<std::string> params_;
  Namer names_;
  bool explicit_norms_;
  std::string half_;
  std::string cache_;
  std::vector<bool> stored_;
  std::map<ir::ValueId, std::string> variables_;
  std::set<std::string> letters_;  // variables without a meaning
  std::set<ir::ValueId> fixed_;    // values that are no variable but an expression
  std::map<ir::ValueId, int> last_use_;
  Stretch stretch_;                   // that is printed: all, without a path, or one
  const Rolling* rolling_ = nullptr;  // of the loop in print
  std::map<int, Collection> lists_;   // by the node that joins it
  std::string main_;                  // the variable along which it goes
  int node_ = -1;
};

// "[a, b]" or "(a, b)" as the formatter prints it after `head`, one element a line where it is too long.
void print_list(CodeWriter& out, const std::string& head, char open, const std::vector<std::string>& items,
                const std::string& tail = "");

}  // namespace bakeoff::emit
