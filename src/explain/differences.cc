// The texts of two scripts say what a slow line does otherwise, though they do not say that it matters.
//
// Looks at the stack tell where the time of a gap goes: often into a call of a function that both scripts have by the same
// name, a compiled one for example, which is a single look for Python. So the names in that line are followed, as a reader
// would do it, to the lines that define them, until one is met that the other script does not have. This is no parser of
// Python: a name that is defined twice counts twice, and what it cannot follow it does not find.

#include "explain/differences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "base/texts.h"
#include "table/text.h"

namespace bakeoff::explain {
namespace {

constexpr size_t kMostPairs = size_t{1} << 25;  // of lines, between the first and the last that differ
constexpr size_t kMostFollowed = 2000;          // lines that a line runs
constexpr size_t kMostJoined = 30;              // lines of one statement
constexpr size_t kMostExchanged = 80;  // differing lines of both scripts, up to which they are exchanged
constexpr const char* kDefines[] = {"def ", "async def ", "class "};
constexpr size_t kToldLines = 2;  // of a difference, in one sentence
constexpr int kToldWidth = 110;   // columns

struct Line {
  int64_t number = 0;
  std::string text = {};   // trimmed
  std::string whole = {};  // with its indent
};

size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(" \t"), line.size()); }

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string whole_line(const std::string& line) { return line.substr(0, line.find_last_not_of(" \t\r") + 1); }

// The triple quotes that a line opens and does not close.
std::string opened(const std::string& text) {
  for (const char* quotes : {"\"\"\"", "'''"}) {
    size_t count = 0;
    for (size_t at = text.find(quotes); at != std::string::npos; at = text.find(quotes, at + 3)) ++count;
    if (count % 2 == 1) return quotes;
  }
  return "";
}

// Lines that do something. Texts in triple quotes that are a statement of their own are documentation.
std::vector<Line> code_lines(const Source::File& file) {
  std::vector<Line> all;
  std::string open;   // the quotes that end a text of several lines
  bool data = false;  // that text is a value, and no docstring
  for (int64_t number = file.first + 1; const std::string& line : file.lines) {
    const std::string text(trimmed(line));
    const int64_t here = number++;
    if (!open.empty()) {
      if (data) all.push_back({here, text, whole_line(line)});
      if (text.find(open) != std::string::npos) open.clear();
      continue;
    }
    if (text.empty() || text[0] == '#') continue;
    const std::string begin = text.substr(text.starts_with("r") ? 1 : 0, 3);
    data = begin != "\"\"\"" && begin != "'''";
    open = opened(text);
    if (data) all.push_back({here, text, whole_line(line)});
  }
  return all;
}

// Places of neighbouring lines of one list, and of their counterparts in another.
struct Hunk {
  size_t mine = 0, mine_end = 0, other = 0, other_end = 0;
};

// What two lists have beside a longest common part. `text`: what of a line is compared.
std::vector<Hunk> hunks(const std::vector<Line>& a, const std::vector<Line>& b, std::string Line::*text) {
  const auto same = [&](size_t i, size_t j) { return a[i].*text == b[j].*text; };
  size_t begin = 0, n = a.size(), m = b.size();
  while (begin < std::min(n, m) && same(begin, begin)) ++begin;
  while (std::min(n, m) > begin && same(n - 1, m - 1)) --n, --m;
  if (n == begin && m == begin) return {};
  const size_t width = m - begin + 1;
  if ((n - begin + 1) * width > kMostPairs) return {{begin, n, begin, m}};
  std::vector<uint16_t> longest((n - begin + 1) * width, 0);  // of what is left from these places on
  const auto at = [&](size_t i, size_t j) -> uint16_t& { return longest[(i - begin) * width + j - begin]; };
  for (size_t i = n; i-- > begin;)
    for (size_t j = m; j-- > begin;)
      at(i, j) =
          same(i, j) ? static_cast<uint16_t>(at(i + 1, j + 1) + 1) : std::max(at(i + 1, j), at(i, j + 1));
  std::vector<Hunk> all;
  for (size_t i = begin, j = begin; i < n || j < m; ++i, ++j) {
    Hunk one{i, i, j, j};
    while (i < n && j < m && !same(i, j)) at(i + 1, j) >= at(i, j + 1) ? ++i : ++j;
    if (i == n || j == m) i = n, j = m;
    one.mine_end = i, one.other_end = j;
    if (one.mine < i || one.other < j) all.push_back(one);
  }
  return all;
}

