#pragma once

// Work with libraries that nobody vouches for: in a forked child, which may crash, hang or print what it
// likes.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "roofline/stopwatch.h"

namespace bakeoff::roofline {

// Gives the text that `work` returns in the child. Fails where the child crashes, ends without answering, or
// is not done within `seconds`; it is killed then, and when `stop` says so. To be called without other
// threads.
Result<std::string> in_child(const std::function<std::string()>& work, double seconds, const Stop& stop);

// Fields separated by tabs.
std::vector<std::string> split_tabs(const std::string& line);
// Lines without their ends; the last need not have one.
std::vector<std::string> split_lines(const std::string& text);

}  // namespace bakeoff::roofline
