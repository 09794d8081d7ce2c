#include "report/json_beside.h"

#include <cmath>

#include "table/numbers.h"

namespace bakeoff::report {

using namespace table;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(const std::optional<double>& value) { return value ? number(*value) : Json(nullptr); }

Json estimate(const Estimate& e) {
  return {{"value", number(e.value)},
          {"low", bounded_below(e) ? number(e.low) : Json(nullptr)},
          {"high", bounded_above(e) ? number(e.high) : Json(nullptr)}};
}

namespace {

Json latency(const Summary& s) {
  static const char* const kStates[] = {"steady", "growing", "unsettled", "failed"};
  Json rows = Json::array();
  for (const LatencyRow& r : s.latency) {
    Json percentiles = Json::array();
    for (size_t i = 0; i < r.percentiles.size(); ++i) {
      const auto& p = r.percentiles[i];
      percentiles.push_back({{"percentile", 100 * p.p},
                             {"ms", estimate({p.value, p.bounds.low, p.bounds.high})},
                             {"requests", p.n},
                             {"independent_requests", number(p.n_eff)},
                             {"by_process_ms", {number(r.by_process[i].low), number(r.by_process[i].high)}}});
    }
    rows.push_back({{"contender", r.contender},
                    {"arrivals_per_second", r.single_stream() ? Json(nullptr) : number(r.rate)},
                    {"queue", kStates[static_cast<int>(r.state)]},
                    {"processes", r.processes},
                    {"requests", r.requests},
                    {"percentiles", percentiles},
                    {"mean_ms", r.mean_ms > 0 ? number(r.mean_ms) : Json(nullptr)},
                    {"answer_ms", number(r.service_ms)},
                    {"load", r.single_stream() ? Json(nullptr) : number(r.load)},
                    {"growth_per_second", number(r.growth_per_s)},
                    {"generator_late_ms", number(r.late_ms)},
                    {"note", r.note}});
  }
  return {{"level", number(s.latency_level)}, {"rows", rows}};
}

Json over_seeds(const std::optional<OverSeeds>& e) {
  return e ? estimate({e->value, e->interval.low, e->interval.high}) : Json(nullptr);
}

Json target(const Summary& s) {
  static const char* const kStates[] = {"not compared", "within chance", "worse"};
  Json rows = Json::array();
  for (const TargetRow& r : s.target) {
    const bool compared = r.convergence != Convergence::kNotCompared;
    rows.push_back({{"contender", r.contender},
                    {"seeds", r.seeds},
                    {"reached", r.reached},
                    {"steps", over_seeds(r.steps)},
                    {"epochs", over_seeds(r.epochs)},
                    {"seconds", over_seeds(r.seconds)},
                    {"start_up_s", r.is_referee() ? Json(nullptr) : number(r.start_up_s)},
                    {"last_loss", number(r.best_loss)},
                    {"last_accuracy", number(r.best_accuracy)},
                    {"convergence", kStates[static_cast<int>(r.convergence)]},
                    {"p", compared ? number(r.p) : Json(nullptr)},
                    {"steps_over_referee", compared ? number(r.ratio) : Json(nullptr)},
                    {"note", r.note}});
  }
  return {{"target", s.target_text}, {"rows", rows}};
}

Json over_seeds(const std::optional<SeedRange>& range) {
  const auto [least, median, most] = range.value_or(SeedRange{});
  return range ? Json{{"value", number(median)}, {"least", number(least)}, {"most", number(most)}} : Json();
}

Json fit(const Summary& s) {
  Json rows = Json::array();
  for (const FitRow& r : s.fit) {
    const bool done = r.seeds > 0;
    rows.push_back({{"contender", r.contender},
                    {"seeds", r.seeds},
                    {"seconds", done ? over_seeds(r.seconds) : Json(nullptr)},
                    {"seconds_per_epoch", done ? number(r.epoch_s) : Json(nullptr)},
                    {"wait_seconds", number(r.wait_s)},
                    {"start_up_s", done ? number(r.start_up_s) : Json(nullptr)},
                    {"seconds_over_steps", number(r.over_steps)},
                    {"loss", over_seeds(r.loss)},
                    {"held_out_loss", over_seeds(r.held_loss)},
                    {"accuracy", over_seeds(r.accuracy)},
                    {"far_from_group", r.far},
                    {"note", r.note}});
  }
  return {{"what", s.fit_facts.text},
          {"epochs", s.fit_facts.epochs},
          {"held_out_rows", s.fit_facts.held},
          {"trained_rows", s.fit_facts.trained},
          {"loss_tolerance", number(s.fit_facts.tolerance)},
          {"rows", rows}};
}

Json search(const Summary& s) {
  Json rows = Json::array();
  for (const SearchRow& r : s.search) {
    Json points = Json::array();
    for (const BatchPoint& p : r.points) {
      const bool timed = p.failure.empty();
      points.push_back({{"batch", p.batch},
                        {"samples_per_second", timed ? number(p.samples_per_s) : Json(nullptr)},
                        {"by_process", timed ? Json{number(p.least), number(p.most)} : Json(nullptr)},
                        {"processes", p.processes},
                        {"peak_rss_bytes", p.peak_rss_bytes},
                        {"failure", timed ? Json(nullptr) : Json(p.failure)}});
    }
    rows.push_back({{"contender", r.contender},
                    {"best_batch", r.best ? Json(*r.best) : Json(nullptr)},
                    {"enough_batch", r.best ? Json(r.enough) : Json(nullptr)},
                    {"points", points},
                    {"note", r.note}});
  }
  return rows;
}

Json largest(const Summary& s) {
  constexpr const char* kStops[] = {"nothing", "limit", "allocator", "kernel",
                                    "crash",   "time",  "start",     "no script"};
  Json rows = Json::array();
  for (const LargestRow& r : s.largest) {
    rows.push_back({{"contender", r.contender},
                    {"largest_batch", r.largest ? Json(*r.largest) : Json(nullptr)},
                    {"peak_bytes", r.peak_bytes > 0 ? Json(r.peak_bytes) : Json(nullptr)},
                    {"fails_at", r.fails_at ? Json(*r.fails_at) : Json(nullptr)},
                    {"exact", r.exact},
                    {"bytes_per_sample", r.bytes_per_sample ? number(*r.bytes_per_sample) : Json(nullptr)},
                    {"limit_bytes", r.limit_bytes > 0 ? Json(r.limit_bytes) : Json(nullptr)},
                    {"stop", kStops[static_cast<int>(r.stop)]},
                    {"stopped_by", r.stopped_by},
                    {"tried", r.tried}});
  }
  return rows;
}

}  // namespace

void add_beside(const Summary& s, Json& out) {
  if (!s.target.empty()) out["target"] = target(s);
  if (!s.fit.empty()) out["fit"] = fit(s);
  if (!s.latency.empty()) out["latency"] = latency(s);
  if (!s.search.empty()) out["batch_search"] = search(s);
  if (!s.largest.empty()) out["largest_batch"] = largest(s);
}

}  // namespace bakeoff::report
