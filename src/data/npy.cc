#include "data/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>

#include "base/texts.h"

namespace bakeoff {
namespace {

constexpr size_t kLongestHeader = 4096;  // numpy's own have 128 bytes

Error npy_error(const std::string& title, const std::string& what) {
  return {.message = fmt::format("{} {}", title, what),
          .remedy = "save an array of numbers: numpy.save or numpy.savez"};
}

// "<f4", "|u1", ">i8".
Result<Element> element_of(const std::string& descr, const std::string& title) {
  const auto among = [&](size_t at, std::string_view all) { return all.find(descr[at]) != all.npos; };
  if (descr.size() == 3 && among(0, "<>|=") && among(1, "biuf") && among(2, "1248") && !descr.ends_with("f1"))
    return Element{descr[1], static_cast<size_t>(descr[2] - '0'), descr[0] == '>'};
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

// What follows a key of the header, which is the text of a Python dict; empty where the key is missing.
std::string_view value_of(std::string_view header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  if (at == std::string_view::npos) return {};
  std::string_view rest = trimmed(header.substr(at + key.size() + 2));
  return rest.starts_with(':') ? trimmed(rest.substr(1)) : std::string_view();
}

// What stands between its first character and the next `end`; nullopt where it does not begin so, or has no end.
std::optional<std::string> between(std::string_view value, char begin, char end) {
  const size_t at = value.find(end, 1);
  if (!value.starts_with(begin) || at == std::string_view::npos) return std::nullopt;
  return std::string(value.substr(1, at - 1));
}

}  // namespace

Result<ArrayHeader> read_npy_header(ByteSource& source, const std::string& title) {
  TRY(const std::string text, header_text(source, title));
  const std::string_view type = value_of(text, "descr"), order = value_of(text, "fortran_order");
  if (type.starts_with('[')) return npy_error(title, "holds records, not an array of numbers");
  const auto descr = between(type, '\'', '\''), shape = between(value_of(text, "shape"), '(', ')');
  if (!descr || !shape || shape->find_first_not_of("0123456789, ") != std::string::npos ||
      !(order.starts_with("True") || order.starts_with("False")))
    return npy_error(title, "has a damaged header");
  ArrayHeader header;
  TRY(header.element, element_of(*descr, title));
  TRY(header.shape, shape_of(*shape, title));
  header.column_major = order.starts_with("True");
  return header;
}

}  // namespace bakeoff
