// effects(): one scale for contenders that never met. A heat of m members contributes the sum of (log_ms_i
// - h - c_i)^2 with an unknown h of its own. Minimised over h this is the sum over its pairs of (d_ij -
// (c_i - c_j))^2 / m, so h drops out. The normal equations are L c = r, with L the Laplacian of a graph:
// each heat adds 1/m to the edge of each of its pairs, and d_ij / m to r_i.
//
// L is singular: a constant may be added to c, and contenders without common heats form separate parts.
// Conjugate gradients tolerate that if r lies in the range of L, which holds for the largest part alone.
// They need few steps, and no factorisation of a 256 x 256 matrix after each heat.

#include "stats/pair_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "stats/distributions.h"

namespace bakeoff::stats {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// y += scale * x
void add_scaled(std::vector<double>& y, double scale, const std::vector<double>& x) {
  for (size_t i = 0; i < y.size(); ++i) y[i] += scale * x[i];
}

// image = matrix * x for a symmetric matrix: row by row with weights x, which the compiler can vectorise.
void multiply(const std::vector<double>& matrix, const std::vector<double>& x, std::vector<double>& image) {
  const size_t n = x.size();
  std::fill(image.begin(), image.end(), 0.0);
  for (size_t i = 0; i < n; ++i) {
    const double weight = x[i];
    if (weight == 0) continue;
    const double* const row = matrix.data() + i * n;
    for (size_t j = 0; j < n; ++j) image[j] += weight * row[j];
  }
}

// Conjugate gradients, preconditioned by the diagonal, for the symmetric, positive semidefinite `matrix`
// (n x n) and a right side in its range.
std::vector<double> solve_semidefinite(const std::vector<double>& matrix, const std::vector<double>& right) {
  const size_t n = right.size();
  const auto precondition = [&](const std::vector<double>& residual) {
    std::vector<double> scaled(n);
    for (size_t i = 0; i < n; ++i) {
      const double diagonal = matrix[i * n + i];
      scaled[i] = diagonal > 0 ? residual[i] / diagonal : 0;
    }
    return scaled;
  };
  std::vector<double> x(n, 0.0);
  std::vector<double> image(n);
  std::vector<double> residual = right;
  std::vector<double> direction = precondition(residual);
  double norm = dot(residual, direction);
  const double enough = 1e-20 * norm;  // ten digits
  for (size_t step = 0; step < 4 * n && norm > enough; ++step) {
    multiply(matrix, direction, image);
    const double length = norm / dot(direction, image);
    add_scaled(x, length, direction);
    add_scaled(residual, -length, image);
    const std::vector<double> scaled = precondition(residual);
    const double before = norm;
    norm = dot(residual, scaled);
    for (size_t i = 0; i < n; ++i) direction[i] = scaled[i] + norm / before * direction[i];
  }
  return x;
}

}  // namespace

PairTable::PairTable(size_t contenders, std::optional<double> epsilon, Backup backup)
    : heats_(contenders, 0),
      pairs_(contenders < 2 ? 0 : contenders * (contenders - 1) / 2),
      means_(pairs_.size()),
      stalls_(pairs_.size()),
      on_nodes_(pairs_.size()),
      promised_(pairs_.size()),
      mean_decides_(pairs_.size(), false),
      epsilon_(epsilon),
      backups_(epsilon ? pairs_.size() : 0, SymmetricBackup(epsilon.value_or(0))),
      mean_backups_(backups_),
      watched_(epsilon && backup == Backup::kOnSigns ? pairs_.size() : 0),
      left_out_(contenders, false),
      laplacian_(contenders * contenders, 0.0),
      right_(contenders, 0.0) {}

Result<std::vector<size_t>> PairTable::members_of(const HeatResult& heat) const {
  if (heat.log_ms.size() != contenders()) {
    return Error{fmt::format("a heat of {} contenders in a race of {}", heat.log_ms.size(), contenders())};
  }
  std::vector<size_t> members;
  for (size_t i = 0; i < contenders(); ++i) {
    if (!heat.log_ms[i]) continue;
    if (!std::isfinite(*heat.log_ms[i])) {
      return Error{fmt::format("contender {} has log time {}", i, *heat.log_ms[i])};
    }
    if (!heat.log_mean_ms.empty() &&
        (heat.log_mean_ms.size() != contenders() || !std::isfinite(heat.log_mean_ms[i].value_or(NAN)))) {
      return Error{fmt::format("contender {} has no finite mean", i)};
    }
    if (!heat.variance.empty() &&
        (heat.variance.size() != contenders() || !(heat.variance[i].value_or(0) >= 0))) {
      return Error{fmt::format("contender {} has no sound variance", i)};
    }
    members.push_back(i);
  }
  return members;
}

