#include "emit/native/finish.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <utility>

#include "base/texts.h"
#include "emit/code_writer.h"
#include "emit/cpp.h"
#include "emit/spelling.h"

namespace bakeoff::emit::native {
namespace {

bool in_type(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == ':'; }

// Names for the shapes of a line, in their place; those that are new are printed.
void name_shapes(std::string& line, Namer& names, std::set<std::string>& known, CodeWriter& out) {
  for (size_t at = line.find("{."); at != std::string::npos; at = line.find("{.", at + 1)) {
    size_t begin = at;
    while (begin > 0 && in_type(line[begin - 1])) --begin;
    if (begin == at) continue;  // "{.bias = b}": arguments by name
    const std::string type = line.substr(begin, at - begin);
    const std::string fields = line.substr(at, closing(line, at) + 1 - at);
    const std::string name = names.name(type + fields, "k" + type.substr(type.rfind(':') + 1));
    if (known.insert(name).second)
      cpp::statement(out, fmt::format("constexpr {} {} = {};", type, name, fields));
    line.replace(begin, type.size() + fields.size(), name);
    at = begin;
  }
}

// One line, broken where it is too long: a comment between words, a pointer into memory behind its "=", all else behind
// commas.
void print_line(CodeWriter& out, const std::string& text) {
  const std::string indent(std::min(text.find_first_not_of(' '), text.size()), ' ');
  const std::string_view own = std::string_view(text).substr(indent.size());
  if (text.size() <= cpp::kColumns || own.find(";  //") != std::string_view::npos) return out.line(text);
  if (own.starts_with("// ")) {
    std::string line = indent + "//";
    for (const std::string& word : split(own.substr(3), " ")) {
      if (line.size() + 1 + word.size() > cpp::kColumns) out.line(std::exchange(line, indent + "//"));
      line += " " + word;
    }
    return out.line(line);
  }
  const size_t equals = text.find(" = ");
  if (!own.starts_with("Real* const ") || equals == std::string::npos) return cpp::statement(out, text);
  out.line(text.substr(0, equals + 2));
  out.line(indent + "    " + text.substr(equals + 3));
}

}  // namespace

std::string finished(const std::string& wide, Namer& names) {
  CodeWriter shapes(2), rest(2);
  std::set<std::string> known;
  for (std::string& line : lines_of(wide)) {
    name_shapes(line, names, known, shapes);
    print_line(rest, line);
  }
  const std::string head = shapes.text();
  return head.empty() ? rest.text() : "// Shapes of layers.\n" + head + "\n" + rest.text();
}

}  // namespace bakeoff::emit::native
