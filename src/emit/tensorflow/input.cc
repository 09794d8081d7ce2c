#include "emit/tensorflow/input.h"

#include <fmt/format.h>

#include "emit/devices.h"
#include "emit/python_script.h"

namespace bakeoff::emit::tensorflow {
namespace {

std::string batches_doc(const Request& request) {
  if (resident(request)) return "Endlessly: all batches as tensors in file order, and which comes next.";
  if (on_devices(request))
    return equalised(request) ? "Endless batches in file order, their rows split over the devices."
                              : "Endless batches of rows in random order, split over the devices.";
  if (equalised(request) || request.training.predicts()) {
    return streams(request) ? "Endless batches, in file order; rows left over are dropped."
                            : "Endless batches as tensors, in file order; rows left over are dropped.";
  }
  return streams(request) ? "Endless batches of rows in random order."
                          : "Endless batches of rows in random order, from tensors on the device.";
}

void print_stream(CodeWriter& out, const Request& request) {
  const bool cached = setting_or(request.settings, "input", "auto") == "tf_data";
  out.line(fmt::format("data = tf.data.Dataset.from_tensor_slices(arrays){}", cached ? ".cache()" : ""));
  out.line(fmt::format("data = data.{}batch(BATCH_SIZE, drop_remainder=True)",
                       equalised(request) ? "" : "shuffle(len(arrays[0]))."));
  // Where the order is fixed, calls go on from one epoch into the next.
  if (loops(request) && equalised(request)) {
    out.line("data = data.repeat().batch(STEPS_PER_CALL, drop_remainder=True)");
    return out.line("return iter(data.prefetch(tf.data.AUTOTUNE))");
  }
  if (loops(request)) out.line("data = data.batch(STEPS_PER_CALL, drop_remainder=True)");
  if (on_devices(request)) {
    out.line("data = data.repeat().prefetch(tf.data.AUTOTUNE)");
    return out.line("return iter(STRATEGY.experimental_distribute_dataset(data))");
  }
  out.line("return iter(data.repeat().prefetch(tf.data.AUTOTUNE))");
}

void print_split_rows(CodeWriter& out, const Request& request) {
  if (over_processes(request))
    return out.print(R"(def split_rows(array):
    """A part of the rows in each process, the first rows in the first one."""
    parts = np.split(array, DEVICES)
    return STRATEGY.experimental_distribute_values_from_function(
        lambda replica: tf.constant(parts[replica.replica_id_in_sync_group])
    )


)");
  out.print(R"(def split_rows(array):
    """A part of the rows on each device, the first rows on the first one."""
    parts = np.split(array, DEVICES)

    def part(replica):
        number = replica.replica_id_in_sync_group
        with tf.device(STRATEGY.extended.worker_devices[number]):
            return tf.constant(parts[number])

    return STRATEGY.experimental_distribute_values_from_function(part)


)");
}

}  // namespace

bool streams(const Request& request) { return input_of(request) == "tf_data"; }

bool loops(const Request& request) {
  return !request.training.predicts() && request.settings.at("steps_per_call") != "1";
}

bool resident(const Request& request) { return loops(request) && !streams(request); }

std::string input_of(const Request& request) {
  const std::string input = setting_or(request.settings, "input", "auto");
  if (request.training.predicts()) return "preloaded";
  return input != "auto" ? input : equalised(request) ? "preloaded" : "tf_data";
}

int64_t least_batches(const Request& request) {
  const bool whole_calls = !equalised(request) && streams(request);
  return whole_calls ? std::stoll(setting_or(request.settings, "steps_per_call", "1")) : 1;
}

void print_batches(CodeWriter& out, const Request& request) {
  if (on_devices(request) && !streams(request)) print_split_rows(out, request);
  out.line("def batches(arrays):");
  const auto body = out.indent();
  out.line("\"\"\"" + batches_doc(request) + "\"\"\"");
  print_rows_guard(out, "arrays[0]", least_batches(request) > 1);
  if (resident(request)) {
    out.print(
        "count = len(arrays[0]) // BATCH_SIZE\n"
        "full = [array[: count * BATCH_SIZE] for array in arrays]\n"
        "shaped = [a.reshape(count, BATCH_SIZE, *a.shape[1:]) for a in full]\n"
        "data = [tf.constant(array) for array in shaped]\n"
        "for first in itertools.count(0, STEPS_PER_CALL):\n"
        "    yield *data, tf.constant(first % count)\n");
  } else if (streams(request)) {
    print_stream(out, request);
  } else if (equalised(request) || request.training.predicts()) {
    out.print(
        "starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)\n"
        "ready = [tuple($whole$(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]\n"
        "return itertools.cycle(ready)\n",
        {{"whole", on_devices(request) ? "split_rows" : "tf.constant"}});
  } else {
    out.print(
        "rows = len(arrays[0])\n"
        "data = [tf.constant(array) for array in arrays]\n"
        "while True:\n"
        "    order = tf.random.shuffle(tf.range(rows))\n"
        "    for start in range(0, rows - BATCH_SIZE + 1, BATCH_SIZE):\n"
        "        picked = order[start : start + BATCH_SIZE]\n"
        "        yield tuple(tf.gather(array, picked) for array in data)\n");
  }
}

}  // namespace bakeoff::emit::tensorflow
