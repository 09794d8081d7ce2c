// A recursive descent parser without a lexer. Names, numbers and attributes are made of the same letters
// ("fc1.weight", "1e-5", "half_pixel"), so word() reads letters and the caller says what they are. Line
// breaks count in two places only: attributes and values end with their line.
//
// A block is a macro. Its text is kept as a position, and every call reads it anew with the path of the call
// before its names. So a workload has no blocks, and nothing behind the parser knows them; dump() finds the
// repeats again (ir/repeats.h).
//
// The verifier knows no lines. Its messages begin with the node's text, by which place_of() finds the line.

#include "ir/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/nearest.h"
#include "base/texts.h"
#include "ir/op_table.h"
#include "ir/repeats.h"
#include "ir/verify.h"

namespace bakeoff::ir {
namespace {

constexpr const char* kExample =
    "docs/ir.md describes this language, and `bakeoff show mlp_small` shows a workload in it";

constexpr int64_t kMostValues = 1 << 20;
constexpr size_t kMostNodes = 1 << 17;  // ten times the largest network: blocks make many of few lines

// Reads the text form. Every error carries "file:line".
class Parser {
 public:
  Parser(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<Workload> workload() {
    CHECK_OK(keyword("workload"));
    TRY(workload_.name, word("a name for the workload"));
    CHECK_OK(punctuation('('));
    if (!eat(')')) {
      do CHECK_OK(input());
      while (eat(','));
      CHECK_OK(punctuation(')'));
    }
    CHECK_OK(punctuation('{'));
    while (!eat('}')) CHECK_OK(at_keyword("values") ? values() : at_keyword("block") ? block() : node());
    skip_blank();
    if (at_ < text_.size()) return error("text after the closing '}'");
    for (const auto& [name, block] : blocks_) {
      line_ = block.line;
      if (!block.called) return error(fmt::format("the block '{}' is never called", name));
    }
    const auto types = infer(workload_);
    if (!types) {
      const Error& e = types.error();
      return Error{.message = e.message, .where = place_of(e.message), .remedy = e.remedy};
    }
    return workload_;
  }

 private:
  struct Block {
    std::vector<std::string> inputs = {};
    size_t at = 0;                // where its nodes begin
    int line = 0, body_line = 0;  // of its name, of its first node
    bool called = false;
  };
  struct Call {
    std::string path, prefix;
    ValueId first = 0;  // of its values
    std::map<std::string, ValueId> given = {};
  };

  Error error(std::string message, std::string remedy = kExample) const {
    return {.message = std::move(message),
            .where = fmt::format("{}:{}", file_, line_),
            .remedy = std::move(remedy)};
  }

  // "file:line" of the node that a verifier's message starts with.
  std::string place_of(const std::string& message) const {
    for (size_t n = 0; n < workload_.nodes.size(); ++n) {
      if (message.starts_with(workload_.nodes[n].output + " = "))
        return fmt::format("{}:{}", file_, lines_[n]);
    }
    return std::string(file_);
  }

  void skip_blank() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (at_ >= text_.size()) return;
      if (text_[at_] == '\n')
        ++line_;
      else if (text_[at_] != ' ' && text_[at_] != '\t' && text_[at_] != '\r')
        return;
    }
  }

  bool eat(char c) {
    skip_blank();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool at(char c) {
    skip_blank();
    return at_ < text_.size() && text_[at_] == c;
  }

  Status punctuation(char c) {
    if (eat(c)) return Done{};
    if (at_ >= text_.size()) return error(fmt::format("expected '{}', got the end of the text", c));
    return error(fmt::format("expected '{}', got '{}'", c, text_[at_]));
  }

  // Letters, digits and "_.-+": names, numbers and words alike.
  Result<std::string> word(std::string_view what) {
    skip_blank();
    const size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
                                  std::string_view("_.-+").find(text_[at_]) != std::string_view::npos)) {
      ++at_;
    }
    if (at_ == begin) return error(fmt::format("expected {}", what));
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool eat_word(std::string_view wanted) {
    skip_blank();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(wanted)) return false;
    if (rest.size() > wanted.size() &&
        (std::isalnum(static_cast<unsigned char>(rest[wanted.size()])) != 0 || rest[wanted.size()] == '_'))
      return false;
    at_ += wanted.size();
    return true;
  }

