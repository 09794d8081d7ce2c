"""What part of a step a training loop waits for a batch of preloaded tensors.

    python3 bench/wait/bench.py [--build DIR] [--envs DIR] [--bursts 8] [--quick]

As the worker itself measures it, in the frameworks whose loop can tell it from the
step. The bar, 1%, is for the CNN, whose pipelines are raced, and for every other
network; the step of `mlp_small` is the lightest that there is.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pairing.blocks import effort_of, parser_for
from pairing.sides import Job, Worker, emit

BAR = 0.01
RECIPES = {
    "mnist_cnn": 5,
    "bert_small": 50,
    "lstm_lm_small": 50,
    "resnet18_small": 50,
    "mlp_deep": 100,
    "mlp_small": 500,
}
FRAMEWORKS = ("torch", "tensorflow", "jax")


def share(job: Job, bursts: int) -> tuple[float, float]:
    """Waiting by the time of the bursts, and milliseconds of a step."""
    worker = Worker(job)
    try:
        worker.first()
        worker.burst()
        worker.wait_ns = worker.burst_ns = 0
        for _ in range(bursts):
            worker.burst()
        ms = worker.burst_ns / 1e6 / (bursts * worker.steps)
        return worker.wait_ns / worker.burst_ns, ms
    finally:
        worker.close()


def main() -> int:
    options = parser_for(__doc__).parse_args()
    bursts = effort_of(options, blocks=1, bursts=8).bursts
    fine = True
    for recipe, steps in RECIPES.items():
        if options.quick and recipe not in ("mnist_cnn", "mlp_small"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            contenders = [f'{{ framework = "{name}" }}' for name in FRAMEWORKS]
            scripts = emit(options.build / "bakeoff", recipe, Path(folder), contenders)
            for name in FRAMEWORKS:
                python = options.envs / name / "bin" / "python"
                script = f"train_{name}.py"
                job = Job(python, scripts, script, steps, options.threads)
                waiting, ms = share(job, bursts)
                good = 0 < waiting < BAR
                fine &= good
                print(
                    f"wait for a batch, {recipe}, {name}: {waiting:.3%} of a step of "
                    f"{ms:.2f} ms (bar: below {BAR:.0%}) {'ok' if good else 'MISSED'}",
                    flush=True,
                )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
