"""pytest: a performance test races its function against an earlier version of itself.

    @pytest.mark.bakeoff(base="main", margin=0.05)
    def test_tokenizer():
        tokenize(TEXT)

The function first runs as any test. Then `bakeoff gate` races it, as it is now, against
`base`: a git ref whose checkout has the same test, another function of a module, or a
script. Slower by more than the margin: the test fails. Undecided on this machine: it is
skipped with the reason. docs/pytest.md.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable, Optional, Union

import pytest

from bakeoff._program import BakeoffError, Done, run_program

MARKER = (
    "bakeoff(base, margin=0.05, budget='5m', alpha=0.01, seconds=1.0): "
    "races the test's function against base: a git ref, a function or a script"
)
_GREEN, _REGRESSION, _UNDECIDED = 0, 1, 3
_ABSENT = 77  # exit code of a script whose function is not there
_MOST_CALLS = 1_000_000
# Both sides are such a script. What it imports of the working tree would be the head's.
_SCRIPT = '''\
"""One side of a performance test, written by the pytest plug-in of Bakeoff."""
import importlib
import importlib.util
import os
import runpy
import sys

PATHS, FILE, MODULE, NAME, CALLS, FOREIGN = {values}
sys.path[:0] = PATHS


def loaded():
    try:
        module = importlib.import_module(MODULE)
        if os.path.realpath(module.__file__ or "") == os.path.realpath(FILE):
            return module
    except ImportError:
        pass
    spec = importlib.util.spec_from_file_location(MODULE, FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def found():
    if not NAME:
        return lambda: runpy.run_path(FILE, run_name="__main__")
    value = loaded()
    for part in NAME.split("."):
        if not hasattr(value, part):
            sys.exit({absent})
        value = getattr(value, part)
    return value


def foreign():
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        real = os.path.realpath(file) if file else ""
        installed = real.startswith(os.path.realpath(sys.prefix) + os.sep)
        if FOREIGN and real.startswith(FOREIGN + os.sep) and not installed:
            sys.exit("%s is imported from %s: not the base's" % (name, file))


function = found()
foreign()
if sys.argv[1:] != ["--try"]:
    for _ in range(CALLS):
        function()
'''


@dataclass(frozen=True)
class Side:
    """What a script of one side calls: a function of a module, or another script."""

    file: Path
    module: str = ""
    name: str = ""  # empty: the file itself is run
    paths: tuple[str, ...] = ()
    foreign: str = ""  # nothing may be imported from below it

    def write(self, script: Path, calls: int) -> Path:
        values = (
            list(self.paths),
            str(self.file),
            self.module,
            self.name,
            calls,
            self.foreign,
        )
        script.write_text(
            _SCRIPT.replace("{values}", repr(values)).replace("{absent}", str(_ABSENT)),
            encoding="utf-8",
        )
        return script


@dataclass(frozen=True)
class Asked:
    """The marker's arguments."""

    base: Union[str, Path, Callable[[], object]]
    margin: float = 0.05
    budget: str = "5m"
    alpha: float = 0.01
    seconds: float = 1.0  # that the function is repeated for in a run


class Wrong(Exception):
    """The test cannot be raced: it fails with this message."""


class NoBase(Exception):
    """The base has no such test yet: the test is skipped."""


def asked_of(marker: pytest.Mark) -> Asked:
    if marker.args:
        raise Wrong("bakeoff takes named arguments: @pytest.mark.bakeoff(base='main')")
    try:
        asked = Asked(**marker.kwargs)
    except TypeError as error:
        raise Wrong(f"pytest.mark.bakeoff: {error}; it is {MARKER}") from error
    if not 0 < asked.margin < 10 or not 0 < asked.alpha < 0.5 or not asked.seconds > 0:
        raise Wrong(
            "pytest.mark.bakeoff: margin is above 0 and below 10 (0.05 is 5%), "
            "alpha above 0 and below 0.5, seconds above 0"
        )
    return asked


def side_of(function: Callable[[], object]) -> Side:
    function = inspect.unwrap(function)
    name = getattr(function, "__qualname__", "")
    file = inspect.getsourcefile(function) if callable(function) else None
    if not file or not name or "<" in name:
        raise Wrong(
            f"{name or function!r} cannot be called from another process: let it be a "
            "function of a module, with a name"
        )
    if inspect.signature(function).parameters:
        raise Wrong(
            f"{name} takes arguments (fixtures, parameters, self): "
            "a raced function has none"
        )
    paths = tuple(p for p in sys.path if p and Path(p).is_dir())
    return Side(Path(file).resolve(), function.__module__, name, paths)


