// Blocks are found by names and not by comparing the graph. An importer names values and parameters after the
// modules they come from, so a run of nodes below one path is what the author wrote as one module, and a
// block of the text reads like that module. A search for equal subgraphs would find larger and stranger ones,
// whose names no reader knows.
//
// Two runs are compared as text: with the path taken away and values from outside numbered in the order of
// first use, runs that repeat each other have the same text (text_of). Groups that save most lines are taken
// first, and a node that is in a block is in no other one. So blocks do not nest, which keeps the parser
// simple.

#include "ir/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/texts.h"
#include "ir/op_table.h"

namespace bakeoff::ir {
namespace {

constexpr int kFewest = 4;  // nodes of a block: a shorter one says less than its lines

struct AttrPrinter {
  std::string operator()(int64_t n) const { return n >= kSteps - 1 ? size_text(n) : std::to_string(n); }
  std::string operator()(double d) const { return fmt::format("{}", d); }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(const std::string& s) const { return s; }
  std::string operator()(const std::vector<int64_t>& numbers) const {
    std::string text;
    for (const int64_t n : numbers) text += (text.empty() ? "" : ",") + size_text(n);
    return text;
  }
};

// A run of nodes whose values begin with the prefix of a path.
struct Run {
  std::string path;
  int first = 0, end = 0;
  int size() const { return end - first; }
};

class Finder {
 public:
  explicit Finder(const Workload& workload) : w_(workload) {
    for (const Input& input : w_.inputs) names_.insert(input.name);
    for (const Node& node : w_.nodes) names_.insert(node.output);
  }

  std::vector<TextBlock> blocks() {
    std::map<std::string, std::vector<Run>> alike;
    for (Run& run : runs()) alike[text_of(run)].push_back(std::move(run));
    std::vector<std::vector<Run>> groups;
    for (auto& [text, group] : alike) {
      if (group.size() < 2) continue;
      std::sort(group.begin(), group.end(),
                [](const Run& x, const Run& y) { return x.first < y.first; });  // layers.2 before layers.10
      groups.push_back(std::move(group));
    }
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
      const size_t left = saved(a), right = saved(b);
      if (left != right) return left > right;
      if (a.front().first != b.front().first) return a.front().first < b.front().first;
      return a.front().path.size() < b.front().path.size();
    });
    std::vector<TextBlock> blocks;
    std::vector<bool> taken(w_.nodes.size());
    for (std::vector<Run>& group : groups) {
      std::erase_if(group, [&](const Run& run) {
        return std::find(taken.begin() + run.first, taken.begin() + run.end, true) != taken.begin() + run.end;
      });
      if (group.size() < 2) continue;
      for (const Run& run : group) std::fill(taken.begin() + run.first, taken.begin() + run.end, true);
      blocks.push_back(block(group));
    }
    return blocks;
  }

 private:
  static size_t saved(const std::vector<Run>& group) {
    return (group.size() - 1) * static_cast<size_t>(group.front().size());
  }

  const std::string& output(int node) const { return w_.nodes[static_cast<size_t>(node)].output; }

  bool below(int node, const std::string& prefix) const {
    return output(node).size() > prefix.size() && output(node).starts_with(prefix);
  }

  // For each path of parameters, the runs between the first and the last node that have some of it; longer where the
  // names of neighbours say so.
  std::vector<Run> runs() const {
    std::map<std::pair<size_t, std::string>, std::pair<int, int>> owners;
    for (int n = 0; n < static_cast<int>(w_.nodes.size()); ++n) {
      for (const Slot& slot : w_.nodes[static_cast<size_t>(n)].params) {
        const std::string& name = w_.parameters[static_cast<size_t>(slot.param)].name;
        for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
          owners.try_emplace({dot, name.substr(0, dot)}, n, n).first->second.second = n;
      }
    }
    std::vector<Run> runs;
    for (const auto& [key, range] : owners) {
      const std::string prefix = value_prefix(key.second);
      auto [first, last] = range;
      while (first > 0 && below(first - 1, prefix)) --first;
      while (last + 1 < static_cast<int>(w_.nodes.size()) && below(last + 1, prefix)) ++last;
      for (int n = first, begin = first; n <= last + 1; ++n) {
        if (n <= last && below(n, prefix)) continue;
        if (n - begin >= kFewest) runs.push_back({key.second, begin, n});
        begin = n + 1;
      }
    }
    return runs;
  }

  // The names of what a node reads inside of its run, without the prefix; `outside` says those of other values.
  template <typename Outside>
  std::vector<std::string> read_names(const Run& run, const Node& node, const Outside& outside) const {
    std::vector<std::string> names;
    for (const ValueId id : node.inputs) {
      const int producer = id - static_cast<int>(w_.inputs.size());
      names.push_back(producer >= run.first && producer < run.end ? inner(run, producer) : outside(id));
    }
    return names;
  }

