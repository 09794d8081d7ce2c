#include "data/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <regex>

namespace bakeoff {
namespace {

constexpr size_t kLongestHeader = 4096;  // numpy's own have 128 bytes

Error npy_error(const std::string& title, const std::string& what) {
  return {.message = fmt::format("{} {}", title, what),
          .remedy = "save an array of numbers: numpy.save or numpy.savez"};
}

// "<f4", "|u1", ">i8".
Result<Element> element_of(const std::string& descr, const std::string& title) {
  static const std::regex kNumber("([<>|=])([biuf])([1248])");
  std::smatch parts;
  if (std::regex_match(descr, parts, kNumber) && !(parts[2] == "f" && parts[3] == "1"))
    return Element{parts[2].str()[0], static_cast<size_t>(parts[3].str()[0] - '0'), parts[1] == ">"};
  const char kind = descr.size() > 1 ? descr[1] : '?';
  const char* what = kind == 'O'   ? "Python objects, which are never loaded: they can run code"
                     : kind == 'c' ? "complex numbers"
                     : kind == 'U' || kind == 'S' ? "texts"
                     : kind == 'M' || kind == 'm' ? "times"
                                                  : "elements of another kind";
  return npy_error(title, fmt::format("holds {} (numpy's type '{}')", what, descr));
}

// "60000, 28, 28" or "60000,"; empty: one element without axes.
Result<tensor::Shape> shape_of(std::string_view text, const std::string& title) {
  tensor::Shape shape;
  int64_t elements = 1;
  for (size_t at = text.find_first_not_of(" ,"); at < text.size(); at = text.find_first_not_of(" ,", at)) {
    int64_t size = 0;
    const auto [end, code] = std::from_chars(text.data() + at, text.data() + text.size(), size);
    const bool overflows = code == std::errc() && __builtin_mul_overflow(elements, size, &elements);
    if (code != std::errc() || size < 0 || overflows || elements > std::numeric_limits<int64_t>::max() / 16)
      return npy_error(title, fmt::format("has the impossible shape ({})", text));
    shape.push_back(size);
    at = static_cast<size_t>(end - text.data());
  }
  return shape;
}

Result<std::string> header_text(ByteSource& source, const std::string& title) {
  const auto take = [&](size_t size) -> Result<std::string> {
    std::string bytes(size, '\0');
    TRY(const size_t n, source.read(bytes.data(), size));
    if (n < size) return npy_error(title, "ends within its header: it is truncated or no npy file");
    return bytes;
  };
  TRY(const std::string magic, take(8));
  if (!magic.starts_with("\x93NUMPY")) return npy_error(title, "is no npy file");
  TRY(const std::string length, take(magic[6] == 1 ? 2 : 4));
  size_t size = 0;
  for (size_t i = length.size(); i-- > 0;) size = size << 8 | static_cast<unsigned char>(length[i]);
  if (size > kLongestHeader)
    return npy_error(title,
                     fmt::format("has a header of {} bytes, longer than that of any array of numbers", size));
  return take(size);
}

}  // namespace

Result<ArrayHeader> read_npy_header(ByteSource& source, const std::string& title) {
  static const std::regex kDescr("'descr'\\s*:\\s*'([^']*)'"), kOrder("'fortran_order'\\s*:\\s*(True|False)"),
      kShape("'shape'\\s*:\\s*\\(([0-9, ]*)\\)"), kRecords("'descr'\\s*:\\s*\\[");
  TRY(const std::string text, header_text(source, title));
  std::smatch descr, order, shape;
  if (std::regex_search(text, kRecords)) return npy_error(title, "holds records, not an array of numbers");
  if (!std::regex_search(text, descr, kDescr) || !std::regex_search(text, order, kOrder) ||
      !std::regex_search(text, shape, kShape))
    return npy_error(title, "has a damaged header");
  ArrayHeader header;
  TRY(header.element, element_of(descr[1], title));
  TRY(header.shape, shape_of(shape[1].str(), title));
  header.column_major = order[1] == "True";
  return header;
}

}  // namespace bakeoff
