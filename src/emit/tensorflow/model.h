#pragma once

// The classes of a TensorFlow script: a tf.Module for the model and one for each family of blocks
// (emit/blocks.h).

#include <map>
#include <string>
#include <vector>

#include "emit/blocks.h"
#include "emit/code_writer.h"
#include "emit/emit.h"
#include "emit/forward_printer.h"

namespace bakeoff::emit::tensorflow {

// What the object for a stretch has as attributes.
struct Attributes {
  struct Blocks {
    std::string name;                  // "encoder"
    std::vector<const Block*> blocks;  // several, or one with its number: a list
    bool list = false;
  };
  std::map<ir::ParamId, std::string> parameters;  // "conv1_weight"
  std::vector<Blocks> blocks;
};

class Model {
 public:
  // The references outlive it. `names`: of the script.
  Model(const Request& request, const Graph& graph, const Namer& names, std::string class_name);

  // Where the model holds each parameter, by ParamId: "conv1_weight", "encoder.0.query_weight".
  const std::vector<std::string>& targets() const { return targets_; }
  void print(CodeWriter& out) const;

 private:
  bool equalised() const;
  Attributes attributes_of(const Stretch& stretch, const Blocks& blocks) const;
  void find_targets(const Stretch& stretch, const std::string& path);
  std::optional<Printed> block(const Stretch& stretch, const Blocks& blocks) const;
  ForwardPrinter printer(CodeWriter& out, const Stretch& stretch, const Attributes& attributes) const;
  // The body of __init__ after super().__init__().
  void print_init(CodeWriter& out, const Stretch& stretch, const Attributes& attributes,
                  const Blocks& blocks) const;
  void print_blocks(CodeWriter& out, const Attributes::Blocks& attribute, const Stretch& stretch,
                    const Blocks& blocks) const;
  std::string initial_value(ir::ParamId id, const std::string& key) const;
  void print_family(CodeWriter& out, const Family& family) const;

  const Request& request_;
  const Graph& graph_;
  const Namer& names_;
  std::string class_;
  Blocks blocks_;
  std::vector<std::string> targets_;
};

}  // namespace bakeoff::emit::tensorflow
