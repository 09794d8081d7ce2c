#include "table/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "table/text.h"

namespace bakeoff::table {
namespace {

using Properties = std::vector<std::pair<std::string, std::string>>;

std::string properties_of(const Properties& properties, const std::string& indent) {
  if (properties.empty()) return "";
  std::string out = indent + "<properties>\n";
  for (const auto& [name, value] : properties)
    out += fmt::format("{}  <property name=\"{}\" value=\"{}\"/>\n", indent, xml(one_line(name)),
                       xml(one_line(value)));
  return out + indent + "</properties>\n";
}

double seconds_of(const JunitCase& one) {
  return std::isfinite(one.seconds) && one.seconds > 0 ? one.seconds : 0;
}

std::string outcome_of(const JunitCase& one) {
  const std::string message = xml(one_line(one.message));
  if (one.outcome == JunitOutcome::kSkipped) return fmt::format("      <skipped message=\"{}\"/>\n", message);
  const char* tag = one.outcome == JunitOutcome::kFailed ? "failure" : "error";
  return fmt::format("      <{} type=\"{}\" message=\"{}\">{}</{}>\n", tag, xml(one_line(one.kind)), message,
                     xml(one.details), tag);
}

std::string case_of(const JunitCase& one) {
  std::string out = fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"{:.6f}\"",
                                xml(one_line(one.name)), xml(one_line(one.group)), seconds_of(one));
  std::string inside = properties_of(one.properties, "      ");
  if (one.outcome != JunitOutcome::kPassed) inside += outcome_of(one);
  if (!one.output.empty()) inside += fmt::format("      <system-out>{}</system-out>\n", xml(one.output));
  return inside.empty() ? out + "/>\n" : out + ">\n" + inside + "    </testcase>\n";
}

}  // namespace

// clean() leaves valid UTF-8 without control characters; U+FFFE and U+FFFF are no characters of XML.
std::string xml(std::string_view text) {
  std::string out;
  const std::string valid = clean(text);
  for (size_t i = 0; i < valid.size(); ++i) {
    const std::string_view rest = std::string_view(valid).substr(i, 3);
    if (rest == "\xEF\xBF\xBE" || rest == "\xEF\xBF\xBF") {
      i += 2;
      continue;
    }
    const char c = valid[i];
    out += c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&quot;"
           : c == '\'' ? "&apos;"
                       : std::string(1, c);
  }
  return out;
}

std::string render_junit(const JunitSuite& suite) {
  const auto count = [&](JunitOutcome outcome) {
    return std::ranges::count(suite.cases, outcome, &JunitCase::outcome);
  };
  double seconds = 0;
  for (const JunitCase& one : suite.cases) seconds += seconds_of(one);
  const std::string counts =
      fmt::format("name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.6f}\"",
                  xml(one_line(suite.name)), suite.cases.size(), count(JunitOutcome::kFailed),
                  count(JunitOutcome::kError), count(JunitOutcome::kSkipped), seconds);
  const std::string began =
      suite.started.empty() ? "" : fmt::format(" timestamp=\"{}\"", xml(one_line(suite.started)));
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n  <testsuite {0}{1}>\n", counts, began);
  out += properties_of(suite.properties, "    ");
  for (const JunitCase& one : suite.cases) out += case_of(one);
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace bakeoff::table
