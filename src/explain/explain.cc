#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "explain/folders.h"
#include "explain/inquiry.h"
#include "explain/observation.h"
#include "proc/interrupt.h"

namespace bakeoff::explain {

namespace {

constexpr double kMuchCompiled = 0.3;  // share of the observed steps
constexpr double kReadOnly = 2;        // by how much greater they must be
constexpr double kMuchSlower = 3;      // observed steps over those of the other script

void find(const ExplainJob& job, Explanation& out, int64_t begin_ns, const Progress& progress) {
  if (out.subjects.size() > 1) {
    // What is known of the work is known of the model that is called first.
    if (!out.subjects[0].unlike) out.work = work_differences(out.subjects[0], out.subjects[1]);
    out.environment = environment_differences(out.subjects[0], out.subjects[1]);
  }
  out.causes.clear();
  Inquiry(job, out, begin_ns, progress).run();
}

// What the observed runs say, until heats measure the scripts side by side.
void tell_observed(const std::vector<Subject>& subjects, const Progress& progress) {
  const double first_s = subjects[0].mean_s();
  const double second_s = subjects.size() > 1 ? subjects[1].mean_s() : 0;
  if (first_s > 0 && second_s > 0)
    progress(fmt::format("first standing: {} takes {:.3g} times as long as {}, each observed by itself",
                         subjects[0].name, first_s / second_s, subjects[1].name));
}

// Of named causes, for their order: causes read from the texts of scripts stand behind greater ones.
double rank(const Cause& cause) { return cause.size() / (cause.suspect.rule->of_place() ? kReadOnly : 1); }

bool compiles_often(const Suspect& one) {
  return std::string(one.rule->id) == "R7" && one.suspicion.booked.value_or(0) > kMuchCompiled;
}

// A script that compiles in its first steps again and again, and then no more, shows no gap in later ones. Its first steps
// are what it is slower by, if the other script does not do the same.
void tell_compilations(Explanation& out) {
  const bool slower = out.subjects.size() > 1 &&
                      out.subjects[0].mean_s() > kMuchSlower * out.subjects[1].mean_s() &&
                      std::ranges::none_of(suspects(out.subjects[1], 1), compiles_often);
  for (Cause& cause : out.causes) {
    if (!slower || out.early || !compiles_often(cause.suspect)) continue;
    cause.finding = Finding::kBooked;
    out.early = true;
    out.equal = false;
  }
  for (const Subject& subject : out.subjects)
    for (const Suspect& one : suspects(subject, 1))
      if (!out.early && compiles_often(one)) {
        out.remarks.push_back(
            {subject.name, "R7",
             fmt::format("in its first steps: {}: {}", one.rule->cause, one.suspicion.evidence), one.line});
        break;
      }
}

}  // namespace

Result<Explanation> explain(ExplainJob job, const Progress& progress) {
  const int64_t begin_ns = monotonic_clock().now_ns();
  Explanation out;
  out.subjects = job.subjects;
  out.tuned = job.tuning;
  CHECK_OK(observe(out.subjects, job.folder, job.seconds, progress));
  if (proc::interrupted()) return Error{.message = "interrupted"};
  for (const Subject& subject : out.subjects) {
    if (!subject.spec.in_copy)
      out.notes.push_back(subject.spec.folder.string() + " is too large to be copied, so runs write into it");
    for (const std::string& note : subject.seen.notes) out.notes.push_back(subject.name + ": " + note);
  }
  CHECK_OK(observe_whole(out.subjects, job.folder));
  prepare(out.subjects, out.notes);
  for (const Subject& subject : out.subjects)
    std::ranges::move(remarks(subject), std::back_inserter(out.remarks));
  tell_observed(out.subjects, progress);
  find(job, out, begin_ns, progress);
  // What was observed may mislead on a busy machine; what raced does not.
  if (out.gap && out.gap->high < 1 / (1 + kMargin)) {
    std::swap(out.subjects[0], out.subjects[1]);
    find(job, out, begin_ns, progress);
  }
  if (out.subjects.size() > 1 && !out.equal && out.subjects[0].name != job.subjects[0].name)
    out.notes.push_back(out.subjects[0].name + " is the slower one of the two");
  if (out.equal) tell_compilations(out);
  if (out.others >= kBusy)
    out.notes.push_back(fmt::format(
        "other processes took up to {:.0f}% of the machine's processors while it was measured: less is certain "
        "then, and what is named holds for a machine as busy as this one (R15)",
        100 * out.others));
  std::ranges::stable_sort(out.causes, [](const Cause& a, const Cause& b) {
    if (a.named() != b.named()) return a.named();
    if (!a.named()) return !a.suspect.rule->of_place() && b.suspect.rule->of_place();
    return rank(a) > rank(b);
  });
  std::set<std::string> told;  // a pass that began anew may say the same
  std::erase_if(out.notes, [&](const std::string& note) { return !told.insert(note).second; });
  out.seconds = seconds_since(begin_ns);
  return out;
}

}  // namespace bakeoff::explain