// Adds common lines that stand deeper or less deep than in the other list, though no line above them differs.
std::vector<Hunk> with_moved(std::vector<Hunk> all, const std::vector<Line>& a, const std::vector<Line>& b) {
  std::vector<Hunk> moved;
  std::ptrdiff_t before = 0;  // by how much deeper the last common line is
  bool open = false;          // the last moved lines go on
  size_t i = 0, j = 0;
  for (auto hunk = all.begin(); i < a.size() && j < b.size(); ++i, ++j) {
    const bool behind = hunk != all.end() && hunk->mine == i && hunk->other == j;
    if (behind) i = hunk->mine_end, j = hunk++->other_end;
    if (i >= a.size() || j >= b.size()) break;
    const std::ptrdiff_t deeper = static_cast<std::ptrdiff_t>(indent_of(a[i].whole)) -
                                  static_cast<std::ptrdiff_t>(indent_of(b[j].whole));
    open = !behind && deeper != 0 && (deeper != before || open);
    if (open && deeper != before) moved.push_back({i, i, j, j});
    if (open) moved.back().mine_end = i + 1, moved.back().other_end = j + 1;
    before = deeper;
  }
  all.insert(all.end(), moved.begin(), moved.end());
  std::ranges::sort(all, {}, &Hunk::mine);
  return all;
}

// A function or class with its decorators, or lines between two of them.
struct Block {
  std::string name = {};  // "def f", "class A"; empty: neither
  std::vector<Line> lines = {};
};

std::vector<Block> blocks_of(const std::vector<Line>& lines) {
  std::vector<Block> all;
  const size_t indent = lines.empty() ? 0 : indent_of(lines[0].whole);
  bool decorated = false, within = false;
  for (const Line& line : lines) {
    const bool own = indent_of(line.whole) <= indent && !line.text.starts_with(")");
    std::string name;
    for (const char* word : kDefines)
      if (own && line.text.starts_with(word)) name = line.text.substr(0, line.text.find_first_of("(:"));
    const bool decorates = own && line.text.starts_with("@");
    if (own && !decorated && (decorates || !name.empty() || within || all.empty())) all.emplace_back();
    if (!name.empty()) all.back().name = name;
    if (own) decorated = decorates, within = decorates || !name.empty();
    all.back().lines.push_back(line);
  }
  return all;
}

// The second script's lines, in which functions and classes that both have stand in the first one's order: that they stand
// elsewhere is no difference.
std::vector<Line> in_order_of(const std::vector<Line>& mine, const std::vector<Line>& other) {
  const std::vector<Block> here = blocks_of(mine), there = blocks_of(other);
  const auto count = [](const std::vector<Block>& all, const Block& one) {
    return std::ranges::count(all, one.name, &Block::name);
  };
  const auto is_common = [&](const Block& one) {
    return !one.name.empty() && count(here, one) == 1 && count(there, one) == 1;
  };
  std::vector<Line> all;
  auto next = here.begin();
  for (const Block& block : there) {
    const Block* place = &block;
    if (is_common(block)) {
      next = std::find_if(next, here.end(), is_common);
      place = &*std::ranges::find(there, next->name, &Block::name);
      if (next->name.starts_with("class ") && next->lines.size() > 1 && place->lines.size() > 1) {
        const auto body = [](const Block& of) { return std::vector(of.lines.begin() + 1, of.lines.end()); };
        all.push_back(place->lines[0]);
        std::ranges::move(in_order_of(body(*next++), body(*place)), std::back_inserter(all));
        continue;
      }
      ++next;
    }
    all.insert(all.end(), place->lines.begin(), place->lines.end());
  }
  return all;
}

