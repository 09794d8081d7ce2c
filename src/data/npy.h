#pragma once

// The header of an npy file: "\x93NUMPY", two bytes of version, the header's length, and a Python dict such
// as {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).

#include <string>

#include "base/result.h"
#include "data/byte_source.h"
#include "data/elements.h"

namespace bakeoff {

// Leaves `source` at the first element. Errors begin with `title`: not an npy file, Python objects, texts,
// complex numbers, records, an absurd shape.
Result<ArrayHeader> read_npy_header(ByteSource& source, const std::string& title);

}  // namespace bakeoff
