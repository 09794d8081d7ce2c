#pragma once

// The rules of the diagnosis as data: which signal makes a cause suspect, which switch tests it, and what to change. A
// rule names no cause by itself: a measurement of its own does, either the time that the observed run spent on it, or a
// paired run of the script with its switch thrown (explain.h). Rules of one framework stand in a file of its own (rules/).

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "explain/subject.h"

namespace bakeoff::explain {

struct Suspicion {
  std::string evidence = {};        // "waits for data take 62% of its steps"
  std::optional<double> most = {};  // by which factor a step can become shorter at most; absent: not known
  nlohmann::json value = true;      // that the switch is thrown to
  int64_t line = 0;                 // of the source, where it was seen; 0: not known
  // Share of the observed steps' time that was measured as spent on it, and that goes with the change, at least; absent:
  // it was not measured.
  std::optional<double> booked = {};
  std::vector<Suspicion> also = {};  // further ones of the same rule
};

// Switches that are thrown before Python starts: one sets environment variables, of its value's names; one runs a copy of the
// script with some of the other script's lines, its value being an array of places in Subject::exchanges (null: none are known).
inline constexpr const char* kEnvironment = "environment";
inline constexpr const char* kOtherLines = "other_lines";
inline bool thrown_outside(const std::string& name) { return name == kEnvironment || name == kOtherLines; }

// What a rule says of a script: what is wrong, or only where the time goes. A place is named only where causes leave most of
// a gap open; one whose text means nothing to its rule is named after all others.
enum class Says { kCause, kPlace, kUnreadPlace };

struct Rule {
  const char* id;              // of its topic: "R13"
  const char* key;             // of this cause: "denormals"
  const char* framework = "";  // that the script trains with, as its hooks name it; "": any
  const char* signal;          // what makes it suspect, for a reader
  const char* cause;           // "denormal numbers slow its arithmetic"
  const char* change;          // what to change, in one line; "{}" is the switch's value
  const char* method;          // what the run with the switch does: "sets denormal numbers to 0"
  const char* thrown;      // the switch, of runners/bakeoff_observe or one of the above; "" if it has none
  const char* place = "";  // regular expression of the line to change in the source; "" if unknown
  bool numbers = false;    // the change may change numbers
  // Whether the cause is suspect in this script, on a machine with this number of processors.
  std::function<std::optional<Suspicion>(const Subject& subject, int processors)> suspect;
  Says says = Says::kCause;
  const char* within = "";  // key of a rule that has the same cause in general: it gives way to this one
  // How a line of the source is changed, where this regular expression matches it: "$1" is its first group, "{}"
  // the switch's value, "" no line any more. nullptr: not by a machine.
  const char* from = nullptr;
  const char* to = "";
  // What `bakeoff tune` throws the switch to where nothing is suspect; nullptr: it does not.
  std::vector<nlohmann::json> (*tries)(const Subject& subject, int processors) = nullptr;

  bool has_switch() const { return *thrown != '\0'; }
  bool takes_other_lines() const { return std::string_view(thrown) == kOtherLines; }
  bool of_place() const { return says != Says::kCause; }
};

const std::vector<Rule>& rules();

struct Suspect {
  const Rule* rule = nullptr;
  Suspicion suspicion = {};
  int64_t line = 0;  // of the source, where the change belongs; 0: not known
  bool has_switch() const {
    return rule->has_switch() && !(suspicion.value.is_null() && rule->takes_other_lines());
  }
  // Whether a run with the other one's switch thrown is a run with this one's, but for its value.
  bool same_switch(const Suspect& other) const {
    return has_switch() && std::string_view(rule->thrown) == other.rule->thrown &&
           (!rule->takes_other_lines() || suspicion.value == other.suspicion.value);
  }
};

// All suspects, those with the highest ceiling first. `tuning`: and after them what may be tried in any script.
std::vector<Suspect> suspects(const Subject& subject, int processors, bool tuning = false);
// The text with the value in the place of "{}".
std::string filled(std::string text, const nlohmann::json& value);
// What becomes of a line, "" where it goes; absent where that is not known.
std::optional<std::string> changed_line(const Suspect& suspect, const std::string& line);

// What was seen of a script that is wrong, or that no switch can change: no cause of slowness.
struct Remark {
  std::string script = {};  // or the file that it imports
  const char* id = "";      // of its topic
  std::string text = {};
  int64_t line = 0;  // 0: not known
};
std::vector<Remark> remarks(const Subject& subject);

// What one section of docs/rules.md tells: several rules may be about one topic, and some topics have none, because
// another part of the program sees to them.
struct Topic {
  const char* id;        // "R13"
  const char* title;     // "Denormal numbers"
  const char* meaning;   // what it is and why it costs time
  const char* measured;  // how it is found and measured
};

const std::vector<Topic>& topics();
// Section of a topic in Markdown; empty where there is no such topic. alone: it is printed without the others.
std::string page(const std::string& id, bool alone = true);
// Table of all topics in Markdown, with links to their sections.
std::string index_page();
// docs/rules.md: the table and all sections.
std::string rules_document();

}  // namespace bakeoff::explain
