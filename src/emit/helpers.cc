#include "emit/helpers.h"

#include <algorithm>
#include <cctype>

#include "base/texts.h"
#include "emit/code_writer.h"
#include "emit/spelling.h"

// Why a script's copy is cut down: a script has to read as if written by hand, and nobody writes a `bias=None` that every
// call gives. Why it works on text: the files are ours and formatted, so that the few shapes of the table in helpers.h
// are all that is needed; a shape that is not among them stays as it is, and the copy is longer but right. A cut that
// is wrong shows: goldens hold every line, and each emitted script is executed and proven against the referee.
// Definitions name each other, so a script's helpers are collected until none is added.

namespace bakeoff::emit {
namespace {

using Strings = std::vector<std::string>;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Without the text of strings and comments, so that no bracket, comma or name in them counts.
std::string code_of(const std::string& text, Language language) {
  const std::string comment = language == Language::kCpp ? "//" : "#";
  std::string code = text;
  const auto blank = [&](size_t begin, size_t end, char filler) {
    std::fill(code.begin() + static_cast<long>(begin), code.begin() + static_cast<long>(end), filler);
    return end;
  };
  for (size_t at = 0; at < text.size();) {
    if (text.compare(at, 3, "'\"'") == 0) {
      at += 3;
    } else if (text.compare(at, comment.size(), comment) == 0) {
      at = blank(at, std::min(text.find('\n', at), text.size()), ' ');
    } else if (text[at] == '"') {
      const std::string quote = text.compare(at, 3, "\"\"\"") == 0 ? "\"\"\"" : "\"";
      size_t end = text.find(quote, at + quote.size());
      while (quote.size() == 1 && end != std::string::npos && text[end - 1] == '\\')
        end = text.find('"', end + 1);
      at = blank(at, std::min(end, text.size() - quote.size()) + quote.size(), '"');
    } else {
      ++at;
    }
  }
  return code;
}

// Where `name` stands as a whole word at or behind `from`.
size_t find_word(const std::string& text, const std::string& name, size_t from) {
  for (size_t at = text.find(name, from); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !in_word(text[at - 1])) && (end == text.size() || !in_word(text[end]))) return at;
  }
  return std::string::npos;
}

// Where `code` uses a function or class: not as a member of something, as an option, or where it is defined.
std::vector<size_t> uses_of(const std::string& code, const std::string& name) {
  std::vector<size_t> all;
  for (size_t at = find_word(code, name, 0); at != std::string::npos; at = find_word(code, name, at + 1)) {
    const std::string_view before = std::string_view(code).substr(0, at);
    const bool defined = before.ends_with("def ") || before.ends_with("class ");
    const bool member = before.ends_with('.') || before.ends_with("::") || before.ends_with("->");
    if (!member && !defined && code[at + name.size()] != '=') all.push_back(at);
  }
  return all;
}

// The arguments of each use: of name(x, y), and of name itself given to a function, as in f(name, x, y).
std::vector<Strings> calls_of(const std::string& code, const std::string& name) {
  std::vector<Strings> all;
  for (const size_t at : uses_of(code, name)) {
    const size_t begin = at + name.size();
    if (code[begin] != '(' && code[begin] != ',') continue;
    std::string rest = "(" + code.substr(begin + 1);
    rest = rest.substr(1, closing(rest, 0) - 1);
    std::replace(rest.begin(), rest.end(), '\n', ' ');
    Strings& arguments = all.emplace_back();
    for (const std::string& argument : split_arguments(rest)) {
      if (!trimmed(argument).empty())
        arguments.emplace_back(trimmed(argument));  // none behind the last comma
    }
  }
  return all;
}

// A parameter of a function: "x", "*", "bias=None".
struct Formal {
  std::string name;
  std::string fallback;  // empty: none
  size_t place = 0;      // of it in calls that do not name it

  std::string text() const { return fallback.empty() ? name : name + "=" + fallback; }
  // Its default stands for "not given", and is no choice.
  bool open() const {
    const bool number = !fallback.empty() && std::isdigit(static_cast<unsigned char>(fallback[0])) != 0;
    return fallback == "None" || (number && fallback.find_first_of(".e") != std::string::npos);
  }

  bool given_in(const Strings& call) const {
    size_t places = 0;
    for (const std::string& argument : call) {
      const auto word = std::find_if_not(argument.begin(), argument.end(), in_word);
      if (word == argument.end() || *word != '=')
        ++places;
      else if (std::string(argument.begin(), word) == name)
        return true;
    }
    return places > place;
  }
};

