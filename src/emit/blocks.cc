// Repeated parts are found in printed text, not in the graph. Stretches with the same ops are printed one
// by one. Those whose statements differ in numbers only become one class, with parameters in place of the
// numbers. The text decides, so no rule per op or per framework is needed: if two parts print alike, one
// class can print both. This is anti-unification (Plotkin, A note on inductive generalization, 1970) of
// lists of statements, restricted to numbers: the most special text of which all members are instances.
//
//   nn.Conv2d(16, 16, kernel_size=3, stride=1)        nn.Conv2d(16, out_channels, kernel_size=3, stride=stride)
//   nn.Conv2d(16, 32, kernel_size=3, stride=2)   ->   made as Block(16) and Block(32, stride=2)
//
// pieces_of() cuts a text into numbers, which the paddings "SAME" and "VALID" count as, and the text between them.
// skeleton() is the text without numbers; members with equal skeletons form a group. merge() walks through all members
// side by side and calls back for each number that is not the same in all. A Varying is the column of such values, one per member;
// places with equal columns share a parameter. A group that would need more than 8 parameters is divided
// into groups of equal texts.
//
// Short stretches come first: a long stretch is then printed with calls of the families inside it.

#include "emit/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/texts.h"
#include "emit/namer.h"

namespace bakeoff::emit {
namespace {

constexpr size_t kMostParameters = 8;

// Options of layers whose value is left out where it is this.
const std::map<std::string, std::string> kFallbacks = {{"stride", "1"},  {"strides", "1"},
                                                       {"padding", "0"}, {"dilation", "1"},
                                                       {"groups", "1"},  {"output_padding", "0"}};

}  // namespace

void leave_out_fallbacks(std::vector<std::string>& arguments) {
  std::erase_if(arguments, [](const std::string& argument) {
    const size_t equals = argument.find('=');
    const auto found = kFallbacks.find(argument.substr(0, equals));
    return equals != std::string::npos && found != kFallbacks.end() &&
           argument.substr(equals + 1) == found->second;
  });
}

void leave_out_fallbacks(std::string& options) {
  for (const auto& [name, value] : kFallbacks) {
    const std::string option = fmt::format(".{}({})", name, value);
    if (const size_t at = options.find(option); at != std::string::npos) options.erase(at, option.size());
  }
}

namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// A piece of a text: a number, or what is between numbers.
struct Piece {
  std::string text;
  bool number = false;
  std::string option = {};  // of a number: the name of the option whose value it is; empty: it has none
};

// The name in front of an "=" that a number at `at` belongs to: of "stride=(2, 2)" stride for both.
std::string option_of(const std::string& text, size_t at) {
  size_t i = at;
  while (i > 0 &&
         (is_digit(text[i - 1]) || std::string_view("([, )-").find(text[i - 1]) != std::string_view::npos))
    --i;
  if (i == 0) return "";
  const bool method = text[i - 1] != '=';  // C++: .stride(2)
  if (method && text[i] != '(') return "";
  if (!method) --i;
  size_t begin = i;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  const std::string name = text.substr(begin, i - begin);
  if (method && (begin == 0 || text[begin - 1] != '.' || !kFallbacks.contains(name))) return "";
  return name;
}

std::vector<Piece> pieces_of(const std::string& text) {
  std::vector<Piece> all;
  std::string plain;
  char quote = 0;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    size_t end = i;
    for (const std::string_view word : {"\"SAME\"", "\"VALID\""})
      if (quote == 0 && text.compare(i, word.size(), word) == 0) end = i + word.size();
    if (end == i && (quote != 0 || c == '"' || c == '\'')) {
      quote = quote == 0 ? c : c == quote ? char{0} : quote;
      plain += c;
      ++i;
      continue;
    }
    if (end == i && (!is_digit(c) || (i > 0 && (is_word(text[i - 1]) || text[i - 1] == '.')))) {
      plain += c;
      ++i;
      continue;
    }
    while (
        is_digit(c) && end < text.size() &&
        (is_word(text[end]) || text[end] == '.' || (text[end] == '-' && std::tolower(text[end - 1]) == 'e')))
      ++end;
    all.push_back({plain});
    plain.clear();
    all.push_back({text.substr(i, end - i), true, option_of(text, i)});
    i = end;
  }
  all.push_back({plain});
  return all;
}

