// Rows are streamed, as data may be larger than memory: a header says type and shape, then blocks of numbers
// are converted to the input's type while they are handed on. The error for a number that the type cannot
// hold names its row. An array in Fortran order is the exception: its rows are not in one piece, so it is
// read whole.

#include "data/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/nearest.h"
#include "base/texts.h"
#include "data/byte_source.h"
#include "data/elements.h"
#include "data/idx.h"
#include "data/npy.h"

namespace bakeoff {
namespace {

namespace fs = std::filesystem;

constexpr size_t kConvertedAtOnce = size_t{1} << 18;

// An array on disk.
struct Array {
  std::string title;  // "'data.npz': array 'x'"
  std::function<Result<std::unique_ptr<ByteSource>>()> open;
  Result<ArrayHeader> (*read_header)(ByteSource&, const std::string&) = nullptr;
};

// "; it has: x, y"
std::string listed(std::vector<std::string> names) {
  constexpr size_t kMost = 20;
  const size_t all = names.size();
  names.resize(std::min(all, kMost));
  return fmt::format("{}{}", join(names, ", "), all > kMost ? fmt::format(", and {} more", all - kMost) : "");
}

Result<Array> array_of(const DataSpec& spec, const ir::Input& input) {
  const auto found = spec.inputs.find(input.name);
  if (spec.kind != DataKind::kNpz) {
    if (found == spec.inputs.end()) {
      return Error{.message = fmt::format("no file is named for the input '{}' ({})", input.name,
                                          ir::to_text(input.type)),
                   .remedy = fmt::format("add it to data.inputs: {{ {} = \"...\" }}", input.name)};
    }
    const fs::path file = found->second[0];
    return Array{.title = fmt::format("'{}'", file.string()),
                 .open = [file, most = spec.expansion] { return open_bytes(file, most); },
                 .read_header = spec.kind == DataKind::kNpy ? read_npy_header : read_idx_header};
  }
  const std::string name = found == spec.inputs.end() ? input.name : found->second[0];
  TRY(std::vector<std::string> entries, zip_entries(spec.path));
  const std::string entry = name + ".npy";
  if (std::ranges::find(entries, entry) == entries.end()) {
    for (std::string& each : entries) {
      if (each.ends_with(".npy")) each.resize(each.size() - 4);
    }
    return Error{.message = fmt::format("'{}' has no array '{}' ({}); it has: {}", spec.path.string(), name,
                                        ir::to_text(input.type), listed(entries)),
                 .remedy = fmt::format("name the array: data.inputs = {{ {} = \"...\" }}", input.name)};
  }
  return Array{
      .title = fmt::format("'{}': array '{}'", spec.path.string(), name),
      .open = [path = spec.path, entry, most = spec.expansion] { return open_zip_entry(path, entry, most); },
      .read_header = read_npy_header};
}

// Converts and hands on what it gets; the error names the row.
class Converter {
 public:
  Converter(const Array& array, const ArrayHeader& header, tensor::DType to, const tensor::Sink& sink)
      : array_(array), header_(header), to_(to), sink_(sink) {
    const int64_t rows = header.shape[0];
    row_ = std::max<size_t>(1, static_cast<size_t>(tensor::elements(header.shape) / rows));
  }
  Status add(std::string_view bytes) {
    out_.clear();
    if (const auto misfit = convert(header_.element, bytes, to_, out_)) {
      return Error{.message = fmt::format("{} holds an integer in row {} that {} cannot hold", array_.title,
                                          (done_ + *misfit) / row_, name(to_)),
                   .remedy = "convert the array to a smaller type, or drop such rows"};
    }
    done_ += bytes.size() / header_.element.size;
    return sink_(out_);
  }

