#include "emit/jax/input.h"

#include <fmt/format.h>

#include <string>

#include "emit/devices.h"
#include "emit/python_script.h"

namespace bakeoff::emit::jax {
namespace {

std::string batches_doc(const Request& request) {
  if (scans(request)) {
    if (on_devices(request))
      return equalised(request) ? "Endlessly: all batches split over the devices, and which comes next."
                                : "Endless stacks of STEPS_PER_CALL batches, split over the devices.";
    return equalised(request) ? "Endlessly: all batches on the device in file order, and which comes next."
                              : "Endless stacks of STEPS_PER_CALL batches of rows in random order.";
  }
  if (on_devices(request))
    return equalised(request) ? "Endless batches in file order, their rows split over the devices."
                              : "Endless batches of rows in random order, split over the devices.";
  return equalised(request) || request.training.predicts()
             ? "Endless batches on the device, in file order; rows left over are dropped."
             : "Endless batches of rows in random order.";
}

// Of numpy arrays of rows what is given to a step: `array` for each of `all`.
std::string placed(const Request& request, const std::string& array, const std::string& all) {
  if (over_processes(request)) return fmt::format("tuple(split_rows({}) for {})", array, all);
  const std::string arrays = fmt::format("tuple({} for {})", array, all);
  return on_devices(request) ? fmt::format("jax.device_put({}, BY_ROWS)", arrays) : arrays;
}

// Batches in file order, ready before training.
std::string ready_batches(const Request& request) {
  if (over_processes(request))
    return "ready = [tuple(split_rows(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]\n"
           "return itertools.cycle(ready)\n";
  return on_devices(request)
             ? "ready = [tuple(a[i : i + BATCH_SIZE] for a in arrays) for i in starts]\n"
               "return itertools.cycle(jax.device_put(ready, BY_ROWS))\n"
             : "ready = [tuple(jnp.array(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]\n"
               "return itertools.cycle(ready)\n";
}

void print_batches_of_calls(CodeWriter& out, const Request& request) {
  if (equalised(request)) {
    out.print(on_devices(request) ? "count = len(arrays[0]) // BATCH_SIZE\n"
                                    "full = [array[: count * BATCH_SIZE] for array in arrays]\n"
                                    "shaped = [a.reshape(count, BATCH_SIZE, *a.shape[1:]) for a in full]\n"
                                    "data = $split$\n"
                                  : "count = len(arrays[0]) // BATCH_SIZE\n"
                                    "full = [jnp.array(array[: count * BATCH_SIZE]) for array in arrays]\n"
                                    "data = [a.reshape(count, BATCH_SIZE, *a.shape[1:]) for a in full]\n",
              {{"split", over_processes(request) ? "[split_rows(array) for array in shaped]"
                                                 : "jax.device_put(shaped, BY_ROWS)"}});
    out.print(
        "for first in itertools.count(0, STEPS_PER_CALL):\n"
        "    yield *data, first % count\n");
  } else {
    out.print(
        "rng = np.random.default_rng(SEED)\n"
        "rows = len(arrays[0])\n"
        "size = STEPS_PER_CALL * BATCH_SIZE\n"
        "while True:\n"
        "    order = rng.permutation(rows)\n"
        "    for start in range(0, rows - size + 1, size):\n"
        "        picked = order[start : start + size].reshape(STEPS_PER_CALL, BATCH_SIZE)\n"
        "        yield $picked$\n",
        {{"picked", placed(request, "array[picked]", "array in arrays")}});
  }
}

}  // namespace

bool scans(const Request& request) {
  return !request.training.predicts() && request.settings.at("steps_per_call") != "1";
}

int64_t least_batches(const Request& request) {
  const bool whole_calls = !equalised(request) && !request.training.predicts();
  return whole_calls ? std::stoll(setting_or(request.settings, "steps_per_call", "1")) : 1;
}

void print_batches(CodeWriter& out, const Request& request) {
  if (over_processes(request))
    out.print(R"(def split_rows(array):
    """On each device its rows of a batch; each process reads its own."""
    return jax.make_array_from_callback(array.shape, BY_ROWS, lambda own: array[own])


)");
  out.line("def batches(arrays):");
  const auto body = out.indent();
  out.line("\"\"\"" + batches_doc(request) + "\"\"\"");
  print_rows_guard(out, "arrays[0]", least_batches(request) > 1);
  if (scans(request)) {
    print_batches_of_calls(out, request);
  } else if (equalised(request) || request.training.predicts()) {
    out.print("starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)\n");
    out.print(ready_batches(request));
  } else {
    out.print(
        "rng = np.random.default_rng(SEED)\n"
        "rows = len(arrays[0])\n"
        "while True:\n"
        "    order = rng.permutation(rows)\n"
        "    for start in range(0, rows - BATCH_SIZE + 1, BATCH_SIZE):\n"
        "        picked = order[start : start + BATCH_SIZE]\n"
        "        yield $picked$\n",
        {{"picked", placed(request, "array[picked]", "array in arrays")}});
  }
}

}  // namespace bakeoff::emit::jax