// Where an expression begins that ends before `at`, and where one ends that begins at `at`.
size_t expression_begin(const std::string& line, size_t at) {
  size_t begin = line.find_first_not_of(' ');
  for (const char* before : {"return ", " = ", ":: "}) {
    const size_t found = line.rfind(before, at);
    if (found != std::string::npos) begin = std::max(begin, found + std::string_view(before).size());
  }
  return begin;
}
size_t expression_end(const std::string& line, size_t at) {
  const size_t bracket = closing("(" + line.substr(at), 0);
  return bracket == std::string::npos ? line.size() : at + bracket - 1;
}

// The choice "a `condition` b" of a line becomes a, or b where `second` is set.
void decide(std::string& line, const std::string& condition, bool second) {
  const size_t at = line.find(condition);
  if (at == std::string::npos) return;
  const size_t begin = expression_begin(line, at), middle = at + condition.size();
  const size_t end = expression_end(line, middle);
  const std::string chosen = second ? line.substr(middle, end - middle) : line.substr(begin, at - begin);
  line.replace(begin, end - begin, chosen);
}

void take_out(std::string& text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) {
    const size_t end = at + part.size();
    if (end < text.size() && in_word(part.back()) && in_word(text[end]))
      at = end;
    else
      text.erase(at, part.size());
  }
}

// "y = add(a, name)" and "return add(a, name)" become "y = a" and "return a".
void take_summand(std::string& line, const std::string& name) {
  const size_t begin = expression_begin(line, line.size()), open = line.find('(', begin);
  if (!line.ends_with(", " + name + ")") || closing(line, open) != line.size() - 1) return;
  const Strings arguments = split_arguments(line.substr(open + 1, line.size() - open - 2));
  line.replace(begin, std::string::npos, arguments[arguments.size() - 2]);
}

size_t indentation(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Takes `if condition:` away, with its block unless `keep`.
void cut_block(Strings& body, const std::string& condition, bool keep) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (trimmed(body[i]) != "if " + condition + ":") continue;
    const size_t column = indentation(body[i]);
    body.erase(body.begin() + static_cast<long>(i));
    for (size_t at = i; at < body.size() && indentation(body[at]) > column;) {
      if (keep)
        body[at++].erase(0, 4);
      else
        body.erase(body.begin() + static_cast<long>(at));
    }
    --i;
  }
}

// What stays of a body to which no call gives the parameter.
void leave_out(Strings& body, const Formal& p) {
  std::erase_if(body, [&](const std::string& line) {
    const std::string_view argument = trimmed(line);
    return argument.ends_with("=" + p.name + ",") &&
           std::all_of(argument.begin(), argument.end() - 1, [](char c) { return in_word(c) || c == '='; });
  });
  for (std::string& line : body) {
    take_out(line, ", " + p.name + "=" + p.name);
    if (p.fallback == "0.0") {
      take_out(line, " + " + p.name);
      take_summand(line, p.name);
    }
    decide(line, " if " + p.name + " is None else ", false);
    decide(line, " if " + p.name + " else ", true);
    take_out(line, "[:: 1]");
  }
  cut_block(body, p.name, false);
  cut_block(body, p.name + " is not None", false);
}

// "y = f(x)" and "return y" at the end become "return f(x)".
void join_return(Strings& body) {
  const std::string last(trimmed(body.back()));
  if (!last.starts_with("return ") || last.find(' ') != last.rfind(' ')) return;
  const std::string head = "    " + last.substr(7) + " = ";
  for (size_t i = body.size() - 1; i-- > 0;) {
    if (body[i].starts_with(head)) {
      body[i].replace(0, head.size(), "    return ");
      return body.pop_back();
    }
    if (indentation(body[i]) == 4 && body[i] != "    )") return;
  }
}

void take_open(Strings& body, const Formal& p) {
  for (std::string& line : body) decide(line, " if " + p.name + " is None else ", true);
  cut_block(body, p.name + " is not None", true);
}

// The definition of a function as the calls in `code` need it.
std::string as_called(const std::string& name, const std::string& text, const std::string& code) {
  const size_t head = text.find("def " + name + "(");
  const std::vector<Strings> calls = calls_of(code, name);
  if (head == std::string::npos || calls.empty()) return text;
  const size_t open = text.find('(', head), close = closing(text, open), end = text.find('\n', close);
  Strings body = lines_of(text.substr(end + 1)), formals;
  std::string signature = text.substr(open + 1, close - open - 1);
  std::replace(signature.begin(), signature.end(), '\n', ' ');
  size_t place = 0;
  bool optional = false;  // some parameter before it is, and calls may leave it out
  for (const std::string& item : split_arguments(signature)) {
    const std::string parameter(trimmed(item));
    if (parameter.empty()) continue;
    const size_t equals = parameter.find('=');
    if (parameter == "*") place = std::string::npos, optional = false;
    Formal p{parameter.substr(0, equals), equals == std::string::npos ? "" : parameter.substr(equals + 1),
             place};
    if (place != std::string::npos) ++place;
    const auto given =
        std::count_if(calls.begin(), calls.end(), [&](const auto& call) { return p.given_in(call); });
    if (!p.fallback.empty() && given == 0) {
      leave_out(body, p);
      join_return(body);
      if (find_word(join(body, "\n"), p.name, 0) == std::string::npos) continue;
    } else if (p.open() && given == static_cast<long>(calls.size()) && !optional) {
      p.fallback.clear();
      take_open(body, p);
    }
    optional = optional || (place != std::string::npos && !p.fallback.empty());
    formals.push_back(p.text());
  }
  if (!formals.empty() && formals.back() == "*") formals.pop_back();
  CodeWriter out;
  out.call("def " + name, formals, text.substr(close + 1, end - close - 1));
  return text.substr(0, head) + out.text() + join(body, "\n") + "\n";
}

