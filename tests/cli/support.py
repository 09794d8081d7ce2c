"""What the end-to-end tests share: a home of their own, recipes, and a look at /proc.

Every test file runs alone, from the repository's root:

    python3 -m tests.cli.faults_test build/dev/bakeoff

Exit status 77 = all skipped, as the environments they need are missing; with
BAKEOFF_REQUIRE_ENVS=1 that is a failure.
"""

from __future__ import annotations

import compileall
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.cli import warm as waiting

ROOT = Path(__file__).resolve().parent.parent.parent
BAKEOFF = ROOT / "build" / "dev" / "bakeoff"  # main() takes it from the command line
SKIPPED = 77
MARK = "BAKEOFF_TEST_MARK"
HANGS = 600  # seconds after which something hangs, on however busy a machine; never what is tested

# The smallest workload that trains; rows of 100 numbers, 10 classes.
MLP = """
workload tiny_mlp(x: f32[N,100], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[32,100], bias=fc1.bias[32])
  h2 = relu(h1)
  logits = linear(h2; weight=fc2.weight[10,32], bias=fc2.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""


def real_home() -> Path:
    data = os.environ.get("XDG_DATA_HOME", str(Path.home() / ".local" / "share"))
    return Path(os.environ.get("BAKEOFF_HOME", str(Path(data) / "bakeoff")))


def interpreter(environment: str) -> Path:
    return real_home() / "envs" / environment / "bin" / "python"


def quick_start(python: Path, folder: Path) -> Path:
    """An interpreter whose workers start in less time (quick_start/sitecustomize.py);
    all else that it runs starts as it would."""
    folder.mkdir(parents=True)
    front = folder / "python"
    front.write_text(
        f'''#!/bin/sh
case "$1 $2" in
  "-m bakeoff_runner"*) PYTHONPATH="$PYTHONPATH:{ROOT}/tests/cli/quick_start" ;;
esac
exec "{python}" "$@"
'''
    )
    front.chmod(0o755)
    return front


def present(environment: str) -> bool:
    """Whether an environment is there; where all are required, it must be."""
    there = interpreter(environment).exists()
    if not there and os.environ.get("BAKEOFF_REQUIRE_ENVS"):
        raise AssertionError(f"there is no {interpreter(environment)}")
    return there


# Of what other tests see in part, in minutes: `make full`.
FULL = bool(os.environ.get("BAKEOFF_FULL_TESTS"))
full_tier = unittest.skipUnless(FULL, "with BAKEOFF_FULL_TESTS=1 (make full)")


def need(*environments: str) -> None:
    """Skips the test where an environment is missing."""
    for name in environments:
        if not present(name):
            raise unittest.SkipTest(f"there is no {interpreter(name)}")


def called(
    command: Sequence[str | Path], **how: Any
) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with what it printed; `how` is that of subprocess.run."""
    how.setdefault("check", False)
    words = list(map(str, command))
    return subprocess.run(words, capture_output=True, text=True, **how)


def wait_for(
    condition: Callable[[], object], process: subprocess.Popen[str] | None = None
) -> None:
    """Returns when the condition holds; fails where `process` ends before, or it hangs."""
    end = time.monotonic() + HANGS
    while not condition():
        if (process and process.poll() is not None) or time.monotonic() > end:
            ended = process and process.poll()
            raise AssertionError(f"waited in vain; exit code {ended}")
        time.sleep(0.02)


def compile_once(runners: Path) -> None:
    """Of what the program has unpacked: every worker would compile it again where
    PYTHONDONTWRITEBYTECODE is set, as it is in many containers."""
    for runner in runners.iterdir():
        try:
            (runner / "__pycache__").mkdir()
        except FileExistsError:  # another test's
            continue
        compileall.compile_dir(runner, quiet=2)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str
    seconds: float
    pid: int

    def json(self) -> Any:
        return json.loads(self.out)