std::vector<std::string> strings_of(const Statement& s) {
  std::vector<std::string> all = {s.head};
  all.insert(all.end(), s.arguments.begin(), s.arguments.end());
  all.push_back(s.tail);
  return all;
}

std::vector<Statement> statements_of(const Printed& printed) {
  std::vector<Statement> all = printed.layers.statements();
  all.insert(all.end(), printed.body.statements().begin(), printed.body.statements().end());
  return all;
}

// A key that texts of one family share: all of the text, without its numbers unless `numbers`.
std::string skeleton(const Printed& printed, bool numbers) {
  std::string key = fmt::format("{} {}\n", join(printed.formals, ","), printed.layers.statements().size());
  for (const Statement& s : statements_of(printed)) {
    key += fmt::format("{} {}", s.level, s.call);
    for (const std::string& text : strings_of(s)) {
      for (const Piece& piece : pieces_of(text)) key += piece.number && !numbers ? "\1" : piece.text;
      key += '\2';
    }
    key += '\n';
  }
  return key;
}

// A number at one place of all texts of a family.
struct Varying {
  std::string option;
  std::vector<std::string> values;  // by member
  auto operator<=>(const Varying&) const = default;

  // What the option means where it is not said, if that is the value of a member.
  std::string fallback() const {
    const auto found = kFallbacks.find(option);
    if (found == kFallbacks.end()) return "";
    for (const std::string& meant : {found->second, std::string("\"VALID\"")})
      if (std::find(values.begin(), values.end(), meant) != values.end()) return meant;
    return "";
  }
  int rank() const { return option.empty() ? 0 : fallback().empty() ? 1 : 2; }
};

// "x = conv2d(x, w, stride=2)", a function of a JAX script, where stride=1 may be left out.
bool calls_convolution(const Statement& s) {
  const auto strided = [](const std::string& argument) { return argument.starts_with("stride="); };
  const auto named = [&](const char* end) { return s.head.ends_with(end); };
  return s.call && (named(" conv1d") || named(" conv2d") || named(" conv3d")) &&
         std::ranges::any_of(s.arguments, strided);
}

// The statements of all members side by side: calls `at` for each number that is not the same in all of them,
// and puts what it gives in its place.
CodeWriter merge(const std::vector<const std::vector<Statement>*>& members, bool layers,
                 const std::function<std::string(const Varying&)>& at) {
  CodeWriter out;
  const auto merged = [&](const std::vector<std::string>& texts) {
    std::vector<std::vector<Piece>> all;
    for (const std::string& text : texts) all.push_back(pieces_of(text));
    std::string result;
    for (size_t p = 0; p < all[0].size(); ++p) {
      Varying varying{all[0][p].option, {}};
      for (const auto& pieces : all) varying.values.push_back(pieces[p].text);
      const bool same = std::all_of(varying.values.begin(), varying.values.end(),
                                    [&](const std::string& v) { return v == varying.values[0]; });
      result += same ? all[0][p].text : at(varying);
    }
    return result;
  };
  for (size_t i = 0; i < members[0]->size(); ++i) {
    const auto texts = [&](size_t which) {
      std::vector<std::string> all;
      for (const auto* member : members) all.push_back(strings_of((*member)[i])[which]);
      return merged(all);
    };
    Statement s = (*members[0])[i];
    s.head = texts(0);
    for (size_t a = 0; a < s.arguments.size(); ++a) s.arguments[a] = texts(a + 1);
    s.tail = texts(s.arguments.size() + 1);
    if (layers || calls_convolution(s)) leave_out_fallbacks(s.arguments);
    if (layers && !s.call) leave_out_fallbacks(s.head);
    out.statement(s);
  }
  return out;
}

// "encoder.layers" for encoder.layers.3; else "".
std::string list_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos) return "";
  return std::all_of(path.begin() + static_cast<std::ptrdiff_t>(dot) + 1, path.end(), is_digit)
             ? path.substr(0, dot)
             : "";
}

