#include "emit/jax/input.h"

#include <string>

#include "emit/python_script.h"

namespace bakeoff::emit::jax {
namespace {

std::string batches_doc(const Request& request) {
  if (scans(request)) {
    return equalised(request) ? "Endlessly: all batches on the device in file order, and which comes next."
                              : "Endless stacks of STEPS_PER_CALL batches of rows in random order.";
  }
  return equalised(request) || request.training.predicts()
             ? "Endless batches on the device, in file order; rows left over are dropped."
             : "Endless batches of rows in random order.";
}

void print_batches_of_calls(CodeWriter& out, const Request& request) {
  if (equalised(request)) {
    out.print(
        "count = len(arrays[0]) // BATCH_SIZE\n"
        "full = [jnp.array(array[: count * BATCH_SIZE]) for array in arrays]\n"
        "data = [a.reshape(count, BATCH_SIZE, *a.shape[1:]) for a in full]\n"
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
        "        yield tuple(array[picked] for array in arrays)\n");
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
  out.line("def batches(arrays):");
  const auto body = out.indent();
  out.line("\"\"\"" + batches_doc(request) + "\"\"\"");
  print_rows_guard(out, "arrays[0]", least_batches(request) > 1);
  if (scans(request)) {
    print_batches_of_calls(out, request);
  } else if (equalised(request) || request.training.predicts()) {
    out.print(
        "starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)\n"
        "ready = [tuple(jnp.array(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]\n"
        "return itertools.cycle(ready)\n");
  } else {
    out.print(
        "rng = np.random.default_rng(SEED)\n"
        "rows = len(arrays[0])\n"
        "while True:\n"
        "    order = rng.permutation(rows)\n"
        "    for start in range(0, rows - BATCH_SIZE + 1, BATCH_SIZE):\n"
        "        picked = order[start : start + BATCH_SIZE]\n"
        "        yield tuple(array[picked] for array in arrays)\n");
  }
}

}  // namespace bakeoff::emit::jax
