#include "emit/keras/input.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "emit/python_script.h"

namespace bakeoff::emit::keras {
namespace {

// "x", or "tuple(x)" of several arrays.
std::string tuple_of(const std::string& name, size_t arrays) {
  return arrays == 1 ? name : fmt::format("tuple({})", name);
}

// These rows of one array, or of each of several, as "[...]" or "tuple(...)".
std::string rows_of(const std::string& name, size_t arrays, const std::string& rows, bool list) {
  if (arrays == 1) return fmt::format("{}[{}]", name, rows);
  return fmt::format("{0}array[{1}] for array in {2}{3}", list ? "[" : "tuple(", rows, name,
                     list ? "]" : ")");
}

void print_dataset(CodeWriter& out, const Request& request, size_t inputs, size_t targets) {
  out.line("def make_dataset(x, y):");
  {
    const auto body = out.indent();
    out.line(equalised(request) ? "\"\"\"The full batches of the data, in file order.\"\"\""
                                : "\"\"\"The full batches of the data, shuffled every epoch.\"\"\"");
    out.call("data = tf.data.Dataset.from_tensor_slices",
             {fmt::format("({}, {})", tuple_of("x", inputs), tuple_of("y", targets))}, ".cache()");
    out.line(equalised(request)
                 ? std::string("data = data.batch(BATCH_SIZE, drop_remainder=True)")
                 : fmt::format("data = data.shuffle(len({})).batch(BATCH_SIZE, drop_remainder=True)",
                               targets == 1 ? "y" : "y[0]"));
    out.line("return data.prefetch(tf.data.AUTOTUNE)");
  }
  out.blank(2);
}

void print_batches(CodeWriter& out, size_t inputs, size_t targets) {
  out.print(R"(class Batches(keras.utils.PyDataset):
    """The full batches of the data."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return len($first$) // BATCH_SIZE

    def __getitem__(self, index):
        rows = slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE)
        return $x$, $y$


)",
            {{"x", rows_of("self.x", inputs, "rows", false)},
             {"y", rows_of("self.y", targets, "rows", false)},
             {"first", targets == 1 ? "self.y" : "self.y[0]"}});
}

}  // namespace

void print_input(CodeWriter& out, const Request& request, size_t inputs, size_t targets) {
  const std::string input = setting_or(request.settings, "input", "numpy");
  const bool dataset = input == "tf_data", batches = input == "py_dataset";
  if (dataset) print_dataset(out, request, inputs, targets);
  if (batches) print_batches(out, inputs, targets);
  const std::string y = targets == 1 ? "y" : "y[0]";
  out.line("def fit(model, x, y, epochs, callbacks=None):");
  const auto body = out.indent();
  if (batches && !equalised(request))
    out.line("\"\"\"Trains on the full batches of the data, in another order every epoch.\"\"\"");
  else
    out.line(equalised(request)
                 ? "\"\"\"Trains on the full batches of the data, in file order.\"\"\""
                 : "\"\"\"Trains on the full batches of the data, shuffled every epoch.\"\"\"");
  print_rows_guard(out, y);
  std::vector<std::string> arguments;
  if (dataset) arguments = {"make_dataset(x, y)", "epochs=epochs"};
  if (batches) arguments = {"Batches(x, y)", "epochs=epochs"};
  if (arguments.empty()) {
    out.line(fmt::format("rows = len({}) // BATCH_SIZE * BATCH_SIZE", y));
    arguments = {rows_of("x", inputs, ":rows", true), rows_of("y", targets, ":rows", true),
                 "batch_size=BATCH_SIZE", "epochs=epochs"};
  }
  if (!dataset && equalised(request)) arguments.push_back("shuffle=False");
  arguments.push_back("callbacks=callbacks");
  arguments.push_back("verbose=0");
  out.call("return model.fit", arguments);
}

}  // namespace bakeoff::emit::keras
