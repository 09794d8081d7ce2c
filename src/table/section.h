#pragma once

// One titled table of a report as every renderer takes it, finished: a study makes one, and no renderer knows
// which studies there are.

#include <string>
#include <utility>
#include <vector>

#include "table/quantity.h"

namespace bakeoff::table {

// A picture that goes with a table: for each contender a curve over x.
struct Point {
  double x = 0, y = 0, low = 0, high = 0;  // the range of y
  bool operator==(const Point&) const = default;
};
struct Curve {
  std::string contender = {};  // its id; of another curve its name: "referee"
  std::vector<Point> points = {};
  double marked_x = 0;  // the point that is set apart; 0: none
  bool operator==(const Curve&) const = default;
};
// A bar from 1, "no difference", to a factor.
struct FactorBar {
  std::string name = {};
  Estimate factor = {};
  std::string label = {};  // right of it: "1.32 [1.25, 1.40]"
  std::string hint = {};   // where the pointer rests
  bool sure = false;       // its interval does not hold 1
  bool operator==(const FactorBar&) const = default;
};
struct Picture {
  std::string name = {};  // where there are several: "loss over seconds"
  std::string x_title = {}, y_title = {};
  std::vector<Curve> curves = {};
  bool log_x = false;
  std::vector<std::pair<double, std::string>> ticks = {};  // of x, where they are not numbers: "p99"
  std::vector<FactorBar> bars = {};                        // instead of curves
  bool operator==(const Picture&) const = default;
};

struct Section {
  std::string key = {};                     // "fit": its id in HTML and its key in JSON
  std::string label = {};                   // for a page's navigation: "Whole training"
  std::string title = {};                   // "Whole training: 41 epochs of 60,000 rows"
  std::string legend = {};                  // what its numbers are, in sentences
  std::vector<std::string> sentences = {};  // the result in words, above the table
  std::vector<FilledColumn> columns = {};
  std::string next = {};                    // what may be done about it, in sentences; empty: nothing
  std::string command = {};                 // that does it, for copying
  std::vector<std::string> row_names = {};  // one a row, for the notes: "torch, single stream"
  std::vector<std::string> notes = {};      // one a row; empty if there is none
  std::vector<std::string> remarks = {};    // for the notes of the whole report
  Json json = {};                           // under its key
  // Names of the columns of a CSV, and by contender their values, parallel to the names.
  std::vector<std::string> csv_names = {};
  std::vector<std::pair<std::string, std::vector<std::string>>> csv = {};
  std::vector<Picture> pictures = {};
  size_t rows() const { return row_names.size(); }
  bool operator==(const Section&) const = default;
};

// Of a contender, values empty where the section has none for it.
Fields fields(const Section& section, const std::string& contender);
// Takes over the names of `values`, which are the same for every contender.
void add_fields(Section& section, const std::string& contender, const Fields& values);

}  // namespace bakeoff::table