void PairTable::look_for_signs(const HeatResult& heat, size_t a, size_t b) {
  if (watched_.empty()) return;
  Watched& watched = watched_[slot(a, b)];
  watched.d.push_back(*heat.log_ms[a] - *heat.log_ms[b]);
  watched.steal.push_back(heat.steal);
  watched.node.push_back(heat.node);
  watched.signs.update(signs_of(watched.d, watched.steal));
  if (const auto spread = node_spread(watched.d, watched.node)) watched.signs.nodes = spread;
}

Status PairTable::watch(const HeatResult& heat) {
  TRY(const std::vector<size_t> members, members_of(heat));
  for (const size_t b : members) {
    for (const size_t a : members) {
      if (a < b) look_for_signs(heat, a, b);
    }
  }
  return Done{};
}

namespace {

void look_again(std::vector<EProcess>& looks, double d) {
  EProcess next = looks.empty() ? EProcess() : looks.back();
  next.add(d);
  looks.push_back(next);
}

}  // namespace

void PairTable::add_promised(const HeatResult& heat, size_t a, size_t b) {
  if (!heat.promised) return;
  PromisedHeat promised = {.d = *heat.log_ms[a] - *heat.log_ms[b]};
  if (!heat.variance.empty()) {
    if (!heat.variance[a] || !heat.variance[b]) return;
    promised.variance = *heat.variance[a] + *heat.variance[b];
  }
  promised_[slot(a, b)].push_back(promised);
}

void PairTable::add_pair(const HeatResult& heat, size_t a, size_t b) {
  const size_t at = slot(a, b);
  const double d = *heat.log_ms[a] - *heat.log_ms[b];
  look_again(pairs_[at], d);
  on_nodes_[at].node.push_back(heat.node);
  on_nodes_[at].d.push_back(d);
  add_promised(heat, a, b);
  if (!backups_.empty()) backups_[at].add(d);
  look_for_signs(heat, a, b);
  if (!epsilon_) return;
  if (heat.log_mean_ms.empty()) {
    mean_decides_[at] = false;
    return;
  }
  const double of_means = *heat.log_mean_ms[a] - *heat.log_mean_ms[b];
  look_again(means_[at], of_means);
  on_nodes_[at].mean_d.push_back(of_means);
  stalls_[at].add(of_means - d);
  if (!mean_backups_.empty()) mean_backups_[at].add(of_means);
  mean_decides_[at] = stalls(a, b).decides;
}

Status PairTable::add(const HeatResult& heat) {
  TRY(const std::vector<size_t> members, members_of(heat));
  if (members.size() < 2) return Done{};
  const double share = 1 / static_cast<double>(members.size());
  for (const size_t b : members) {
    ++heats_[b];
    for (const size_t a : members) {
      if (a == b) continue;
      const double d = *heat.log_ms[a] - *heat.log_ms[b];
      if (a < b) add_pair(heat, a, b);
      right_[a] += share * d;
      laplacian_[a * contenders() + a] += share;
      laplacian_[a * contenders() + b] -= share;
    }
  }
  return Done{};
}

namespace {

// Half-width in standard errors of the 80% interval by Student's t from n values.
double width_of_80_percent(size_t n) {
  static const std::vector<double> kWidths = [] {
    std::vector<double> widths(2, std::numeric_limits<double>::infinity());
    for (int degrees = 1; degrees < 100; ++degrees) widths.push_back(student_quantile(degrees, 0.9));
    return widths;
  }();
  return kWidths[std::min(n, kWidths.size() - 1)];
}

}  // namespace

StallGap PairTable::stalls(size_t a, size_t b) const {
  const size_t at = slot(std::min(a, b), std::max(a, b));
  const EProcess& seen = stalls_[at];
  StallGap found = {.heats = seen.count(),
                    .gap = a < b ? seen.mean() : -seen.mean(),
                    .half_width = std::numeric_limits<double>::infinity()};
  if (found.heats < 2) return found;
  const auto heats = static_cast<double>(found.heats);
  found.half_width = width_of_80_percent(found.heats) * seen.sd() / std::sqrt(heats);
  found.decides = epsilon_ && found.heats == pairs_[at].size() &&
                  std::abs(found.gap) - found.half_width > kStallsThatMatter * *epsilon_;
  return found;
}

