"""Emitted sources against plain hand-written ones of the same framework.

    python3 bench/emitted/bench.py [CASE...] [--build DIR] [--envs DIR] [--blocks 5]
        [--bursts 10] [--threads N] [--quick] [--apart] [--same] [--list]

A case is WORKLOAD/FRAMEWORK; either alone names all of its cases. The emitted source of
a recipe runs in a real worker, the plain one (plain/<workload>_<framework>.py, for
LibTorch plain/libtorch/<workload>.cc) in the same process, in a thread of its own, in
paired blocks (bench/pairing); for LibTorch and with --apart in a process of its own.
From the same weights on the same batches; the losses must agree, where there is dropout
those of a training without it. The bar: a ratio of 1.02, with LibTorch 1.01.

What two processes of one source differ by is measured first, a plain source against
itself (no bar); with --same for all cases.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from pairing.blocks import Effort, Judged, Pair, effort_of, judge, parser_for, ratios
from pairing.sides import Job, Loop, Side, Together, Worker, emit

HERE = Path(__file__).resolve().parent
BAR, BAR_LIBTORCH = 1.02, 1.01
FRAMEWORKS = {
    "torch": '{ framework = "torch" }',
    "tensorflow": '{ framework = "tensorflow" }',
    "jax": '{ framework = "jax" }',
    "keras-tensorflow": '{ framework = "keras", backend = "tensorflow" }',
    "keras-torch": '{ framework = "keras", backend = "torch" }',
    "keras-jax": '{ framework = "keras", backend = "jax" }',
    "keras2": '{ framework = "keras2" }',
    "libtorch": '{ framework = "libtorch" }',
}
WORKLOADS = (
    "mnist_cnn",
    "mlp_small",
    "lstm_lm_small",
    "resnet18_small",
    "bert_small",
    "vit_tiny",
    "gemma_tiny",
    "dlrm_tiny",
)
DROPOUT = {"lstm_lm_small", "bert_small"}
# Every workload and every framework occurs.
QUICK = (
    "mnist_cnn/libtorch",
    "mlp_small/keras2",
    "mlp_small/keras-torch",
    "lstm_lm_small/torch",
    "lstm_lm_small/keras-jax",
    "resnet18_small/tensorflow",
    "bert_small/keras-tensorflow",
    "bert_small/jax",
)


def source_of(workload: str, framework: str) -> Path:
    """The plain one; both Keras share theirs."""
    if framework == "libtorch":
        return HERE / "plain" / "libtorch" / f"{workload}.cc"
    library = framework.split("-")[0].removesuffix("2")
    return HERE / "plain" / f"{workload}_{library}.py"


CASES = tuple(
    f"{workload}/{framework}"
    for workload in WORKLOADS
    for framework in FRAMEWORKS
    if source_of(workload, framework).exists()
)
# Fewer than an epoch of ResNet, which has the fewest batches.
FIRST_STEPS = 6
# Keras's stock optimizers differ by where epsilon is and what weight decay does.
TOLERANCE = {"first": 1e-4, "last": 1e-3, "mean": 0.03}


def check(command: list[str | Path]) -> str:
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return run.stdout.strip()


class Bench:
    """Emits and compiles what the cases need; `folder` is for the time of a run."""

    def __init__(
        self, build: Path, envs: Path, threads: int, folder: Path, apart: bool
    ) -> None:
        self.build, self.envs, self.threads, self.folder = build, envs, threads, folder
        self.apart = apart  # each side in a process of its own

    def job(self, case: str) -> Job:
        workload, framework = case.split("/")
        library, _, backend = framework.partition("-")
        scripts = self.folder / workload
        if not scripts.exists():
            contenders = [
                FRAMEWORKS[case.split("/")[1]]
                for case in CASES
                if case.startswith(workload + "/")
            ]
            emit(self.build / "bakeoff", workload, scripts, contenders)
        environment = "torch" if framework == "libtorch" else backend or library
        python = self.envs / environment / "bin" / "python"
        script = f"train_{framework.replace('-', '_')}"
        if framework != "libtorch":
            job = Job(python, scripts, script + ".py", FIRST_STEPS, self.threads)
            return job._replace(backend=backend)
        compiler = self.build / "bench" / "emitted" / "compile_worker"
        program = Path(check([compiler, scripts / f"{script}.cc", python]))
        job = Job(python, scripts, script + ".cc", FIRST_STEPS, self.threads)
        return job._replace(program=program)

    def plain(self, case: str) -> Path:
        workload, framework = case.split("/")
        if framework == "libtorch":
            return self._compiled() / workload
        return source_of(workload, framework)

    def _compiled(self) -> Path:
        build = self.build / "bench" / "emitted" / "libtorch"
        python = self.envs / "torch" / "bin" / "python"
        where = "import torch; print(torch.utils.cmake_prefix_path)"
        prefix = check([python, "-c", where])
        source = HERE / "plain" / "libtorch"
        release = ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={prefix}"]
        check(["cmake", "-G", "Ninja", "-S", source, "-B", build, *release])
        check(["cmake", "--build", build])
        return build

    def pair(self, case: str, same: bool) -> Pair:
        job, module = self.job(case), self.plain(case)
        quiet = job._replace(dropout=False)

        def plain(job: Job) -> Side:
            return Loop(job, module, job.data, job.weights)

        def one(job: Job) -> Side:
            return plain(job) if same else Worker(job)

        has_dropout = case.split("/")[0] in DROPOUT
        together = Together(job, module)
        apart = same or self.apart or job.program
        return Pair(
            one=lambda: one(job) if apart else together.worker(),
            other=lambda: plain(job) if apart else together.loop(),
            words=("plain", "plain") if same else ("emitted", "plain"),
            tolerance=TOLERANCE,
            proof=(lambda: one(quiet), lambda: plain(quiet)) if has_dropout else None,
        )

    def measure(self, case: str, effort: Effort, same: bool) -> tuple[str, Judged]:
        pair = self.pair(case, same)
        name = f"{case}, {' / '.join(pair.words)}"
        values = ratios(name, pair, effort)
        bar = BAR_LIBTORCH if case.endswith("/libtorch") else BAR
        if values is None:
            return name, Judged(0, 0, 0, 0, "MISSED", bar)
        return name, judge(values, 0, bar)._replace(bar=bar)


def show(rows: list[tuple[str, Judged, bool]]) -> None:
    """One table of all; with the bars as `scripts/bench` looks for them."""
    print()
    for name, j, same in rows:
        what = f"{j.ratio:.4f} [{j.begin:.4f}, {j.end:.4f}]" if j.blocks else "differ"
        word = "(no bar)" if same else f"(bar: at most {j.bar:g}) {j.word}"
        print(f"{name:48} {what:26} {j.blocks} blocks {word}", flush=True)


def chosen(words: list[str], quick: bool) -> list[str]:
    """Cases by their names or those of their halves; [] where a word is unknown."""
    if not words:
        return list(QUICK if quick else CASES)
    known = {word for case in CASES for word in (case, *case.split("/"))}
    if not set(words) <= known:
        return []
    return [c for c in CASES if {c, *c.split("/")} & set(words)]


def main() -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--same", action="store_true", help="plain against plain")
    parser.add_argument("--no-same", action="store_true", help="leave that out")
    parser.add_argument("--apart", action="store_true", help="each in its own process")
    parser.add_argument("--list", action="store_true", help="names of the cases")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    options = parser.parse_args()
    cases = chosen(options.cases, options.quick)
    if not cases:
        parser.error(f"there are {', '.join(WORKLOADS)}; {', '.join(FRAMEWORKS)}")
    if options.list:
        print("\n".join(cases))
        return 0
    effort = effort_of(options, blocks=5, bursts=10)._replace(seconds=0.25)
    rows: list[tuple[str, Judged, bool]] = []
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        bench = Bench(
            options.build, options.envs, options.threads, folder, options.apart
        )
        if not options.same and not options.no_same:
            rows.append((*bench.measure(cases[-1], effort, True), True))
        for case in cases:
            rows.append((*bench.measure(case, effort, options.same), options.same))
    show(rows)
    return 1 if any(j.word == "MISSED" and not same for _, j, same in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
