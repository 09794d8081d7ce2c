#include "base/nearest.h"

#include <algorithm>
#include <numeric>

namespace bakeoff {
namespace {

size_t levenshtein(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, above + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = (word.size() + 2) / 3 + 1;
  for (const std::string& candidate : candidates) {
    const size_t distance = levenshtein(word, candidate);
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
