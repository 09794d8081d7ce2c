#pragma once

// The summary as JSON for programs. "schema" is 1: keys keep their names and meaning, new ones may be added;
// a change that breaks a reader raises the number. Times are milliseconds where the key says so. An
// interval's end that is not bounded, and every number that is not finite, is null. Text is valid UTF-8.
//
//   {"schema": 1, "tool": "bakeoff", "title": ..., "track": "equalised", "sentence": ..., "decided": true,
//   ...,
//    "ranked": [{"contender": {"id": ...}, "rank": [1, 2], "ms_per_step": {"value", "low", "high"}, ...}],
//    "unranked": [{..., "reason": ..., "failure": {"stage", "reason", "log_tail"}}],
//    "notes": [...], "manifest": {...}, "sources": [{"file", "text"}]}

#include <string>

#include "summary/summary.h"

namespace bakeoff::report {

struct JsonOptions {
  bool samples = false;  // the pooled step times too ("step_ms"): large
  bool sources = true;   // the emitted scripts' text
  int indent = 2;        // negative: one line
};

std::string render_json(const Summary& summary, const JsonOptions& options = {});

}  // namespace bakeoff::report
