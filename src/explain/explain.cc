#include "explain/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "explain/inquiry.h"
#include "explain/observation.h"
#include "proc/interrupt.h"

namespace bakeoff::explain {

size_t Explanation::confirmed() const {
  return static_cast<size_t>(std::ranges::count(causes, Finding::kConfirmed, &Cause::finding));
}

Result<Explanation> explain(ExplainJob job, const Progress& progress) {
  Explanation out;
  out.subjects = job.subjects;
  Inquiry inquiry(job, out, progress);
  for (Subject& subject : out.subjects) {
    progress("observing " + subject.name);
    CHECK_OK(observe(subject, job.folder));
    if (proc::interrupted()) return Error{.message = "interrupted"};
    if (!subject.spec.in_copy)
      out.notes.push_back(subject.name + ": its folder is too large to be copied, so its runs write into it");
    for (const std::string& note : subject.seen.notes) out.notes.push_back(subject.name + ": " + note);
  }
  prepare_pair(out.subjects, out.notes);
  for (const Subject& subject : out.subjects)
    std::ranges::move(remarks(subject), std::back_inserter(out.remarks));
  if (out.subjects.size() > 1) {
    out.work = work_differences(out.subjects[0], out.subjects[1]);
    out.environment = environment_differences(out.subjects[0], out.subjects[1]);
  }
  inquiry.run();
  std::ranges::stable_sort(out.causes, [](const Cause& a, const Cause& b) {
    const bool a_yes = a.finding == Finding::kConfirmed, b_yes = b.finding == Finding::kConfirmed;
    if (a_yes != b_yes) return a_yes;
    return a_yes && a.of_gap().value > b.of_gap().value;
  });
  out.seconds = inquiry.seconds();
  return out;
}

}  // namespace bakeoff::explain
