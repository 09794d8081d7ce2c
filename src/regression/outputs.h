#pragma once

// A gate's outcome for machines that run it: JUnit XML, GitHub's annotations and step summary, GitLab's code quality.
// Whatever names and commit messages hold, it stays text: nothing in them ends an element, a line or a command.

#include <string>
#include <vector>

#include "base/result.h"
#include "regression/outcome.h"

namespace bakeoff::regression {

// One test case for each contender: a failure is a regression, what is undecided is skipped with its reason.
std::string to_junit(const Outcome& outcome);
// A gate that could not run: one test case with an error.
std::string junit_of_error(const std::string& target, const Error& error);

inline constexpr size_t kMostAnnotations = 10;  // GitHub shows no more of one step
// Workflow commands, a line each: ::error for regressions, the worst first, then ::warning for what is undecided.
std::string to_annotations(const Outcome& outcome);
std::string annotation_of_error(const Error& error);

// Markdown for $GITHUB_STEP_SUMMARY.
std::string to_step_summary(const Outcome& outcome);
inline constexpr size_t kStepSummaryBytes = size_t{1}
                                            << 20;  // GitHub drops a step's whole summary beyond this
// The part of `text` that still fits behind `before` bytes, cut at a line's end, with a note.
std::string fitted_summary(const std::string& text, size_t before);

// GitLab's code quality report: an array of issues, empty without a regression.
std::string to_gitlab(const Outcome& outcome);

// For a terminal of `width` columns.
std::string to_text(const Outcome& outcome, int width);

}  // namespace bakeoff::regression