struct Names {
  std::vector<std::string> plain = {}, attributes = {};  // `attributes` stand behind a dot
};

void names_in(const std::string& code, Names& found);

// "loss {float(value):.3f}" has float and value.
void names_in_braces(const std::string& text, Names& found) {
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const size_t end = text.find_first_of("}:!", open);
    names_in(text.substr(open + 1, std::min(end, text.size()) - open - 1), found);
  }
}

// Names in code, without those in texts and comments.
void names_in(const std::string& code, Names& found) {
  for (size_t at = 0; at < code.size();) {
    const char c = code[at];
    if (c == '#') break;
    if (c == '"' || c == '\'') {
      const size_t end = std::min(code.find(c, at + 1), code.size() - 1) + 1;
      if (at > 0 && (code[at - 1] == 'f' || code[at - 1] == 'F'))
        names_in_braces(code.substr(at + 1, end - at - 1), found);
      at = end;
    } else if (in_word(c)) {
      size_t end = at;
      while (end < code.size() && in_word(code[end])) ++end;
      const bool attribute = at > 0 && code[at - 1] == '.';
      if (std::isdigit(static_cast<unsigned char>(c)) == 0)
        (attribute ? found.attributes : found.plain).push_back(code.substr(at, end - at));
      at = end;
    } else {
      ++at;
    }
  }
}

// What code does, without the names of its variables: functions, attributes, values, texts, keywords and loops.
void deeds_in(const std::string& code, std::set<std::string>& found) {
  static const std::set<std::string> kWords = {"for",  "while", "if",    "else", "with",   "yield", "lambda",
                                               "True", "False", "None",  "not",  "await",  "del",   "in",
                                               "and",  "or",    "break", "def",  "assert", "is"};
  for (size_t at = 0; at < code.size() && code[at] != '#';) {
    const char c = code[at];
    size_t end = at + 1;
    if (c == '"' || c == '\'') {
      end = std::min(code.find(c, at + 1), code.size() - 1) + 1;
      found.insert(code.substr(at, end - at));
    } else if (in_word(c)) {
      while (end < code.size() && in_word(code[end])) ++end;
      const std::string word = code.substr(at, end - at);
      const bool named = std::isdigit(static_cast<unsigned char>(c)) != 0 || kWords.contains(word);
      const bool used = (end < code.size() && code[end] == '(') || (at > 0 && code[at - 1] == '.');
      if (named || used) found.insert(word);
    } else if (std::string_view("+-*/%@<>|&^~").find(c) != std::string_view::npos) {
      found.insert(std::string(1, c));
    }
    at = end;
  }
}

// Where names are defined, each by the lines that do it.
class Definitions {
 public:
  explicit Definitions(const Source& source) {
    for (const Source::File& file : source.files()) {
      for (int64_t number = file.first; const std::string& line : file.lines) {
        places_.emplace(++number, lines_.size());
        numbers_.push_back(number);
        lines_.push_back(line);
      }
    }
    for (size_t i = 0; i < lines_.size(); ++i) {
      const std::string text(trimmed(lines_[i]));
      for (const char* word : kDefines)
        if (text.starts_with(word)) define(text.substr(std::string_view(word).size()), block(i));
      assignment(i, text);
    }
  }

  // The lines of the statement that a line begins, while parentheses are open.
  std::vector<int64_t> statement(size_t first) const {
    std::vector<int64_t> all;
    int64_t open = 0;
    for (size_t i = first; i < lines_.size() && all.size() < kMostJoined; ++i) {
      all.push_back(numbers_[i]);
      for (const char c : lines_[i])
        open += (c == '(' || c == '[' || c == '{') - (c == ')' || c == ']' || c == '}');
      if (open <= 0) break;
    }
    return all;
  }

