#pragma once

// Scripts of the scenario "generate". The workload of their request is a step of decoding (passes/decode.h), with caches or
// without: it reads words and the input `positions`, which no file has. A script has
//
//   decode_step   the logits of the word that follows the words it is given; without caches it puts them into rows of
//                 words first, and the whole model reads those
//   generate      an iterator over the words of the answers, each chosen by an argument (default: the likeliest)
//   predict_step  all of them, N x WORDS

#include <string>
#include <vector>

#include "emit/code_writer.h"
#include "emit/emit.h"
#include "ir/training.h"
#include "ir/workload.h"

namespace bakeoff::emit {

// What a script keeps of the words that were read. `grows`: its caches can grow.
Setting cache_setting(bool grows = false);
// Whether keys and values are kept, and whether in caches that grow.
bool keeps_words(const Settings& settings);
bool cache_grows(const Settings& settings);

// The input that a script computes itself.
bool computed(const ir::Input& input);
// Of `ids`, those that a script reads from its data.
std::vector<ir::ValueId> read_from_data(const ir::Workload& workload, std::vector<ir::ValueId> ids);

// "PROMPT = 12  # ..." and the like; none in other scenarios.
std::vector<std::string> generation_constants(const ir::Training& training);

// generate(`model`, rows) and predict_step of it, by calls that differ: `begin`: before the loop; `call`: "logits = ..."
// of words and first; `joined`: what makes one array of the list `parts`.
struct GenerateText {
  std::string model;
  std::string begin = {};
  std::string call;
  std::string joined;
  std::string likeliest = "logits.argmax(-1)";
};
void print_generate(CodeWriter& out, const GenerateText& text);

// The same by TensorFlow's functions. `listed`: the model takes its inputs as one list. `made`: the lines that set
// model.decode, the graph of decode_step; none: it runs op by op.
void print_tensorflow_decode(CodeWriter& out, bool keeps, bool listed = false);
void print_tensorflow_generate(CodeWriter& out, bool keeps, const std::string& made);

// The sizes of a reshape of `x`, a value of shape `from`, as Python text: "-1", "x.shape[1]", "4". L is read from x.
std::vector<std::string> sizes_of(const std::string& x, const ir::Shape& from,
                                  const std::vector<int64_t>& to);

}  // namespace bakeoff::emit
