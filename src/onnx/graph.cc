#include "onnx/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/texts.h"

namespace bakeoff::onnx {

std::string ir_word(const std::string& text) {
  std::string word;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (plain || c == '.')
      word += c;
    else if (!word.empty() && word.back() != '_')
      word += '_';
  }
  while (!word.empty() && (word.back() == '_' || word.back() == '.')) word.pop_back();
  while (!word.empty() && word.front() == '.') word.erase(0, 1);
  if (word.empty()) return "h";
  const bool digit = word.front() >= '0' && word.front() <= '9';
  return digit ? "h" + word : word;
}

std::string numbers_text(const Ints& numbers) {
  std::string text;
  for (const int64_t n : numbers) text += (text.empty() ? "" : ",") + (n == kBatch ? "N" : std::to_string(n));
  return text;
}

std::string real_text(double number) { return fmt::format("{}", number); }

std::string Graph::unique(const std::string& wanted) {
  std::string name = wanted;
  int& count = counters_[wanted];
  while (name == "loss" || !names_.insert(name).second) name = fmt::format("{}_{}", wanted, ++count + 1);
  return name;
}

void Graph::input(const std::string& name, Shape shape) {
  names_.insert(name);
  shapes_[name] = std::move(shape);
}

std::string Graph::node(const std::string& op, std::vector<std::string> inputs, Shape shape,
                        Attributes attributes, Params params) {
  const std::string output = unique(base);
  shapes_[output] = shape;
  by_output_[output] = nodes_.size();
  nodes_.push_back({op, output, std::move(inputs), std::move(params), std::move(attributes), std::move(shape),
                    source, where});
  return output;
}

bool Graph::rename(const std::string& value, const std::string& name) {
  const bool taken = shapes_.contains(name) && producer(name) == nullptr;  // by an input
  if (value == name || name == "loss" || taken || producer(value) == nullptr) return false;
  const auto renamed = [&](std::string& one) { one = one == value ? name : one == name ? value : one; };
  for (size_t n = 0; n < nodes_.size(); ++n) {
    renamed(nodes_[n].output);
    std::for_each(nodes_[n].inputs.begin(), nodes_[n].inputs.end(), renamed);
    by_output_[nodes_[n].output] = n;
  }
  std::swap(shapes_[value], shapes_[name]);
  return true;
}

GraphNode* Graph::producer(const std::string& value) {
  const auto found = by_output_.find(value);
  return found == by_output_.end() ? nullptr : &nodes_[found->second];
}

std::string Graph::reshape(const std::string& value, const Shape& wanted) {
  if (shape(value) == wanted) return value;
  const GraphNode* made = producer(value);
  if (made != nullptr && (made->op == "reshape" || made->op == "flatten"))
    return reshape(made->inputs[0], wanted);
  if (wanted.size() == 2 && wanted[0] == kBatch && shape(value)[0] == kBatch && shape(value).size() > 1)
    return node("flatten", {value}, wanted);
  return node("reshape", {value}, wanted, {{"shape", numbers_text(wanted)}});
}

std::string Graph::transpose(const std::string& value, const Ints& perm) {
  if (std::is_sorted(perm.begin(), perm.end())) return value;
  const GraphNode* made = producer(value);
  if (made != nullptr && made->op == "transpose") {
    Ints first, both;
    for (const char* at = made->attributes[0].second.c_str(); *at != '\0';) {
      char* end = nullptr;
      first.push_back(std::strtoll(at, &end, 10));
      at = *end == ',' ? end + 1 : end;
    }
    for (const int64_t axis : perm) both.push_back(first[static_cast<size_t>(axis)]);
    return transpose(made->inputs[0], both);
  }
  Shape moved;
  for (const int64_t axis : perm) moved.push_back(shape(value)[static_cast<size_t>(axis)]);
  return node("transpose", {value}, moved, {{"perm", numbers_text(perm)}});
}

std::string Graph::parameter(const std::string& wanted, const ArrayPtr& array, bool frozen,
                             const std::string& origin, bool share) {
  share = share && array->has_origins();
  if (share) {
    const auto [begin, end] = by_origin_.equal_range(array->origin(0));
    for (auto at = begin; at != end; ++at) {
      GraphParameter& known = parameters_.at(at->second);
      if (known.array != array && *known.array != *array) continue;
      known.frozen = known.frozen && frozen;
      return known.name;
    }
  }
  const std::string word = ir_word(wanted);
  std::string name = word;
  for (int count = 2; !lower_names_.insert(lowered(name)).second; ++count)
    name = fmt::format("{}_{}", word, count);
  parameters_[name] = {name, array, frozen, origin, !share && array->has_origins()};
  if (share) by_origin_.emplace(array->origin(0), name);
  return name;
}

std::vector<const GraphNode*> Graph::live(const std::string& result) const {
  std::set<std::string> wanted = {result};
  std::vector<const GraphNode*> kept;
  for (size_t n = nodes_.size(); n-- > 0;) {
    if (!wanted.contains(nodes_[n].output)) continue;
    wanted.insert(nodes_[n].inputs.begin(), nodes_[n].inputs.end());
    kept.push_back(&nodes_[n]);
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

std::string Graph::line(const GraphNode& one) const {
  std::vector<std::string> slots;
  for (const auto& [slot, name] : one.params) {
    const GraphParameter& p = parameters_.at(name);
    slots.push_back(
        fmt::format("{}={}[{}]{}", slot, name, numbers_text(p.array->shape), p.frozen ? " frozen" : ""));
  }
  std::string text = fmt::format("{} = {}({}", one.output, one.op, join(one.inputs, ", "));
  if (!slots.empty()) text += fmt::format("; {}", join(slots, ", "));
  text += ")";
  for (const auto& [name, value] : one.attributes) text += fmt::format(" {}={}", name, value);
  return text;
}

}  // namespace bakeoff::onnx
