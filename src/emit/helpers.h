#pragma once

// The functions that scripts call are real files beside the emitters (jax/helpers.py): linted, and tested alone. A
// script gets the definitions that its text names, directly or through each other, in the order of the file.
//
// Two blank lines separate definitions, in C++ one. What stands above the first is the file's own, and so are comments
// above a definition in Python. Variants: lstm_mixed is called lstm in scripts that ask for "mixed", and stands in place
// of the plain one; in other scripts half(x) becomes x.
//
// In the file a function does all that any script asks of it. Where copies are kAsCalled, a script's copy does what its
// own calls ask:
//
// | in the file                                   | in a script                                          |
// |-----------------------------------------------|------------------------------------------------------|
// | bias=None, eps=1e-5: every call gives it      | bias, eps; an option (False, a whole number) stays   |
// | of a parameter that no call gives:            |                                                      |
// | - groups=groups, an argument                  | nothing                                              |
// | - a + bias or add(a, bias), where it is 0.0   | a                                                    |
// | - a if bias is None else b                    | a                                                    |
// | - b if causal else a                          | a                                                    |
// | - if bias is not None: ...; if causal: ...    | nothing                                              |
// | - the parameter, if its name is left nowhere  | nothing                                              |

#include <set>
#include <string>
#include <vector>

#include "base/embedded.h"
#include "emit/spelling.h"

namespace bakeoff::emit {

class Helpers {
 public:
  enum class Copy { kWhole, kAsCalled };

  explicit Helpers(const std::vector<embedded::File>& files, Copy copy = Copy::kWhole);

  // Of all definitions; no variable of a script has such a name.
  std::set<std::string> names() const;
  // The definitions for `script`, blank lines after each.
  std::string used_by(const std::string& script, const std::set<std::string>& variants = {}) const;

 private:
  struct Definition {
    std::string name;
    std::string text;
  };

  std::vector<Definition> variants_of(const std::set<std::string>& variants) const;

  std::vector<Definition> definitions_;
  Copy copy_;
  Language language_;
};

}  // namespace bakeoff::emit
