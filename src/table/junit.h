#pragma once

// JUnit's XML, as test runners of CI read it: one suite, one case for each thing that was tried.
//
//   render_junit({.name = "mnist_cnn", .cases = {{.name = "jax", .seconds = 3.2,
//                                                 .outcome = JunitOutcome::kFailed, .message = "gradients differ"}}});
//
// Every text may hold anything: it is cleaned (table/text.h) and escaped, and what XML cannot hold is left out.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bakeoff::table {

// kFailed: the answer is no. kError: there is no answer. kSkipped: it was not tried.
enum class JunitOutcome { kPassed, kFailed, kError, kSkipped };

struct JunitCase {
  std::string name = {};
  std::string group = {};  // "classname": CI shows its cases together
  double seconds = 0;
  JunitOutcome outcome = JunitOutcome::kPassed;
  std::string kind = {};     // of a failure or an error, in a word or two: "parity"
  std::string message = {};  // one line
  std::string details = {};  // several lines
  std::vector<std::pair<std::string, std::string>> properties = {};
  std::string output = {};  // what it printed
};

struct JunitSuite {
  std::string name = {};
  std::string started = {};  // UTC; empty: left out
  std::vector<std::pair<std::string, std::string>> properties = {};
  std::vector<JunitCase> cases = {};
};

std::string render_junit(const JunitSuite& suite);

// A text within XML: for a value in double quotes, or between tags.
std::string xml(std::string_view text);

}  // namespace bakeoff::table
