#include "emit/keras/input.h"

#include <string>
#include <vector>

#include "emit/python_script.h"

namespace bakeoff::emit::keras {
namespace {

void print_dataset(CodeWriter& out, const Request& request, size_t inputs) {
  out.line("def make_dataset(x, y):");
  {
    const auto body = out.indent();
    out.line(equalised(request) ? "\"\"\"The full batches of the data, in file order.\"\"\""
                                : "\"\"\"The full batches of the data, shuffled every epoch.\"\"\"");
    out.call("data = tf.data.Dataset.from_tensor_slices", {inputs == 1 ? "(x, y)" : "(tuple(x), y)"},
             ".cache()");
    out.line(equalised(request) ? "data = data.batch(BATCH_SIZE, drop_remainder=True)"
                                : "data = data.shuffle(len(y)).batch(BATCH_SIZE, drop_remainder=True)");
    out.line("return data.prefetch(tf.data.AUTOTUNE)");
  }
  out.blank(2);
}

void print_batches(CodeWriter& out, size_t inputs) {
  out.print(R"(class Batches(keras.utils.PyDataset):
    """The full batches of the data."""

    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y) // BATCH_SIZE

    def __getitem__(self, index):
        rows = slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE)
        return $x$, self.y[rows]


)",
            {{"x", inputs == 1 ? "self.x[rows]" : "tuple(array[rows] for array in self.x)"}});
}

}  // namespace

void print_input(CodeWriter& out, const Request& request, size_t inputs) {
  const std::string input = setting_or(request.settings, "input", "numpy");
  const bool dataset = input == "tf_data", batches = input == "py_dataset";
  if (dataset) print_dataset(out, request, inputs);
  if (batches) print_batches(out, inputs);
  out.line("def fit(model, x, y, epochs, callbacks=None):");
  const auto body = out.indent();
  if (batches && !equalised(request))
    out.line("\"\"\"Trains on the full batches of the data, in another order every epoch.\"\"\"");
  else
    out.line(equalised(request)
                 ? "\"\"\"Trains on the full batches of the data, in file order.\"\"\""
                 : "\"\"\"Trains on the full batches of the data, shuffled every epoch.\"\"\"");
  print_rows_guard(out, "y");
  std::vector<std::string> arguments;
  if (dataset) arguments = {"make_dataset(x, y)", "epochs=epochs"};
  if (batches) arguments = {"Batches(x, y)", "epochs=epochs"};
  if (arguments.empty()) {
    out.line("rows = len(y) // BATCH_SIZE * BATCH_SIZE");
    arguments = {inputs == 1 ? "x[:rows]" : "[array[:rows] for array in x]", "y[:rows]",
                 "batch_size=BATCH_SIZE", "epochs=epochs"};
  }
  if (!dataset && equalised(request)) arguments.push_back("shuffle=False");
  arguments.push_back("callbacks=callbacks");
  arguments.push_back("verbose=0");
  out.call("return model.fit", arguments);
}

}  // namespace bakeoff::emit::keras
