#pragma once

// The nearest valid word, for messages such as "unknown key 'optimiser': did you mean 'optimizer'?".

#include <string>
#include <string_view>
#include <vector>

namespace bakeoff {

// The candidate with the smallest edit distance to `word` (two swapped neighbours count once), if that is
// at most a third of the word's length, rounded up; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "did you mean 'x'?" if a near candidate exists, else "one of: a, b, c".
std::string suggest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace bakeoff