// The text without the function around its argument.
std::string without_half(std::string text) {
  for (size_t at = text.find("half("); at != std::string::npos; at = text.find("half(", at)) {
    const size_t close = closing(text, at + 4);
    text = text.substr(0, at) + text.substr(at + 5, close - at - 5) + text.substr(close + 1);
  }
  return text;
}

std::string renamed(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = find_word(text, from, 0); at != std::string::npos; at = find_word(text, from, at))
    text.replace(at, from.size(), to);
  return text;
}

// What a part of a file defines, without the comment above it in Python; empty: nothing.
std::string defined_name(std::string& text, Language language) {
  if (language == Language::kCpp) {
    size_t line = 0;
    while (text.compare(line, 2, "//") == 0) line = std::min(text.find('\n', line), text.size() - 1) + 1;
    if (const size_t next = text.find('\n', line) + 1;
        text.compare(line, 8, "template") == 0 && text.compare(next, 7, "struct ") == 0)
      line = next;
    if (text.compare(line, 7, "struct ") == 0 && text.ends_with("\n};"))
      return text.substr(line + 7, text.find(' ', line + 7) - line - 7);
    const size_t end = std::min(text.find('(', line), text.size());
    return text.ends_with("}") ? text.substr(text.rfind(' ', end) + 1, end - text.rfind(' ', end) - 1) : "";
  }
  while (text.starts_with("#")) text.erase(0, text.find('\n') + 1);
  const size_t keyword = text.starts_with("@") ? text.find('\n') + 1 : 0, begin = text.find(' ', keyword) + 1;
  const bool defines = text.compare(keyword, 4, "def ") == 0 || text.compare(keyword, 6, "class ") == 0;
  return defines ? text.substr(begin, text.find_first_of("(:", begin) - begin) : "";
}

}  // namespace

Helpers::Helpers(const std::vector<embedded::File>& files, Copy copy)
    : copy_(copy), language_(files[0].path.ends_with(".py") ? Language::kPython : Language::kCpp) {
  for (const embedded::File& file : files) {
    for (std::string text : split(file.text, language_ == Language::kCpp ? "\n\n" : "\n\n\n")) {
      text.erase(text.find_last_not_of('\n') + 1);
      if (const std::string name = defined_name(text, language_); !name.empty())
        definitions_.push_back({name, text + "\n"});
    }
  }
}

std::set<std::string> Helpers::names() const {
  std::set<std::string> all;
  for (const Definition& d : definitions_) all.insert(d.name);
  return all;
}

std::vector<Helpers::Definition> Helpers::variants_of(const std::set<std::string>& variants) const {
  std::vector<Definition> all;
  for (Definition d : definitions_) {
    for (const std::string& variant : variants) {
      if (!d.name.ends_with("_" + variant)) continue;
      const std::string plain = d.name.substr(0, d.name.size() - variant.size() - 1);
      std::erase_if(all, [&](const Definition& other) { return other.name == plain; });
      d = {plain, renamed(d.text, d.name, plain)};
    }
    if (!variants.contains("mixed") && d.name != "half") d.text = without_half(d.text);
    all.push_back(d);
  }
  return all;
}

std::string Helpers::used_by(const std::string& script, const std::set<std::string>& variants) const {
  const std::vector<Definition> definitions = variants_of(variants);
  const std::string gap = language_ == Language::kCpp ? "\n" : "\n\n";
  std::string used, before;
  do {
    before = used;
    used.clear();
    const std::string code = code_of(script + before, language_);
    for (const Definition& d : definitions) {
      if (uses_of(code, d.name).empty()) continue;
      used += (copy_ == Copy::kWhole ? d.text : as_called(d.name, d.text, code)) + gap;
    }
  } while (used != before);
  return used;
}

}  // namespace bakeoff::emit
