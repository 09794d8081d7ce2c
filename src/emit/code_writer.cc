#include "emit/code_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "base/texts.h"

namespace bakeoff::emit {
namespace {

constexpr int kPythonColumns = 88;

std::string substitute(std::string_view text, const Variables& variables) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '$') {
      out += text[i++];
      continue;
    }
    const size_t end = text.find('$', i + 1);
    const std::string_view name = text.substr(i + 1, end == std::string_view::npos ? end : end - i - 1);
    const auto found = variables.find(name);
    if (end == std::string_view::npos || (found == variables.end() && !name.empty())) {
      std::fprintf(stderr, "emitter bug: no value for '$%s'\n", std::string(name).c_str());
      std::abort();
    }
    out += name.empty() ? "$" : found->second;
    i = end + 1;
  }
  return out;
}

// An expression in two lines, before its last operator outside of brackets; in one where it has none.
std::vector<std::string> at_operator(const std::string& text) {
  size_t last = 0;
  int depth = 0;
  for (size_t i = 1; i + 2 < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if (text[i] == ')' || text[i] == ']') --depth;
    const bool apart = depth == 0 && text[i - 1] == ' ' && text[i + 1] == ' ';
    if (apart && std::string_view("+-*/@<").find(text[i]) != std::string_view::npos) last = i;
  }
  if (last == 0) return {text};
  return {text.substr(0, last - 1), text.substr(last)};
}

}  // namespace

void CodeWriter::print(std::string_view text, const Variables& variables) {
  const std::string full = substitute(text, variables);
  for (size_t begin = 0; begin < full.size();) {
    const size_t end = std::min(full.find('\n', begin), full.size());
    line(std::string_view(full).substr(begin, end - begin));
    begin = end + 1;
  }
}

void CodeWriter::line(std::string_view text) { statements_.push_back({level_, std::string(text)}); }

void CodeWriter::blank(int lines) {
  for (int i = 0; i < lines; ++i) line("");
}

void CodeWriter::call(std::string_view head, const std::vector<std::string>& arguments,
                      std::string_view tail) {
  statements_.push_back({level_, std::string(head), arguments, std::string(tail), true});
}

void CodeWriter::statement(const Statement& statement) {
  statements_.push_back(statement);
  statements_.back().level += level_;
}

void CodeWriter::give_back(const std::string& value) {
  constexpr size_t kRoom = 76;  // of 88 columns, for the indentation and "return"
  const std::string head = value + " = ";
  if (statements_.empty() || statements_.back().level != level_ || !statements_.back().head.starts_with(head))
    return line("return " + value);
  Statement& last = statements_.back();
  if (!last.call && last.head.size() > kRoom) return line("return " + value);
  last.head.replace(0, head.size(), "return ");
}

std::string CodeWriter::text() const {
  std::string text;
  const auto line = [&](int level, std::string_view content) {
    if (!content.empty()) text.append(static_cast<size_t>(level * spaces_), ' ').append(content);
    text += '\n';
  };
  for (const Statement& s : statements_) {
    if (!s.call) {
      line(s.level, s.head);
      continue;
    }
    const std::string joined = join(s.arguments, ", ");
    const std::string flat = fmt::format("{}({}){}", s.head, joined, s.tail);
    const auto fits = [&](int level, const std::string& content) {
      return level * spaces_ + static_cast<int>(content.size()) <= kPythonColumns;
    };
    if (fits(s.level, flat) || s.arguments.empty()) {
      line(s.level, flat);
      continue;
    }
    // Of two pairs of brackets the last is broken where all before it fits.
    const std::string before = fmt::format("{}({})(", s.head, joined);
    if (s.tail.size() > 2 && s.tail.front() == '(' && s.tail.back() == ')' && fits(s.level, before)) {
      line(s.level, before);
      line(s.level + 1, s.tail.substr(1, s.tail.size() - 2));
      line(s.level, ")");
      continue;
    }
    // Where not even "name = Class(" fits, what stands behind the equals sign gets brackets of its own.
    if (const size_t equals = s.head.find(" = ");
        spaces_ == 4 && equals != std::string::npos && !fits(s.level, s.head + "(")) {
      CodeWriter value(spaces_);
      value.statements_.push_back({s.level + 1, s.head.substr(equals + 3), s.arguments, s.tail, true});
      line(s.level, s.head.substr(0, equals + 3) + "(");
      text += value.text();
      line(s.level, ")");
      continue;
    }
    line(s.level, s.head + "(");
    const bool grouped = s.head.ends_with(' ') && s.arguments.size() == 1;  // no call: a comma makes a tuple
    if (fits(s.level + 1, joined)) {
      line(s.level + 1, joined);
    } else if (grouped) {
      for (const std::string& part : at_operator(joined)) line(s.level + 1, part);
    } else {
      for (const std::string& argument : s.arguments) line(s.level + 1, argument + ",");
    }
    line(s.level, ")" + s.tail);
  }
  return text;
}

std::string python_real(double value) {
  std::string text = fmt::format("{}", value);  // shortest that reads back the same
  if (const size_t e = text.find('e'); e != std::string::npos) {
    // "1e-07" -> "1e-7"
    size_t digits = e + 2;
    while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
    return text;
  }
  if (text.starts_with("0.000")) {
    const size_t first = text.find_first_not_of("0.");
    std::string digits = text.substr(first);
    const int exponent = static_cast<int>(first) - 1;
    if (digits.size() > 1) digits.insert(1, ".");
    return fmt::format("{}e-{}", digits, exponent);
  }
  return text.find('.') == std::string::npos && text.find("inf") == std::string::npos ? text + ".0" : text;
}

std::string python_tuple(const std::vector<int64_t>& values) {
  return fmt::format("({}{})", join(values, ", "), values.size() == 1 ? "," : "");
}

std::string python_bool(bool value) { return value ? "True" : "False"; }

std::string camel_case(std::string_view name) {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out.insert(0, "Model");
  return out;
}

std::string snake_case(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !out.empty() && out.back() != '_') out += '_';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string identifier(std::string_view name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0) out.insert(0, "layer_");
  return out;
}

std::string public_identifier(std::string_view name) {
  return identifier(name.substr(std::min(name.find_first_not_of('_'), name.size())));
}

std::string layer_of(std::string_view parameter) {
  const size_t dot = parameter.rfind('.');
  return std::string(dot == std::string_view::npos ? parameter : parameter.substr(0, dot));
}

std::string leaf_of(std::string_view parameter) {
  const size_t dot = parameter.rfind('.');
  return std::string(dot == std::string_view::npos ? parameter : parameter.substr(dot + 1));
}

}  // namespace bakeoff::emit