def git(folder: Path, *words: str) -> str:
    # Of the folder, though this runs in a hook of another repository.
    ours = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR")
    variables = {k: v for k, v in os.environ.items() if k not in ours}
    command = ["git", "-C", str(folder), *words]
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise Wrong("base is a git ref, and there is no git in PATH") from error
    if done.returncode != 0:
        raise Wrong(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextlib.contextmanager
def checked_out(ref: str, head: Side, scratch: Path) -> Iterator[Side]:
    """The same function in a worktree of the ref, which is gone afterwards."""
    top = Path(git(head.file.parent, "rev-parse", "--show-toplevel")).resolve()
    try:
        if ref.startswith("-"):
            raise Wrong(ref)
        commit = git(top, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    except Wrong:
        raise Wrong(
            f"base='{ref}' is no commit, branch or tag of {top}, and no script: in CI, "
            "fetch the history (fetch-depth: 0)"
        ) from None
    tree = scratch / "base"
    git(top, "worktree", "add", "--detach", "--force", str(tree), commit)
    try:
        prefix = Path(sys.prefix).resolve()

        def moved(path: str) -> str:
            real = Path(path).resolve()
            # An environment in the working tree is no part of a commit.
            if not real.is_relative_to(top) or real.is_relative_to(prefix):
                return path
            return str(tree / real.relative_to(top))

        file = tree / head.file.relative_to(top)
        if not file.exists():
            raise NoBase(f"{ref} has no {head.file.relative_to(top)}")
        paths = tuple(map(moved, head.paths))
        yield Side(file, head.module, head.name, paths, str(top))
    finally:
        with contextlib.suppress(Wrong):
            git(top, "worktree", "remove", "--force", str(tree))
            git(top, "worktree", "prune")


@contextlib.contextmanager
def base_of(asked: Asked, head: Side, scratch: Path) -> Iterator[Side]:
    if callable(asked.base):
        yield side_of(asked.base)
        return
    for folder in (head.file.parent, Path.cwd()):
        file = folder / asked.base
        if str(asked.base).endswith(".py") and file.is_file():
            yield Side(file.resolve(), paths=(str(file.resolve().parent), *head.paths))
            return
    with checked_out(str(asked.base), head, scratch) as side:
        yield side


def calls_for(function: Callable[[], object], seconds: float) -> int:
    """Runs it, as a test does, and says how often it fits into so many seconds."""
    best = math.inf
    for _ in range(2):
        begin = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - begin)
        if best > seconds / 2:
            break
    return max(1, min(_MOST_CALLS, math.ceil(seconds / max(best, 1e-7))))


def tried(which: str, script: Path, asked: Asked) -> None:
    """Imports what a side calls, so that its error is not the race's."""
    done = subprocess.run(
        [sys.executable, str(script), "--try"],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if done.returncode == _ABSENT:
        raise NoBase(f"{asked.base} has no such function")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Wrong(f"the {which} cannot be imported: {last}")


def figures(file: Path) -> dict[str, Any]:
    """What the gate wrote; of several contenders the one with the worst ratio."""
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    rows = data.get("contenders") or [data]
    row = max(rows, key=lambda one: _ratio(one) or 0)
    return row if isinstance(row, dict) else {}


def _ratio(row: dict[str, Any]) -> Optional[float]:
    value = row.get("ratio")
    if isinstance(value, dict):
        value = value.get("value")
    return float(value) if isinstance(value, (int, float)) else None


@dataclass(frozen=True)
class Verdict:
    code: int  # of the gate
    text: str
    ratio: Optional[float]


def verdict_of(done: Done, row: dict[str, Any]) -> Verdict:
    keys = ("sentence", "reason", "what_decides")
    text = " ".join(str(row[key]) for key in keys if row.get(key))
    if done.code not in (_GREEN, _REGRESSION, _UNDECIDED):
        text = str(done.error())
    text = text or done.out.strip() or "bakeoff gate gave no reason"
    return Verdict(done.code, text, _ratio(row))


def raced(asked: Asked, function: Callable[[], object]) -> Verdict:
    head = side_of(function)
    calls = calls_for(function, asked.seconds)
    with tempfile.TemporaryDirectory(prefix="bakeoff_pytest_") as folder:
        scratch = Path(folder).resolve()
        with base_of(asked, head, scratch) as base:
            scripts = (
                base.write(scratch / "base.py", calls),
                head.write(scratch / "head.py", calls),
            )
            for which, script in zip(("base", "head"), scripts):
                tried(which, script, asked)
            arguments: Sequence[object] = (
                "gate", "--base", scripts[0], "--head", scripts[1],
                "--margin", asked.margin, "--alpha", asked.alpha,
                "--budget", asked.budget, "--python", sys.executable,
                "--json", scratch / "gate.json",
            )  # fmt: skip
            done = run_program([str(word) for word in arguments], progress=False)
            verdict = verdict_of(done, figures(scratch / "gate.json"))
    # What people know, in place of the scripts' paths.
    base_name = getattr(asked.base, "__qualname__", f"{head.name} of {asked.base}")
    text = verdict.text.replace(str(scripts[0]), base_name)
    return replace(verdict, text=text.replace(str(scripts[1]), head.name))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Optional[bool]:
    marker = pyfuncitem.get_closest_marker("bakeoff")
    if marker is None:
        return None
    if hasattr(pyfuncitem.config, "workerinput"):
        pytest.fail(
            "tests that race must not run beside others: run them without "
            "pytest-xdist, pytest -n 0 -m bakeoff",
            pytrace=False,
        )
    try:
        asked = asked_of(marker)
        verdict = raced(asked, pyfuncitem.obj)
    except NoBase as absent:
        pytest.skip(f"nothing to compare with: {absent}")
    except (Wrong, BakeoffError) as error:
        pytest.fail(str(error), pytrace=False)
    if verdict.ratio is not None:
        pyfuncitem.user_properties.append(("bakeoff_ratio", verdict.ratio))
    pyfuncitem.add_report_section("call", "bakeoff gate", verdict.text)
    if verdict.code == _UNDECIDED:
        pytest.skip(verdict.text)
    if verdict.code != _GREEN:
        pytest.fail(verdict.text, pytrace=False)
    return True
