#include "emit/keras/predict.h"

#include <fmt/format.h>

#include "emit/generation.h"
#include "emit/precision.h"
#include "emit/python_script.h"

namespace bakeoff::emit::keras {
namespace {

void print_compile(CodeWriter& out, const std::string& jit) {
  out.line("def compile_model(model):");
  const auto body = out.indent();
  out.line("\"\"\"Sets how the model is run.\"\"\"");
  out.call("model.compile", {"jit_compile=" + (jit == "auto" ? "\"auto\"" : python_bool(jit == "true"))});
}

void print_batches(CodeWriter& out, const Dialect& dialect, size_t inputs) {
  out.line("def batches(x):");
  const auto body = out.indent();
  out.line("\"\"\"Endless batches as tensors, in file order; rows left over are dropped.\"\"\"");
  print_rows_guard(out, inputs == 1 ? "x" : "x[0]");
  if (inputs == 1) {
    out.print(
        dialect.translate("starts = range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE)\n"
                          "ready = [ops.convert_to_tensor(x[i : i + BATCH_SIZE]) for i in starts]\n"
                          "return itertools.cycle(ready)\n"));
  } else {
    out.print(
        dialect.translate("starts = range(0, len(x[0]) - BATCH_SIZE + 1, BATCH_SIZE)\n"
                          "parts = [[array[i : i + BATCH_SIZE] for array in x] for i in starts]\n"
                          "ready = [[ops.convert_to_tensor(array) for array in part] for part in parts]\n"
                          "return itertools.cycle(ready)\n"));
  }
}

void print_decode(CodeWriter& out, bool keeps, const std::string& rounded) {
  out.print(keeps ? R"(def decode_step(model, words, first):
    """Logits of the word that follows `words`, which begin at `first`."""
    words = ops.convert_to_tensor(words)
    positions = ops.arange(first, first + words.shape[1], dtype="int32")
    return model.predict_on_batch([words, positions])[:, -1]$float$


)"
                  : R"(def decode_step(model, read, words, first):
    """Logits of the word that follows `words`, which join `read` at `first`."""
    end = first + words.shape[1]
    read[:, first:end] = ops.convert_to_numpy(words)
    positions = ops.arange(end - 1, end, dtype="int32")
    words = ops.convert_to_tensor(read)
    return model.predict_on_batch([words, positions])[:, -1]$float$


)",
            {{"float", rounded}});
  print_generate(out,
                 {.model = "model",
                  .begin = keeps ? "" : "    read = np.zeros(rows.shape, np.int32)\n",
                  .call = fmt::format("logits = decode_step(model, {}words, first)", keeps ? "" : "read, "),
                  .joined = "np.concatenate(parts, axis=1)",
                  .likeliest = "logits.argmax(-1).astype(np.int32)"});
}

// Keras 2 refuses a batch of words beside positions that are no batch: a graph of the script's own instead.
void print_decode_2(CodeWriter& out, bool keeps) {
  print_tensorflow_decode(out, keeps, true);
  print_tensorflow_generate(out, keeps,
                            "        step = functools.partial(decode_step, model)\n"
                            "        model.decode = tf.function(step, jit_compile=model.jit_compile)\n");
}

void print_main(CodeWriter& out, const Request& request, const Dialect& dialect, const ModelText& text) {
  const bool equalised = emit::equalised(request);
  out.line("def main():");
  const auto body = out.indent();
  out.print(R"(folder = Path(__file__).parent
parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--data", default=folder / "data.safetensors")
)");
  if (equalised) out.line("parser.add_argument(\"--weights\", default=folder / \"weights.safetensors\")");
  out.line("parser.add_argument(\"--steps\", type=int, default=100)");
  out.line(kOutArgument);
  out.print(R"(arguments = parser.parse_args()

model = build_model()
)");
  if (equalised) out.line("load_weights(model, arguments.weights)");
  out.line("compile_model(model)");
  print_predict_loop(out, request,
                     {.step = "predict_step(model, next(data))",
                      .to_numpy = request.training.generates() && dialect.second ? ".numpy()" : "",
                      .turn = text.output_turn,
                      .args = "arguments",
                      .rows = text.inputs == 1 ? "arrays" : "arrays[0]"});
}

}  // namespace

void print_prediction(CodeWriter& out, const Request& request, const Dialect& dialect,
                      const ModelText& model) {
  print_compile(out, request.settings.at("jit_compile"));
  out.blank(2);
  const bool generates = request.training.generates();
  if (generates && dialect.second)
    print_decode_2(out, keeps_words(request.settings));
  else if (generates)
    print_decode(out, keeps_words(request.settings),
                 precision_of(request).mixed() ? ".astype(np.float32)" : "");
  else
    out.print("def predict_step(model, x):\n    return model.predict_on_batch(x)\n\n\n");
  print_batches(out, dialect, model.inputs);
  out.blank(2);
  print_main(out, request, dialect, model);
}

}  // namespace bakeoff::emit::keras
