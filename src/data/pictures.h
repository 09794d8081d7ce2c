#pragma once

// PNG and JPEG files as bytes (libpng, libjpeg-turbo). What comes out is what Pillow's
// Image.open(f).convert("RGB") gives: colours as they are stored, without gamma, colour profile or EXIF
// rotation, transparency left out.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "data/picture.h"

namespace bakeoff {

// `bytes`: a whole PNG or JPEG file, told by its first bytes. Errors begin with `name`: neither of them,
// truncated, damaged, 16 bits, CMYK, more than kMostPixels.
Result<Picture> decode_picture(std::string_view bytes, const std::string& name);

// A picture as [channels, height, width].
struct Planes {
  int64_t channels = 0, height = 0, width = 0;
  std::string bytes;
};

// 3 channels: red, green, blue. 1 channel: the brightness as Pillow's convert("L") has it,
// (19595 R + 38470 G + 7471 B + 32768) / 65536.
Planes planes_of(const Picture& picture, int64_t channels);

// How a picture is brought to another size. kStretch: the whole picture, its proportions changed. kCrop: the
// largest part around its middle that has the wanted proportions.
enum class Resize { kStretch, kCrop };

// What Pillow's resize((width, height), BILINEAR) gives, to within 1 (which of the two passes it does first depends
// on its version and the shape): every pixel is a mean of those around its place, weighted by a triangle that
// reaches one pixel far (of the larger of both pictures); first along the rows, then along the columns.
Planes resized(const Planes& from, int64_t height, int64_t width, Resize how);

}  // namespace bakeoff
