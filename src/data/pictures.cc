#include "data/pictures.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "data/png_file.h"

#define STB_IMAGE_RESIZE_IMPLEMENTATION
#define STB_IMAGE_RESIZE_STATIC
#include <stb/stb_image_resize.h>

namespace bakeoff {
namespace {

const unsigned char* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* unsigned_bytes(std::string& bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }

Result<Picture> decode_jpeg(std::string_view bytes, const std::string& name) {
  const std::unique_ptr<std::remove_pointer_t<tjhandle>, int (*)(tjhandle)> jpeg(tjInitDecompress(),
                                                                                 &tjDestroy);
  const auto bad = [&](const std::string& what, const std::string& remedy) {
    return Error{.message = fmt::format("{}: {}", name, what), .remedy = remedy};
  };
  const auto damaged = [&] {
    return bad(fmt::format("no sound JPEG: {}", tjGetErrorStr2(jpeg.get())),
               "make it or get it again, or remove it");
  };
  int width = 0, height = 0, sampling = 0, colours = 0;
  if (tjDecompressHeader3(jpeg.get(), unsigned_bytes(bytes), bytes.size(), &width, &height, &sampling,
                          &colours) != 0)
    return damaged();
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) return bad("its colours are CMYK", "save it as RGB");
  Picture picture{.height = height, .width = width, .rgb = {}};
  if (picture.height * picture.width > kMostPixels) {
    return bad(
        fmt::format("{} x {} pixels; at most {} million are read", width, height, kMostPixels / 1'000'000),
        "make it smaller");
  }
  picture.rgb.resize(static_cast<size_t>(picture.height * picture.width * 3));
  // Without TJFLAG_STOPONWARNING a truncated file has a grey rest.
  if (tjDecompress2(jpeg.get(), unsigned_bytes(bytes), bytes.size(), unsigned_bytes(picture.rgb), width, 0,
                    height, TJPF_RGB, TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
    return damaged();
  return picture;
}

}  // namespace

Result<Picture> decode_picture(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(bytes, name);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(bytes, name);
  return Error{.message = fmt::format("{}: neither PNG nor JPEG", name),
               .remedy = "save it as PNG, or remove it"};
}

Picture resized(const Picture& from, int64_t height, int64_t width, Resize how) {
  int64_t used_height = from.height, used_width = from.width;
  if (how == Resize::kCrop) {
    used_height = std::min(from.height, std::max<int64_t>(1, from.width * height / width));
    used_width = std::min(from.width, std::max<int64_t>(1, from.height * width / height));
  }
  const int64_t top = (from.height - used_height) / 2, left = (from.width - used_width) / 2;
  Picture to{
      .height = height, .width = width, .rgb = std::string(static_cast<size_t>(height * width * 3), '\0')};
  const unsigned char* begin = unsigned_bytes(from.rgb) + 3 * (top * from.width + left);
  stbir_resize_uint8_generic(begin, static_cast<int>(used_width), static_cast<int>(used_height),
                             static_cast<int>(3 * from.width), unsigned_bytes(to.rgb),
                             static_cast<int>(width), static_cast<int>(height), static_cast<int>(3 * width),
                             3, STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE,
                             STBIR_COLORSPACE_LINEAR, nullptr);
  return to;
}

std::string luma(const Picture& picture) {
  std::string grey(picture.rgb.size() / 3, '\0');
  const unsigned char* rgb = unsigned_bytes(picture.rgb);
  for (size_t i = 0; i < grey.size(); ++i)
    grey[i] = static_cast<char>(
        (19595 * rgb[3 * i] + 38470 * rgb[3 * i + 1] + 7471 * rgb[3 * i + 2] + 32768) >> 16);
  return grey;
}

std::string channels_first(const Picture& picture, int64_t channels) {
  if (channels == 1) return luma(picture);
  const size_t pixels = picture.rgb.size() / 3;
  std::string planes(picture.rgb.size(), '\0');
  for (size_t channel = 0; channel < 3; ++channel) {
    for (size_t i = 0; i < pixels; ++i) planes[channel * pixels + i] = picture.rgb[3 * i + channel];
  }
  return planes;
}

}  // namespace bakeoff
