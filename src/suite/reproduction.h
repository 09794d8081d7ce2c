#pragma once

// A published study replayed: a suite, whose races are held against the study's table. Pure functions of the study and
// of the races' summaries, but for the record that a replay begins with.

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "recipe/published_study.h"
#include "suite/suite_record.h"
#include "suite/suite_table.h"
#include "summary/summary.h"

namespace bakeoff::suite {

// Of a published ratio and today's: whether they name the same contender as the faster one.
enum class Order {
  kNotPublished,
  kNotRaced,
  kNotJudged,  // the race has no verdict
  kUndecided,  // today's interval allows either
  kAgrees,     // also: neither has a gap beyond the margin
  kReversed,
  kNoGapHere,       // today's is within the margin
  kNoGapPublished,  // the published one is within the margin
};
std::string word(Order order);  // "agrees", "reversed", ...

// What switching one setting of a contender explains of its gap to the reference.
struct GapShare {
  std::string confound = {}, setting = {};
  std::string contender = {};  // whose setting is switched: the line's, or the reference
  std::string from = {}, to = {};
  Estimate share = {};  // suite/gap_share.h; unlike other estimates it may be negative
  bool known() const { return std::isfinite(share.low) || std::isfinite(share.high); }
};

struct ReplayedLine {
  std::string contender = {}, reference = {};
  std::optional<double> published = {};  // ratio of the contender to the reference
  std::optional<PairRatio> today = {};   // the same, of step times here
  Order order = Order::kNotRaced;
  std::string note = {};  // why there is no ratio
  std::vector<GapShare> shares = {};
};

struct ReplayedRow {
  recipe::StudyRow row = {};
  std::string folder = {};   // of its run, below the suite's; empty: none
  bool asked = true;         // false: it could be raced, but others were asked for
  std::string failure = {};  // why it was not raced; empty: it was
  std::string refusal = {};  // why its race has no verdict
  std::string rest = {};     // what is left to decide, in a sentence
  std::string title = {};    // of the recipe
  ir::Track track = ir::Track::kEqualised;
  bool gpu = false;  // a contender computed on one
  double alpha = 0, margin = 0;
  std::vector<Contender> contenders = {};
  std::vector<ReplayedLine> lines = {};
  bool raced() const { return failure.empty(); }
};

struct Reproduction {
  recipe::PublishedStudy study = {};
  std::vector<ReplayedRow> rows = {};  // all of the study's
  bool interrupted = false;
};

// The record of a new replay: an entry for each row that can be raced. `rows`: the names of those wanted; empty: all.
// Error: a row that the study does not have, or that cannot be raced; no recipe can be read.
Result<Record> record_of(const recipe::StudyText& text, double minutes, const std::vector<std::string>& rows);
// Of a study's text, as a record keeps it. Error: the record is of no study.
Result<recipe::PublishedStudy> study_of(const Record& record);

// `inputs`: of the record's entries (inputs_of_folder), by the names of rows.
Reproduction reproduction_of(const recipe::PublishedStudy& study, const std::vector<Input>& inputs);

// What this is and what it is not, in a sentence or two: "Not a replication: ...".
std::string headline(const Reproduction& reproduction);
// Whether it may be called a replication: every row that was raced ran the study's own network, on a GPU if the study
// did.
bool replicates(const Reproduction& reproduction);
// Why no share of a confound is known; empty: one is.
std::string why_no_share(const Reproduction& reproduction, const recipe::Confound& confound);

}  // namespace bakeoff::suite
