#pragma once

// What the rules of several frameworks share.

#include <fmt/format.h>
#include <regex.h>

#include <map>

#include "explain/rules.h"

namespace bakeoff::explain {

using Json = nlohmann::json;
using Maybe = std::optional<Suspicion>;

constexpr double kWaits = 0.15;       // least share of steps that makes waiting a signal
constexpr double kSomeWaits = 0.05;   // the same, if something else speaks for the cause too
constexpr double kShortStep = 0.020;  // s: dispatch may count in a shorter step
constexpr double kPrintedBytes = 10;  // printed bytes a step that are a signal
constexpr double kWideGap = 0.3;    // of the other script's time, from which on a line or an op is looked for
constexpr double kPartOfGap = 0.4;  // that one line, one loop or compiling takes
constexpr int kToldLine = 100;      // columns of a line that are shown
constexpr double kOnce = 0.2;       // calls a step that count as "at each step"

// An extended regular expression of POSIX, whose characters are bytes. std::regex would take the compiler two seconds.
class Pattern {
 public:
  explicit Pattern(const char* expression);
  ~Pattern() { regfree(&compiled_); }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  // Whether a part of `text` matches.
  bool in(const std::string& text) const;
  // `text` with the first match replaced by `by`, in which $1 to $9 stand for groups; absent without a match.
  std::optional<std::string> replaced(const std::string& text, const std::string& by) const;

 private:
  regex_t compiled_ = {};
};

std::string share(double value);
// "waiting for data takes 92% of its steps"
std::string input_words(const Subject& s);
// The first line that matches, and is neither a comment nor an import; 0: none does.
int64_t first_line(const Source& source, const Pattern& pattern);
// By which factor a step becomes shorter if this share of it goes.
double without(double part);
// The object or array of a fact; empty if absent.
Json fact(const Subject& s, const char* name);
// What the first of its loaders says; null without a loader.
Json loader(const Subject& s, const char* fact);
// Of a pair: facts of the other script; 0 and empty where it has none.
double number_of_other(const Subject& s, const char* name);
Json fact_of_other(const Subject& s, const char* name);
// The first of a list's objects; an empty object if the list has none.
Json first_of(const Json& list);
Maybe recompiled(const Subject& s);
// The names that made functions compile again, for reasons of these kinds: "lr, temperature of train_step".
std::string reasons_of(const Subject& s, const std::vector<std::string>& kinds);
// Of a pair whose whole runs are compared: tracing and compiling before the first steps take longer than in the other script.
Maybe compiles_longer(const Subject& s);
// By how many seconds of what is compared backward passes take longer than in the other script.
double more_of_backward(const Subject& s);
// Seconds of what is compared that an account takes, and by how many it takes more than in the other script.
double account_s(const Subject& s, const char* account);
double more_of_account(const Subject& s, const char* account);
// Whether a line of the script makes an array of Python's or NumPy's numbers.
bool makes_array(const Subject& s, const HotLine& hot);
// Whether the batches of `fit` come from the script's own Python: a generator, a PyDataset or a Sequence.
bool batches_in_python(const Subject& s);
// Lower bound, at 99%, of a share of what is compared, from looks at the stack every 5 ms.
double at_least(double part, const Subject& s);
// A share of the looks at the stack, as a share of what is compared.
double of_looks(double part, const Subject& s);
// A share of its steps' time, as a share of what is compared.
double of_steps(double part, const Subject& s);
// Share of the watched steps' time; absent where none were watched.
std::optional<double> part_of_watched(const Subject& s, double seconds);
// The same, where a framework says that what it compiles is defined anew each time.
Maybe defined_anew(const Subject& s);
Maybe printed(const Subject& s);
// Calls in each step of functions whose names begin so, as the facts "calls_per_step" and "lines" tell them.
Maybe called(const Subject& s, const std::vector<std::string>& beginnings);
// A training loop that runs op by op, by the fact "eager_loop".
Maybe uncompiled(const Subject& s);
// `set_num_threads` and its like; of a pair, another number than the other script's, too.
Maybe other_threads(const Subject& s, int processors);

// By how many seconds of what is compared a script takes longer than the other, and whether such a gap is wide
// enough to look for a line or an op.
inline double gap_s(const Subject& s) { return s.mean_s() - s.other_s; }
inline bool is_wide(const Subject& s) { return s.other_s > 0 && gap_s(s) >= kWideGap * s.other_s; }

// One value, or none.
inline std::vector<Json> only(bool tried, Json value = true) {
  return tried ? std::vector<Json>{std::move(value)} : std::vector<Json>{};
}

// What to change in one framework, in Markdown, by topic; "any": for every framework.
struct Remedies {
  const char* framework;
  std::map<std::string, const char*> changes;
};

Remedies common_remedies();
Remedies torch_remedies();
Remedies keras_remedies();
Remedies tensorflow_remedies();
Remedies jax_remedies();

// A rule for each row of a table, whose signal is what the row says between two texts. It has no switch: the time of what it
// names is booked.
template <typename Row, size_t n>
std::vector<Rule> booked_rules(const Row (&table)[n], const std::string& before, const std::string& behind,
                               Maybe (*suspect)(const Subject&, const Row&)) {
  static const std::vector<std::string> signals = [&] {
    std::vector<std::string> texts;
    for (const Row& row : table) texts.push_back(before + row.what + behind);
    return texts;
  }();
  std::vector<Rule> all;
  for (size_t i = 0; const Row& row : table)
    all.push_back({.id = row.id,
                   .key = row.key,
                   .signal = signals[i++].c_str(),
                   .cause = row.cause,
                   .change = row.change,
                   .method = "",
                   .thrown = "",
                   .numbers = row.numbers,
                   .suspect = [&row, suspect](const Subject& s, int) { return suspect(s, row); }});
  return all;
}

std::vector<Rule> common_rules();
std::vector<Rule> line_rules();
std::vector<Rule> otherwise_rules();
std::vector<Rule> op_rules();
std::vector<Rule> torch_rules();
std::vector<Rule> keras_rules();
std::vector<Rule> tensorflow_rules();
std::vector<Rule> jax_rules();

}  // namespace bakeoff::explain
