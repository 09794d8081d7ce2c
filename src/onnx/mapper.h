#pragma once

// Walks an ONNX graph and maps its ops, by the table of rows (rows.h). What depends on no input is computed here and
// now (fold.h), at two batch sizes where the batch enters: shapes that are computed from it become functions of N.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "onnx/array.h"
#include "onnx/graph.h"
#include "onnx/model_file.h"

namespace bakeoff::onnx {

namespace wire {
class AttributeProto;
class FunctionProto;
class GraphProto;
class NodeProto;
class ValueInfoProto;
}  // namespace wire

// Where the batch lies in a value of ONNX. Axis n has before * N * after elements; n = kAdded: the file computes one
// row, and N is an axis in front of its own axes; n = kNone: weights, and what is computed from them alone, with an axis
// of size 1 in front.
inline constexpr int kAdded = -1, kNone = -2;
struct Layout {
  Shape dims = {};  // per row: at axis n before * after
  int n = kAdded;
  int64_t before = 1, after = 1;
  size_t rank() const { return dims.size(); }
  bool plain() const { return before == 1 && after == 1; }
  bool holds_batch(size_t axis) const { return n == static_cast<int>(axis); }
  bool operator==(const Layout&) const = default;
};
Shape ir_shape(const Layout& layout);
// The axis of the IR; `axis` is not that of the batch.
int64_t ir_axis(const Layout& layout, size_t axis);

// A constant (at both batch sizes), a value of the graph, or nothing (an optional input that is absent).
struct Value {
  ArrayPtr at[2] = {};
  std::string name = {};  // of the graph
  Kind kind = Kind::kFloat;
  Layout layout = {};
  int64_t bound = 0;  // integers of the graph lie in [0, bound); 0: not known

  bool is_const() const { return at[0] != nullptr; }
  bool is_graph() const { return !name.empty(); }
  bool absent() const { return !is_const() && !is_graph(); }
  bool fixed() const { return at[0] == at[1] || (at[0] && at[1] && *at[0] == *at[1]); }
};
using Values = std::vector<Value>;

// Whether a loss can compare an output: floats, which depend on the inputs.
Status check_output(const Value& output, const std::string& name);

// A node with its inputs.
struct Call {
  const wire::NodeProto& node;
  int64_t opset = 0;
  Values inputs = {};
  const std::map<std::string, const wire::AttributeProto*>& attributes;
  const ModelFile& file;
  std::vector<bool> used = {};  // outputs that something reads

  const std::string& op() const;
  const std::string& name() const;
  size_t outputs() const;  // that are named
  bool wants(size_t output) const { return output < used.size() && used[output]; }
  bool has(size_t input) const { return input < inputs.size() && !inputs[input].absent(); }
  const Value& in(size_t input) const;
  bool has_attribute(const std::string& name) const { return attributes.contains(name); }
  int64_t integer(const std::string& name, int64_t fallback) const;
  double real(const std::string& name, double fallback) const;
  std::vector<double> reals(const std::string& name) const;
  Ints integers(const std::string& name, Ints fallback = {}) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  Result<ArrayPtr> array(const std::string& name) const;
};

struct Refusal {
  std::string op = {}, node = {}, why = {};
};

struct MapOptions {
  bool added_batch = false;                    // the file computes one row
  std::string output = {};                     // of several; several of them with commas
  std::map<std::string, ArrayPtr> given = {};  // numbers in place of initialisers, or of inputs
  std::map<std::string, Shape> shapes = {};    // of inputs, where the file leaves sizes open
  std::map<std::string, int64_t> below = {};   // that integers of inputs are below
  std::map<std::string, int> batch_axes =
      {};                               // of inputs; else axis 0, or the open one that is called "batch"
  std::set<std::string> unshared = {};  // MapResult::unshared of the file without `given`
  // What a walk has found out for the next one (Mapper::run).
  std::set<std::string> whole =
      {};  // tensors that are one parameter each, of which nodes of the graph take parts
  std::set<std::string> everywhere = {};  // tensors of exporters' names that train in arithmetic, too
  std::map<std::string, std::string> frozen = {};  // tensors that cannot be trained, and why
};

// Floats of the file: initialisers of rank 1 and more, and what else is trained.
struct FileNumbers {
  int64_t trained = 0, frozen = 0, left_out = 0;
  // Why the workload trains another number of them: summands of one parameter, copies of what exporters have merged.
  int64_t summed = 0, apart = 0;
};

// What an output of a node became.
struct MappedValue {
  std::string onnx = {}, ir = {}, op = {}, node = {};
  Layout layout = {};
};

struct MapResult {
  std::string text = {};  // of the workload's nodes, one a line, without loss
  std::vector<std::pair<std::string, std::pair<Kind, Shape>>> inputs = {};  // name in the IR; with kBatch
  std::map<std::string, std::string> input_names = {};                      // IR -> ONNX
  std::map<std::string, Layout> input_layouts = {};
  Value output = {};                           // several outputs are one `join`
  std::vector<std::string> output_names = {};  // in the file
  std::vector<Layout> output_layouts = {};
  std::vector<GraphParameter> parameters = {};
  std::vector<MappedValue> values = {};
  std::vector<std::pair<std::string, std::string>> ops =
      {};  // op of the IR, op of ONNX and node: what is needed
  std::set<std::string> trained_sources =
      {};  // initialisers and Constant nodes of which any number is trained
  FileNumbers numbers = {};
  MapOptions options = {};  // with which the same walk is done again
  // Initialisers of equal numbers alone (biases of 0), which exporters merge: every layer has its own.
  std::set<std::string> unshared = {};
  std::vector<std::string> notes = {};
  int64_t batch = 0;  // the one that the file was written for; 0: any
};

class Mapper {
 public:
  Mapper(const ModelFile& file, MapOptions options);
  // Walks until every tensor is trained in one way. Errors: unsupported ops (all listed), or an invalid graph.
  Result<MapResult> run();

