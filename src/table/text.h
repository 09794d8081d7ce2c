#pragma once

// Text for people: cleaning what a worker printed, and laying UTF-8 out in terminal columns.
//
//   pad_right(fit(clean(name), 20), 20)    // exactly 20 columns for any name
//
// Widths are columns of a terminal: 0 for combining marks, 2 for East Asian wide characters and emoji,
// else 1.

#include <string>
#include <string_view>
#include <vector>

namespace bakeoff::table {

// Valid UTF-8 without terminal escape sequences, control characters (but newline and tab) and characters that
// reorder text; a byte that is not UTF-8 becomes U+FFFD. "\r\n" becomes "\n", and of a line that "\r"
// overwrites (a progress bar) the last state stays.
std::string clean(std::string_view text);

// What may reach a terminal or a pipe of a finished text: that of clean(), with the report's own colours where
// `colour`, and without a "\r" that no newline follows, which would hide what stands before it.
std::string for_screen(std::string_view text, bool colour);

// A line of CSV with its end "\r\n" (RFC 4180), fields cleaned. A field that a spreadsheet would run as a formula begins
// with an apostrophe; numbers do not.
std::string csv_row(const std::vector<std::string>& fields);

// clean() with every run of white space made one space: for a cell or a sentence.
std::string one_line(std::string_view text);

int display_width(std::string_view utf8);

// At most `width` columns; what is cut off is replaced by "…".
std::string fit(std::string_view utf8, int width);

// Spaces added up to `width` columns; longer text is left as it is.
std::string pad_right(std::string_view utf8, int width);
std::string pad_left(std::string_view utf8, int width);

// Lines of at most `width` columns, broken at spaces and, where a word alone is too long, after one of
// ",[]/=_-" or anywhere. Line breaks of the text stay. Never empty.
std::vector<std::string> wrap(std::string_view utf8, int width);

// wrap() of `text` with `first` before the first line and `next` before the others, joined with newlines.
// No line is wider than `width`, the prefixes included.
std::string paragraph(std::string_view text, int width, std::string_view first = "",
                      std::string_view next = "");

// The last `count` lines that are not blank.
std::vector<std::string> last_lines(std::string_view text, int count);

}  // namespace bakeoff::table
