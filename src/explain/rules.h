#pragma once

// The rules of the diagnosis: which signal makes a cause suspect, and which switch tests it. A rule never
// names a cause by itself: only a paired run of the script with its switch thrown does (explain.h).

#include <optional>
#include <string>
#include <vector>

#include "explain/subject.h"

namespace bakeoff::explain {

struct Suspicion {
  std::string evidence = {};        // "waits for data take 62% of its steps"
  std::optional<double> most = {};  // by which factor a step can become shorter at most; absent: not known
  nlohmann::json value = true;      // that the switch is thrown to
};

struct Rule {
  const char* id;      // of the table of rules: "R13"
  const char* key;     // of this cause: "denormals"
  const char* cause;   // "denormal numbers slow its arithmetic"
  const char* change;  // what to change, in one line; "{}" is the switch's value
  const char* method;  // what the run with the switch does
  const char* thrown;  // the switch, of runners/bakeoff_observe
  const char* place;   // regular expression of the line to change in the source; "": none is known
  bool numbers;        // the change may change numbers
  // Whether the cause is suspect in this script, on a machine of so many processors.
  std::optional<Suspicion> (*suspect)(const Subject& subject, int processors);
  const char* within = "";  // key of a rule that has the same cause in general: it gives way to this one
};

const std::vector<Rule>& rules();

struct Suspect {
  const Rule* rule = nullptr;
  Suspicion suspicion = {};
  int64_t line = 0;  // of the source, where the change belongs; 0: not known
};

// All suspects, those with the highest ceiling first.
std::vector<Suspect> suspects(const Subject& subject, int processors);

}  // namespace bakeoff::explain