  // -- for the rows
  Graph graph;
  int64_t sizes[2] = {7, 11};  // the batch sizes at which constants are computed
  bool added = false;
  std::set<std::string> notes;
  std::map<std::string, Value> counted;  // integers that are computed; the same numbers as floats

  Value constant(ArrayPtr a) const { return {.at = {a, a}}; }
  // A value of the graph: the node `op` of the IR over these values of the IR.
  Value make(const std::string& op, std::vector<std::string> inputs, Layout layout,
             Attributes attributes = {}, Params params = {}, Kind kind = Kind::kFloat);
  Value reshaped(const Value& v, const Layout& layout);
  Value transposed_value(const Value& v, const Ints& perm);
  // Element by element, with numpy's broadcasting.
  Result<Value> elementwise(const std::string& op, const Values& operands, Attributes attributes = {},
                            Kind kind = Kind::kFloat);
  Result<Value> scalar_op(const std::string& op, const Value& x, double number);  // op(x, number)
  Result<Layout> broadcast_layout(const Values& operands) const;
  // The IR's name of a value that broadcasts to `out`, for one operand.
  Result<std::string> operand(const Value& v, const Layout& out);
  std::string scalar(double number);
  // A constant of floats as a value of the graph.
  Result<Value> as_value(const Value& v);
  // A constant in the place of a layer's weight.
  Result<std::string> weight(const Value& v, const std::string& slot, bool trained = true);
  // Whether a constant of these numbers can stand there; if not, as_value() may do.
  bool fits_slot(const Array& array) const;
  // Whether numbers are trained wherever they are read: those of tensors that people name.
  bool tracked(const Value& v) const { return v.is_const() && tracked(*v.at[0]); }
  // From here on they are, whoever named them: this is the slope of a PReLU, the scale of a norm.
  void train_everywhere(const Value& v);
  bool made_by_exporter(const Value& v) const;
  // The node that is mapped reads this parameter as the weight of a layer.
  void note_reader(const std::string& parameter);
  // The tensor that a constant's numbers come from, if they do.
  std::string source(const Value& v) const;
  Result<std::string> frozen(const std::string& wanted, ArrayPtr array);
  // A value of the graph with N in front: axis 0 of ONNX is the batch, or the file computes one row whose axis 0 is 1.
  Result<Value> rows_first(const Value& v);
  Value as_before(const Value& rows, const Value& like);
  // Constants; `what` is for messages.
  Result<ArrayPtr> fixed(const Call& call, size_t input, const char* what) const;
  Result<Ints> fixed_ints(const Call& call, size_t input, const char* what) const;
  Result<double> fixed_real(const Call& call, size_t input, const char* what) const;
  // The one or two shapes that a value has at the batch sizes.
  Shape shape_at(const Value& v, int which) const;
  // The layout of a value whose ONNX shape at the two sizes is given, in rows of the same order as `from`.
  Result<Layout> regrouped(const Layout& from, const Shape& a, const Shape& b) const;
  Value* any_input();
  // A bias joins the linear layer that made the value, if nothing else reads it.
  bool read_once(const std::string& onnx) const;
  const std::string& current_input(size_t i) const;
  GraphNode* layer_of(const Value& v) { return graph.producer(v.name); }
  std::string weight_name(const Value& v, const std::string& slot) const;

