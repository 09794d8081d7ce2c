"""Emitted scripts against plain hand-written loops of the same framework.

    python3 bench/emitted/bench.py [torch jax tensorflow keras-tensorflow ...]
        [--build DIR] [--envs DIR] [--blocks 6] [--bursts 10] [--threads N] [--quick]
        [--same]

The emitted script of recipes/mnist_cnn.toml runs in a real worker, the plain loop of
<framework>_plain.py in a process of its own, in paired blocks (bench/pairing). From the
same weights on the same batches; the losses must agree. The bar: a ratio of 1.02. With --same a plain
loop runs against itself: what the method shows where there is nothing to see.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pairing.blocks import Pair, conclude, effort_of, parser_for, ratios
from pairing.sides import Job, Loop, Side, Worker, emit

HERE = Path(__file__).resolve().parent
BAR = 1.02
# Of a burst: about a second.
STEPS = {"torch": 8, "tensorflow": 8, "jax": 2}
CASES = ("torch", "jax", "tensorflow", "keras-tensorflow", "keras-jax", "keras-torch")


def pair_of(case: str, job: Job, same: bool) -> Pair:
    framework = case.split("-")[0]
    module = HERE / f"{framework}_plain.py"
    # The last of ten losses; rounding has grown by then. Keras's mean: its stock
    # RMSprop has epsilon elsewhere, see keras_plain.py.
    mean = 0.05 if framework == "keras" else 1e-3

    def plain() -> Side:
        return Loop(job, module, job.data, job.weights)

    return Pair(
        one=plain if same else lambda: Worker(job),
        other=plain,
        words=("plain", "plain") if same else ("emitted", "plain"),
        tolerance={"first": 1e-4, "last": 1e-3, "mean": mean},
    )


def main() -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--same", action="store_true", help="plain against plain")
    parser.add_argument("cases", nargs="*", metavar="framework", default=list(CASES))
    options = parser.parse_args()
    unknown = [case for case in options.cases if case not in CASES]
    if unknown:
        parser.error(f"'{unknown[0]}' is none of {', '.join(CASES)}")
    effort = effort_of(options, blocks=6, bursts=10)
    fine = []
    with tempfile.TemporaryDirectory() as directory:
        scripts = emit(options.build / "bakeoff", "mnist_cnn", Path(directory))
        for case in options.cases:
            framework, _, backend = case.partition("-")
            python = options.envs / (backend or framework) / "bin" / "python"
            script = f"train_{case.replace('-', '_')}.py"
            steps = STEPS[backend or framework]
            job = Job(python, scripts, script, steps, options.threads, backend)
            pair = pair_of(case, job, options.same)
            name = f"{case}, {' / '.join(pair.words)}"
            fine.append(conclude(name, ratios(name, pair, effort), 0, BAR))
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
