"""The two kinds of processes that are timed: workers of Bakeoff, and loops of our own.

Both train from the same data and weights and answer ``burst()`` with ms/step.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Job(NamedTuple):
    """What one side of a pair needs."""

    python: Path
    scripts: Path  # what `bakeoff emit` wrote
    script: str  # "train_torch.py"
    steps: int  # of a burst, and of the first one, whose losses are compared
    threads: int
    backend: str = ""  # of Keras
    program: Path | None = None  # instead of Python: a compiled worker
    dropout: bool = True

    @property
    def data(self) -> Path:
        return self.scripts / "data.safetensors"

    @property
    def weights(self) -> Path:
        return self.scripts / "weights.safetensors"

    def environment(self, *path: Path) -> dict[str, str]:
        """As for the workers of a race with the tuned allocator."""
        number = str(self.threads)
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "OMP_NUM_THREADS": number,
            "OPENBLAS_NUM_THREADS": number,
            "MKL_NUM_THREADS": number,
            "TF_NUM_INTRAOP_THREADS": number,
            "TF_NUM_INTEROP_THREADS": number,
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "MALLOC_MMAP_THRESHOLD_": "1073741824",
            "MALLOC_TRIM_THRESHOLD_": "4294967296",
            "MALLOC_TOP_PAD_": "268435456",
            **({"KERAS_BACKEND": self.backend} if self.backend else {}),
            **({"PLAIN_KERAS": "tf_keras"} if "_keras2" in self.script else {}),
            **({} if self.dropout else {"PLAIN_DROPOUT": "off"}),
        }


def emit(
    bakeoff: Path, recipe: str, folder: Path, contenders: list[str] | None = None
) -> Path:
    """The scripts of a recipe that ships, with data and weights.

    `contenders`: inline tables of TOML, in place of the recipe's own.
    """
    file = ROOT / "recipes" / f"{recipe}.toml"
    if contenders:
        text = "contenders = [\n" + "".join(f"  {c},\n" for c in contenders) + "]"
        pattern = re.compile(r"^contenders = \[$.*?^\]$", re.MULTILINE | re.DOTALL)
        text, found = pattern.subn(text, file.read_text())
        assert found == 1, file
        beside = rf'^workload = "({re.escape(recipe)}.*\.ir)"$'
        text = re.sub(
            beside, rf'workload = "{file.parent}/\1"', text, flags=re.MULTILINE
        )
        folder.mkdir(exist_ok=True)
        file = folder / file.name
        file.write_text(text)
    command = [str(bakeoff), "emit", str(file), "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


class Side:
    """A process that trains in bursts, and uses no processor time in between."""

    _process: subprocess.Popen[Any]
    steps: int  # of the next burst

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def first(self) -> dict[str, float]:
        """The first burst of all: losses by the names of `Bursts.done`."""
        raise NotImplementedError

    def burst(self) -> float:
        """Milliseconds a step."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Worker(Side):
    """The emitted script in a worker, through the runner protocol, with step marks."""

    def __init__(
        self, job: Job, parts: int = 1, in_process: Path | None = None
    ) -> None:
        """`parts`: number of bursts of the worker that make one of ours.

        `in_process`: the module of an `InProcessContender` that runs in the worker's
        process; the caller then calls `build`.
        """
        self.steps, self._parts, self._job = job.steps, parts, job
        self.wait_ns = self.burst_ns = 0  # of all bursts; where the worker can tell
        self._ring = tempfile.NamedTemporaryFile(dir=_shared_memory())
        self._ring.write(_empty_ring(1 << 15))
        self._ring.flush()
        source, self._send = _pipe()
        receive, sink = _pipe()
        framework = job.script.removeprefix("train_").removesuffix(".py").split("_")[0]
        runner = [str(job.python), "-m", "bakeoff_runner"]
        if job.program:
            runner = [str(job.program)]
        environment = job.environment(ROOT / "runners")
        if in_process:
            path = (ROOT / "bench", in_process.parent, ROOT / "runners")
            # As in a process with one thread.
            environment = {**job.environment(*path), "MALLOC_ARENA_MAX": "1"}
            files = (in_process.stem, str(job.data), str(job.weights))
            runner = [str(job.python), "-m", "pairing.in_process_contender", *files]
        runner += ["--framework", framework]
        # The shell puts the pipes where the protocol has them.
        shell = f'exec "$@" 3<&{source} 4>&{sink} {source}<&- {sink}>&-'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *runner, "--ring", self._ring.name],
            pass_fds=(source, sink),
            env=environment,
            stdin=subprocess.PIPE if in_process else None,
            stdout=subprocess.PIPE if in_process else subprocess.DEVNULL,
            text=True,
        )
        os.close(source)
        os.close(sink)
        self._lines = os.fdopen(receive)
        self._id = 0
        self._lines.readline()  # hello
        options = {"backend": job.backend} if job.backend else {}
        self._ask("import", options=options, threads=job.threads)
        if not in_process:
            self.build()

    def build(self) -> None:
        job = self._job
        script = job.scripts / job.script
        layout = script.with_suffix(".layout.json")
        self._ask(
            "build",
            script=str(script),
            data=str(job.data),
            weights=str(job.weights),
            layout=str(layout) if layout.exists() else None,
            dropout=job.dropout,
        )

    def first(self) -> dict[str, float]:
        losses = self._ask("losses", steps=self.steps)["losses"]
        mean = sum(losses) / len(losses)
        return {"first": losses[0], "mean": mean, "last": losses[-1]}

    def burst(self) -> float:
        steps = self.steps // self._parts
        answers = [self._ask("run", steps=steps) for _ in range(self._parts)]
        ns = sum(answer["ns"] for answer in answers)
        self.burst_ns += ns
        waits = [answer.get("wait", {}) for answer in answers]
        self.wait_ns += sum(w.get("ns", 0) + w.get("first_ns", 0) for w in waits)
        return float(ns) / (steps * self._parts) / 1e6

    def raced(self, steps: int, lead: int, nudge: Path) -> float:
        """Milliseconds a step of a burst as in a race.

        It comes after a pause, from the initial weights, and begins with changes.
        """
        self.freeze()
        time.sleep(0.2)
        self.thaw()
        self._ask("restore")
        self._ask("run", steps=lead)
        return (
            float(self._ask("run", steps=steps, nudge=str(nudge))["ns"]) / steps / 1e6
        )

    def uninterrupted(self, steps: int, lead: int) -> float:
        """Milliseconds a step of one long burst."""
        self._ask("run", steps=lead)
        return float(self._ask("run", steps=steps)["ns"]) / steps / 1e6

    def close(self) -> None:
        os.close(self._send)
        self._process.wait(60)
        self._lines.close()
        self._ring.close()

    def _ask(self, op: str, **fields: Any) -> dict[str, Any]:
        self._id += 1
        request = json.dumps({"id": self._id, "op": op, **fields}) + "\n"
        os.write(self._send, request.encode())
        line = self._lines.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"ok": False}
        if not answer["ok"]:
            why = answer.get("traceback") or answer.get("error", "it is gone")
            sys.exit(f"worker: {op}: {why}")
        return answer