std::string without_number(std::string name) {
  while (!name.empty() && (is_digit(name.back()) || name.back() == '_')) name.pop_back();
  return name;
}

// "resnet" for resnets, "patch" for patches; "" for what is no plural.
std::string singular(const std::string& name) {
  if (name.size() < 4 || !name.ends_with("s") || name.ends_with("ss") || name.ends_with("us")) return "";
  if (name.ends_with("ies")) return name.substr(0, name.size() - 3) + "y";
  for (const char* end : {"ches", "shes", "sses", "xes"})
    if (name.ends_with(end)) return name.substr(0, name.size() - 2);
  return name.substr(0, name.size() - 1);
}

// What the names of several classes have in common: "Attn" of SelfAttn and CrossAttn; else "Block".
std::string common_name(const std::vector<std::string>& names) {
  const auto words = [](const std::string& name) {
    std::vector<std::string> all;
    for (const char c : name) {
      if (all.empty() || (c >= 'A' && c <= 'Z')) all.emplace_back();
      all.back() += c;
    }
    return all;
  };
  const auto in_all = [&](const auto& holds) { return std::all_of(names.begin(), names.end(), holds); };
  std::string end;
  const std::vector<std::string> first = words(names[0]);
  for (size_t i = first.size(); i-- > 0;) {
    const std::string longer = first[i] + end;
    if (!in_all([&](const std::string& name) { return name.ends_with(longer); })) break;
    end = longer;
  }
  if (!end.empty()) return end;
  for (const std::string& word : first) {
    const bool common = in_all([&](const std::string& name) {
      const std::vector<std::string> all = words(name);
      return std::find(all.begin(), all.end(), word) != all.end();
    });
    if (common && word.size() > 2) return word;
  }
  return "Block";
}

// "EncoderLayer" for encoder.layers.3, "Attention" for encoder.3.attention, "SelfAttention" for attention.self,
// "Resnet" for resnets.3, "EncoderBlock" for encoder.3.
std::string class_name(const std::string& path) {
  std::vector<std::string> names;
  bool numbered = false;  // the last part is a place in a list
  for (const std::string& part : split(path, ".")) {
    const std::string name = without_number(part);
    numbered = name.empty();
    if (!name.empty()) names.push_back(name);
  }
  if (names.empty()) return "Block";
  static const std::set<std::string> kLists = {"layers", "blocks", "stages", "cells", "units", "modules"};
  static const std::set<std::string> kItems = {"layer", "block", "stage", "cell", "unit"};
  std::string last = names.back();
  const std::string owner = names.size() > 1 ? names[names.size() - 2] : "";
  if (!numbered) return camel_case(last) + (last == "self" ? camel_case(owner) : "");
  if (kLists.contains(last)) last.pop_back();
  if (!kItems.contains(last)) {
    const std::string one = singular(last);
    return one.empty() ? camel_case(last) + "Block" : camel_case(one);
  }
  if (!owner.empty() && !kLists.contains(owner) && !kItems.contains(owner))
    return camel_case(owner) + camel_case(last);
  // layer1.0
  return names.back() == "layer" ? "Block" : camel_case(last);
}

// The names right below a path of those parameters that a stretch reads.
std::set<std::string> children(const ir::Workload& workload, const Stretch& stretch) {
  std::set<std::string> all;
  for (int n = stretch.first; n < stretch.end; ++n) {
    for (const ir::Slot& slot : workload.nodes[static_cast<size_t>(n)].params) {
      const std::string& name = workload.parameters[static_cast<size_t>(slot.param)].name;
      all.insert(split(name.substr(stretch.path.size() + 1), ".")[0]);
    }
  }
  return all;
}

// Enough for a class or function of its own.
bool large(const Stretch& stretch) { return stretch.end - stretch.first >= 3; }

class Planner {
 public:
  Planner(const ir::Workload& workload, const std::vector<ir::Type>& types, Blocks::Style style)
      : workload_(workload), types_(types), style_(std::move(style)) {}

