#include "data/png_file.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <vector>

namespace bakeoff {
namespace {

// libpng leaves a function by longjmp, which runs no destructors: the functions that it leaves have none to
// run, and all that must be freed is a member of this.
struct Decoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view left;  // bytes that libpng has not read
  char what[200] = {};    // the error
  std::vector<png_bytep> rows;

  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }

  static void fail(png_structp png, png_const_charp what) {
    auto& self = *static_cast<Decoder*>(png_get_error_ptr(png));
    std::strncpy(self.what, what, sizeof self.what - 1);
    png_longjmp(png, 1);
  }
  static void ignore(png_structp, png_const_charp) {}
  static void read(png_structp png, png_bytep to, size_t size) {
    auto& self = *static_cast<Decoder*>(png_get_io_ptr(png));
    if (size > self.left.size()) png_error(png, "it is truncated");
    std::memcpy(to, self.left.data(), size);
    self.left.remove_prefix(size);
  }

  bool open() {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &fail, &ignore);
    info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr) {
      std::strncpy(what, "out of memory", sizeof what - 1);
      return false;
    }
    if (setjmp(png_jmpbuf(png)) != 0) return false;  // NOLINT: libpng's way
    png_set_read_fn(png, this, &read);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // sizes are checked below
    png_set_chunk_malloc_max(png, 1 << 23);
    png_set_chunk_cache_max(png, 100);
    png_read_info(png, info);
    return true;
  }
  // To 8 bits of red, green and blue.
  bool transform() {
    if (setjmp(png_jmpbuf(png)) != 0) return false;  // NOLINT
    png_set_palette_to_rgb(png);
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }
  bool read_rows() {
    if (setjmp(png_jmpbuf(png)) != 0) return false;  // NOLINT
    png_read_image(png, rows.data());
    png_read_end(png, nullptr);
    return true;
  }
};

}  // namespace

Result<Picture> decode_png(std::string_view bytes, const std::string& name) {
  const auto bad = [&name](const std::string& what, const std::string& remedy) {
    return Error{.message = fmt::format("{}: {}", name, what), .remedy = remedy};
  };
  Decoder decoder;
  decoder.left = bytes;
  const auto damaged = [&] {
    return bad(fmt::format("no sound PNG: {}", decoder.what), "make it or get it again, or remove it");
  };
  if (!decoder.open()) return damaged();
  Picture picture{.height = png_get_image_height(decoder.png, decoder.info),
                  .width = png_get_image_width(decoder.png, decoder.info),
                  .rgb = {}};
  if (picture.height * picture.width > kMostPixels) {
    return bad(fmt::format("{} x {} pixels; at most {} million are read", picture.width, picture.height,
                           kMostPixels / 1'000'000),
               "make it smaller");
  }
  if (png_get_bit_depth(decoder.png, decoder.info) == 16)
    return bad("16 bits a channel", "save it with 8 bits");
  if (!decoder.transform()) return damaged();
  const auto row = static_cast<size_t>(picture.width) * 3;
  if (png_get_rowbytes(decoder.png, decoder.info) != row) return bad("unknown colours", "save it as RGB");
  picture.rgb.resize(static_cast<size_t>(picture.height) * row);
  for (int64_t y = 0; y < picture.height; ++y) {
    decoder.rows.push_back(reinterpret_cast<png_bytep>(picture.rgb.data()) + static_cast<size_t>(y) * row);
  }
  if (!decoder.read_rows()) return damaged();
  return picture;
}

}  // namespace bakeoff
