// Names and data flow together show what a person would write as a module. Names alone ("encoder.3.") tell
// which layers belong to it, but not where it ends: a residual sum and a last activation have no
// parameters. Data flow alone finds too many parts with one output.
//
// A candidate is a path whose layers follow one another without a foreign layer between them (spans_of,
// params_in). find_ends() walks on from the last layer and collects the nodes at which one value is still
// needed later, the node's own. The walk stops at the next layer or, once it has an end, at a node that
// reads a new value from outside:
//
//   encoder.3:  linear  gelu  linear  dropout  add  |  layer_norm (encoder.4)
//                             ^       ^        ^       possible ends; add reads x, as the first linear does
//
// Candidates with the same ops are probably repetitions. common_end() gives them the longest end that is
// possible in all; if there is none, each gets its shortest.

#include "emit/stretches.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

namespace bakeoff::emit {
namespace {

bool numeric(std::string_view name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

// Nodes with parameters below one path.
struct Span {
  int first = 0, last = 0;
  int count = 0;
  bool closed = true;  // none of them has a parameter from elsewhere
  bool list = false;   // what is below it has numbers for names: several modules, not one
  // All of them are one op with one weight, right below the path: one layer, called several times.
  bool layer = true;
};

std::map<std::string, Span> spans_of(const ir::Workload& workload) {
  std::map<std::string, Span> spans;
  std::set<std::string> lists;
  const auto name_of = [&](const ir::Slot& slot) -> const std::string& {
    return workload.parameters[static_cast<size_t>(slot.param)].name;
  };
  for (int n = 0; n < static_cast<int>(workload.nodes.size()); ++n) {
    std::map<std::string, size_t> below;  // path -> parameters of this node below it
    const auto& params = workload.nodes[static_cast<size_t>(n)].params;
    for (const ir::Slot& slot : params) {
      const std::string& name = name_of(slot);
      for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
        ++below[name.substr(0, dot)];
      for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
        const size_t next = std::min(name.find('.', dot + 1), name.size());
        if (numeric(std::string_view(name).substr(dot + 1, next - dot - 1)))
          lists.insert(name.substr(0, dot));
      }
    }
    for (const auto& [path, count] : below) {
      Span& span = spans.try_emplace(path, Span{.first = n}).first->second;
      span.last = n;
      ++span.count;
      span.closed = span.closed && count == params.size();
      const ir::Node& first = workload.nodes[static_cast<size_t>(span.first)];
      span.layer = span.layer && first.op == workload.nodes[static_cast<size_t>(n)].op &&
                   params[0] == first.params[0] &&
                   name_of(params[0]).find('.', path.size() + 1) == std::string::npos;
    }
  }
  for (const std::string& path : lists) spans.at(path).list = true;
  return spans;
}

// A path whose nodes follow one another, with the ends that it may have.
struct Candidate {
  std::string path;
  int first = 0, last = 0;  // its first and last node with parameters
  std::set<int> ends = {};  // each behind the node that computes its only value
};

class Search {
 public:
  explicit Search(const ir::Workload& workload) : workload_(workload), readers_(last_readers(workload)) {
    for (const ir::Node& node : workload.nodes)
      with_params_.push_back((with_params_.empty() ? 0 : with_params_.back()) +
                             (node.params.empty() ? 0 : 1));
  }

  std::vector<Stretch> run() {
    std::map<std::vector<ir::Op>, std::vector<Candidate>> alike;
    for (const auto& [path, span] : spans_of(workload_)) {
      if (span.list || span.layer || !span.closed || span.count < 2 ||
          params_in(span.first, span.last) != span.count)
        continue;
      Candidate candidate{path, first_of(span), span.last};
      find_ends(candidate);
      if (candidate.ends.empty()) continue;
      alike[ops(candidate.first, span.last + 1)].push_back(std::move(candidate));
    }
    // Of each range the longest path that is a place in a list, which others of the list may be like; else the shortest.
    std::map<std::pair<int, int>, std::pair<std::string, int>> found;
    const auto rank = [](const std::string& path) {
      const bool place = numeric(std::string_view(path).substr(path.rfind('.') + 1));
      const auto size = static_cast<int>(path.size());
      return place ? -size : size;
    };
    for (const auto& [_, group] : alike) {
      const int more = common_end(group);
      for (const Candidate& c : group) {
        const int end = more < 0 ? *c.ends.begin() : c.last + 1 + more;
        auto& [path, least] = found[{c.first, end}];
        if (!path.empty() && rank(c.path) >= rank(path)) continue;
        path = c.path;
        least = *c.ends.begin();
      }
    }
    std::vector<Stretch> all;
    for (const auto& [range, shortest] : found)
      all.push_back({shortest.first, range.first, range.second, shortest.second});
    std::sort(all.begin(), all.end(), [](const Stretch& a, const Stretch& b) {
      return std::make_tuple(a.end - a.first, a.first) < std::make_tuple(b.end - b.first, b.first);
    });
    return all;
  }