  // Members of one family, if that saves lines.
  struct Member {
    Stretch stretch;
    Printed printed;
  };

  static bool worthwhile(const std::vector<Member>& members) {
    return members.size() >= 2 && large(members[0].stretch);
  }

  // The family with its blocks; nullopt if it would have too many parameters. merge() runs twice: first to
  // collect what varies, then, with names chosen, to write them.
  std::optional<Family> family(const std::vector<Member>& members, std::vector<Block>& blocks) {
    std::vector<const std::vector<Statement>*> layers, bodies;
    for (const Member& member : members) {
      layers.push_back(&member.printed.layers.statements());
      bodies.push_back(&member.printed.body.statements());
    }
    std::vector<Varying> varying;
    const auto note = [&](const Varying& one) {
      if (std::find(varying.begin(), varying.end(), one) == varying.end()) varying.push_back(one);
      return std::string();
    };
    merge(layers, true, note);
    merge(bodies, false, note);
    if (varying.size() > kMostParameters) return std::nullopt;
    // Those with a fallback come last, as Python wants them, and before them those with a keyword.
    std::stable_sort(varying.begin(), varying.end(),
                     [](const Varying& a, const Varying& b) { return a.rank() < b.rank(); });

    Family family{.name = "", .text = members[0].printed};
    std::map<Varying, Parameter*> by_varying;
    family.parameters = parameters_of(members, varying);
    for (size_t i = 0; i < varying.size(); ++i) by_varying[varying[i]] = &family.parameters[i];
    family.text.layers = merge(layers, true, [&](const Varying& v) { return by_varying.at(v)->name; });
    family.text.body = merge(bodies, false, [&](const Varying& v) {
      by_varying.at(v)->in_body = true;
      return style_.in_body + by_varying.at(v)->name;
    });
    for (size_t m = 0; m < members.size(); ++m) {
      const Printed& printed = members[m].printed;
      blocks.push_back({.stretch = members[m].stretch, .inputs = printed.inputs, .shared = printed.shared});
      for (const Varying& v : varying) blocks.back().values.push_back(v.values[m]);
    }
    return family;
  }

  // A name that no family has yet. What has children that another family of that name lacks is called after
  // the first of them.
  std::string name_of(const std::vector<Member>& members) {
    std::vector<std::string> names;
    for (const Member& member : members) names.push_back(class_name(member.stretch.path));
    std::string wish = common_name(names);
    const std::set<std::string> own = children(workload_, members[0].stretch);
    if (const auto other = children_.find(wish); other != children_.end()) {
      for (const std::string& child : own) {
        if (!other->second.contains(child) && !without_number(child).empty()) {
          wish = camel_case(without_number(child)) + wish;
          break;
        }
      }
    }
    children_.try_emplace(wish, own);
    const auto styled = [&](const std::string& name) { return style_.functions ? snake_case(name) : name; };
    const std::string key = fmt::format("family {}", families_++);
    const auto taken = [&](const std::string& name) {
      Namer attempt = style_.names;
      return attempt.name(key, styled(name)) != styled(name);
    };
    if (taken(wish) && !wish.ends_with("Block")) wish += "Block";
    std::string name = wish;
    for (int n = 2; taken(name); ++n) name = wish + std::to_string(n);
    return style_.names.name(key, styled(name));
  }

 private:
  int64_t channels(ir::ValueId id) const {
    const ir::Shape& shape = types_[static_cast<size_t>(id)].shape;
    return shape.size() > 3 ? shape[1] : shape.empty() ? 0 : shape.back();
  }

