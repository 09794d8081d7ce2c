#pragma once

// Words of a text as the data of a language model.
//
//   const Tokens tokens = tokenise(text, 500);            // the 499 most frequent words, and "unknown"
//   TRY(const auto rows, language_rows(tokens, shape, "train"));   // words and the words after them
//
// A word is a run of letters, digits and apostrophes, in lower case (bytes beyond ASCII count as letters, as
// they are); every other mark that is no space is a word of its own.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "tensor/safetensors.h"

namespace bakeoff {

struct Tokens {
  std::vector<int64_t> ids = {};  // in the order of the text, in [0, words.size())
  std::vector<std::string>
      words;            // by id; 0 is "<unknown>", the others by falling frequency, then by spelling
  int64_t unknown = 0;  // how many ids are 0
};
// At most `vocabulary` (>= 1) different ids.
Tokens tokenise(std::string_view text, int64_t vocabulary);

// What a workload must look like to learn a text: two inputs i32[N,T], words and the words after them, the
// first of which has a bound (the rows of its embedding). Error names what it has instead.
struct LanguageShape {
  std::string words = {}, next = {};  // names of the inputs
  int64_t length = 0;                 // T
  int64_t vocabulary = 0;
};
Result<LanguageShape> language_shape(const ir::Workload& workload);

// Consecutive windows of T words, each with the same window one word on: I32 [rows,T] each. The last tenth of
// the rows is the split "test", the others are "train". Error where the text is too short for a row of both.
Result<tensor::NamedTensors> language_rows(const Tokens& tokens, const LanguageShape& shape,
                                           const std::string& split);

// The licences that every Debian has (package base-files), in the order of their names; links are left out.
inline constexpr const char* kDebianTexts = "/usr/share/common-licenses";
// A text itself, or the files of a folder of texts.
Result<std::vector<std::filesystem::path>> text_files(const std::filesystem::path& from);
// All that is in them.
Result<std::string> read_texts(const std::filesystem::path& from);

}  // namespace bakeoff
