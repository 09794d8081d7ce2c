#pragma once

// Records that a run directory keeps a line each (records/records.h).

#include <string>
#include <string_view>

#include "base/result.h"
#include "records/trial.h"

namespace bakeoff {

// Stands in a record for an infinity or NaN, which JSON has not.
inline constexpr double kNotFinite = 1e308;

// How a record is kept: the file whose lines they are, and a field that no line lacks. The room that owns a
// record specialises this where the record is, and names its fields in a source (records/record_json.h).
template <class R>
struct Kept;
template <>
struct Kept<Parity> {
  static constexpr const char* kFile = "parity.jsonl";
  static constexpr const char* kKey = "contender";
};
template <>
struct Kept<Trial> {
  static constexpr const char* kFile = "trials.jsonl";
  static constexpr const char* kKey = "contender";
};

template <class R>
concept IsKept = requires {
  Kept<R>::kFile;
  Kept<R>::kKey;
};

template <IsKept R>
std::string to_json(const R& record);  // one line
template <IsKept R>
Result<R> from_json(std::string_view line, const std::string& where);

}  // namespace bakeoff
