#include "emit/generation.h"

#include <fmt/format.h>

#include <algorithm>

namespace bakeoff::emit {

Setting cache_setting(bool grows) {
  Setting setting = {
      .name = "cache",
      .values = {"static", "none"},
      .fallback = "static",
      .doc =
          "keys and values of words that were read: static: kept, in places for all words; none: not "
          "kept, every word is chosen by a run of the whole model over all places",
      .scenarios = {ir::Scenario::kGenerate}};
  if (grows) {
    setting.values.insert(setting.values.begin() + 1, "dynamic");
    setting.doc += "; dynamic: kept, in tensors that grow by each word";
  } else {
    setting.doc += "; no cache grows: each word would be compiled anew";
  }
  return setting;
}

bool keeps_words(const Settings& settings) { return setting_or(settings, "cache", "static") != "none"; }
bool cache_grows(const Settings& settings) { return setting_or(settings, "cache", "static") == "dynamic"; }

bool computed(const ir::Input& input) { return input.type.shape == ir::Shape{ir::kSteps}; }

std::vector<ir::ValueId> read_from_data(const ir::Workload& workload, std::vector<ir::ValueId> ids) {
  std::erase_if(ids, [&](ir::ValueId id) { return computed(workload.inputs[static_cast<size_t>(id)]); });
  return ids;
}

std::vector<std::string> generation_constants(const ir::Training& training) {
  if (!training.generates()) return {};
  return {fmt::format("PROMPT = {}  # words of each row that are read first", training.generation.prompt),
          fmt::format("WORDS = {}  # that are chosen in answer", training.generation.words)};
}

void print_generate(CodeWriter& out, const GenerateText& text) {
  out.print(R"(def likeliest(logits):
    return $likeliest$


def generate($model$, rows, choose=likeliest):
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
$begin$    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        $call$
        first += words.shape[1]
        words = choose(logits)[:, None]
        yield words


def predict_step($model$, rows):
    parts = list(generate($model$, rows))
    return $joined$


)",
            {{"model", text.model},
             {"likeliest", text.likeliest},
             {"begin", text.begin},
             {"call", text.call},
             {"joined", text.joined}});
}

void print_tensorflow_decode(CodeWriter& out, bool keeps, bool listed) {
  out.print(keeps ? R"(def decode_step(model, words, first):
    """Logits of the word that follows `words`, which begin at `first`."""
    positions = first + tf.range(words.shape[1])
    return model($open$words, positions$close$)[:, -1]


)"
                  : R"(def decode_step(model, read, words, first):
    """Logits of the word that follows `words`, which join `read` at `first`; `read`."""
    positions = first + tf.range(words.shape[1])
    places, words = tf.transpose(read), tf.transpose(words)
    places = tf.tensor_scatter_nd_update(places, positions[:, None], words)
    read = tf.transpose(places)
    return model($open$read, positions[-1:]$close$)[:, -1], read


)",
            {{"open", listed ? "[" : ""}, {"close", listed ? "]" : ""}});
}

void print_tensorflow_generate(CodeWriter& out, bool keeps, const std::string& made) {
  if (!made.empty())
    out.print(R"(def step_of(model):
    """The graph of decode_step, made once for a model."""
    if not hasattr(model, "decode"):
$made$    return model.decode


)",
              {{"made", made}});
  print_generate(out, {.model = "model",
                       .begin = (made.empty() ? "    step = functools.partial(decode_step, model)\n"
                                              : "    step = step_of(model)\n") +
                                std::string(keeps ? "" : "    read = tf.zeros_like(rows)\n"),
                       .call = keeps ? "logits = step(words, tf.constant(first))"
                                     : "logits, read = step(read, words, tf.constant(first))",
                       .joined = "tf.concat(parts, axis=1)",
                       .likeliest = "tf.argmax(logits, -1, tf.int32)"});
}

std::vector<std::string> sizes_of(const std::string& x, const ir::Shape& from,
                                  const std::vector<int64_t>& to) {
  const auto at = std::find(from.begin(), from.end(), ir::kSteps) - from.begin();
  std::vector<std::string> sizes;
  for (const int64_t size : to)
    sizes.push_back(size == ir::kSteps ? fmt::format("{}.shape[{}]", x, at) : std::to_string(size));
  return sizes;
}

}  // namespace bakeoff::emit