  // What it gives a name.
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const Where* where : {&defined_, &assigned_, &kept_})
      for (const auto& [name, lines] : *where) all.insert(name);
    return all;
  }

  std::vector<int64_t> follow(int64_t line) const {
    const auto place = places_.find(line);
    if (place == places_.end()) return {};
    std::vector<int64_t> all = statement(place->second);
    std::set<int64_t> seen(all.begin(), all.end());
    for (size_t next = 0; next < all.size() && all.size() < kMostFollowed; ++next) {
      Names names;
      names_in(lines_[places_.at(all[next])], names);
      for (const auto* list : {&names.plain, &names.attributes})
        for (const std::string& name : *list)
          for (const auto* where : {&defined_, list == &names.plain ? &assigned_ : &kept_})
            if (const auto found = where->find(name); found != where->end())
              for (const int64_t one : found->second)
                if (seen.insert(one).second) all.push_back(one);
    }
    return all;
  }

 private:
  using Where = std::map<std::string, std::vector<int64_t>>;

  // A function or class with its decorators.
  std::vector<int64_t> block(size_t first) const {
    const size_t indent = indent_of(lines_[first]);
    size_t begin = first, end = first + 1;
    while (begin > 0 && indent_of(lines_[begin - 1]) == indent &&
           lines_[begin - 1].substr(indent).starts_with("@"))
      --begin;
    while (end < lines_.size() && (trimmed(lines_[end]).empty() || indent_of(lines_[end]) > indent ||
                                   trimmed(lines_[end]).starts_with(")")))
      ++end;
    std::vector<int64_t> all;
    for (size_t i = begin; i < end; ++i)
      if (!trimmed(lines_[i]).empty()) all.push_back(numbers_[i]);
    return all;
  }

  void define(const std::string& rest, const std::vector<int64_t>& lines) {
    size_t end = 0;
    while (end < rest.size() && in_word(rest[end])) ++end;
    add(defined_, rest.substr(0, end), lines);
  }

  // "a, b = ...", "self.net = ...", "with open(...) as a", "for a in ...", and calls that set something up: "a.compile(...)"
  void assignment(size_t i, const std::string& text) {
    std::string targets;
    size_t dot = 0;
    while (dot < text.size() && in_word(text[dot])) ++dot;
    for (const char* call :
         {".compile(", ".add(", ".append(", ".extend(", ".set_", ".register_", ".to(", ".build(", ".apply("})
      if (dot > 0 && text.find(call, dot) == dot) targets = text.substr(0, dot);
    if (const size_t in = text.find(" in "); text.starts_with("for ") && in != std::string::npos)
      targets = text.substr(4, in - 4);
    else if (const size_t as = text.find(" as "); text.starts_with("with ") && as != std::string::npos)
      targets = text.substr(as + 4);
    else if (const size_t is = text.find(" = ");
             is != std::string::npos && text.find('(') > is && text.find('[') > is)
      targets = text.substr(0, is);
    Names names;
    names_in(targets, names);
    const std::vector<int64_t> lines = targets.empty() ? std::vector<int64_t>{} : statement(i);
    for (const std::string& name : names.plain)
      if (name != "self") add(assigned_, name, lines);
    for (const std::string& name : names.attributes) add(kept_, name, lines);
  }

  static void add(Where& where, const std::string& name, const std::vector<int64_t>& lines) {
    std::vector<int64_t>& all = where[name];
    all.insert(all.end(), lines.begin(), lines.end());
  }

  std::vector<std::string> lines_;  // of all files
  std::vector<int64_t> numbers_;
  std::map<int64_t, size_t> places_;
  Where defined_, assigned_, kept_;  // functions and classes; variables; attributes of objects
};

std::string told(const std::vector<std::string>& lines) {
  std::string all;
  for (size_t i = 0; i < std::min(lines.size(), kToldLines); ++i)
    all += (i > 0 ? " " : "") + std::string(trimmed(lines[i]));
  return "'" + table::fit(all + (lines.size() > kToldLines ? " …" : ""), kToldWidth) + "'";
}

