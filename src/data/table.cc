// A CSV file is read once, column by column into memory, 4 bytes for each value, because two things are known
// only at its end: how many rows there are, and the number of each text of a category, which is its place
// among all sorted texts. While reading, a text gets the number of its first appearance, and places()
// translates.
//
// Every error names the file and the line, and what the cell holds with its unprintable bytes shown. A cell
// is checked against the bounds of the op that reads it, so a label that is too large is found in its line
// and not in a step.

#include "data/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/nearest.h"
#include "data/csv.h"
#include "data/elements.h"
#include "ir/bounds.h"

namespace bakeoff {
namespace {

// The texts of a category, by the order in which they come.
struct Category {
  std::map<std::string, int32_t, std::less<>> ids;

  int32_t id(const std::string& text) {
    return ids.try_emplace(text, static_cast<int32_t>(ids.size())).first->second;
  }
  std::vector<std::string> sorted() const {
    std::vector<std::string> texts;
    for (const auto& [text, id] : ids) texts.push_back(text);
    return texts;
  }
  // By id: the place among the sorted texts.
  std::vector<int32_t> places() const {
    std::vector<int32_t> by_id(ids.size());
    int32_t place = 0;
    for (const auto& [text, id] : ids) by_id[static_cast<size_t>(id)] = place++;
    return by_id;
  }
};

// Of the file, for a message: bytes that are no printable UTF-8 are shown as such.
std::string shown(const std::string& text) {
  const std::string part = text.size() <= 40 ? text : text.substr(0, 40) + "...";
  const std::string quoted = dump(nlohmann::json(part));
  return quoted.substr(1, quoted.size() - 2);
}

// A column of the file that an input reads.
struct TableColumn {
  std::string name;
  size_t at = 0;  // among the fields of a record
  bool integers = false;
  std::optional<ir::Bound> bound = {};  // of integers
  std::shared_ptr<Category> category = nullptr;
  std::vector<float> reals = {};  // one of these two has the values
  std::vector<int32_t> ints = {};
};

class Table {
 public:
  Table(const DataSpec& spec, const ir::Workload& workload) : spec_(spec), workload_(workload) {}

  Status read() {
    CHECK_OK(read_csv(spec_.path, spec_.delimiter, spec_.expansion,
                      [this](const auto& fields, int64_t line) -> Status {
                        for (const std::string& field : fields) {
                          if (field.find('\0') != std::string::npos)
                            return error(line, "holds a zero byte",
                                         "save the file as text in UTF-8; is it UTF-16, or no CSV file?");
                        }
                        if (width_ == 0) return header(fields, line);
                        return record(fields, line);
                      }));
    if (rows_ > 0) return check_categories();
    return Error{.message = fmt::format("'{}' has no rows below its header", spec_.path.string()),
                 .remedy = "data needs at least as many rows as a batch"};
  }
  int64_t rows() const { return rows_; }
  std::vector<TableColumn>& columns(const std::string& input) { return columns_[input]; }

 private:
  Error error(int64_t line, std::string what, std::string remedy) const {
    return {std::move(what), fmt::format("{}:{}", spec_.path.string(), line), std::move(remedy)};
  }
  Status header(const std::vector<std::string>& names, int64_t line) {
    width_ = names.size();
    for (int id = 0; id < static_cast<int>(workload_.inputs.size()); ++id) {
      const ir::Input& input = workload_.inputs[static_cast<size_t>(id)];
      const auto named = spec_.inputs.find(input.name);
      if (named == spec_.inputs.end()) {
        return Error{.message = fmt::format("no column is named for the input '{}' ({})", input.name,
                                            ir::to_text(input.type)),
                     .remedy = fmt::format("add it to data.inputs: {{ {} = [\"...\"] }}", input.name)};
      }
      const ir::RowBounds bounds = ir::row_bounds(workload_, id);
      for (const std::string& name : named->second) {
        TRY(TableColumn column, column_of(names, line, name));
        column.integers = input.type.dtype == ir::DType::kI32;
        const size_t place = columns_[input.name].size();
        if (place < bounds.size()) column.bound = bounds[place];
        columns_[input.name].push_back(std::move(column));
      }
    }
    for (const std::string& name : spec_.categories) {
      if (!categories_.contains(name))
        return error(line, fmt::format("data.categories names '{}', which no input reads", name),
                     "remove it there, or add it to data.inputs");
    }
    return Done{};
  }
  Result<TableColumn> column_of(const std::vector<std::string>& names, int64_t line,
                                const std::string& name) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      std::vector<std::string> readable;
      for (const std::string& other : names) readable.push_back(shown(other));
      return error(line, fmt::format("there is no column '{}'", name), suggest(name, readable));
    }
    if (std::ranges::count(names, name) > 1)
      return error(line, fmt::format("there are two columns '{}'", name), "rename one of them");
    TableColumn column{.name = name, .at = static_cast<size_t>(found - names.begin())};
    if (std::ranges::find(spec_.categories, name) != spec_.categories.end()) {
      auto& category = categories_[name];
      if (!category) category = std::make_shared<Category>();
      column.category = category;
    }
    return column;
  }
  Status record(const std::vector<std::string>& fields, int64_t line) {
    if (fields.size() != width_)
      return error(line, fmt::format("{} fields, the header has {}", fields.size(), width_),
                   "fill the line up; a field that holds the delimiter needs quotes");
    for (auto& [input, columns] : columns_) {
      for (TableColumn& column : columns) CHECK_OK(take(column, fields[column.at], line));
    }
    ++rows_;
    return Done{};
  }
  Status take(TableColumn& column, const std::string& text, int64_t line) {
    if (text.empty())
      return error(line, fmt::format("column '{}' is empty", column.name), "fill it, or remove the line");
    if (column.category) {
      column.ints.push_back(column.category->id(text));
      return Done{};
    }
    double value = 0;
    const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
    const auto [end, code] = std::from_chars(begin, text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size()) {
      return error(
          line, fmt::format("column '{}' holds '{}', which is no number", column.name, shown(text)),
          fmt::format("write a number, or number its texts: data.categories = [\"{}\"]", column.name));
    }
    if (!column.integers) {
      column.reals.push_back(static_cast<float>(value));
      if (std::isfinite(column.reals.back())) return Done{};
      return error(
          line,
          fmt::format("column '{}' holds '{}', which is not a finite float32", column.name, shown(text)),
          "clean or remove the line");
    }
    const bool narrow = value == std::trunc(value) && value >= -2147483648.0 && value <= 2147483647.0;
    if (!narrow || (column.bound && !column.bound->holds(static_cast<int64_t>(value)))) {
      return error(line,
                   fmt::format("column '{}' holds {}, not an integer of {}", column.name, shown(text),
                               column.bound ? ir::to_text(*column.bound) : "32 bits"),
                   ir::remedy(column.bound.value_or(0)));
    }
    column.ints.push_back(static_cast<int32_t>(value));
    return Done{};
  }
  Status check_categories() const {
    for (const auto& [input, columns] : columns_) {
      for (const TableColumn& column : columns) {
        if (!column.category || !column.integers || !column.bound) continue;
        const auto texts = static_cast<int64_t>(column.category->ids.size());
        if (texts <= column.bound->end) continue;
        return Error{.message = fmt::format("'{}': column '{}' has {} texts, the workload takes {}",
                                            spec_.path.string(), column.name, texts, column.bound->end),
                     .remedy = "use a workload with more classes, or clean the column"};
      }
    }
    return Done{};
  }