 private:
  // Nodes with parameters from `first` to `last`.
  int params_in(int first, int last) const {
    return with_params_[static_cast<size_t>(last)] -
           (first == 0 ? 0 : with_params_[static_cast<size_t>(first) - 1]);
  }

  std::vector<ir::Op> ops(int first, int end) const {
    std::vector<ir::Op> all;
    for (int n = first; n < end; ++n) all.push_back(workload_.nodes[static_cast<size_t>(n)].op);
    return all;
  }

  // The slices in front of it that nothing else reads belong to it where it takes other slices of the same value itself: a
  // loop over a sequence, which begins with its first place.
  int first_of(const Span& span) const {
    const auto is = [&](int n, std::initializer_list<ir::Op> ops) {
      return std::find(ops.begin(), ops.end(), workload_.nodes[static_cast<size_t>(n)].op) != ops.end();
    };
    const auto input = [&](int n) { return workload_.nodes[static_cast<size_t>(n)].inputs[0]; };
    std::set<ir::ValueId> sliced;
    for (int n = span.first; n <= span.last; ++n)
      if (is(n, {ir::Op::kSlice})) sliced.insert(input(n));
    int first = span.first;
    for (int n = first - 1; n >= 0; --n) {
      const int slice = is(n, {ir::Op::kReshape, ir::Op::kFlatten}) ? n - 1 : n;
      if (slice < 0 || !is(slice, {ir::Op::kSlice}) || !sliced.contains(input(slice))) break;
      if (slice < n && input(n) != workload_.output_of(slice)) break;
      const auto read_behind = [&](int part) {
        return readers_[static_cast<size_t>(workload_.output_of(part))] > span.last;
      };
      if (read_behind(n) || read_behind(slice)) break;
      first = n = slice;
    }
    return first;
  }

  // The nodes after the last one with parameters, up to the next such node, may belong to it.
  void find_ends(Candidate& c) const {
    std::set<ir::ValueId> outside, open;  // values read from outside; own values that are still read later
    const auto add = [&](int n) {
      bool more = false;
      for (const ir::ValueId id : workload_.nodes[static_cast<size_t>(n)].inputs) {
        if (id < workload_.output_of(c.first) && !workload_.is_constant(id))
          more |= outside.insert(id).second;
      }
      open.insert(workload_.output_of(n));
      return more;
    };
    // What joins predictions belongs to no part, nor does the loss.
    const int limit = workload_.join() < 0 ? workload_.model_end() : workload_.join();
    for (int n = c.first; n < limit; ++n) {
      if (n > c.last && !workload_.nodes[static_cast<size_t>(n)].params.empty()) break;
      const bool more = add(n);
      if (n > c.last && more) break;
      std::erase_if(open, [&](ir::ValueId id) { return readers_[static_cast<size_t>(id)] <= n; });
      if (n >= c.last && open.size() == 1 && *open.begin() == workload_.output_of(n)) c.ends.insert(n + 1);
    }
  }

  // The largest number of nodes after the last one with parameters that all of them can end with; -1: none.
  int common_end(const std::vector<Candidate>& group) const {
    const Candidate& model = group.front();
    for (auto end = model.ends.rbegin(); end != model.ends.rend(); ++end) {
      const int more = *end - model.last - 1;
      const std::vector<ir::Op> tail = ops(model.last + 1, *end);
      const bool common = std::all_of(group.begin(), group.end(), [&](const Candidate& c) {
        return c.ends.contains(c.last + 1 + more) && ops(c.last + 1, c.last + 1 + more) == tail;
      });
      if (common) return more;
    }
    return -1;
  }

