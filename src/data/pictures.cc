#include "data/pictures.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "data/png_file.h"

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

Planes planes_of(const Picture& picture, int64_t channels) {
  Planes planes{channels, picture.height, picture.width, {}};
  const auto pixels = static_cast<size_t>(picture.height * picture.width);
  planes.bytes.resize(pixels * static_cast<size_t>(channels));
  const unsigned char* rgb = unsigned_bytes(picture.rgb);
  for (size_t i = 0; i < pixels; ++i, rgb += 3) {
    if (channels == 1) {
      planes.bytes[i] = static_cast<char>((19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16);
      continue;
    }
    for (size_t channel = 0; channel < 3; ++channel)
      planes.bytes[channel * pixels + i] = static_cast<char>(rgb[channel]);
  }
  return planes;
}

namespace {

// A part of one axis: where it begins, its length, the distance of its elements.
struct Axis {
  int64_t begin = 0, length = 0, stride = 1;
};

// Of one new pixel: the first old one, and what each counts, in units of 2^-kWeightBits.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};
constexpr int kWeightBits = 22;

// As Pillow's precompute_coeffs (src/libImaging/Resample.c).
std::vector<Taps> taps_of(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const int64_t end = std::min(from, static_cast<int64_t>(centre + reach + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = first; x < end; ++x) {
      const double distance = std::abs((static_cast<double>(x) - centre + 0.5) * (1 / reach));
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    Taps taps{first, {}};
    for (const double weight : weights)
      taps.weights.push_back(static_cast<int32_t>(0.5 + weight * (1 / sum) * (1 << kWeightBits)));
    all.push_back(std::move(taps));
  }
  return all;
}

// `lines` lines along an axis of `from` to lines of `taps.size()` new pixels.
void resample(const unsigned char* from, const Axis& axis, const Axis& lines, const std::vector<Taps>& taps,
              unsigned char* to, int64_t to_stride, int64_t to_line) {
  for (int64_t line = 0; line < lines.length; ++line) {
    const unsigned char* start = from + (lines.begin + line) * lines.stride + axis.begin * axis.stride;
    for (size_t i = 0; i < taps.size(); ++i) {
      int64_t sum = int64_t{1} << (kWeightBits - 1);
      const unsigned char* pixel = start + taps[i].first * axis.stride;
      for (const int32_t weight : taps[i].weights) {
        sum += int64_t{weight} * *pixel;
        pixel += axis.stride;
      }
      to[line * to_line + static_cast<int64_t>(i) * to_stride] =
          static_cast<unsigned char>(std::clamp<int64_t>(sum >> kWeightBits, 0, 255));
    }
  }
}

}  // namespace

Planes resized(const Planes& from, int64_t height, int64_t width, Resize how) {
  Axis rows{0, from.height, from.width}, columns{0, from.width, 1};
  if (how == Resize::kCrop) {
    rows.length = std::min(from.height, std::max<int64_t>(1, from.width * height / width));
    columns.length = std::min(from.width, std::max<int64_t>(1, from.height * width / height));
    rows.begin = (from.height - rows.length) / 2, columns.begin = (from.width - columns.length) / 2;
  }
  const std::vector<Taps> along_rows = taps_of(columns.length, width), down = taps_of(rows.length, height);
  Planes to{from.channels, height, width,
            std::string(static_cast<size_t>(from.channels * height * width), '\0')};
  std::string narrow(static_cast<size_t>(rows.length * width), '\0');
  for (int64_t channel = 0; channel < from.channels; ++channel) {
    resample(unsigned_bytes(from.bytes) + channel * from.height * from.width, columns, rows, along_rows,
             unsigned_bytes(narrow), 1, width);
    resample(unsigned_bytes(narrow), {0, rows.length, width}, {0, width, 1}, down,
             unsigned_bytes(to.bytes) + channel * height * width, width, 1);
  }
  return to;
}

}  // namespace bakeoff
