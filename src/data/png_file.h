#pragma once

// Decodes PNG files. Internal to this room: pictures.h is for the others.

#include <string>
#include <string_view>

#include "base/result.h"
#include "data/picture.h"

namespace bakeoff {

Result<Picture> decode_png(std::string_view bytes, const std::string& name);

}  // namespace bakeoff