  Status keyword(std::string_view wanted) {
    TRY(const std::string got, word(fmt::format("'{}'", wanted)));
    if (got != wanted) return error(fmt::format("expected '{}', got '{}'", wanted, got));
    return Done{};
  }

  template <typename T>
  Result<T> number(const std::string& text) const {
    T value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size())
      return error(fmt::format("'{}' is no number", text));
    return value;
  }

  Result<int64_t> size() {
    TRY(const std::string text, word("a size"));
    if (text == "N") return kBatch;
    return number<int64_t>(text);
  }

  Result<Shape> shape() {
    CHECK_OK(punctuation('['));
    Shape sizes;
    if (eat(']')) return sizes;
    do {
      TRY(const int64_t one, size());
      sizes.push_back(one);
    } while (eat(','));
    CHECK_OK(punctuation(']'));
    return sizes;
  }

  Status input() {
    Input in;
    TRY(in.name, word("an input's name"));
    CHECK_OK(punctuation(':'));
    TRY(const std::string dtype, word("f32 or i32"));
    if (dtype != "f32" && dtype != "i32")
      return error(fmt::format("unknown type '{}'", dtype), "use f32 or i32");
    in.type.dtype = dtype == "f32" ? DType::kF32 : DType::kI32;
    TRY(in.type.shape, shape());
    values_.insert_or_assign(in.name, static_cast<ValueId>(workload_.inputs.size()));
    workload_.inputs.push_back(std::move(in));
    return Done{};
  }

  // Inside a block a name is one of its values, else one of its inputs, else a value of the workload.
  Result<ValueId> value() {
    TRY(const std::string name, word("a value's name"));
    if (call_ != nullptr) {
      if (const auto own = values_.find(call_->prefix + name);
          own != values_.end() && own->second >= call_->first)
        return own->second;
      if (const auto given = call_->given.find(name); given != call_->given.end()) return given->second;
    }
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    std::vector<std::string> known;
    for (ValueId id = 0; id < workload_.value_count(); ++id) known.push_back(workload_.value_name(id));
    return error(fmt::format("'{}' is not defined before this line", name), suggest(name, known));
  }

  // "init=0.125" behind a trained parameter.
  Result<std::optional<double>> initial() {
    if (!eat_word("init")) return std::optional<double>();
    CHECK_OK(punctuation('='));
    TRY(const std::string text, word("a number"));
    TRY(const double limit, number<double>(text));
    return std::optional<double>(limit);
  }

  Status parameter(Node& node, const OpInfo& row) {
    TRY(const std::string slot, word("a parameter's slot"));
    const ParamSpec* spec = nullptr;
    std::vector<std::string> slots;
    for (const ParamSpec& candidate : row.params) {
      slots.push_back(candidate.slot);
      if (candidate.slot == slot) spec = &candidate;
    }
    if (spec == nullptr) {
      return error(fmt::format("{} has no parameter '{}'", row.name, slot),
                   slots.empty() ? "it takes none" : suggest(slot, slots));
    }
    CHECK_OK(punctuation('='));
    TRY(std::string name, word("a parameter's name"));
    if (name.starts_with('.')) {
      if (call_ == nullptr)
        return error(fmt::format("'{}' begins with a dot, which stands for the path of a call", name),
                     "only parameters in a block are named so");
      name = call_->path + name;
    }
    TRY(Shape sizes, shape());
    const bool frozen = eat_word("frozen");
    TRY(const std::optional<double> init, initial());
    ParamId id = workload_.find_parameter(name);
    if (id < 0) {
      id = static_cast<ParamId>(workload_.parameters.size());
      workload_.parameters.push_back({name, sizes, spec->role, frozen, {}, init});
    } else if (workload_.parameters[static_cast<size_t>(id)].frozen != frozen) {
      return error(fmt::format("'{}' was {} before", name, frozen ? "trained" : "frozen"));
    } else if (workload_.parameters[static_cast<size_t>(id)].init != init) {
      return error(fmt::format("'{}' had another init before", name), "write the same wherever it stands");
    } else if (workload_.parameters[static_cast<size_t>(id)].shape != sizes) {
      return error(fmt::format("'{}' had shape {} before", name,
                               to_text(workload_.parameters[static_cast<size_t>(id)].shape)));
    }
    node.params.push_back({slot, id});
    return Done{};
  }

  Result<AttrValue> attribute_value(const AttrSpec& spec) {
    if (spec.kind == AttrKind::kInts) {
      std::vector<int64_t> numbers;
      do {
        TRY(const int64_t one, size());
        numbers.push_back(one);
      } while (eat(','));
      return AttrValue(numbers);
    }
    TRY(const std::string text, word("a value"));
    switch (spec.kind) {
      case AttrKind::kInt: {
        TRY(const int64_t n, number<int64_t>(text));
        return AttrValue(n);
      }
      case AttrKind::kReal: {
        TRY(const double d, number<double>(text));
        return AttrValue(d);
      }
      case AttrKind::kFlag:
        if (text != "true" && text != "false")
          return error(fmt::format("'{}' is neither true nor false", text));
        return AttrValue(text == "true");
      default:
        return AttrValue(text);
    }
  }

  Status attribute(Node& node, const OpInfo& row, const std::string& name) {
    std::vector<std::string> names;
    for (const AttrSpec& spec : row.attributes) {
      if (spec.name == name) {
        CHECK_OK(punctuation('='));
        TRY(AttrValue value, attribute_value(spec));
        set_attribute(node, name, std::move(value));
        return Done{};
      }
      names.push_back(spec.name);
    }
    return error(fmt::format("{} has no attribute '{}'", row.name, name),
                 names.empty() ? "it takes none" : suggest(name, names));
  }

  // "values NAME: ...", and not a node of that name.
  bool at_keyword(std::string_view wanted) {
    const size_t before = at_;
    const int line = line_;
    if (eat_word(wanted) && !at('=')) return true;
    at_ = before;
    line_ = line;
    return false;
  }

  // "block NAME(INPUTS) { nodes }": read anew by every call.
  Status block() {
    Block made{.line = line_};
    TRY(const std::string name, word("a name for the block"));
    if (find_op(name) != nullptr)
      return error(fmt::format("'{}' is an op: a block needs another name", name));
    if (blocks_.contains(name)) return error(fmt::format("a block '{}' stands above", name));
    CHECK_OK(punctuation('('));
    while (!at(')')) {
      TRY(const std::string input, word("an input's name"));
      if (std::find(made.inputs.begin(), made.inputs.end(), input) != made.inputs.end())
        return error(fmt::format("the block '{}' has two inputs '{}'", name, input));
      made.inputs.push_back(input);
      if (!eat(',')) break;
    }
    CHECK_OK(punctuation(')'));
    CHECK_OK(punctuation('{'));
    made.at = at_, made.body_line = line_;
    for (skip_blank(); at_ < text_.size() && text_[at_] != '}'; skip_blank()) {
      if (text_[at_++] == '{')
        return error("a block stands in a block", "blocks and calls stand in the workload");
    }
    CHECK_OK(punctuation('}'));
    blocks_.emplace(name, std::move(made));
    return Done{};
  }

  // The rest of "PATH = NAME(VALUES)", behind the name of a block.
  Status call(Block& block, const std::string& path) {
    if (call_ != nullptr) return error("a block is called in a block", "call it in the workload");
    Call now{.path = path, .prefix = value_prefix(path), .first = workload_.value_count()};
    CHECK_OK(punctuation('('));
    for (const std::string& input : block.inputs) {
      if (!now.given.empty()) CHECK_OK(punctuation(','));
      TRY(now.given[input], value());
    }
    CHECK_OK(punctuation(')'));
    const size_t behind = std::exchange(at_, block.at);
    const int line = std::exchange(line_, block.body_line);
    block.called = true;
    call_ = &now;
    while (!eat('}')) CHECK_OK(node());
    call_ = nullptr;
    at_ = behind, line_ = line;
    return Done{};
  }

  // The numbers of a frozen parameter on the rest of the line, "1*29" for 29 of them.
  Status values() {
    TRY(const std::string name, word("a parameter's name"));
    const ParamId id = workload_.find_parameter(name);
    if (id < 0) return error(fmt::format("'{}' is no parameter of a node before this line", name));
    Parameter& p = workload_.parameters[static_cast<size_t>(id)];
    if (!p.frozen) return error(fmt::format("'{}' is trained: only frozen parameters have values", name));
    if (!p.values.empty()) return error(fmt::format("'{}' has values already", name));
    CHECK_OK(punctuation(':'));
    const int64_t wanted = product(p.shape, 0, p.shape.size());
    if (wanted < 0 || wanted > kMostValues)
      return error(fmt::format("'{}' has {} values: a text holds {} at most", name, wanted, kMostValues),
                   "leave the line out, and name a file of weights");
    for (const int line = line_; skip_blank(), line_ == line && !at('}');) {
      TRY(const std::string text, word("a number"));
      TRY(const double one, number<double>(text));
      int64_t count = 1;
      if (eat('*')) {
        TRY(const std::string times, word("how many of them"));
        TRY(count, number<int64_t>(times));
      }
      if (count < 1 || count > wanted - static_cast<int64_t>(p.values.size()))
        return error(fmt::format("'{}' has more than {} values", name, wanted));
      p.values.insert(p.values.end(), static_cast<size_t>(count), one);
    }
    if (static_cast<int64_t>(p.values.size()) != wanted)
      return error(fmt::format("'{}' needs {} values, got {}", name, wanted, p.values.size()));
    return Done{};
  }

  Status node() {
    TRY(const std::string output, word("'}' or a node"));
    const int line = line_;
    CHECK_OK(punctuation('='));
    TRY(const std::string op, word("an op"));
    if (const auto block = blocks_.find(op); block != blocks_.end()) return call(block->second, output);
    const OpInfo* row = find_op(op);
    if (row == nullptr) return error(fmt::format("unknown op '{}'", op), suggest(op, op_names()));
    Node node = node_with_defaults(row->op);
    node.output = call_ == nullptr ? output : call_->prefix + output;
    CHECK_OK(punctuation('('));
    while (!at(';') && !at(')')) {
      TRY(const ValueId id, value());
      node.inputs.push_back(id);
      if (!eat(',')) break;
    }
    if (eat(';')) {
      do CHECK_OK(parameter(node, *row));
      while (eat(','));
    }
    CHECK_OK(punctuation(')'));
    CHECK_OK(attributes(node, *row));
    if (workload_.nodes.size() == kMostNodes) return error(fmt::format("more than {} nodes", kMostNodes));
    values_.insert_or_assign(node.output, workload_.value_count());
    workload_.nodes.push_back(std::move(node));
    lines_.push_back(line);
    return Done{};
  }

  // Attributes stand on the line of the closing parenthesis: the next line starts another node.
  Status attributes(Node& node, const OpInfo& row) {
    const int line = line_;
    for (;;) {
      skip_blank();
      if (line_ != line || at_ >= text_.size() || text_[at_] == '}') return Done{};
      TRY(const std::string name, word("an attribute"));
      CHECK_OK(attribute(node, row, name));
    }
  }

  std::string_view text_;
  std::string_view file_;
  size_t at_ = 0;
  int line_ = 1;
  Workload workload_;
  std::unordered_map<std::string, ValueId> values_;  // the last of each name
  std::map<std::string, Block> blocks_;
  Call* call_ = nullptr;    // whose nodes are read
  std::vector<int> lines_;  // of each node
};

}  // namespace