  const ir::Workload& workload_;
  std::vector<int> readers_;
  std::vector<int> with_params_;  // number of nodes with parameters up to each node
};

}  // namespace

std::vector<Stretch> find_stretches(const ir::Workload& workload) { return Search(workload).run(); }

std::string Stretch::relative(const std::string& below) const {
  if (path.empty()) return below;
  return below.size() <= path.size() ? "" : below.substr(path.size() + 1);
}

std::vector<ir::ValueId> outside_values(const ir::Workload& workload, const Stretch& stretch) {
  std::vector<ir::ValueId> all;
  for (int n = stretch.first; n < stretch.end; ++n) {
    for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs) {
      const bool known = std::find(all.begin(), all.end(), id) != all.end();
      if (id < workload.output_of(stretch.first) && !known) all.push_back(id);
    }
  }
  return all;
}

bool is_fill(const ir::Workload& workload, ir::ValueId id) {
  return !workload.is_input(id) && workload.producer(id).op == ir::Op::kExpand &&
         workload.is_constant(workload.producer(id).inputs[0]);
}

std::map<ir::ValueId, ir::ValueId> own_fills(const ir::Workload& workload, const std::vector<ir::Type>& types,
                                             const Stretch& stretch) {
  std::map<ir::ValueId, ir::ValueId> fills;
  // An axis that holds rows and steps at once looks like one of rows.
  const bool steps = std::any_of(types.begin(), types.end(), [](const ir::Type& type) {
    return std::find(type.shape.begin(), type.shape.end(), ir::kSteps) != type.shape.end();
  });
  if (steps || !stretch.fills) return fills;
  const std::vector<ir::ValueId> outside = outside_values(workload, stretch);
  const auto other = std::find_if(outside.begin(), outside.end(), [&](ir::ValueId id) {
    const ir::Type& type = types[static_cast<size_t>(id)];
    return type.dtype == ir::DType::kF32 && !type.shape.empty() && type.shape[0] == ir::kBatch &&
           !is_fill(workload, id);
  });
  for (const ir::ValueId id : outside)
    if (other != outside.end() && is_fill(workload, id)) fills[id] = *other;
  return fills;
}

bool keeps_name(const ir::Workload& workload, ir::ValueId id) {
  return workload.is_input(id) && workload.inputs[static_cast<size_t>(id)].type.dtype != ir::DType::kF32;
}

namespace {

// `left`: how many ops may stand in between.
std::string part_within(const ir::Workload& workload, ir::ValueId id, int left) {
  static const std::set<ir::Op> kMoves = {ir::Op::kReshape, ir::Op::kFlatten,  ir::Op::kTranspose,
                                          ir::Op::kSlice,   ir::Op::kConcat,   ir::Op::kExpand,
                                          ir::Op::kAdd,     ir::Op::kMul,      ir::Op::kNeg,
                                          ir::Op::kRmsNorm, ir::Op::kLayerNorm};
  std::string part;
  for (const int n : ir::consumers(workload, id)) {
    const ir::Node& node = workload.nodes[static_cast<size_t>(n)];
    std::string one;
    if (node.op == ir::Op::kAttention && std::count(node.inputs.begin(), node.inputs.end(), id) == 1)
      one = std::array{"q", "k", "v", ""}[static_cast<size_t>(
          std::find(node.inputs.begin(), node.inputs.end(), id) - node.inputs.begin())];
    else if (kMoves.contains(node.op) && left > 0)
      one = part_within(workload, workload.output_of(n), left - 1);
    if (one.empty() || (!part.empty() && part != one)) return "";
    part = one;
  }
  return part;
}

}  // namespace

std::string attention_part(const ir::Workload& workload, ir::ValueId id) {
  return workload.is_input(id) || workload.producer(id).op == ir::Op::kAttention
             ? ""
             : part_within(workload, id, 10);
}

bool is_attention_part(std::string_view name) { return name == "q" || name == "k" || name == "v"; }

std::vector<int> last_readers(const ir::Workload& workload) {
  std::vector<int> last(static_cast<size_t>(workload.value_count()), -1);
  for (int n = 0; n < static_cast<int>(workload.nodes.size()); ++n) {
    for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs)
      last[static_cast<size_t>(id)] = n;
  }
  return last;
}

int last_reader_in(const ir::Workload& workload, const std::vector<int>& readers, const Stretch& stretch,
                   ir::ValueId id) {
  const int last = readers[static_cast<size_t>(id)];
  for (int n = std::min(stretch.end - 1, last); last >= stretch.end && n >= stretch.first; --n) {
    const auto& inputs = workload.nodes[static_cast<size_t>(n)].inputs;
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end()) return n;
  }
  return last;
}

}  // namespace bakeoff::emit
