#pragma once

// What Keras does where a script says nothing; runners/tests/test_keras_adapter.py and test_keras2_adapter.py
// hold each against the installed Keras.

#include <vector>

#include "emit/emit.h"
#include "emit/keras/dialect.h"

namespace bakeoff::emit::keras {

std::vector<Default> defaults(const Request& request, const Dialect& dialect);

}  // namespace bakeoff::emit::keras