std::string dump_node(const Workload& workload, const Node& node) {
  std::vector<std::string> inputs;
  for (const ValueId id : node.inputs) inputs.push_back(workload.value_name(id));
  return node_text(workload, node, node.output, inputs);
}

namespace {

// " 0 1*29": equal neighbours are counted; float32 where that is exact.
std::string values_text(const std::vector<double>& values) {
  std::string text;
  for (size_t i = 0; i < values.size();) {
    size_t end = i + 1;
    while (end < values.size() && values[end] == values[i] &&
           std::signbit(values[end]) == std::signbit(values[i]))
      ++end;
    const auto narrow = static_cast<float>(values[i]);
    text += narrow == values[i] ? fmt::format(" {}", narrow) : fmt::format(" {}", values[i]);
    if (end - i > 1) text += fmt::format("*{}", end - i);
    i = end;
  }
  return text;
}

}  // namespace

std::string dump(const Workload& workload) {
  std::vector<std::string> inputs;
  for (const Input& input : workload.inputs) inputs.push_back(input.name + ": " + to_text(input.type));
  std::string text = fmt::format("workload {}({}) {{\n", workload.name, join(inputs, ", "));
  std::map<int, std::pair<std::string, int>> calls;  // by first node: text, end
  for (const TextBlock& block : repeated_blocks(workload)) {
    std::string made = fmt::format("  block {}({}) {{\n", block.name, join(block.inputs, ", "));
    for (const std::string& line : block.lines) made += "    " + line + "\n";
    made += "  }\n";
    for (const BlockCall& call : block.calls) {
      calls[call.first] = {
          fmt::format("{}  {} = {}({})\n", made, call.path, block.name, join(call.given, ", ")), call.end};
      made.clear();
    }
  }
  for (int n = 0; n < static_cast<int>(workload.nodes.size());) {
    const auto call = calls.find(n);
    text += call != calls.end() ? call->second.first
                                : "  " + dump_node(workload, workload.nodes[static_cast<size_t>(n)]) + "\n";
    n = call != calls.end() ? call->second.second : n + 1;
  }
  for (const Parameter& p : workload.parameters) {
    if (!p.values.empty()) text += fmt::format("  values {}:{}\n", p.name, values_text(p.values));
  }
  return text + "}\n";
}