class Loop(Side):
    """A module with ``train(bursts, *files)``, see bursts.py, or such a program."""

    def __init__(self, job: Job, module: Path, *files: Path) -> None:
        self.steps = job.steps
        command = [job.python, "-m", "pairing.bursts", module.stem]
        if module.suffix != ".py":
            command = [module]
        self._process = subprocess.Popen(
            [*map(str, command), *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=job.environment(ROOT / "bench", module.parent, ROOT / "runners"),
            text=True,
        )

    def first(self) -> dict[str, float]:
        answer = self._ask()
        losses = {answer["kind"]: answer["loss"]}
        if answer["kind"] == "first":  # the loop had it before it began to train
            answer = self._ask()
            losses[answer["kind"]] = answer["loss"]
        return losses

    def burst(self) -> float:
        return float(self._ask()["ns"]) / self.steps / 1e6

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()

    def _ask(self) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f"{self.steps}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            sys.exit("the loop is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer


class SharesProcess(Side):
    """One of two sides in one process, each in its own thread; the one without a request waits."""

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


class InProcessContender(SharesProcess, Loop):
    """A loop in the process of a worker."""

    def __init__(self, host: Worker) -> None:
        self.steps, self._process = host.steps, host._process
        self._ask()  # until it is built

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()


class Host(SharesProcess, Worker):
    """A worker whose process also runs a loop."""


class Together:
    """A worker and a loop, in one process for each pair of them."""

    def __init__(self, job: Job, module: Path) -> None:
        self._job, self._module = job, module
        self._host: Host | None = None

    def worker(self) -> Side:
        host = self._take()
        host.build()
        return host

    def loop(self) -> Side:
        return InProcessContender(self._take())

    def _take(self) -> Host:
        host, self._host = self._host, None
        if host is None:
            host = self._host = Host(self._job, in_process=self._module)
        return host


def _pipe() -> tuple[int, int]:
    """A pipe on descriptors that are not 3 or 4."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _shared_memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _empty_ring(slots: int) -> bytes:
    """See docs/runner_protocol.md."""
    words = (1 | 64 << 32).to_bytes(8, "little") + slots.to_bytes(8, "little")
    return (b"BKOFRING" + words).ljust(64 + 8 * slots, b"\0")