 private:
  // Floats that the file states under a name.
  struct Tensor {
    std::string name = {};
    ArrayPtr array = {};
    bool named = false;     // by people: trained in arithmetic, too
    bool constant = false;  // a Constant node
  };

  template <typename Nodes>
  void count_readers(const Nodes& nodes, const std::string& scope);
  Result<MapResult> walk();
  Value of_file(const std::string& name, ArrayPtr array, bool constant = false);
  bool named_by_people(const std::string& name, const Array& array) const;
  const Tensor* tensor_of(int64_t origin) const;
  std::set<const Tensor*> tensors_of(const Array& array) const;
  bool tracked(const Array& array) const;
  bool is_whole(const Array& array) const;
  std::string declared(const Value& v, const ArrayPtr& array, const std::string& wanted,
                       const std::string& slot, bool trained);
  std::string layer_called();
  Error cannot_train(const Array& array, const std::string& why);
  void give_up(const Call& call, const std::string& why);
  void remember_weights(const Call& call, const Values& made);
  bool clean(const Value& made) const;
  Status on_graph(Call& call);
  Result<std::string> stored(const Value& v, const ArrayPtr& array, const Shape& shape);
  void settle_tensors(const std::set<std::string>& statistics);
  void count_numbers();
  void note_copies();
  std::set<std::string> needed() const;
  Status start();
  Status add_inputs();
  Status add_input(const wire::ValueInfoProto& info);
  int batch_axis(const wire::ValueInfoProto& info) const;
  int64_t bound_of(const std::string& input) const;
  template <typename Nodes>
  Status walk_nodes(const Nodes& nodes, int64_t opset, int depth);
  Status node(const wire::NodeProto& n, int64_t opset, int depth);
  Result<Values> map_call(const Call& call, int depth);
  Result<std::optional<Values>> folded(const Call& call);
  Status function(const wire::FunctionProto& f, const wire::NodeProto& n, const Values& inputs, int depth);
  Result<Values> branch(const Call& call, int depth);
  Status define(const std::string& name, Value value);
  Result<Value> look_up(const std::string& name);
  Result<std::vector<std::string>> chosen_outputs() const;
  Status add_output();
  Result<MapResult> finish();
  Error refusal_error() const;
  void refuse(const wire::NodeProto& n, const std::string& why);

  const ModelFile& file_;
  MapOptions options_;
  std::map<std::string, Value> values_;
  std::map<std::string, const wire::TensorProto*> initialisers_;
  std::set<std::string> blocked_;
  std::map<std::string, int> readers_;
  std::map<std::string, int> comparing_;  // those of the readers that compare: nothing trains by a comparison
  std::map<std::string, const wire::FunctionProto*> functions_;
  std::vector<Refusal> refusals_;
  std::vector<MappedValue> mapped_;
  std::map<int64_t, Tensor> tensors_;  // by the first of their numbers
  int64_t next_origin_ = 0;
  int64_t numbers_made_ = 0;  // by ops on constants; all are kept to the end of the walk
  std::map<std::string, std::set<std::string>>
      fed_by_;                           // values without rows: the tensors that they are made of
  std::set<std::string> computed_with_;  // tensors of exporters' names, in arithmetic
  std::map<std::string, int64_t> trained_, moved_,
      read_;              // numbers of tensors: by gradients, as statistics, at all
  MapOptions next_ = {};  // what this walk has found out
  bool gave_up_ = false;  // on weights of the node that is mapped
  MapResult result_;
  const wire::NodeProto* current_ = nullptr;
  std::string scope_ = {};  // before the names of values within functions
  std::string first_input_ = {};
  int64_t nodes_seen_ = 0;
  std::set<std::string> ops_seen_ = {};
  std::map<std::string, std::map<std::string, std::string>> own_names_ = {};  // by tensor and layer
  std::map<std::string, std::string> layer_of_scope_ =
      {};  // of a module that is called again, its first scope
  std::map<std::string, std::set<std::string>> layers_ =
      {};  // by parameter: outputs of the nodes whose weight it is
};

// A float of 32 bits as the shortest number that it is the nearest to: 1e-5 means 1e-5.
double shortest(double number);

// `x` in messages: "a value f32 [N,3]".
Error refused(const std::string& why);

}  // namespace bakeoff::onnx
