#pragma once

// What Keras does where a script says nothing; runners/tests/test_keras_adapter.py holds each against the
// installed Keras.

#include <vector>

#include "emit/emit.h"

namespace bakeoff::emit::keras {

std::vector<Default> defaults(const Request& request);

}  // namespace bakeoff::emit::keras
