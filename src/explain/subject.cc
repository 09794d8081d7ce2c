// Scripts are compared by the sample, because two scripts may have other batches, other numbers of steps and
// other epochs. So nearly every number here has a unit that depends on the script: seconds of a sample; of a
// step where the batch is not known (by_step); of the whole run where the script makes few steps (whole).
// mean_s() and looked_at_s() say which, and a rule that divides one time by another must take both in the
// same unit.
//
// The hooks of one framework also see what another one does that trains on it (Keras on torch), so the facts
// may name several; trained_by() says which of them is the script's.
//
// What a difference of the two texts costs is found from looks at the stack. A line that was seen longer than
// in the other script runs names that are defined elsewhere, so its time goes to the differences that it can
// reach (runs() in differences.h), nearest first. Own lines win over lines that only lead there.

#include "explain/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "explain/folders.h"

namespace bakeoff::explain {
namespace {

using Json = nlohmann::json;

// A pipeline that works for a larger share of a step is what the step waits for.
constexpr double kBinds = 0.6;

constexpr size_t kLargestFile = 1 << 20;  // bytes

const Json kNothing = Json::object();

// Places of the hot lines that are among these lines, in their order.
std::vector<size_t> differing(const std::vector<CodeTime>& all, const std::vector<int64_t>& lines) {
  std::vector<size_t> found;
  for (const int64_t run : lines)
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].text.has(run) && std::ranges::find(found, i) == found.end()) found.push_back(i);
  return found;
}

// A framework that trains on another one, whose hooks see what trains it too, names it as its backend.
std::string trained_by(const Json& facts) {
  if (!facts.is_object()) return "";
  const auto first = [&](auto wanted) -> std::string {
    for (const auto& [name, of] : facts.items())
      if (of.is_object() && wanted(of)) return name;
    return "";
  };
  const auto trains = [](const Json& of) {
    const auto found = of.find("parameters");
    return found != of.end() && found->is_number() && *found > 0;
  };
  std::string name = first([&](const Json& of) { return of.contains("backend") && trains(of); });
  if (name.empty()) name = first(trains);
  return name.empty() ? first([](const Json&) { return true; }) : name;
}

// If only the other script has a condition here (`if step % 100 == 0:`): the lines below the condition there.
std::set<std::string> guarded_lines(const Difference& text, const Source& other) {
  std::set<std::string> all;
  if (!text.mine.empty() || text.other.empty()) return all;
  const std::string_view last = trimmed(text.other.back());
  if (!last.starts_with("if ") || !last.ends_with(":")) return all;
  const auto indent = [](const std::string& line) { return line.find_first_not_of(" \t"); };
  for (const Source::File& file : other.files()) {
    size_t open = std::string::npos;  // the indent of the condition
    for (const std::string& line : file.lines) {
      if (trimmed(line).empty()) continue;
      if (open != std::string::npos && indent(line) <= open) open = std::string::npos;
      if (open != std::string::npos) all.emplace(trimmed(line));
      if (trimmed(line) == last) open = indent(line);
    }
  }
  return all;
}

// Takes the difference's own lines, if the script was seen in them for longer than in lines that call them.
void take_own_lines(const Subject& s, const std::vector<LineTime>& lines, CodeTime& code) {
  const std::set<std::string> guarded = guarded_lines(code.text, s.other_source);
  double own_s = 0, most_s = 0;
  const LineTime* most = nullptr;
  for (const LineTime& line : lines) {
    const bool part = line.line.function.starts_with("<");  // a comprehension, in a line that was seen, too
    const bool own = guarded.empty() ? !code.text.mine.empty() && code.text.has(line.line.line)
                                     : line.line.line >= code.text.line && guarded.contains(line.text);
    if (part || !own) continue;
    own_s += line.within_s;
    if (line.within_s > most_s) most = &line, most_s = line.within_s;
  }
  std::vector<std::string> others = code.text.other;
  others.insert(others.end(), guarded.begin(), guarded.end());
  for (const std::string& text : others)
    if (const auto there = s.other_within.find(std::string(trimmed(text))); there != s.other_within.end())
      own_s -= there->second;
  own_s = std::min(own_s, s.mean_s());
  if (most == nullptr || own_s < code.nearest_s) return;
  code.more_s = std::max(code.more_s, own_s);
  code.nearest_s = own_s;
  code.line = *most;
  code.line_more_s = std::min(own_s, most_s);
  code.own = true;
}

}  // namespace

const Json& facts_of(const Report& report) {
  const std::string name = trained_by(report.facts);
  return name.empty() ? kNothing : report.facts[name];
}

double samples_of(const Json& facts, bool by_step) {
  const auto of = [&](const char* name) {
    const auto found = facts.find(name);
    return found != facts.end() && found->is_number() && *found > 0 ? found->get<double>() : 1.0;
  };
  return (by_step ? 1 : of("batch")) * of("steps_per_execution");
}

std::string Subject::framework() const { return trained_by(seen.facts); }

bool Subject::uses(const std::string& wanted) const {
  return framework().ends_with(wanted) || text("backend") == wanted;
}

const Json& Subject::facts() const { return facts_of(seen); }
double Subject::samples() const { return samples_of(facts(), by_step); }

double Subject::step_with_waits_s() const { return profile.step_s / std::max(0.01, 1 - profile.wait_share); }

double Subject::input_share() const {
  const double batches = number("steps_per_execution", 1);
  const double reads = profile.step_s > 0 ? std::min(1.0, seen.input_s * batches / profile.step_s) : 0;
  return std::max(profile.wait_share, reads > kBinds ? reads : 0);
}