  const DataSpec& spec_;
  const ir::Workload& workload_;
  size_t width_ = 0;
  int64_t rows_ = 0;
  std::map<std::string, std::shared_ptr<Category>> categories_;
  std::map<std::string, std::vector<TableColumn>> columns_;
};

// Number of values in a row.
int64_t width(const TableColumn& column) {
  return column.category && !column.integers ? static_cast<int64_t>(column.category->ids.size()) : 1;
}

// Appends row `row` of the column to `out`, 4 bytes for each value.
void append(const TableColumn& column, const std::vector<int32_t>& places, size_t row, std::string& out) {
  const auto add = [&out](auto value) {
    static_assert(sizeof value == 4);
    char bytes[4];
    std::memcpy(bytes, &value, 4);
    out.append(bytes, 4);
  };
  if (!column.category) return column.integers ? add(column.ints[row]) : add(column.reals[row]);
  const int32_t place = places[static_cast<size_t>(column.ints[row])];
  if (column.integers) return add(place);
  for (int32_t i = 0; i < width(column); ++i) add(i == place ? 1.0F : 0.0F);
}

Status write_columns(const std::vector<TableColumn>& columns, int64_t rows, const tensor::Sink& sink) {
  constexpr size_t kTablePiece = size_t{1} << 20;
  std::vector<std::vector<int32_t>> places;
  for (const TableColumn& column : columns)
    places.push_back(column.category ? column.category->places() : std::vector<int32_t>());
  std::string piece;
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < columns.size(); ++i)
      append(columns[i], places[i], static_cast<size_t>(row), piece);
    if (piece.size() < kTablePiece && row + 1 < rows) continue;
    CHECK_OK(sink(piece));
    piece.clear();
  }
  return Done{};
}

// "age, height, 4 texts of colour": what the values of a row are.
std::string text_of(const std::vector<TableColumn>& columns) {
  std::string text;
  for (const TableColumn& column : columns) {
    if (!text.empty()) text += ", ";
    if (width(column) != 1) text += fmt::format("{} texts of ", width(column));
    text += column.name;
  }
  return text;
}

}  // namespace

Result<OwnData> open_table(const DataSpec& spec, const ir::Workload& workload) {
  OwnData own;
  Table table(spec, workload);
  CHECK_OK(table.read());
  for (const ir::Input& input : workload.inputs) {
    auto columns = std::make_shared<std::vector<TableColumn>>(std::move(table.columns(input.name)));
    int64_t values = 0;
    for (const TableColumn& column : *columns) {
      values += width(column);
      if (column.category)
        own.metadata["classes of " + column.name] = dump(nlohmann::json(column.category->sorted()));
    }
    const tensor::Shape shape = ir::with_batch(input.type.shape, table.rows());
    own.titles[input.name] = fmt::format("'{}': input '{}'", spec.path.string(), input.name);
    if (tensor::elements(shape) != table.rows() * values) {
      return Error{
          .message = fmt::format("{} has {} values in a row ({}), the workload's input is {}",
                                 own.titles[input.name], values, text_of(*columns), ir::to_text(input.type)),
          .remedy = "name as many columns as the input takes, or use a workload of this width"};
    }
    own.tensors.push_back(
        {.name = input.name,
         .dtype = input.type.dtype == ir::DType::kI32 ? tensor::DType::kI32 : tensor::DType::kF32,
         .shape = shape,
         .write = [columns, rows = table.rows()](const tensor::Sink& sink) {
           return write_columns(*columns, rows, sink);
         }});
  }
  return own;
}

}  // namespace bakeoff