namespace {

// The loss that another library calls so; empty: none.
std::string loss_called(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, Op>, 5> kWords = {{{"binary", Op::kBceWithLogits},
                                                                      {"bce", Op::kBceWithLogits},
                                                                      {"cross", Op::kSoftmaxCrossEntropy},
                                                                      {"nll", Op::kSoftmaxCrossEntropy},
                                                                      {"absolute", Op::kL1}}};
  for (const auto& [word, op] : kWords) {
    if (name.find(word) != std::string_view::npos) return fmt::format("did you mean '{}'?", info(op).name);
  }
  return "";
}

}  // namespace

Result<LossText> parse_loss(std::string_view text) {
  const size_t comma = std::min(text.find(','), text.size());
  LossText loss{.op = std::string(text.substr(0, comma)), .attributes = "reduction=mean"};
  std::vector<std::string> known;
  for (const OpInfo& row : op_table()) {
    if (is_loss(row.op)) known.push_back(row.name);
  }
  if (std::find(known.begin(), known.end(), loss.op) == known.end())
    return Error{.message = fmt::format("'{}' is no loss", loss.op),
                 .remedy = loss_called(loss.op).empty() ? suggest(loss.op, known) : loss_called(loss.op)};
  std::string more(text.substr(std::min(comma + 1, text.size())));
  std::replace(more.begin(), more.end(), ',', ' ');
  if (!more.empty()) loss.attributes += " " + more;
  const char* values = loss.op == info(Op::kCtc).name                   ? "p: f32[N,2,2], t: i32[N,1]"
                       : loss.op == info(Op::kSoftmaxCrossEntropy).name ? "p: f32[N,2], t: i32[N]"
                                                                        : "p: f32[N,2], t: f32[N,2]";
  const auto tried =
      parse(fmt::format("workload w({}) {{ loss = {}(p, t) {} }}", values, loss.op, loss.attributes));
  if (!tried) {
    const bool attribute = tried.error().remedy != kExample && !tried.error().remedy.starts_with('`');
    return Error{.message = fmt::format("'{}': {}", text, tried.error().message),
                 .remedy = attribute
                               ? tried.error().remedy
                               : "for example softmax_cross_entropy,label_smoothing=0.1,ignore_index=-100"};
  }
  return loss;
}

Result<Workload> parse(std::string_view text, std::string_view file) { return Parser(text, file).workload(); }

}  // namespace bakeoff::ir
