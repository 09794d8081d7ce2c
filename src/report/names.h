#pragma once

// Contenders as people call them: "Keras on TensorFlow" with the settings "jit_compile, allocator = tuned", in place
// of the id "keras[backend=tensorflow,jit_compile,allocator=tuned]", which commands and records use.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/trial.h"

namespace bakeoff::report {

struct ShownName {
  std::string name;  // of the framework, with its backend; of a script of the user's own, its id
  // Settings and controls other than the framework's defaults, by name; "true" where one is switched on.
  std::vector<std::pair<std::string, std::string>> settings;
  std::string settings_text() const;  // "channels_last, compile = default"; empty: all are defaults
  std::string whole() const;          // "PyTorch · channels_last"
};
ShownName shown_name(const Contender& contender);

// shown_name().whole(): unique within a run, as ids are.
std::string label(const Contender& contender);

// "PyTorch (channels_last)", in a sentence.
std::string spoken(const Contender& contender);

// A name that may break after "[" and ",". Escaped.
std::string breakable(std::string_view name);

// "PyTorch 2.13.0", ... of the packages of frameworks among `versions`, in the order of emit/all.
std::vector<std::string> framework_versions(const std::vector<const Texts*>& versions);

}  // namespace bakeoff::report
