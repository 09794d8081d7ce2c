#pragma once

// Loops that a workload has unrolled: a decoder that runs one cell for every frame is, in the graph, the same nodes
// over and over. Scripts print one iteration, as the body of a loop.
//
//   frames = []
//   for t in range(6):              count = 6
//       v = x[:, t]                 a moving slice
//       h = self.cell(v, h)         h is carried: the next iteration reads it
//       frames.append(self.out(h))  collected
//   y = torch.cat(frames, dim=1)    the node that reads what was collected

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emit/blocks.h"
#include "emit/layout.h"
#include "emit/namer.h"
#include "ir/workload.h"

namespace bakeoff::emit {

struct Loop {
  struct Carry {
    ir::ValueId start = -1;   // what the first iteration reads, from outside of the loop
    ir::ValueId before = -1;  // what the printed iteration reads of the iteration before it
    ir::ValueId next = -1;    // what the printed iteration computes for the next one
    ir::ValueId last = -1;    // what the last iteration computes; -1 where it lacks the node
  };
  struct Moving {
    int64_t begin = 0;  // of the slice in the first iteration
    int64_t width = 1;
    int64_t stride = 1;  // from one iteration to the next
    // "t", "2 * t + 3", "5 - t": where the slice begins in iteration `variable`
    std::string place(const std::string& variable) const;
  };

  int first = 0;               // node in whose place the loop is printed
  int count = 0;               // of iterations
  std::vector<int> body = {};  // nodes of the iteration that is printed, the second one, without tails
  std::vector<Carry> carries = {};
  std::map<int, Moving> moving = {};  // slices of the body, by node
  // What is collected, by the concat that joins it.
  struct Collected {
    ir::ValueId value = -1;      // what each iteration appends
    std::vector<int> tail = {};  // nodes of the printed iteration that compute this value and nothing else
    bool stacks = false;         // the items are joined along a new axis
    bool reversed = false;       // from the last one to the first
  };
  std::map<int, Collected> collected = {};
  // Values of the body that nothing carries, but that are read after the loop, with the value of the last iteration that
  // each stands for then.
  std::map<ir::ValueId, ir::ValueId> finals = {};
  // What its nodes read. A value must live until `first`, although slices of it may come earlier in the graph.
  std::set<ir::ValueId> reads(const ir::Workload& workload) const;
  std::set<int> covered = {};     // nodes of all iterations
  std::vector<int> sources = {};  // constants and parameters that the printed iteration reads
};

class Loops {
 public:
  Loops() = default;
  // `live`: the nodes that are printed, in order. `plan`: where it is given, loops that would change a value's order of
  // axes from one iteration to the next are left alone.
  Loops(const ir::Workload& workload, const std::vector<ir::Type>& types, const std::vector<int>& live,
        const LayoutPlan* plan = nullptr);

  // Those that lie in the stretch and meet no block of it.
  std::vector<Loop> in(const Stretch& stretch, const Blocks& blocks) const;

 private:
  std::vector<Loop> loops_;
};

// The names of a loop in print.
class Rolling {
 public:
  Rolling(const Loop& loop, const ir::Workload& workload, Namer& names);

  const Loop& loop;
  bool traced = false;                    // the framework carries it out: the index is a value of its own
  std::string index;                      // "t"
  std::map<int, std::string> lists = {};  // of what is collected, by the node that joins them
  std::map<ir::ValueId, std::string> carry = {};  // variables, by Carry::next

  // "parts", "parts[::-1]": the items in the order in which a node joins them.
  std::string joined(int node) const {
    return lists.at(node) + (loop.collected.at(node).reversed ? "[::-1]" : "");
  }
  // Whether the printed iteration computes this value, and no node of it reads the value after this one.
  bool dies(ir::ValueId id, int node) const;
  // The same, and neither does this node.
  bool dead(ir::ValueId id, int node) const;
  bool computes(ir::ValueId id) const { return places_.contains(id - workload_.output_of(0)); }
  // Whether the first iteration alone reads a value from outside of the loop, of the nodes in front of `end`: its variable
  // may then be carried.
  bool only_starts(ir::ValueId id, int end) const;
  // The variable of the carried value that this one replaces, if nothing reads the old one any more; else empty.
  std::string takes_over(ir::ValueId id) const;
  // "h, c = u, v" at the end of the body, for carried values that are not in their variables yet; else empty.
  std::string handed_on(const std::map<ir::ValueId, std::string>& variables) const;
  // "[:, t]" of a slice of the body that moves, of a value with these axes; `select`: its axis is dropped.
  std::string moving_index(int node, const Axes& axes, bool select) const;

 private:
  // Place in the body, or behind it in a tail, of the last node that reads it; -1 where there is none.
  int last_read(ir::ValueId id) const;

  const ir::Workload& workload_;
  std::map<int, int> places_;  // of nodes in the body
};

// Of the variables in `order` those that hold nothing that is read behind the loop, up to node `end`. `escapes`: a value
// that the printed function gives.
std::vector<std::string> free_after(const Loop& loop, const ir::Workload& workload, int end,
                                    const std::map<ir::ValueId, std::string>& variables,
                                    const std::vector<std::string>& order,
                                    const std::function<bool(ir::ValueId)>& escapes);
// "looking_add_4" -> "looking_add": a value of every iteration needs no number.
std::string unnumbered(const std::string& name);
// Nodes 0 to model_end().
std::vector<int> all_nodes(const ir::Workload& workload);

// The variable for a value: one of `free`, else a new one, which joins `order`. `part`: its attention_part(); other
// values are not called so.
std::string variable_for(const std::string& part, const std::string& key, std::vector<std::string>& order,
                         std::vector<std::string>& free, Namer& names);

}  // namespace bakeoff::emit