  // Sizes of what comes in and goes out have names of their own; other sizes are widths.
  std::vector<Parameter> parameters_of(const std::vector<Member>& members,
                                       const std::vector<Varying>& varying) const {
    std::vector<std::string> in, out;
    for (const Member& m : members) {
      in.push_back(m.printed.inputs.empty() ? "" : std::to_string(channels(m.printed.inputs[0])));
      out.push_back(std::to_string(channels(workload_.output_of(m.stretch.end - 1))));
    }
    const auto size = [&](const Varying& v) {
      if (v.values == in) return in == out ? "channels" : "in_channels";
      return v.values == out ? "out_channels" : "width";
    };
    Namer names(std::set<std::string>(members[0].printed.formals.begin(), members[0].printed.formals.end()));
    for (const std::string& child : children(workload_, members[0].stretch)) names.reserve(child);
    std::vector<Parameter> all;
    for (const Varying& v : varying) {
      const std::string wish = v.option.empty() ? size(v) : v.option == "p" ? "dropout" : v.option;
      all.push_back({.name = names.name(fmt::format("{} {}", v.option, join(v.values, " ")), wish),
                     .keyword = !v.option.empty(),
                     .fallback = v.fallback(),
                     .real = std::any_of(v.values.begin(), v.values.end(), [](const std::string& value) {
                       return value.find_first_of(".e") != std::string::npos;
                     })});
    }
    return all;
  }

  const ir::Workload& workload_;
  const std::vector<ir::Type>& types_;
  Blocks::Style style_;
  std::map<std::string, std::set<std::string>> children_;  // by the name of a family's class
  int families_ = 0;
};

// Stretches with the same ops, the shorter ones first.
std::map<std::pair<size_t, std::vector<ir::Op>>, std::vector<Stretch>> alike_in(
    const ir::Workload& workload, const std::vector<Stretch>& all) {
  std::map<std::pair<size_t, std::vector<ir::Op>>, std::vector<Stretch>> alike;
  for (const Stretch& stretch : all) {
    std::vector<ir::Op> ops;
    for (int n = stretch.first; n < stretch.end; ++n)
      ops.push_back(workload.nodes[static_cast<size_t>(n)].op);
    const size_t size = ops.size();
    alike[{size, std::move(ops)}].push_back(stretch);
  }
  return alike;
}

// One that begins with zeros and one that is handed its first state are one class, which takes it.
void make_fills_alike(const ir::Workload& workload, const std::vector<ir::Type>& types,
                      std::vector<Stretch>& stretches) {
  // For each stretch: of each value that a node reads, whether it is such a fill.
  std::set<std::vector<bool>> reads;
  for (const Stretch& stretch : stretches) {
    std::vector<bool> own;
    const auto fills = own_fills(workload, types, stretch);
    for (int n = stretch.first; n < stretch.end; ++n)
      for (const ir::ValueId id : workload.nodes[static_cast<size_t>(n)].inputs)
        own.push_back(fills.contains(id));
    reads.insert(own);
  }
  for (Stretch& stretch : stretches) stretch.fills = reads.size() == 1;
}

}  // namespace

Blocks Blocks::plan(const ir::Workload& workload, const std::vector<ir::Type>& types, Style style,
                    const Print& print) {
  Blocks blocks;
  blocks.readers_ = last_readers(workload);
  blocks.inputs_ = static_cast<int>(workload.inputs.size());
  Planner planner(workload, types, std::move(style));
  const auto add = [&](const std::vector<Planner::Member>& members) {
    std::vector<Block> made;
    std::optional<Family> family = planner.family(members, made);
    if (!family) return false;
    family->name = planner.name_of(members);
    for (Block& block : made) {
      block.family = blocks.families_.size();
      const int first = block.stretch.first;
      blocks.blocks_[first].push_back(std::move(block));
    }
    blocks.families_.push_back(std::move(*family));
    return true;
  };
  std::vector<Stretch> all = find_stretches(workload);
  for (Stretch& stretch : all) stretch.fills = true;
  for (auto& [_, stretches] : alike_in(workload, all)) {
    if (stretches.size() < 2) continue;
    make_fills_alike(workload, types, stretches);
    std::map<std::string, std::vector<Planner::Member>> groups;
    for (const Stretch& stretch : stretches) {
      std::optional<Printed> printed = print(stretch, blocks);
      if (!printed) continue;
      const std::string key = skeleton(*printed, false);
      groups[key].push_back({stretch, std::move(*printed)});
    }
    for (const auto& [key, members] : groups) {
      if (!Planner::worthwhile(members) || add(members)) continue;
      std::map<std::string, std::vector<Planner::Member>> equal;
      for (const Planner::Member& member : members) equal[skeleton(member.printed, true)].push_back(member);
      for (const auto& [text, same] : equal) {
        if (Planner::worthwhile(same)) add(same);
      }
    }
  }
  const auto add_alone = [&](const Stretch& stretch) {
    if (!blocks.apart(stretch)) return;
    if (std::optional<Printed> printed = print(stretch, blocks)) add({{stretch, std::move(*printed)}});
  };
  // One of its kind in a list of blocks is a block, too.
  for (const Stretch& stretch : all) {
    if (blocks.in_list_of_blocks(stretch)) add_alone(stretch);
  }
  // What a model has once would be modules in dicts within dicts.
  for (Stretch stretch : all) {
    stretch.end = stretch.least;
    if (large(stretch)) add_alone(stretch);
  }
  return blocks;
}