// Adds what differs of two files.
void compare(const Source::File& mine, const Source::File& other, std::vector<Difference>& all) {
  if (mine.lines == other.lines) return;
  const std::vector<Line> a = code_lines(mine), b = in_order_of(a, code_lines(other));
  for (const Hunk& hunk : with_moved(hunks(a, b, &Line::text), a, b)) {
    const int64_t end = mine.first + std::ssize(mine.lines);
    Difference one{.line = hunk.mine < a.size() ? a[hunk.mine].number : end,
                   .last = hunk.mine > 0 ? a[hunk.mine - 1].number : mine.first + 1};
    if (mine.lines.empty()) one.line = one.last = 0;
    if (hunk.mine < hunk.mine_end) one.last = a[hunk.mine_end - 1].number;
    for (size_t i = hunk.mine; i < hunk.mine_end; ++i) one.mine.push_back(a[i].whole);
    for (size_t j = hunk.other; j < hunk.other_end; ++j) one.other.push_back(b[j].whole);
    all.push_back(std::move(one));
  }
}

// The script and its partner, files of one name, and what is left of both in the order of their names.
std::vector<std::pair<Source::File, Source::File>> partners(const Source& mine, const Source& other) {
  std::vector<std::pair<Source::File, Source::File>> all;
  std::vector<Source::File> left, other_left = other.files();
  for (const Source::File& file : mine.files()) {
    const auto same = std::ranges::find(other_left, file.name, &Source::File::name);
    if (same == other_left.end()) {
      left.push_back(file);
      continue;
    }
    all.emplace_back(file, *same);
    other_left.erase(same);
  }
  const size_t count = std::max(left.size(), other_left.size());
  left.resize(count), other_left.resize(count);
  for (size_t i = 0; i < count; ++i) all.emplace_back(left[i], other_left[i]);
  return all;
}

std::set<std::string> all_names(const Source& source) {
  Names names;
  for (const Source::File& file : source.files())
    for (const std::string& line : file.lines) names_in(line, names);
  std::set<std::string> all(names.plain.begin(), names.plain.end());
  all.insert(names.attributes.begin(), names.attributes.end());
  return all;
}

// Neighbouring lines that become those of the other script, and the names in both.
struct Part {
  Changes changes = {};
  std::set<std::string> set = {};   // by either script, to a value or a definition
  std::set<std::string> mine = {};  // in the lines of the first script, then those that the other has nowhere
  std::set<std::string> other = {};  // the same of the other script's lines
  std::set<std::string> uses = {};   // in all of these lines

  void keep_own(const std::set<std::string>& all_mine, const std::set<std::string>& all_other) {
    uses.insert(mine.begin(), mine.end());
    uses.insert(other.begin(), other.end());
    std::erase_if(mine, [&](const std::string& name) { return all_other.contains(name); });
    std::erase_if(other, [&](const std::string& name) { return all_mine.contains(name); });
  }
  bool needs(const Part& from) const {
    const auto share = [](const std::set<std::string>& a, const std::set<std::string>& b) {
      return std::ranges::any_of(a, [&](const std::string& name) { return b.contains(name); });
    };
    return share(uses, from.set) || share(mine, from.mine) || share(other, from.other);
  }
};

Part part_of(int64_t first, const std::vector<Line>& a, const std::vector<Line>& b, const Hunk& hunk) {
  std::string old, made;
  for (size_t i = hunk.mine; i < hunk.mine_end; ++i) old += a[i].whole + "\n";
  for (size_t j = hunk.other; j < hunk.other_end; ++j) made += b[j].whole + "\n";
  Part part{.set = Definitions(old).names(), .mine = all_names(old), .other = all_names(made)};
  part.set.merge(Definitions(made).names());
  if (hunk.mine < hunk.mine_end) {
    for (size_t i = hunk.mine; i < hunk.mine_end; ++i) part.changes[a[i].number];
    part.changes.begin()->second = made;
  } else if (hunk.mine < a.size()) {
    part.changes[a[hunk.mine].number] = made + a[hunk.mine].whole + "\n";
  } else {
    part.changes[a.empty() ? first + 1 : a.back().number + 1] = made;
  }
  return part;
}

}  // namespace

