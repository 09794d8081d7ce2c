#include "base/nearest.h"

#include <algorithm>
#include <numeric>

namespace bakeoff {
namespace {

// Levenshtein's distance in which two neighbours that changed places count once.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> above(b.size() + 1), before(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    before.swap(above);  // the row of i - 1
    above.swap(row);     // the row of i
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      row[j + 1] = std::min({row[j] + 1, above[j + 1] + 1, above[j] + (a[i] == b[j] ? 0 : 1)});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = (word.size() + 2) / 3 + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = edits(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggest(std::string_view word, const std::vector<std::string>& candidates) {
  if (const std::string near = nearest(word, candidates); !near.empty())
    return "did you mean '" + near + "'?";
  std::string list = "one of:";
  for (const std::string& candidate : candidates) list += (list.back() == ':' ? " " : ", ") + candidate;
  return list;
}

}  // namespace bakeoff
