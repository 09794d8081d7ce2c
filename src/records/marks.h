#pragma once

// What belongs to a run beside its numbers, for its history: the commit that the working directory was at, and the
// steps in a history that were looked at and accepted. Lines of commits.jsonl and accepted.jsonl.

#include <string>

#include "records/kept.h"

namespace bakeoff {

// Of the repository that the program was started in. A line for each start: a resumed run has several.
struct Commit {
  std::string hash = {};    // 40 hexadecimal digits
  std::string branch = {};  // empty: a detached head
  bool dirty = false;       // tracked files differ from it
  std::string started = {};
  bool operator==(const Commit&) const = default;
};

// A step in the history of a contender that begins with this run. The last line of a contender counts.
struct AcceptedStep {
  std::string contender = {};  // Contender::id
  std::string at = {};         // when it was accepted, UTC
  std::string note = {};       // why, in the user's words
  bool withdrawn = false;      // it is accepted no more
  bool operator==(const AcceptedStep&) const = default;
};

template <>
struct Kept<Commit> {
  static constexpr const char* kFile = "commits.jsonl";
  static constexpr const char* kKey = "hash";
};
template <>
struct Kept<AcceptedStep> {
  static constexpr const char* kFile = "accepted.jsonl";
  static constexpr const char* kKey = "contender";
};

}  // namespace bakeoff
