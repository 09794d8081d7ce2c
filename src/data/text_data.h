#pragma once

// Turns the words of a text into data for a language model.
//
//   const Tokens tokens = tokenise(text, 500);            // the 499 most frequent words, and "unknown"
//   TRY(const auto rows, language_rows(tokens, shape, "train"));   // words and the words after them
//
// A word is a run of letters, digits and apostrophes, in lower case (bytes beyond ASCII count as letters
// and are not changed); every other character that is no white space is a word of its own.

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
  std::vector<int64_t> ids = {};  // in the order of the text, each in [0, words.size())
  std::vector<std::string>
      words;            // by id; 0 is "<unknown>", the others by falling frequency, then by spelling
  int64_t unknown = 0;  // how many ids are 0
};
// Uses at most `vocabulary` (>= 1) different ids.
Tokens tokenise(std::string_view text, int64_t vocabulary);

// What a workload needs to learn a text: two inputs i32[N,T], the words and the words that follow them; the
// first has a bound, which is the number of rows of its embedding. An error says what the workload has
// instead.
struct LanguageShape {
  std::string words = {}, next = {};  // names of the two inputs
  int64_t length = 0;                 // T
  int64_t vocabulary = 0;
};
Result<LanguageShape> language_shape(const ir::Workload& workload);

// Consecutive windows of T words, and the same windows moved on by one word: I32 [rows,T] each. The last
// tenth of the rows is the split "test", the others are "train". Error if the text is too short for one row
// of both.
Result<tensor::NamedTensors> language_rows(const Tokens& tokens, const LanguageShape& shape,
                                           const std::string& split);

// The licences that every Debian system has (package base-files), in the order of their names, without links.
inline constexpr const char* kDebianTexts = "/usr/share/common-licenses";
// `from` itself if it is a file, else the files of the folder `from`.
Result<std::vector<std::filesystem::path>> text_files(const std::filesystem::path& from);
// The concatenated text of these files.
Result<std::string> read_texts(const std::filesystem::path& from);

}  // namespace bakeoff