bool Blocks::apart(const Stretch& stretch) const {
  for (const auto& [_, blocks] : blocks_) {
    for (const Block& block : blocks) {
      const Stretch& other = block.stretch;
      const bool within = stretch.first <= other.first && other.end <= stretch.end &&
                          stretch.end - stretch.first > other.end - other.first;
      if (other.first < stretch.end && stretch.first < other.end && !within) return false;
    }
  }
  return true;
}

bool Blocks::in_list_of_blocks(const Stretch& stretch) const {
  const std::string list = list_of(stretch.path);
  for (const auto& [_, blocks] : blocks_) {
    for (const Block& block : blocks) {
      if (!list.empty() && list_of(block.stretch.path) == list) return true;
    }
  }
  return false;
}

const Block* Blocks::at(int node, const Stretch& within) const {
  const auto found = blocks_.find(node);
  if (found == blocks_.end()) return nullptr;
  const Block* longest = nullptr;
  for (const Block& block : found->second) {
    const Stretch& s = block.stretch;
    const bool itself = !within.path.empty() && s.first == within.first && s.end == within.end;
    if (s.end <= within.end && !itself) longest = &block;
  }
  return longest;
}

bool Blocks::reads(const ir::Workload& workload, const Stretch& stretch, ir::ValueId id) const {
  const auto holds = [id](const std::vector<ir::ValueId>& all) {
    return std::find(all.begin(), all.end(), id) != all.end();
  };
  bool read = holds(workload.outputs());
  for (int n = stretch.first; n < stretch.end && !read; ++n) {
    const Block* const block = at(n, stretch);
    read = holds(block == nullptr ? workload.nodes[static_cast<size_t>(n)].inputs : block->inputs);
    if (block != nullptr) n = block->stretch.end - 1;
  }
  return read;
}

std::vector<std::string> Family::declared() const {
  std::vector<std::string> all;
  for (const Parameter& p : parameters)
    all.push_back(p.fallback.empty() ? p.name : p.name + "=" + p.fallback);
  return all;
}

std::vector<std::string> Blocks::arguments(const Block& block, bool by_name) const {
  std::vector<std::string> all;
  const std::vector<Parameter>& parameters = family(block).parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    if (!p.fallback.empty() && block.values[i] == p.fallback) continue;
    all.push_back(p.keyword || by_name ? p.name + "=" + block.values[i] : block.values[i]);
  }
  return all;
}

std::vector<const Block*> Blocks::chain_from(const Block& block, const Stretch& within) const {
  std::vector<const Block*> chain = {&block};
  while (const Block* next = at(chain.back()->stretch.end, within)) {
    const Block& last = *chain.back();
    const ir::ValueId given = inputs_ + last.stretch.end - 1;
    const bool same = next->inputs.size() == last.inputs.size() && next->shared == last.shared &&
                      !next->inputs.empty() && next->inputs[0] == given &&
                      std::equal(next->inputs.begin() + 1, next->inputs.end(), last.inputs.begin() + 1);
    if (!same || readers_[static_cast<size_t>(given)] >= next->stretch.end) break;
    chain.push_back(next);
  }
  return chain;
}

}  // namespace bakeoff::emit
