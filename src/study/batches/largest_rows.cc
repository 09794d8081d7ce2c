// The largest batch is searched by starting a process for each attempt, as no framework gives memory back
// well enough to try twice in one. The search doubles until an attempt fails and then halves the gap, until
// it is below a sixteenth of what fits. That is right only if failures are about memory, and no two
// frameworks say so alike: the words of allocators, a limit of a control group and the kernel's SIGKILL are
// all recognised, and anything else ends the search with its reason. A crash without a reason counts as
// memory, since native code that gets no memory often dies of it.

#include "study/batches/largest_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/texts.h"
#include "table/numbers.h"

namespace bakeoff {
namespace {

constexpr int64_t kWithin = 16;  // part of the largest batch within which the search ends
constexpr size_t kLongestReason = 160;

// How frameworks, languages and drivers say that memory is not to be had.
bool speaks_of_memory(const std::string& text) {
  static constexpr std::array kWords = {
      "out of memory",      "can't allocate memory", "cannot allocate memory", "unable to allocate",
      "failed to allocate", "oom when allocating",   "resource_exhausted",     "resourceexhausted",
      "bad_alloc",          "memoryerror",           "bad allocation",         "could not allocate",
      "insufficient memory"};
  const std::string all = lowered(text);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return all.find(word) != std::string::npos; });
}

// Without line breaks, at most so long.
std::string brief(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!space || (!out.empty() && out.back() != ' ')) out += space ? ' ' : c;
  }
  return out.size() <= kLongestReason ? out : out.substr(0, kLongestReason) + " ...";
}

struct Ends {
  const LargestTrial* fits = nullptr;   // the largest that does
  const LargestTrial* fails = nullptr;  // the least above it that does not
};

Ends ends_of(const std::vector<LargestTrial>& own) {
  Ends ends;
  for (const LargestTrial& trial : own) {
    if (!trial.failure && (ends.fits == nullptr || trial.batch > ends.fits->batch)) ends.fits = &trial;
  }
  for (const LargestTrial& trial : own) {
    if (!trial.failure || (ends.fits != nullptr && trial.batch < ends.fits->batch)) continue;
    if (ends.fails == nullptr || trial.batch < ends.fails->batch) ends.fails = &trial;
  }
  return ends;
}

std::optional<double> slope(const std::vector<LargestTrial>& own) {
  double n = 0, mean_x = 0, mean_y = 0;
  for (const LargestTrial& t : own) {
    if (t.failure || t.peak_bytes <= 0) continue;
    n += 1, mean_x += static_cast<double>(t.batch), mean_y += static_cast<double>(t.peak_bytes);
  }
  if (n < 2) return std::nullopt;
  mean_x /= n, mean_y /= n;
  double sxx = 0, sxy = 0;
  for (const LargestTrial& t : own) {
    if (t.failure || t.peak_bytes <= 0) continue;
    const double x = static_cast<double>(t.batch) - mean_x;
    sxx += x * x, sxy += x * (static_cast<double>(t.peak_bytes) - mean_y);
  }
  return sxx > 0 && sxy > 0 ? std::optional(sxy / sxx) : std::nullopt;
}

LargestRow row_of(const std::string& id, const std::vector<LargestTrial>& own, int64_t most, int64_t rows) {
  LargestRow row{
      .contender = id, .limit_bytes = own.front().limit_bytes, .tried = static_cast<int>(own.size())};
  const Ends ends = ends_of(own);
  if (ends.fits != nullptr) row.largest = ends.fits->batch, row.peak_bytes = ends.fits->peak_bytes;
  row.bytes_per_sample = slope(own);
  if (ends.fails != nullptr) {
    row.stop = stop_of(ends.fails->failure);
    row.fails_at = ends.fails->batch;
    row.note = in_words(row.stop, *ends.fails->failure);
    row.exact = row.largest && *row.fails_at == *row.largest + 1;
  } else if (rows > 0 && row.largest >= rows) {
    row.note =
        fmt::format("the data has {} rows: a larger batch may fit", table::count(static_cast<double>(rows)));
  } else if (row.largest >= most) {
    row.note = fmt::format("the recipe tries none above {}: a larger batch may fit",
                           table::count(static_cast<double>(most)));
  } else {
    row.note = "the run ended before the search did: a larger batch may fit";
  }
  return row;
}

}  // namespace

Stop stop_of(const std::optional<Failure>& failure) {
  if (!failure) return Stop::kNone;
  if (failure->stage == Stage::kEmit || failure->stage == Stage::kCompile) return Stop::kNoScript;
  if (failure->stage == Stage::kStart || failure->stage == Stage::kImport) return Stop::kStart;
  if (failure->cause == Cause::kLimit) return Stop::kLimit;
  if (failure->cause == Cause::kKilled) return Stop::kKilled;
  if (speaks_of_memory(failure->reason) || speaks_of_memory(failure->log_tail)) return Stop::kAllocator;
  return failure->cause == Cause::kTime ? Stop::kTime : Stop::kCrash;
}

bool is_memory(Stop stop) {
  return stop == Stop::kLimit || stop == Stop::kAllocator || stop == Stop::kKilled || stop == Stop::kCrash;
}

std::string in_words(Stop stop, const Failure& failure) {
  const std::string why = brief(failure.reason);
  switch (stop) {
    case Stop::kNone:
      return "";
    case Stop::kLimit:
      return "the limit: " + why;
    case Stop::kAllocator:
      return "its allocator: " + why;
    case Stop::kKilled:
      return "the kernel: " + why;
    case Stop::kTime:
      return "time: " + why;
    case Stop::kCrash:
    case Stop::kStart:
    case Stop::kNoScript:
      break;
  }
  return std::string(name(failure.stage)) + ": " + why;
}

std::vector<LargestRow> largest_rows(const std::vector<LargestTrial>& trials,
                                     const std::vector<std::string>& ids, int64_t most, int64_t rows) {
  std::vector<LargestRow> out;
  for (const std::string& id : ids) {
    std::vector<LargestTrial> own;
    std::copy_if(trials.begin(), trials.end(), std::back_inserter(own),
                 [&](const LargestTrial& t) { return t.contender == id; });
    if (!own.empty()) out.push_back(row_of(id, own, most, rows));
  }
  return out;
}

std::optional<int64_t> next_to_fit(const std::vector<LargestTrial>& own, int64_t first, int64_t end) {
  if (end < 1) return std::nullopt;
  if (own.empty()) return std::clamp<int64_t>(first, 1, end);
  const Ends ends = ends_of(own);
  if (ends.fails != nullptr && !is_memory(stop_of(ends.fails->failure))) return std::nullopt;
  if (ends.fails == nullptr) {
    if (ends.fits->batch >= end) return std::nullopt;
    return std::min(end, ends.fits->batch * 2);
  }
  if (ends.fits == nullptr)
    return ends.fails->batch > 1 ? std::optional(ends.fails->batch / 2) : std::nullopt;
  const int64_t low = ends.fits->batch, high = ends.fails->batch;
  if (high - low <= std::max<int64_t>(1, low / kWithin)) return std::nullopt;
  return low + (high - low) / 2;
}

}  // namespace bakeoff
