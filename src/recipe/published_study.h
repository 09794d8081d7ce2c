#pragma once

// A published study that compared frameworks, as data: what it really compared, its table, and the race that replays
// each row (docs/reproduce.md). A study is one file; those inside the program are recipes/published/*.toml.
//
//   title = "Keras 3 against native PyTorch"
//   source = "who published it, where, when"
//   unit = "ms a step"
//   gpu = "an A100-40GB"                       # on which the figures were measured; empty: on none
//   compared = ["What it timed, a sentence for each."]
//   columns = ["torch", "keras[backend=jax]"]  # ids of contenders: the columns of its table
//   references = ["torch"]                     # ratios are over these
//   [every]                                    # keys of recipes that every row replaces
//   [[row]]
//   name = "BERT fit"
//   recipe = "bert_small"                      # or why_not = "generate cannot be raced yet"
//   instead = "2 layers in place of 12"        # how the network differs from the study's; empty: it is the same
//   figures = [202.43, 222.37]                 # parallel to columns; nan: the table has none
//   [row.with]                                 # keys of recipes, over those of [every]
//   [[confound]]
//   name = "XLA"
//   what = "One side was compiled, the other was not."
//   settings = ["jit_compile"]                 # or why_not = "a GPU's matter"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace bakeoff::recipe {

struct PublishedFigure {
  std::string contender = {};
  double value = 0;  // in the study's unit; NaN: none was published
};

struct StudyRow {
  std::string name = {};
  std::filesystem::path recipe = {};  // as recipe::load takes it; empty where why_not says why
  std::string why_not = {};           // why it cannot be raced here
  std::string instead = {};
  std::string with = {};  // TOML
  std::vector<std::string> references = {};
  std::vector<PublishedFigure> figures = {};
};

struct Confound {
  std::string name = {}, what = {};
  std::vector<std::string> settings =
      {};                    // of frameworks: contenders that differ in one of these alone tell its share
  std::string why_not = {};  // why nothing here switches it
};

struct PublishedStudy {
  std::string name = {};  // of its file
  std::filesystem::path file = {};
  std::string title = {}, source = {}, unit = {}, gpu = {};
  std::vector<std::string> compared = {};
  std::string every = {};  // TOML
  double minutes = 0;      // of all races together; 0: each recipe's own budget
  std::vector<StudyRow> rows = {};
  std::vector<Confound> confounds = {};
};

// Errors name file, line, key and the remedy. `shipped`: it is inside the program, and so are its recipes.
Result<PublishedStudy> parse_study(std::string_view text, const std::filesystem::path& file,
                                   bool shipped = false);

struct StudyText {
  std::filesystem::path file = {};
  std::string text = {};
  bool shipped = false;
};
// Those inside the program, by name.
std::vector<StudyText> shipped_studies();
// A file, or the name of one inside the program. Error: it is neither; it has the nearest name.
Result<StudyText> find_study(const std::filesystem::path& name);

}  // namespace bakeoff::recipe
