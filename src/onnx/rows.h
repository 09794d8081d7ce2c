#pragma once

// One row for each op of ONNX: how it is written in the IR.

#include <map>
#include <string>

#include "onnx/mapper.h"

namespace bakeoff::onnx {

using Row = Result<Values> (*)(Mapper&, const Call&);
using Rows = std::map<std::string, Row>;

const Rows& rows();  // all of them
Rows elementwise_rows();
Rows shape_rows();
Rows layer_rows();

// Each element along an axis several times, one after another: an expansion and a reshape.
Value repeated(Mapper& m, const Value& x, size_t axis, int64_t times);

// Ops that the importer can compute where every input is a constant.
using Arrays = std::vector<ArrayPtr>;
using Fold = Result<Arrays> (*)(const Call&, const Arrays&);
const std::map<std::string, Fold>& folds();

}  // namespace bakeoff::onnx
