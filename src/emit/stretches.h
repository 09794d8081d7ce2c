#pragma once

// Parts of a workload that a person would have written as a module of their own.
//
// A part owns every parameter below one path ("encoder.3"), its nodes follow one another, and one value of it,
// the last, is read outside. Nodes without parameters at its end (an activation, a residual sum) belong to it
// as long as they need nothing that it does not read anyway; where several parts compute the same, the end is
// the same in all of them. A path below which names are numbers is a list of modules, not one.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/workload.h"

namespace bakeoff::emit {

struct Stretch {
  std::string path;    // of its parameters, without the last dot
  int first = 0;       // index of its first node
  int end = 0;         // index behind its last node, which computes its value
  int least = 0;       // the smallest that `end` could be: without an activation or a permutation behind it
  bool fills = false;  // prints what own_fills() gives itself
  bool operator==(const Stretch& other) const {
    return path == other.path && first == other.first && end == other.end;
  }
  // A path below that of the stretch, without it; the path itself where the stretch has none.
  std::string relative(const std::string& below) const;
};

// All of them, the shorter ones first; none covers the same nodes as another.
std::vector<Stretch> find_stretches(const ir::Workload& workload);

// Values from outside that its nodes read, in the order of their first use.
std::vector<ir::ValueId> outside_values(const ir::Workload& workload, const Stretch& stretch);

// Of these values those that are a number, repeated for every row of some value: the zeros that a loop starts from. A
// person makes them where they are read. Each with another value of the stretch that has as many rows.
std::map<ir::ValueId, ir::ValueId> own_fills(const ir::Workload& workload, const std::vector<ir::Type>& types,
                                             const Stretch& stretch);
bool is_fill(const ir::Workload& workload, ir::ValueId id);

// An input of integers, whose name says what they are; other values of a stretch have names of no meaning.
bool keeps_name(const ir::Workload& workload, ir::ValueId id);

// "q", "k" or "v" of a value that attention alone reads, as its queries, keys or values, through ops that move its
// elements, rotate or normalise them; else empty.
std::string attention_part(const ir::Workload& workload, ir::ValueId id);
bool is_attention_part(std::string_view name);

// Index of the last node that reads each value; -1 where nothing does.
std::vector<int> last_readers(const ir::Workload& workload);

// The same among the nodes of a stretch, where any of them reads it. `readers`: last_readers(workload).
int last_reader_in(const ir::Workload& workload, const std::vector<int>& readers, const Stretch& stretch,
                   ir::ValueId id);

}  // namespace bakeoff::emit
