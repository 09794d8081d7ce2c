// Groups are maximal cliques of the graph "not separated", enough to cover each tied pair. If ties are
// overlaps of intervals on a line, they are contiguous in the order. Pairs that never met make other
// graphs, for which the smallest cover is NP-hard to find. So each uncovered pair grows into a clique, and
// cliques whose pairs are all covered by others are dropped at the end.

#include "stats/ties.h"

#include <algorithm>

namespace bakeoff::stats {
namespace {

using Matrix = std::vector<std::vector<bool>>;
using Group = std::vector<size_t>;  // positions in the order, ascending

// Largest by inclusion: grows {first, second} by the nearest positions after them, then by those before.
Group grown(size_t first, size_t second, const Matrix& tied) {
  Group group = {first, second};
  const auto try_add = [&](size_t candidate) {
    const auto fits = [&](size_t member) { return member != candidate && tied[candidate][member]; };
    if (std::all_of(group.begin(), group.end(), fits)) group.push_back(candidate);
  };
  for (size_t i = first + 1; i < tied.size(); ++i) try_add(i);
  for (size_t i = first; i-- > 0;) try_add(i);
  std::sort(group.begin(), group.end());
  return group;
}

// Counts, for each pair, the groups that hold it.
void count(const Group& group, int by, std::vector<std::vector<int>>& held) {
  for (const size_t i : group) {
    for (const size_t j : group) held[i][j] += by;
  }
}

bool superfluous(const Group& group, const std::vector<std::vector<int>>& held) {
  for (const size_t i : group) {
    for (const size_t j : group) {
      if ((i != j || group.size() == 1) && held[i][j] < 2) return false;
    }
  }
  return true;
}

Matrix in_order(const std::vector<size_t>& order, const Matrix& tied) {
  Matrix sorted(order.size(), std::vector<bool>(order.size(), false));
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = 0; j < order.size(); ++j) sorted[i][j] = i != j && tied[order[i]][order[j]];
  }
  return sorted;
}

}  // namespace

std::vector<std::vector<size_t>> tie_groups(const std::vector<size_t>& order, const Matrix& tied) {
  const Matrix sorted = in_order(order, tied);
  const size_t n = order.size();
  std::vector<std::vector<int>> held(n, std::vector<int>(n, 0));
  std::vector<Group> groups;
  const auto keep = [&](Group group) {
    count(group, 1, held);
    groups.push_back(std::move(group));
  };
  for (size_t i = 0; i < n; ++i) {
    // The farthest partner first: its group tends to hold the nearer ones too.
    for (size_t j = n; --j > i;) {
      if (sorted[i][j] && held[i][j] == 0) keep(grown(i, j, sorted));
    }
    if (held[i][i] == 0) keep({i});
  }
  for (size_t g = groups.size(); g-- > 0;) {
    if (!superfluous(groups[g], held)) continue;
    count(groups[g], -1, held);
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(g));
  }
  std::sort(groups.begin(), groups.end());
  for (Group& group : groups) {
    for (size_t& member : group) member = order[member];
  }
  return groups;
}

std::string letters(const std::vector<std::vector<size_t>>& groups, size_t contender) {
  std::string text;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (std::find(groups[g].begin(), groups[g].end(), contender) == groups[g].end()) continue;
    if (g < 26) {
      text += static_cast<char>('a' + g);
    } else if (g < 52) {
      text += static_cast<char>('A' + (g - 26));
    } else {
      text += '(' + std::to_string(g + 1) + ')';
    }
  }
  return text;
}

}  // namespace bakeoff::stats
