#pragma once

// The functions that scripts call are real files beside the emitters (jax/helpers.py): linted, and tested alone. A
// script gets the definitions that its text names, directly or through each other, in the order of the file.
//
// Two blank lines separate definitions. The imports above the first one and comments above any are the file's own.
// In the file a function can do all that any script asks of it; a script's copy does what its own calls ask:
//
// | in the file                                   | in a script                                          |
// |-----------------------------------------------|------------------------------------------------------|
// | lstm_mixed, with "mixed" among the variants   | is called lstm, and stands in place of the plain one |
// | half(x), without "mixed"                      | x                                                    |
// | bias=None, eps=1e-5: every call gives it      | bias, eps; an option (False, a whole number) stays   |
// | of a parameter that no call gives:            |                                                      |
// | - groups=groups, an argument                  | nothing                                              |
// | - + bias, where it is 0.0 else                | nothing                                              |
// | - a if bias is None else b; b if causal else a | a                                                   |
// | - if bias is not None: ...; if causal: ...    | nothing                                              |
// | - the parameter, if its name is left nowhere  | nothing                                              |

#include <set>
#include <string>
#include <vector>

#include "base/embedded.h"

namespace bakeoff::emit {

class Helpers {
 public:
  explicit Helpers(const std::vector<embedded::File>& files);

  // Of all definitions; no variable of a script has such a name.
  std::set<std::string> names() const;
  // The definitions for `script`, two blank lines after each.
  std::string used_by(const std::string& script, const std::set<std::string>& variants = {}) const;

 private:
  struct Definition {
    std::string name;
    std::string text;
  };

  std::vector<Definition> variants_of(const std::set<std::string>& variants) const;

  std::vector<Definition> definitions_;
};

}  // namespace bakeoff::emit