class Place:
    """A temporary folder with a BAKEOFF_HOME and a mark that its processes carry.

    warm: workers start from processes that have imported their frameworks (warm.py);
    where nothing is raced. shared_proofs: what another test has proven is not proven
    again; where the gate is not what is tested. shared_programs: of LibTorch programs
    only what changed since the last tests is compiled; it stays in the user's home.
    """

    def __init__(
        self,
        environments: Iterable[str] = (),
        *,
        warm: bool = False,
        shared_proofs: bool = False,
        shared_programs: bool = False,
    ) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="bakeoff_cli_"))
        self.mark = uuid.uuid4().hex
        home = self.path / "home"
        home.mkdir()
        self.variables = {
            **os.environ,
            "BAKEOFF_HOME": str(home),
            "COLUMNS": "160",
            MARK: self.mark,
        }
        for name in ("BAKEOFF_CONFIG", "PYTHONPATH"):
            self.variables.pop(name, None)
        compile_once(self.share("runner"))
        proofs = os.environ.get("BAKEOFF_TEST_PROOFS")  # of scripts/run_ctest.py
        if shared_proofs and proofs:
            (home / "proofs").symlink_to(proofs)
        pythons = {name: interpreter(name) for name in environments}
        if shared_programs:
            self.share("compiled")
        if warm:
            pythons = {
                name: waiting.interpreter(name, p) for name, p in pythons.items()
            }
        elif not FULL:
            pythons = {
                name: quick_start(python, self.path / "quick" / name)
                for name, python in pythons.items()
            }
        self.set_interpreters(pythons)

    def share(self, name: str) -> Path:
        """A folder of this home is that of the user's home."""
        theirs = real_home() / name
        theirs.mkdir(parents=True, exist_ok=True)
        (self.path / "home" / name).symlink_to(theirs)
        return theirs

    def set_interpreters(self, pythons: Mapping[str, Path]) -> None:
        self.write(
            "home/config.toml",
            "".join(
                f'[environment.{name}]\npython = "{python}"\n'
                for name, python in pythons.items()
            ),
        )

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(
        self, *arguments: str | Path, stderr: int | IO[bytes] = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(BAKEOFF), *map(str, arguments)],
            cwd=self.path,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )

    def run(self, *arguments: str | Path, timeout: float = 3 * HANGS) -> Outcome:
        begin = time.monotonic()
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                out, err = process.communicate()
                raise AssertionError(
                    f"still running after {timeout} s:\n{err}"
                ) from None
        seconds = time.monotonic() - begin
        return Outcome(process.returncode, out, err, seconds, process.pid)

    def ok(self, *arguments: str | Path, timeout: float = 3 * HANGS) -> Outcome:
        """As run(), and fails unless the exit code is 0."""
        outcome = self.run(*arguments, timeout=timeout)
        assert outcome.code == 0, outcome.err + outcome.out
        return outcome

    def processes(self) -> dict[int, str]:
        """Live processes started from here, by id: their command lines."""
        mark = f"{MARK}={self.mark}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if mark not in (entry / "environ").read_bytes().split(b"\0"):
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                found[int(entry.name)] = command.decode(errors="replace")
        return found

    def none_left(self, seconds: float = 60) -> dict[int, str]:
        """Waits until no process is left; what is left after `seconds`."""
        end = time.monotonic() + seconds
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        return left

    def close(self) -> None:
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        shutil.rmtree(self.path, ignore_errors=True)


def place_for(
    test: unittest.TestCase | type[unittest.TestCase], *environments: str, **how: Any
) -> Place:
    """A place with MLP in mlp.ir, closed after the test or its class; skips where an environment is missing."""
    need(*environments)
    place = Place(environments, **how)
    if isinstance(test, type):
        test.addClassCleanup(place.close)
    else:
        test.addCleanup(place.close)
    place.write("mlp.ir", MLP)
    return place


# As `top` of a recipe with an empty `optimizer`: forward passes. ONNX Runtime starts in a fifth of the processor
# time of JAX, a seventh of PyTorch's: for what is about races and not about training.
PREDICTIONS = (
    'scenario = "predict"\nworkload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n'
)


UNENDING = "minutes = 30\nheats = 3\n"  # a budget of many contenders: heats end it, not a busy machine


def recipe(contenders: Iterable[str], **sections: str) -> str:
    """A small race over MLP; `sections` are appended as they are, but for empty ones."""
    parts = {
        "top": 'workload = "mlp.ir"\nbatch = 50\nalpha = 0.05\nmargin = 0.5\n',
        "data": "samples = 200\n",
        "optimizer": 'kind = "adam"\nlr = 1e-3\neps = 1e-4\n',
        "budget": "minutes = 4\nheats = 3\n",
        # Tests run beside each other: a busy host is no reason to refuse, and threads that
        # wait for each other would spin.
        "race": "burst_seconds = 0.02\nbursts = 2\nthreads = 1\nparity_steps = 3\nmax_busy = 1\n"
        "confirm_heats = 0\n",
        **sections,
    }
    head = parts.pop("top")
    rows = "".join(f"  {{ {text} }},\n" for text in contenders)
    tail = "".join(f"\n[{name}]\n{text}" for name, text in parts.items() if text)
    return f"{head}contenders = [\n{rows}]\n{tail}"


LINE = re.compile(r"^step\s+(\d+)\s+loss (\S+)$", re.MULTILINE)


def losses(command: Sequence[str | Path], cwd: Path) -> dict[int, float]:
    """The losses that a program of an emitted folder prints."""
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    return {int(step): float(loss) for step, loss in LINE.findall(done.stdout)}


def replaced(source: str, *edits: tuple[str, str]) -> str:
    """`source` with every edit made; each must apply exactly once."""
    for old, new in edits:
        if source.count(old) != 1:
            raise AssertionError(f"{source.count(old)} places for the edit of:\n{old}")
        source = source.replace(old, new)
    return source


class Shuffled(unittest.TestLoader):
    """Methods in the order that BAKEOFF_TEST_SHUFFLE gives (scripts/run_ctest.py)."""

    def getTestCaseNames(self, testCaseClass: Any) -> Sequence[str]:  # noqa: N802
        names = list(super().getTestCaseNames(testCaseClass))
        if seed := os.environ.get("BAKEOFF_TEST_SHUFFLE"):
            random.Random(seed).shuffle(names)
        return names


class Timed(unittest.TextTestResult):
    """Says after each test how many seconds it took."""

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self.begin = time.monotonic()
        super().startTest(test)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        self.stream.writeln(f"    {time.monotonic() - self.begin:.1f} s")


def main() -> None:
    """Runs the tests of the calling file: FILE BAKEOFF [unittest's arguments]."""
    global BAKEOFF
    # Ignored in the background of a shell, and then by all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if len(sys.argv) > 1:
        BAKEOFF = Path(sys.argv.pop(1)).resolve()
    with waiting.folder_of_call():
        program = unittest.main(
            module="__main__",
            exit=False,
            testLoader=Shuffled(),
            testRunner=unittest.TextTestRunner(verbosity=2, resultclass=Timed),  # type: ignore[arg-type]
        )
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(
        SKIPPED if result.skipped and result.testsRun == len(result.skipped) else 0
    )
