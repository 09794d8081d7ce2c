#include "data/csv.h"

#include <csv.h>
#include <fmt/format.h>

#include <string_view>

#include "data/byte_source.h"

namespace bakeoff {
namespace {

constexpr size_t kLongestField = size_t{1} << 20;

class Parser {
 public:
  Parser(const std::filesystem::path& path, char delimiter, const CsvRecord& record)
      : path_(path), record_(record) {
    csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI);
    csv_set_delim(&parser_, static_cast<unsigned char>(delimiter));
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() { csv_free(&parser_); }

  // Any part of the file, in which a line may go on from the part before.
  Status feed_lines(std::string_view text) {
    while (!text.empty()) {
      const size_t line = std::min(text.find('\n'), text.size() - 1) + 1;
      CHECK_OK(feed(text.substr(0, line)));
      text.remove_prefix(line);
    }
    return Done{};
  }

  Status finish() {
    bool completed = false;
    completed_ = &completed;
    if (csv_fini(&parser_, &on_field, &on_record, this) != 0)
      return error(first_line_, "begins a record whose last quote is never closed", "close the quote");
    return status_;
  }

 private:
  // A part of a line, or its end.
  Status feed(std::string_view text) {
    const bool ended = text.ends_with('\n');
    const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    if (between_) first_line_ = line_;
    bool completed = false;
    completed_ = &completed;
    if (csv_parse(&parser_, text.data(), text.size(), &on_field, &on_record, this) != text.size())
      return error(line_, "has a quote within a field that is not in quotes as a whole",
                   "write \"\" for a quote within a field, and quotes around the field");
    CHECK_OK(status_);
    if (parser_.entry_pos > kLongestField)
      return error(first_line_, "begins a field of more than 1 MiB", "close the quote before it");
    between_ = completed || (between_ && blank);
    if (ended) ++line_;
    return Done{};
  }

  static void on_field(void* text, size_t size, void* self) {
    static_cast<Parser*>(self)->fields_.emplace_back(static_cast<const char*>(text), size);
  }
  static void on_record(int, void* self) {
    auto& parser = *static_cast<Parser*>(self);
    *parser.completed_ = true;
    if (parser.status_) parser.status_ = parser.record_(parser.fields_, parser.first_line_);
    parser.fields_.clear();
  }
  Error error(int64_t line, const std::string& what, const std::string& remedy) const {
    return {
        .message = "the line " + what, .where = fmt::format("{}:{}", path_.string(), line), .remedy = remedy};
  }

  const std::filesystem::path& path_;
  const CsvRecord& record_;
  csv_parser parser_ = {};
  std::vector<std::string> fields_;
  Status status_ = Done{};
  int64_t line_ = 1, first_line_ = 1;  // the line that is read; where the record began
  bool between_ = true;                // two records
  bool* completed_ = nullptr;          // set where a record ends
};

}  // namespace

Status read_csv(const std::filesystem::path& path, char delimiter, double expansion,
                const CsvRecord& record) {
  TRY(const auto source, open_bytes(path, expansion));
  Parser parser(path, delimiter, record);
  std::string piece(size_t{1} << 18, '\0');
  bool first = true;
  for (;;) {
    TRY(const size_t n, source->read(piece.data(), piece.size()));
    std::string_view text(piece.data(), n);
    if (std::exchange(first, false) && text.starts_with("\xef\xbb\xbf"))
      text.remove_prefix(3);  // UTF-8's mark
    CHECK_OK(parser.feed_lines(text));
    if (n < piece.size()) return parser.finish();
  }
}

Status read_csv_text(std::string_view text, const std::filesystem::path& path, char delimiter,
                     const CsvRecord& record) {
  Parser parser(path, delimiter, record);
  CHECK_OK(parser.feed_lines(text));
  return parser.finish();
}

}  // namespace bakeoff