 private:
  const Array& array_;
  const ArrayHeader& header_;
  tensor::DType to_;
  const tensor::Sink& sink_;
  size_t row_ = 1, done_ = 0;
  std::string out_;
};

Status check_end(const Array& array, ByteSource& source) {
  char more = 0;
  TRY(const size_t n, source.read(&more, 1));
  if (n == 0) return Done{};
  return Error{.message = fmt::format("{} has more bytes than its header promises", array.title),
               .remedy = "it is damaged: make it or get it again"};
}

Error truncated(const Array& array, const ArrayHeader& header, size_t bytes) {
  const auto row =
      static_cast<size_t>(tensor::elements(header.shape) / header.shape[0]) * header.element.size;
  return {.message = fmt::format("{} is truncated: its header promises {} rows, it ends in row {}",
                                 array.title, header.shape[0], bytes / std::max<size_t>(1, row)),
          .remedy = "make it or get it again"};
}

Status write_in_order(const Array& array, const ArrayHeader& header, ByteSource& source,
                      Converter& converter) {
  const size_t total = static_cast<size_t>(tensor::elements(header.shape)) * header.element.size;
  std::string piece;
  for (size_t done = 0; done < total;) {
    piece.resize(std::min(kConvertedAtOnce * header.element.size, total - done));
    TRY(const size_t n, source.read(piece.data(), piece.size()));
    if (n < piece.size()) return truncated(array, header, done + n);
    CHECK_OK(converter.add(piece));
    done += n;
  }
  return check_end(array, source);
}

// The whole array is in memory once: its rows are not in one piece.
Status write_column_major(const Array& array, const ArrayHeader& header, ByteSource& source,
                          Converter& converter) {
  const size_t size = header.element.size;
  const auto count = static_cast<size_t>(tensor::elements(header.shape));
  std::string whole;
  whole.reserve(count * size);
  while (whole.size() < count * size) {
    const size_t begin = whole.size(), wanted = std::min(kConvertedAtOnce * size, count * size - begin);
    whole.resize(begin + wanted);
    TRY(const size_t n, source.read(whole.data() + begin, wanted));
    if (n < wanted) return truncated(array, header, 0);
  }
  CHECK_OK(check_end(array, source));
  const size_t rank = header.shape.size();
  std::vector<size_t> strides(rank, size), at(rank, 0);
  for (size_t axis = 1; axis < rank; ++axis)
    strides[axis] = strides[axis - 1] * static_cast<size_t>(header.shape[axis - 1]);
  std::string piece;
  size_t from = 0;
  for (size_t i = 0; i < count; ++i) {
    piece.append(whole, from, size);
    for (size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++at[axis] < static_cast<size_t>(header.shape[axis])) break;
      from -= strides[axis] * at[axis];
      at[axis] = 0;
    }
    if (piece.size() < kConvertedAtOnce * size && i + 1 < count) continue;
    CHECK_OK(converter.add(piece));
    piece.clear();
  }
  return Done{};
}

}  // namespace

Result<OwnData> open_arrays(const DataSpec& spec, const ir::Workload& workload) {
  OwnData own;
  for (const ir::Input& input : workload.inputs) {
    TRY(const Array array, array_of(spec, input));
    TRY(const auto source, array.open());
    TRY(const ArrayHeader header, array.read_header(*source, array.title));
    const auto placed = [&](const Error& error) {
      return Error{.message = array.title + " " + error.message, .remedy = error.remedy};
    };
    const auto dtype = stored_as(header.element, input.type.dtype);
    if (!dtype) return placed(dtype.error());
    auto shape = fit_shape(header.shape, input.type);
    if (!shape) return placed(shape.error());
    own.titles[input.name] = array.title;
    own.tensors.push_back({.name = input.name,
                           .dtype = *dtype,
                           .shape = std::move(*shape),
                           .write = [array, header, to = *dtype](const tensor::Sink& sink) -> Status {
                             TRY(const auto bytes, array.open());
                             CHECK_OK(array.read_header(*bytes, array.title));
                             Converter converter(array, header, to, sink);
                             return header.column_major ? write_column_major(array, header, *bytes, converter)
                                                        : write_in_order(array, header, *bytes, converter);
                           }});
  }
  return own;
}

}  // namespace bakeoff
