#pragma once

// What a report says first, in the same order in a terminal and on a page: what ran where, the answer, every
// contender in one list with its throughput, and what speaks for or against trusting it. A pure function of the
// summary.

#include <optional>
#include <string>
#include <vector>

#include "records/names.h"
#include "report/ranking.h"
#include "summary/standing.h"
#include "summary/summary.h"

namespace bakeoff::report {

struct FirstRow {
  const Row* row = nullptr;
  int series = 0;  // index in all_series()
  ShownName name = {};
  Finish finish = Finish::kNoResult;
  std::string word = {};  // "fastest", "may be fastest", "slower", "no result"
  std::optional<Rate> rate = {};
  double ratio = 0;          // of its step time to the fastest's; 0: not known
  std::string against = {};  // "1.03 times as long"; of no result the reason
  std::string range = {};    // "0.93 to 1.14"; empty: none
  std::string group = {};    // stated where there are several: "bfloat16"
};

// One thing to do or to know. `link` is the id of a section of the page; `command` is for copying.
struct Doubt {
  std::string title = {}, text = {}, command = {}, link = {}, link_text = {};
  bool good = true;
};

struct FirstScreen {
  std::vector<std::string> what = {};  // model, training, machine, versions, date
  std::string answer = {};             // at most twelve words, no statistics
  std::string rest = {};               // the others, and whether all compute the same
  std::vector<FirstRow> rows = {};     // ranked, then those without a result
  double most = 0;                     // the right end of the scale, in samples per second
  std::string confidence = {};         // stated once
  std::string fastest_script = {};     // its file; empty if absent
  std::vector<Doubt> doubts = {};
};

// `run`: the run's folder as its commands write it; a page, which others read, takes shown_run().
FirstScreen first_screen(const Summary& summary, const std::string& run);

// The command that repeats the run, without the folders of this machine.
std::string command_to_repeat(const Summary& summary);
// Of a run directory, relative where it lies below "runs".
std::string shown_run(const std::string& run);

}  // namespace bakeoff::report
