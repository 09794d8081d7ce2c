#pragma once

// Checks a workload against the op table and infers the type of every value.

#include <vector>

#include "base/result.h"
#include "ir/workload.h"

namespace bakeoff::ir {

// Types of all values, by ValueId. Fails naming the node ("h3 = linear: ...") where arity, attributes,
// parameter or input shapes do not fit, a name is defined twice, a parameter's role or shape differs between
// uses, or the last node is not a loss.
Result<std::vector<Type>> infer(const Workload& workload);

}  // namespace bakeoff::ir