  std::string inner(const Run& run, int node) const {
    return output(node).substr(value_prefix(run.path).size());
  }

  // What is read from outside, in the order of first use.
  std::vector<ValueId> outside_of(const Run& run) const {
    std::vector<ValueId> ids;
    for (int n = run.first; n < run.end; ++n) {
      read_names(run, w_.nodes[static_cast<size_t>(n)], [&](ValueId id) {
        if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
        return std::string();
      });
    }
    return ids;
  }

  // Equal for runs that repeat each other.
  std::string text_of(const Run& run) const {
    const std::vector<ValueId> ids = outside_of(run);
    std::string text;
    for (int n = run.first; n < run.end; ++n) {
      const Node& node = w_.nodes[static_cast<size_t>(n)];
      const auto number = [&](ValueId id) {
        return fmt::format("@{}", std::find(ids.begin(), ids.end(), id) - ids.begin());
      };
      text += node_text(w_, node, inner(run, n), read_names(run, node, number), run.path) + "\n";
    }
    return text;
  }

  TextBlock block(const std::vector<Run>& group) {
    TextBlock made{.name = block_name(group.front().path)};
    for (const Run& run : group) made.calls.push_back({run.path, run.first, run.end});
    std::set<std::string> inside;
    for (int n = group.front().first; n < group.front().end; ++n) inside.insert(inner(group.front(), n));
    std::vector<std::vector<ValueId>> read;
    for (const Run& run : group) read.push_back(outside_of(run));
    std::unordered_map<ValueId, std::string> called;  // values outside of the first run, in the block
    for (size_t i = 0; i < read.front().size(); ++i) {
      const std::string& name = w_.value_name(read.front()[i]);
      const bool same =
          std::all_of(read.begin(), read.end(), [&](const auto& ids) { return ids[i] == read.front()[i]; });
      if (same && !inside.contains(name)) {
        called[read.front()[i]] = name;
        continue;
      }
      made.inputs.push_back(free_name("x", [&](const std::string& x) {
        return inside.contains(x) || names_.contains(x) ||
               std::find(made.inputs.begin(), made.inputs.end(), x) != made.inputs.end();
      }));
      called[read.front()[i]] = made.inputs.back();
      for (size_t c = 0; c < group.size(); ++c) made.calls[c].given.push_back(w_.value_name(read[c][i]));
    }
    for (int n = group.front().first; n < group.front().end; ++n) {
      const Node& node = w_.nodes[static_cast<size_t>(n)];
      const auto names = read_names(group.front(), node, [&](ValueId id) { return called[id]; });
      made.lines.push_back(node_text(w_, node, inner(group.front(), n), names, group.front().path));
    }
    return made;
  }

  // The last word of the path that is no number: "layers" of "encoder.layers.0".
  std::string block_name(const std::string& path) {
    std::string word = "block";
    for (const std::string& part : split(path, ".")) {
      if (part.find_first_not_of("0123456789") != std::string::npos) word = part;
    }
    return free_name(word, [&](const std::string& name) {
      return find_op(name) != nullptr || name == "values" || name == "block" || !blocks_.insert(name).second;
    });
  }

  // `wanted`, or with the first number that makes it another name.
  template <typename Taken>
  static std::string free_name(const std::string& wanted, const Taken& taken) {
    std::string name = wanted;
    for (int n = 2; taken(name); ++n) name = fmt::format("{}_{}", wanted, n);
    return name;
  }

  const Workload& w_;
  std::set<std::string> names_, blocks_;
};

}  // namespace

std::string value_prefix(const std::string& path) {
  std::string prefix = path + "_";
  std::replace(prefix.begin(), prefix.end(), '.', '_');
  return prefix;
}

std::string node_text(const Workload& workload, const Node& node, const std::string& output,
                      const std::vector<std::string>& inputs, const std::string& path) {
  std::vector<std::string> params;
  for (const Slot& slot : node.params) {
    const Parameter& p = workload.parameters[static_cast<size_t>(slot.param)];
    const bool below = !path.empty() && p.name.starts_with(path + ".");
    params.push_back(fmt::format("{}={}{}{}{}", slot.name, below ? p.name.substr(path.size()) : p.name,
                                 to_text(p.shape), p.frozen ? " frozen" : "",
                                 p.init ? fmt::format(" init={}", *p.init) : ""));
  }
  std::string text = fmt::format("{} = {}({}", output, info(node.op).name, join(inputs, ", "));
  if (!params.empty()) text += fmt::format("; {}", join(params, ", "));
  text += ')';
  for (const Attribute& a : node.attributes)
    text += fmt::format(" {}={}", a.name, std::visit(AttrPrinter{}, a.value));
  return text;
}

std::vector<TextBlock> repeated_blocks(const Workload& workload) { return Finder(workload).blocks(); }

}  // namespace bakeoff::ir
