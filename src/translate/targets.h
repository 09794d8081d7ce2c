#pragma once

// The frameworks that a model is translated to, as the user names them.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "emit/emit.h"
#include "plan/lane.h"

namespace bakeoff {

// "jax"; "keras:torch" where a setting is always named.
struct TranslationTarget {
  std::string name = {};
  const emit::Framework* framework = nullptr;
  emit::Settings settings = {};
  std::string folder() const;  // "jax", "keras_torch"
};

// From "keras,jax". Of a framework whose variants are always named and of which none is, the first that is
// installed is taken. Errors: an unknown name, a name given twice.
Result<std::vector<TranslationTarget>> translation_targets(const std::string& text,
                                                           const Interpreters& interpreters);

}  // namespace bakeoff
