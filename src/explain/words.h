#pragma once

// What every rendering of an explanation says in the same words.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "explain/explanation.h"

namespace bakeoff::explain {

// "sample", or "step" where the samples of one are not known.
std::string unit(const Explanation& explanation);
// "2.1 [1.9, 2.3]"
std::string with_interval(const Estimate& estimate);
// "slow.py takes 2.1 [1.9, 2.3] times as long per step as fast.py", of an explanation with a gap.
std::string gap_words(const Explanation& explanation);
// The gap, or that the scripts are equal, or how fast the one script is.
std::string headline(const Explanation& explanation);
// What is said where no cause is confirmed.
std::string nothing_words(const Explanation& explanation);
// "slow.py:12"; empty: the line is not known.
std::string place(const Explanation& explanation, const Cause& cause);
// "slow.py:12: its loss ... (R21)".
std::string remark_words(const Remark& remark);
// "of the gap of 12 us per sample in the observed runs: steps 2 us, waiting for data 10 us"; empty without a gap.
std::string phases_words(const Explanation& e);
// What was predicted and what was measured.
std::string gain_words(const Explanation& explanation, const Cause& cause);
// What to change, with the value that was tried.
std::string change_words(const Cause& cause);
// The line to change as it is and as it becomes ("": it goes); absent where a machine cannot tell.
std::optional<std::pair<std::string, std::string>> diff(const Explanation& explanation, const Cause& cause);
// How the script is to be started, with the variables that pay; empty: as ever.
std::string shell_line(const Explanation& explanation);
// What the first losses say of a change that may change numbers.
std::string numbers_words(const Explanation& explanation, const Cause& cause);
// Of a cause that is not confirmed: "no gain (0.99 [0.97, 1.01])".
std::string finding_words(const Cause& cause);
// What scripts were doing: seconds of each, of what is compared, the greatest first. They add up to all of it, but for the
// start of a whole run.
struct AccountTimes {
  std::string title = {};  // "backward pass"
  std::vector<double> seconds = {};
};
std::vector<AccountTimes> account_times(const std::vector<Subject>& subjects);
// The same as a table: a head and rows of a title and a figure of each script, the greatest first. They add up to the
// time that is compared. Empty where nothing was seen.
std::vector<std::vector<std::string>> accounts(const Explanation& e);
// What the script gains by the lines that are printed, applied to a copy; empty where that was not tried.
std::string applied_words(const Explanation& e);
// What confirmed causes leave of the gap, which causes that are booked may explain; empty where that is nothing.
std::string residual_words(const Explanation& e);
// Seconds of its observed run, and in how many steps: "9.81 (26 steps)".
std::string total_words(const Subject& s);
// Lines in which the script's steps were seen most often: ("62%", "train.py:41: loss.backward()").
std::vector<std::pair<std::string, std::string>> hot_lines(const Subject& subject);
// Loops that it consists of, and what each does: ("62%", "train.py:41: for x in batches: layers 40%, backward pass 15%").
std::vector<std::pair<std::string, std::string>> loop_books(const Subject& subject);
// Where the texts of two scripts differ, as lines of both: ("24 -", "x = f(y)"), ("+", "x = g(y)"). Empty where they differ
// too much to be shown.
std::vector<std::pair<std::string, std::string>> differing_lines(const Explanation& e);
// Ops of its steps by the profiler: ("45%", "aten::sort, 67 calls a step").
std::vector<std::pair<std::string, std::string>> hot_ops(const Subject& subject);
// What the hooks take of a step, at most; absent: it was not measured.
std::optional<double> hook_share(const Subject& subject);
// " Hooks took 0.05% of a step of slow.py."; empty: it was not measured.
std::string hook_words(const Explanation& explanation);

}  // namespace bakeoff::explain