std::vector<Difference> differences(const Source& mine, const Source& other) {
  std::vector<Difference> all;
  for (const auto& [file, partner] : partners(mine, other)) compare(file, partner, all);
  return all;
}

std::map<int64_t, std::vector<int64_t>> runs(const Source& source, const std::vector<int64_t>& lines) {
  const Definitions definitions(source);
  std::map<int64_t, std::vector<int64_t>> all;
  for (const int64_t line : lines) all.try_emplace(line, definitions.follow(line));
  return all;
}

std::optional<std::string> changed_text(const Source::File& file, const Changes& changes) {
  const int64_t end = file.first + std::ssize(file.lines) + 1;
  if (const auto first = changes.upper_bound(file.first); first == changes.end() || first->first > end)
    return std::nullopt;
  std::string text;
  for (int64_t number = file.first; const std::string& line : file.lines) {
    const auto found = changes.find(++number);
    text += found == changes.end() ? line + "\n" : found->second;
  }
  if (const auto added = changes.find(end); added != changes.end()) text += added->second;
  return text;
}

std::vector<Changes> exchanges(const Source& mine, const Source& other) {
  std::vector<Part> parts;
  size_t lines = 0;
  for (const auto& [file, partner] : partners(mine, other)) {
    // A file that the first script lacks stays where it is: lines that import it find it there.
    if (file.lines == partner.lines || file.lines.empty()) continue;
    const std::vector<Line> a = code_lines(file), b = code_lines(partner);
    for (const Hunk& hunk : hunks(a, b, &Line::whole)) {
      parts.push_back(part_of(file.first, a, b, hunk));
      lines += hunk.mine_end - hunk.mine + hunk.other_end - hunk.other;
    }
  }
  if (lines > kMostExchanged) return {};
  const std::set<std::string> all_mine = all_names(mine), all_other = all_names(other);
  for (Part& part : parts) part.keep_own(all_mine, all_other);
  std::vector<Changes> groups;
  while (!parts.empty()) {
    std::vector<Part> group = {std::move(parts.back())};
    parts.pop_back();
    for (size_t i = 0; i < group.size(); ++i)
      for (size_t k = parts.size(); k-- > 0;)
        if (group[i].needs(parts[k]) || parts[k].needs(group[i])) {
          group.push_back(std::move(parts[k]));
          parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(k));
        }
    Changes& all = groups.emplace_back();
    for (const Part& part : group)
      for (const auto& [number, text] : part.changes) all[number] += text;
  }
  std::ranges::sort(groups, {}, [](const Changes& one) { return one.begin()->first; });
  return groups;
}

bool Difference::deeper() const {
  const auto same = [](const std::string& a, const std::string& b) { return trimmed(a) == trimmed(b); };
  return !mine.empty() && std::ranges::equal(mine, other, same) && indent_of(mine[0]) > indent_of(other[0]);
}

bool Difference::renames() const {
  const auto deeds = [](const std::vector<std::string>& lines) {
    std::set<std::string> all;
    for (const std::string& one : lines) deeds_in(one, all);
    return all;
  };
  return !mine.empty() && !other.empty() && !deeper() && deeds(mine) == deeds(other);
}

std::string difference_words(const Difference& difference) {
  if (difference.deeper()) return told(difference.mine) + ", which stands less deep in the other script";
  if (difference.line == 0)
    return "the other script has a file more, which begins with " + told(difference.other);
  if (difference.mine.empty()) return "the other script has " + told(difference.other) + " before it";
  if (difference.other.empty()) return told(difference.mine) + ", which the other script does not have there";
  return told(difference.mine) + ", where the other script has " + told(difference.other);
}

}  // namespace bakeoff::explain