double PairTable::gap(size_t a, size_t b) const {
  if (a > b) return -gap(b, a);
  return looks(a, b).empty() ? 0 : looks(a, b).back().mean();
}

bool PairTable::may_differ(size_t a, size_t b, std::span<const double> ratios) const {
  const Looks& looks = this->looks(std::min(a, b), std::max(a, b));
  // Not below: without any noise the ratio may not be a number.
  return std::any_of(looks.begin(), looks.end(),
                     [&](const EProcess& look) { return !(look.ratio(0) < ratios[look.count()]); });
}

Interval PairTable::interval(size_t a, size_t b, std::span<const double> ratios, double resolution) const {
  if (a > b) return interval(b, a, ratios, resolution).mirrored();
  Interval common, last;
  for (const EProcess& look : looks(a, b)) {
    last = look.interval_at(ratios[look.count()], resolution);
    common = common.intersected(last);
  }
  return common.low <= common.high ? common : last;
}

Interval PairTable::confirmed(size_t a, size_t b, const Interval& d, double alpha) const {
  if (backups_.empty() || (!watched_.empty() && !signs(a, b).any())) return d;
  if (a > b) return confirmed(b, a, d.mirrored(), alpha).mirrored();
  return (mean_decides(a, b) ? mean_backups_ : backups_)[slot(a, b)].widen(d, alpha);
}

Interval PairTable::with_nodes(size_t a, size_t b, const Interval& d, double alpha, About about) const {
  if (a > b) return with_nodes(b, a, d.mirrored(), alpha, about).mirrored();
  // Where the mean decides every heat has one.
  const OnNodes& heats = on_nodes_[slot(a, b)];
  const std::vector<double>& all = mean_decides(a, b) ? heats.mean_d : heats.d;
  Interval wide = d;
  if (signs(a, b).nodes) wide = wide.spanned(of_these_nodes(all, heats.node, alpha));
  if (about == About::kTheirKind) wide = wide.spanned(of_their_kind(all, heats.node, alpha));
  return wide;
}

Signs PairTable::signs(size_t a, size_t b) const {
  return watched_.empty() ? Signs() : watched_[slot(std::min(a, b), std::max(a, b))].signs;
}

std::vector<bool> PairTable::largest_linked_set() const {
  const size_t n = contenders();
  std::vector<bool> seen(n, false);
  std::vector<size_t> largest;
  for (size_t start = 0; start < n; ++start) {
    if (seen[start]) continue;
    std::vector<size_t> set = {start};
    seen[start] = true;
    for (size_t next = 0; next < set.size(); ++next) {
      for (size_t j = 0; j < n; ++j) {
        if (seen[j] || laplacian_[set[next] * n + j] == 0) continue;
        seen[j] = true;
        set.push_back(j);
      }
    }
    if (set.size() > largest.size()) largest = std::move(set);
  }
  std::vector<bool> inside(n, false);
  for (const size_t i : largest) inside[i] = largest.size() > 1;
  return inside;
}

std::vector<std::optional<double>> PairTable::effects() const {
  const std::vector<bool> inside = largest_linked_set();
  std::vector<double> right = right_;
  for (size_t i = 0; i < right.size(); ++i) {
    if (!inside[i]) right[i] = 0;
  }
  const std::vector<double> solution = solve_semidefinite(laplacian_, right);
  // The solution is unique up to a constant on the linked set.
  const double members = static_cast<double>(std::count(inside.begin(), inside.end(), true));
  const double centre = std::accumulate(solution.begin(), solution.end(), 0.0) / std::max(members, 1.0);
  std::vector<std::optional<double>> effects(contenders());
  for (size_t i = 0; i < contenders(); ++i) {
    if (inside[i]) effects[i] = solution[i] - centre;
  }
  return effects;
}

Result<PairTable> tabulate(std::span<const HeatResult> heats, size_t contenders) {
  PairTable table(contenders);
  for (size_t i = 0; i < heats.size(); ++i) {
    if (const Status added = table.add(heats[i]); !added) {
      return Error{fmt::format("heat {}: {}", i + 1, added.error().message)};
    }
  }
  return table;
}

}  // namespace bakeoff::stats
