#include "json.h"

#include <charconv>
#include <cmath>
#include <stdexcept>

namespace bakeoff {
namespace {

constexpr int kDepth = 64;

void append_utf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Json all() {
    Json value = element(0);
    space();
    if (at_ != text_.size()) fail("text after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::invalid_argument("not JSON: " + what + " at byte " + std::to_string(at_));
  }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    space();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(std::string("expected '") + c + "'");
  }
  Json word(std::string_view word, Json value) {
    if (text_.substr(at_, word.size()) != word) fail("unknown word");
    at_ += word.size();
    return value;
  }

  Json element(int depth) {
    if (depth > kDepth) fail("too deep");
    space();
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        return word("true", true);
      case 'f':
        return word("false", false);
      case 'n':
        return word("null", Json());
      default:
        return number();
    }
  }

  Json object(int depth) {
    Json::Object members;
    need('{');
    if (take('}')) return members;
    do {
      space();
      if (peek() != '"') fail("expected a key");
      std::string key = string();
      need(':');
      members.emplace_back(std::move(key), element(depth + 1));
    } while (take(','));
    need('}');
    return members;
  }

  Json array(int depth) {
    Json::Array items;
    need('[');
    if (take(']')) return items;
    do items.push_back(element(depth + 1));
    while (take(','));
    need(']');
    return items;
  }

  uint32_t hex() {
    uint32_t code = 0;
    const char* const begin = text_.data() + at_;
    if (at_ + 4 > text_.size()) fail("short \\u");
    const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
    if (error != std::errc() || end != begin + 4) fail("bad \\u");
    at_ += 4;
    return code;
  }

  void escape(std::string& out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    const char c = peek();
    ++at_;
    if (const size_t known = kFrom.find(c); known != std::string_view::npos) {
      out += kTo[known];
      return;
    }
    if (c != 'u') fail("unknown escape");
    uint32_t code = hex();
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
      if (text_.substr(at_, 2) != "\\u") fail("half a surrogate pair");
      at_ += 2;
      code = 0x10000 + ((code - 0xD800) << 10) + ((hex() - 0xDC00) & 0x3FF);
    }
    append_utf8(out, code);
  }

  std::string string() {
    std::string out;
    need('"');
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) fail("control character in a string");
      ++at_;
      if (c == '\\') {
        escape(out);
      } else {
        out += c;
      }
    }
    need('"');
    return out;
  }

  Json number() {
    const char* const begin = text_.data() + at_;
    const char* const limit = text_.data() + text_.size();
    if (const char c = peek(); c != '-' && (c < '0' || c > '9')) fail("expected a value");
    double real = 0;
    const auto [end, error] = std::from_chars(begin, limit, real);
    if (error != std::errc()) fail("bad number");
    const std::string_view written(begin, static_cast<size_t>(end - begin));
    at_ += written.size();
    int64_t integer = 0;
    const auto whole = std::from_chars(begin, end, integer);
    if (whole.ec == std::errc() && whole.ptr == end) return integer;
    return real;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void print_string(std::string& out, const std::string& text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void print_real(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "\"nan\"";
  } else if (std::isinf(value)) {
    out += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);  // shortest that reads back
  }
}

}  // namespace

Json Json::parse(std::string_view text) { return Parser(text).all(); }

std::string Json::dump() const {
  std::string out;
  print(out);
  return out;
}

void Json::print(std::string& out) const {
  if (const auto* flag = std::get_if<bool>(&value_)) {
    out += *flag ? "true" : "false";
  } else if (const auto* whole = std::get_if<int64_t>(&value_)) {
    out += std::to_string(*whole);
  } else if (const auto* real = std::get_if<double>(&value_)) {
    print_real(out, *real);
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    print_string(out, *text);
  } else if (const auto* items = std::get_if<Array>(&value_)) {
    out += '[';
    for (size_t i = 0; i < items->size(); ++i) {
      if (i > 0) out += ", ";
      (*items)[i].print(out);
    }
    out += ']';
  } else if (const auto* members = std::get_if<Object>(&value_)) {
    out += '{';
    for (size_t i = 0; i < members->size(); ++i) {
      if (i > 0) out += ", ";
      print_string(out, (*members)[i].first);
      out += ": ";
      (*members)[i].second.print(out);
    }
    out += '}';
  } else {
    out += "null";
  }
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  for (const auto& [name, value] : *members) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json& Json::operator[](const std::string& key) {
  if (is_null()) value_ = Object();
  auto& members = std::get<Object>(value_);
  for (auto& [name, value] : members) {
    if (name == key) return value;
  }
  return members.emplace_back(key, Json()).second;
}

}  // namespace bakeoff