Result<Subject> subject_of_file(const std::filesystem::path& file, ScriptSpec spec) {
  const std::string name = file.filename().string();
  Subject subject{.name = name, .file = name, .folder = file.parent_path(), .spec = std::move(spec)};
  subject.spec.in_copy = too_large(subject.spec.folder).empty();
  if (file.empty()) return subject;
  TRY(const std::string text, read_file(file));
  subject.source = Source(text);
  subject.spec.notebook = text.find("get_ipython(") != std::string::npos;
  return subject;
}

std::vector<Phase> gap_by_phase(const Subject& first, const Subject& second) {
  const auto units = [](const Subject& s) {
    return s.whole ? 1 : static_cast<double>(std::max<int64_t>(1, s.profile.steps - 1)) * s.samples();
  };
  std::vector<Phase> gaps;
  for (size_t i = 0; i < std::min(first.profile.phases.size(), second.profile.phases.size()); ++i) {
    Phase gap = first.profile.phases[i];
    if (!first.whole && gap.key != "steps" && gap.key != "waits" && gap.key != "epochs" && gap.key != "end")
      continue;
    gap.seconds = gap.seconds / units(first) - second.profile.phases[i].seconds / units(second);
    gaps.push_back(std::move(gap));
  }
  return gaps;
}

void read_files(Subject& s) {
  std::error_code failed;
  for (const auto& [name, number] : s.seen.files) {
    const std::filesystem::path path = s.spec.folder / name;
    auto text = read_file(path);
    if (!text || text->size() > kLargestFile) continue;
    const std::string from_script =
        std::filesystem::relative(path, s.spec.folder / s.folder, failed).string();
    s.source.add(
        {.name = from_script.empty() ? name : from_script, .first = number, .lines = lines_of(*text)});
  }
}

std::string trimmed_line(const Subject& s, int64_t line) { return std::string(trimmed(s.source.line(line))); }

std::string place_of(const Subject& s, int64_t line) {
  const auto [name, number] = s.source.place(line);
  return number == 0 ? "" : fmt::format("{}:{}", name.empty() ? s.file : name, number);
}

double Subject::mean_s() const {
  double all = 0;
  for (const Phase& phase : profile.phases)
    if (phase.key == "steps" || phase.key == "waits" || phase.key == "epochs") all += phase.seconds;
  const double mean = all / static_cast<double>(std::max<int64_t>(1, profile.steps - 1)) / samples();
  return whole ? compared_s() : std::max(mean, compared_s());
}

std::vector<LineTime> line_times(const Subject& s) {
  std::vector<LineTime> all;
  const auto text_of = [&](const HotLine& line) {
    return s.source.has(line.line) ? trimmed_line(s, line.line) : "in " + line.function;
  };
  for (const HotLine& line : s.seen.lines)
    all.push_back(
        {line, text_of(line), line.share * s.looked_at_s(), line.within * s.looked_at_s(), line.share});
  if (!s.whole) return all;
  for (const HotLine& line : s.start_lines) {
    std::string text = text_of(line);
    if (!text.starts_with("import ") && !text.starts_with("from "))
      all.push_back(
          {line, std::move(text), line.share * s.start_s, line.within * s.start_s, line.share, true});
  }
  return all;
}

double more_of_line(const Subject& s, const LineTime& line) {
  const auto same = s.other_lines.find(line.text);
  return line.seconds - (same == s.other_lines.end() ? 0 : same->second);
}

std::vector<CodeTime> code_times(const Subject& s) {
  std::vector<CodeTime> all;
  for (Difference& one : differences(s.source, s.other_source)) all.push_back({.text = std::move(one)});
  if (all.empty()) return all;
  const std::vector<LineTime> lines = line_times(s);
  std::vector<int64_t> slower;
  for (const LineTime& line : lines)
    if (more_of_line(s, line) > 0) slower.push_back(line.line.line);
  const auto run = runs(s.source, slower);
  for (const LineTime& line : lines) {
    const double more_s = more_of_line(s, line);
    if (more_s <= 0) continue;
    bool nearest = true;
    for (const size_t at : differing(all, run.at(line.line.line))) {
      all[at].more_s += more_s;
      if (nearest) all[at].nearest_s += more_s;
      nearest = false;
      if (all[at].line_more_s < more_s) all[at].line = line, all[at].line_more_s = more_s;
    }
  }
  for (CodeTime& code : all) take_own_lines(s, lines, code);
  return all;
}

std::vector<OpTime> op_times(const Subject& s) {
  double all = 0;
  for (const OpTime& op : s.seen.ops) all += op.seconds;
  const double most = s.profile.step_s;
  const double steps = s.whole ? static_cast<double>(s.profile.steps) : 1 / s.samples();
  std::vector<OpTime> found = s.seen.ops;
  for (OpTime& op : found) op.seconds *= steps * (all > most ? most / all : 1);
  return found;
}

double Subject::looked_at_s() const { return whole ? watched_s : mean_s(); }

double Subject::compared_s() const { return whole ? profile.total_s : step_with_waits_s() / samples(); }

double Subject::number(const char* fact, double otherwise) const {
  const auto found = facts().find(fact);
  if (stepless() && std::string(fact).ends_with("_per_step")) return otherwise;
  return found != facts().end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string Subject::text(const char* fact) const {
  const auto found = facts().find(fact);
  if (found == facts().end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : dump(*found);
}

bool Subject::flag(const char* fact) const {
  const auto found = facts().find(fact);
  return found != facts().end() && found->is_boolean() && found->get<bool>();
}

}  // namespace bakeoff::explain
