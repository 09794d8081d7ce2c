#pragma once

// Which parts of a workload a script prints once, as a class or a function, and uses several times.
//
// A framework prints each stretch (emit/stretches.h) by itself, with names relative to its path. Stretches
// whose texts differ in nothing but numbers become one family: a number that differs becomes a parameter.
// Inner stretches come first, so that the text of an outer one uses their families.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/namer.h"
#include "emit/stretches.h"
#include "ir/workload.h"

namespace bakeoff::emit {

// A value that depends on an input of the workload alone, computed once: a mask.
struct Shared {
  std::string key;         // the same for the same value
  std::string name;        // what a variable is called
  std::string expression;  // in terms of the workload's inputs
  bool operator==(const Shared&) const = default;
};

// What a framework prints for one stretch.
struct Printed {
  CodeWriter layers;                      // what makes its layers; empty where it is a function
  CodeWriter body;                        // what computes its value
  std::vector<ir::ValueId> inputs = {};   // values that it takes
  std::vector<std::string> formals = {};  // their names in the body, then those of `shared`
  std::vector<Shared> shared = {};        // further values that it takes
};

struct Parameter {
  std::string name;           // "out_channels", "stride"
  bool keyword = false;       // is passed by name
  std::string fallback = {};  // its value where it is not passed; empty: it always is
  bool real = false;          // not an integer
  bool in_body = false;       // the body reads it
};

struct Family {
  std::string name;  // of a class, "EncoderLayer", or a function, "encoder_layer"
  Printed text;      // of its first member, with parameters in place of the numbers that differ
  std::vector<Parameter> parameters = {};

  // As Python declares them: "width", "stride=1".
  std::vector<std::string> declared() const;
};

struct Block {
  Stretch stretch;
  size_t family = 0;
  std::vector<std::string> values = {};  // of the family's parameters
  std::vector<ir::ValueId> inputs = {};
  std::vector<Shared> shared = {};
};

// Takes away "stride=1" and the like, which mean the same where they are not said.
void leave_out_fallbacks(std::vector<std::string>& arguments);
// The same for C++: ".stride(1)".
void leave_out_fallbacks(std::string& options);

class Blocks {
 public:
  // Empty where the framework cannot print a stretch by itself.
  using Print = std::function<std::optional<Printed>(const Stretch&, const Blocks&)>;

  // No blocks.
  Blocks() = default;
  // How a script writes them.
  struct Style {
    Namer names;               // taken: families get other names
    bool functions = false;    // families are functions, "encoder_layer", instead of classes
    std::string in_body = {};  // what precedes a parameter's name in a body: "self."
  };
  static Blocks plan(const ir::Workload& workload, const std::vector<ir::Type>& types, Style style,
                     const Print& print);

  const std::vector<Family>& families() const { return families_; }
  // The longest block that starts at a node of a stretch and lies in it, and is not the stretch itself; null if there is
  // no such block. The whole model, a stretch without a path, may be one block.
  const Block* at(int node, const Stretch& within) const;
  // Whether a node of the stretch reads the value, or a block in it that does not make it itself.
  bool reads(const ir::Workload& workload, const Stretch& stretch, ir::ValueId id) const;
  const Family& family(const Block& block) const { return families_[block.family]; }
  // What a block is called with: "64" for parameters without a keyword, "stride=2"; values that mean the same
  // where they are not said are left out. `by_name`: all with their names.
  std::vector<std::string> arguments(const Block& block, bool by_name = false) const;
  // The blocks from this one on, each of which follows the one before and takes its value, that nothing else
  // reads; what else they take is the same.
  std::vector<const Block*> chain_from(const Block& block, const Stretch& within) const;

 private:
  // Whether it is neither part of a block, nor one itself, nor shares nodes with one that is no part of it.
  bool apart(const Stretch& stretch) const;
  // Whether it is a place in a list of which others are blocks.
  bool in_list_of_blocks(const Stretch& stretch) const;

  std::vector<Family> families_;
  std::map<int, std::vector<Block>> blocks_;  // by their first node, the shorter ones first
  std::vector<int> readers_;                  // last_readers
  int inputs_ = 0;                            // of the workload
};

}  // namespace bakeoff::emit
