#pragma once

// The words of docs/glossary.md, which is inside the program.

#include <string>
#include <vector>

namespace bakeoff::cli {

struct Term {
  std::vector<std::string> words = {};  // "eliminated", "out"
  std::string meaning = {};
  std::string section = {};  // "How time is measured"
};
const std::vector<Term>& glossary();

// The term of this word or of its singular, whatever its case; null: there is none.
const Term* find_term(const std::string& word);

// "heat: one comparison: ...", in lines of at most `width` columns.
std::string term_text(const Term& term, int width);
std::string all_terms(int width);

}  // namespace bakeoff::cli
