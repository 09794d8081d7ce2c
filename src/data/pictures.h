#pragma once

// PNG and JPEG files as bytes (libpng, libjpeg-turbo). What comes out is what Pillow's
// Image.open(f).convert("RGB") gives: colours as they are stored, without gamma, colour profile or EXIF
// rotation, transparency left out.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace bakeoff {

struct Picture {
  int64_t height = 0, width = 0;
  std::string rgb;  // height * width * 3 bytes
};

// `bytes`: a whole PNG or JPEG file, told by its first bytes. Errors begin with `name`: neither of them,
// truncated, damaged, 16 bits, CMYK, more than kMostPixels.
inline constexpr int64_t kMostPixels = int64_t{1} << 26;
Result<Picture> decode_picture(std::string_view bytes, const std::string& name);

// How a picture of another size comes to the size of the workload. kStretch: the whole picture, its
// proportions changed. kCrop: the largest part around its middle that has the wanted proportions.
enum class Resize { kStretch, kCrop };

// Every pixel is the mean of the pixels that it covers, weighted by a triangle of twice its width; of pictures
// that grow, bilinear interpolation (stb_image_resize with STBIR_FILTER_TRIANGLE).
Picture resized(const Picture& picture, int64_t height, int64_t width, Resize how);

// The brightness of each pixel as Pillow's convert("L") has it: (19595 R + 38470 G + 7471 B + 32768) / 65536.
std::string luma(const Picture& picture);

// The picture as [channels, height, width]: 1 channel is its luma, 3 are red, green and blue.
std::string channels_first(const Picture& picture, int64_t channels);

}  // namespace bakeoff
