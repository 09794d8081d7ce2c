// A table of keys, each with its type, its meaning and the function that reads it: writing, documentation and
// the test of the types walk through the same table. A key that has no value is null and is never left out,
// since readers of columns infer the schema from the first lines.

#include "exports/json_lines.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "report/phrases.h"
#include "table/quantity.h"
#include "table/text.h"

namespace bakeoff::exports {
namespace {

using table::Json;

// The subject of one line; null if absent.
struct Line {
  const Recorded& run;
  const Row& row;
  bool ranked = false;
  const Trial* trial = nullptr;
  const Burst* burst = nullptr;
  int64_t number = 0;
  bool counts = false;
};

struct Key {
  LineKey about;
  std::function<Json(const Line&)> value;
};

Json text(const std::string& value) { return table::clean(value); }
// A number is one in every line, without a fraction too.
Json real(double value) { return table::number(value); }
Json seconds(int64_t ns) { return ns > 0 ? real(static_cast<double>(ns) / 1e9) : Json(); }

// The line has a value only with a trial, or with a burst.
std::function<Json(const Line&)> of_trial(Json (*read)(const Line&)) {
  return [read](const Line& line) { return line.trial == nullptr ? Json() : read(line); };
}
std::function<Json(const Line&)> of_burst(Json (*read)(const Line&)) {
  return [read](const Line& line) { return line.burst == nullptr ? Json() : read(line); };
}

std::vector<Key> keys_of_the_run() {
  return {
      {{"schema", "whole", "1: keys keep their names, types and meaning"},
       [](const Line&) { return Json(1); }},
      {{"run", "text", "name of the run's folder"}, [](const Line& l) { return text(l.run.run); }},
      {{"recipe", "text", "name of the recipe"}, [](const Line& l) { return text(l.run.summary.title); }},
      {{"track", "text", "equalised, or as-is"},
       [](const Line& l) { return text(ir::name(l.run.summary.track)); }},
      {{"run_started", "text", "when the run began, UTC"},
       [](const Line& l) { return text(l.run.summary.manifest.started); }},
      {{"host", "text", "name of the machine"},
       [](const Line& l) { return text(l.run.summary.manifest.host.name); }},
      {{"cpu", "text", "its processor"}, [](const Line& l) { return text(l.run.summary.manifest.host.cpu); }},
      {{"cpus", "whole", "processors that the run could use"},
       [](const Line& l) { return Json(l.run.summary.manifest.host.cpus); }},
      {{"bakeoff_version", "text", "version of the program that raced"},
       [](const Line& l) { return text(l.run.summary.manifest.bakeoff_version); }},
      {{"batch", "whole", "samples in a step"}, [](const Line& l) { return Json(l.run.summary.batch); }},
  };
}

std::vector<Key> keys_of_the_contender() {
  return {
      {{"contender", "text", "its name, unique in the run"},
       [](const Line& l) { return text(l.row.contender.id); }},
      {{"framework", "text", "its framework"}, [](const Line& l) { return text(l.row.contender.framework); }},
      {{"framework_version", "text", "version of that package; null where it never started"},
       [](const Line& l) {
         const std::string version = framework_version(l.row);
         return version.empty() ? Json() : text(version);
       }},
      {{"settings", "text", "its settings: name=value, with ; between them"},
       [](const Line& l) { return text(settings_text(l.row.contender)); }},
      {{"precision", "text", "what it computes in"}, [](const Line& l) { return text(l.row.group); }},
      {{"ranked", "yes or no", "whether it has a place in the ranking"},
       [](const Line& l) { return Json(l.ranked); }},
      {{"reason", "text", "why it is not ranked; null where it is"},
       [](const Line& l) { return l.ranked ? Json() : text(report::unranked_reason(l.row)); }},
  };
}

std::vector<Key> keys_of_the_burst() {
  return {
      {{"heat", "whole", "number of the heat, from 1"},
       of_trial([](const Line& l) { return Json(l.trial->heat); })},
      {{"heat_started", "text", "when its process began, UTC"},
       of_trial([](const Line& l) { return text(l.trial->started); })},
      {{"confirms", "yes or no", "of a confirmation heat, which has no part in the verdict"},
       of_trial([](const Line& l) { return Json(l.trial->confirms); })},
      {{"first_step_seconds", "number", "first step of that process, compilation included"},
       of_trial([](const Line& l) { return seconds(l.trial->first_step_ns); })},
      {{"burst", "whole", "number of the burst within the heat, from 1"},
       of_burst([](const Line& l) { return Json(l.number); })},
      {{"counts", "yes or no", "no: warm-up, or run again because the host was busy"},
       of_burst([](const Line& l) { return Json(l.counts); })},
      {{"steps", "whole", "steps of the burst"},
       of_burst([](const Line& l) { return Json(l.burst->steps); })},
      {{"seconds", "number", "time of the burst"},
       of_burst([](const Line& l) { return real(static_cast<double>(l.burst->counted_ns()) / 1e9); })},
      {{"seconds_per_step", "number", "that time over its steps"},
       of_burst([](const Line& l) { return real(l.burst->ms_per_step() / 1e3); })},
      {{"samples_per_second", "number", "batch over that"}, of_burst([](const Line& l) {
         return real(static_cast<double>(l.run.summary.batch) / (l.burst->ms_per_step() / 1e3));
       })},
      {{"cpu_seconds", "number", "processor time of the worker during the burst; null where it was not read"},
       of_burst([](const Line& l) {
         const auto found = l.burst->used.find("cpu_s");
         return found == l.burst->used.end() ? Json() : real(found->second);
       })},
      {{"involuntary_switches", "whole", "context switches that its threads were forced to"},
       of_burst([](const Line& l) { return Json(l.burst->switches); })},
  };
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> keys = keys_of_the_run();
    for (const auto& part : {keys_of_the_contender(), keys_of_the_burst()})
      keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  }();
  return all;
}

void add_line(const Line& line, std::string& out) {
  Json json = Json::object();
  for (const Key& key : keys()) json[key.about.name] = key.value(line);
  out += dump(json) + '\n';
}

// Number of lines that were written.
size_t add_trial(Line line, std::string& out) {
  const Trial& trial = *line.trial;
  for (const auto* bursts : {&trial.bursts, &trial.void_bursts}) {
    for (const Burst& burst : *bursts) {
      line.burst = &burst;
      ++line.number;
      line.counts = bursts == &trial.bursts && line.number > trial.warmup_bursts;
      add_line(line, out);
    }
  }
  return trial.bursts.size() + trial.void_bursts.size();
}

}  // namespace

const std::vector<LineKey>& line_keys() {
  static const std::vector<LineKey> all = [] {
    std::vector<LineKey> out;
    for (const Key& key : keys()) out.push_back(key.about);
    return out;
  }();
  return all;
}

std::string json_lines(const Recorded& run) {
  std::string out;
  const auto add_row = [&](const Row& row, bool ranked) {
    size_t lines = 0;
    for (const Trial& trial : run.trials) {
      if (trial.contender == row.contender.id) lines += add_trial({run, row, ranked, &trial}, out);
    }
    if (lines == 0) add_line({run, row, ranked}, out);
  };
  for (const Row& row : run.summary.ranked) add_row(row, true);
  for (const Row& row : run.summary.unranked) add_row(row, false);
  return out;
}

}  // namespace bakeoff::exports
