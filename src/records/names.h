#pragma once

// Contenders as people call them: "Keras on TensorFlow" with the settings "jit_compile, allocator = tuned", in place
// of the id "keras[backend=tensorflow,jit_compile,allocator=tuned]", which commands and records use.

#include <string>
#include <utility>
#include <vector>

#include "recipe/contender.h"
#include "records/trial.h"
#include "records/watch.h"
#include "table/section.h"

namespace bakeoff {

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
std::string spoken(const recipe::Contender& contender);

// spoken() of the contender that has this id; the id itself, cleaned, where none has it.
std::string spoken(const std::vector<Contender>& contenders, const std::string& id);

// A sentence that names contenders by their ids, with what people call them. Ids between back-ticks or quotes, and those
// that are part of a longer word ("torch.compile", "backend = torch"), stay as they are.
std::string with_names(const std::vector<Contender>& contenders, const std::string& sentence);

// A watch that is told the same happenings with names in place of ids.
Watch with_names(std::vector<Contender> contenders, Watch watch);

// The same in a table's texts, and its rows by label(), with the id where the pointer rests. Of its sentences only ids
// with settings are replaced, as an id without any may be a setting's value there.
void name_contenders(const std::vector<Contender>& contenders, table::Section& section);

// label() where `text` is a contender's id, or begins with one and a comma; else `text`.
std::string label(const std::vector<Contender>& contenders, const std::string& text);

}  // namespace bakeoff
