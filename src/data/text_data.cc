#include "data/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/files.h"
#include "ir/bounds.h"

namespace bakeoff {
namespace {

bool in_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '\'';
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::vector<std::string> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > at) {
      words.push_back(lower(text.substr(at, end - at)));
      at = end;
      continue;
    }
    if (!is_space(text[at])) words.emplace_back(1, text[at]);
    ++at;
  }
  return words;
}

// The most frequent ones first, of equally frequent ones in the order of their spelling.
std::vector<std::string> by_frequency(const std::vector<std::string>& words, size_t most) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : words) ++counts[word];
  std::vector<std::pair<std::string, int64_t>> all(counts.begin(), counts.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  all.resize(std::min(all.size(), most));
  std::vector<std::string> known;
  for (const auto& [word, count] : all) known.push_back(word);
  return known;
}

tensor::RawTensor window(const std::vector<int64_t>& ids, size_t first, size_t rows, size_t length) {
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(first);
  const tensor::IntTensor ints{
      {static_cast<int64_t>(rows), static_cast<int64_t>(length)},
      std::vector<int64_t>(begin, begin + static_cast<std::ptrdiff_t>(rows * length))};
  return tensor::encode(ints, tensor::DType::kI32).value();  // ids below a vocabulary always fit
}

}  // namespace

Tokens tokenise(std::string_view text, int64_t vocabulary) {
  const std::vector<std::string> words = split_words(text);
  Tokens tokens{.words = by_frequency(words, static_cast<size_t>(vocabulary - 1))};
  tokens.words.insert(tokens.words.begin(), "<unknown>");
  std::unordered_map<std::string_view, int64_t> ids;
  for (size_t id = 1; id < tokens.words.size(); ++id) ids[tokens.words[id]] = static_cast<int64_t>(id);
  for (const std::string& word : words) {
    const auto found = ids.find(word);
    tokens.ids.push_back(found == ids.end() ? 0 : found->second);
    tokens.unknown += found == ids.end();
  }
  return tokens;
}

Result<LanguageShape> language_shape(const ir::Workload& workload) {
  const auto is_row = [](const ir::Input& input) {
    return input.type.dtype == ir::DType::kI32 && input.type.shape.size() == 2;
  };
  const std::optional<int64_t> bound =
      workload.inputs.empty() ? std::nullopt : ir::integer_bound(workload, 0);
  const auto& inputs = workload.inputs;
  if (inputs.size() == 2 && is_row(inputs[0]) && inputs[0].type == inputs[1].type && bound)
    return LanguageShape{inputs[0].name, inputs[1].name, inputs[0].type.shape[1], *bound};
  std::string has;
  for (const ir::Input& input : inputs)
    has += fmt::format("{}{}: {}", has.empty() ? "" : ", ", input.name, ir::to_text(input.type));
  return Error{
      .message = fmt::format("a text is data for a language model: words i32[N,T] and the words after "
                             "them, i32[N,T]; '{}' has {}",
                             workload.name, has),
      .remedy = "use such a workload (lstm_lm_small), or data.kind = \"synthetic\""};
}

Result<tensor::NamedTensors> language_rows(const Tokens& tokens, const LanguageShape& shape,
                                           const std::string& split) {
  const auto length = static_cast<size_t>(shape.length);
  const size_t rows = tokens.ids.empty() ? 0 : (tokens.ids.size() - 1) / length;
  const size_t held_back = std::max<size_t>(1, rows / 10);
  if (rows < 2) {
    return Error{
        .message = fmt::format("the text has {} words, a row takes {}", tokens.ids.size(), length + 1),
        .remedy = "use a longer text"};
  }
  const bool test = split == "test";
  const size_t first = test ? rows - held_back : 0, count = test ? held_back : rows - held_back;
  return tensor::NamedTensors{{shape.words, window(tokens.ids, first * length, count, length)},
                              {shape.next, window(tokens.ids, first * length + 1, count, length)}};
}

Result<std::vector<fs::path>> text_files(const fs::path& from) {
  std::error_code code;
  if (!fs::is_directory(from, code)) return std::vector{from};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(from, code)) {
    if (entry.is_regular_file(code) && !entry.is_symlink(code)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) return Error{.message = fmt::format("there are no texts in '{}'", from.string())};
  return files;
}

Result<std::string> read_texts(const fs::path& from) {
  TRY(const auto files, text_files(from));
  if (files.front() == from) return read_file(from);
  std::string all;
  for (const fs::path& file : files) {
    TRY(const std::string text, read_file(file));
    all += text + "\n";
  }
  return all;
}

}  // namespace bakeoff
