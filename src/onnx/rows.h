#pragma once

// One row for each op of ONNX: how it is written in the IR.

#include <map>
#include <set>
#include <string>

#include "onnx/mapper.h"

namespace bakeoff::onnx {

using Row = Result<Values> (*)(Mapper&, const Call&);
using Rows = std::map<std::string, Row>;

const Rows& rows();  // all of them
Rows elementwise_rows();
Rows shape_rows();
Rows axis_rows();
Rows resize_rows();
Rows layer_rows();
Rows window_rows();
Rows place_rows();
Rows recurrent_rows();
Rows attention_rows();

// ---- what rows of several files are made of

size_t rank_of(const Value& v);
// An error where the input is a constant.
Status want_graph(const Call& call, size_t input = 0);
// A constant of other numbers.
Value with_array(const Value& v, ArrayPtr array);
// Of constants and of values of the graph: an axis of size 1 in front of axis `at`.
Value with_axis(Mapper& m, const Value& v, size_t at);
// x W^T + b on the last axis; the bias may be absent. The weight is O,I, or I,O: x W + b.
Result<Value> linear(Mapper& m, const Value& x, const Value& weight, const Value& bias, bool io = false);
// The matrix product over the last two axes; those before them broadcast. One of the two may be a constant.
Result<Value> product(Mapper& m, Value a, Value b);
// Elements begin, begin + step, ... before end along an axis that is not the batch's.
Value cut(Mapper& m, const Value& x, size_t axis, int64_t begin, int64_t end, int64_t step);
Value flipped(Mapper& m, const Value& x, size_t axis);
// Joined along an axis; one value of the graph at least. Constants get the rows of the batch, empty ones go.
Result<Value> concatenated(Mapper& m, const Values& parts, int64_t axis);
// A constant as a value of the graph that lies as `like` says, but for the sizes of its axes.
Result<Value> with_rows(Mapper& m, const Value& v, const Layout& like);
// Places along an axis in any order.
Result<Value> taken_places(Mapper& m, const Value& x, size_t axis, const Ints& places);
// Integers of the graph as floats; whole floats as integers.
Result<Value> as_floats(Mapper& m, const Value& ids);
Value as_integers(Mapper& m, const Value& whole);
// Whether integers of the graph are not 0.
Result<Value> truths_of(Mapper& m, const Value& ids);
// `op` over axes of ONNX: sum, mean, max, min, prod or logsumexp.
Result<Value> reduced(Mapper& m, const Value& x, const std::set<size_t>& axes, bool keep,
                      const std::string& op);
// Each element along an axis several times, one after another: an expansion and a reshape.
Value repeated(Mapper& m, const Value& x, size_t axis, int64_t times);
// One of two numbers, where a condition of the graph holds and where not.
Result<Value> as_numbers(Mapper& m, const Value& condition, double yes = 1, double no = 0);

// Ops that the importer can compute where every input is a constant.
using Arrays = std::vector<ArrayPtr>;
using Fold = Result<Arrays> (*)(const Call&, const Arrays&);
const std::map<std::string, Fold>& folds();
const std::map<std::string, Fold>& place_folds();

}  // namespace bakeoff::onnx
