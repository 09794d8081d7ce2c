#pragma once

// Names as markup of a page; names and versions of frameworks.

#include <string>
#include <string_view>
#include <vector>

#include "base/texts.h"

namespace bakeoff::report {

// A name that may break after "[" and ",". Escaped.
std::string breakable(std::string_view name);

// "PyTorch 2.13.0", ... of the packages of frameworks among `versions`, in the order of emit/all.
std::vector<std::string> framework_versions(const std::vector<const Texts*>& versions);

}  // namespace bakeoff::report
