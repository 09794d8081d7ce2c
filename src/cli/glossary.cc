#include "cli/glossary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/embedded.h"
#include "base/texts.h"
#include "table/text.h"

namespace bakeoff::embedded {
const std::vector<File>& glossary_page();
}

namespace bakeoff::cli {
namespace {

std::string without_ticks(std::string text) {
  std::erase(text, '`');
  return text;
}

// The rows of the tables whose first column is "word".
std::vector<Term> read_terms(std::string_view page) {
  std::vector<Term> terms;
  std::string section;
  for (const std::string& line : split_trimmed(page, "\n")) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!line.starts_with("| ") || line.starts_with("| word |")) continue;
    const auto cells = split_trimmed(line, "|");
    if (cells.size() < 4) continue;
    terms.push_back({split_trimmed(without_ticks(cells[1]), ","), without_ticks(cells[2]), section});
  }
  return terms;
}

const Term* exactly(const std::string& word) {
  for (const Term& term : glossary())
    for (const std::string& one : term.words)
      if (lowered(one) == word) return &term;
  return nullptr;
}

}  // namespace

const std::vector<Term>& glossary() {
  static const std::vector<Term> all = read_terms(embedded::glossary_page().at(0).text);
  return all;
}

const Term* find_term(const std::string& word) {
  const std::string plain = lowered(word);
  if (const Term* term = exactly(plain)) return term;
  if (plain.ends_with("ies")) return exactly(plain.substr(0, plain.size() - 3) + "y");
  return plain.ends_with('s') ? exactly(plain.substr(0, plain.size() - 1)) : nullptr;
}

std::string term_text(const Term& term, int width) {
  return table::paragraph(fmt::format("{}: {}", join(term.words, ", "), term.meaning), width, "", "  ") +
         "\n";
}

std::string all_terms(int width) {
  std::string text, section;
  for (const Term& term : glossary()) {
    if (term.section != section) text += (text.empty() ? "" : "\n") + term.section + "\n\n";
    section = term.section;
    text += term_text(term, width);
  }
  return text;
}

}  // namespace bakeoff::cli
