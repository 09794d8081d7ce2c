"""Runs a test unless it was green before with the same inputs.

Usage: stamped.py NAME [--environments] [FILE or FOLDER...] -- COMMAND [ARGUMENT...]

A stamp, $BAKEOFF_HOME/stamps/NAME/<hash>, says that COMMAND succeeded. The hash is that of
everything the test depends on: this file, every FILE, every file of a FOLDER and every
word of COMMAND that is a file (the test program, the script), the other words, the
variables of VARIABLES, the processor, the compiler and the C library; with --environments
also name, size and time of change of every file of the Python environments. What tests
emit, hand to runners and compare with comes from the program, so the program's bytes
stand for it.

A stamp is written when COMMAND succeeded, ran something, skipped nothing, and its inputs
are still the same; where COMMAND fails its stamp goes. BAKEOFF_NO_STAMPS=1 and
BAKEOFF_FULL_TESTS=1 run it in any case.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Beginnings of names of variables that programs read, but for those below.
VARIABLES = tuple(
    "BAKEOFF_ CUDA CXX JAX_ KERAS_ LD_ MKL_ OMP_ PATH PYTHON TF_ TORCH XLA_".split()
)
NO_INPUTS = frozenset(
    "BAKEOFF_HOME BAKEOFF_NO_STAMPS BAKEOFF_REQUIRE_ENVS BAKEOFF_TEST_PROOFS "
    "BAKEOFF_TOOLS JAX_COMPILATION_CACHE_DIR".split()
)
TELLING_NOTHING = re.compile(
    r"\[  SKIPPED \]|\[  PASSED  \] 0 tests|skipped=|Ran 0 tests"
)
KEPT_DAYS = 60


def home() -> Path:
    if named := os.environ.get("BAKEOFF_HOME"):
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share"
    return Path(data) / "bakeoff"


def sum_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sums_of_folder(folder: Path) -> list[str]:
    """Of each file below it but for compiled Python: its name and the sum of its bytes."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    return [f"{path.relative_to(folder)} {sum_of_file(path)}" for path in files]


def first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "none"
    return done.stdout.partition("\n")[0]


def machine() -> list[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    told = {line for line in lines if line.startswith(("model name", "flags"))}
    compiler = first_line(os.environ.get("CXX", "c++"), "--version")
    return [
        *sorted(told),
        compiler,
        os.confstr("CS_GNU_LIBC_VERSION") or "",
        sys.version,
    ]


def files_below(folder: Path) -> list[str]:
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            file = Path(path, name)
            about = (
                file.stat() if file.exists() else file.lstat()
            )  # of interpreters: linked
            found.append(f"{file} {about.st_size} {about.st_mtime_ns}")
    return found


def environments() -> str:
    """One sum of all, kept for the other tests of a call of scripts/run_ctest.py."""
    shared = os.environ.get("BAKEOFF_TEST_PROOFS")
    kept = Path(shared) / "environments.sum" if shared else None
    if kept and kept.exists():
        return kept.read_text(encoding="utf-8")
    names = files_below(home() / "envs")
    found = hashlib.sha256("\n".join(names).encode()).hexdigest()
    if kept:
        write(kept, found)
    return found


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)


def key(own: list[str], command: list[str]) -> str:
    """The hash of all inputs; `own` are the words before the command."""
    parts = [sum_of_file(Path(__file__)), *machine()]
    for word in [*own, *command]:
        parts.append(word)
        if Path(word).is_file():
            parts.append(sum_of_file(Path(word)))
        elif word in own and Path(word).is_dir():
            parts += sums_of_folder(Path(word))
    for name, value in sorted(os.environ.items()):
        if name.startswith(VARIABLES) and name not in NO_INPUTS:
            parts.append(f"{name}={value}")
    if "--environments" in own:
        parts.append(environments())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def run(command: list[str]) -> tuple[int, bool]:
    """Exit status, and whether the success of all that was asked for was seen."""
    whole = True
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            whole = whole and not TELLING_NOTHING.search(line)
    return child.returncode, whole and child.returncode == 0


def prune(folder: Path) -> None:
    for stamp in folder.iterdir():
        if stamp.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
            stamp.unlink(missing_ok=True)


def main() -> int:
    split = sys.argv.index("--")
    own, command = sys.argv[1:split], sys.argv[split + 1 :]
    # Listing what there is to test is no test.
    if os.environ.get("BAKEOFF_FULL_TESTS") or "--gtest_list_tests" in command:
        return subprocess.run(command, check=False).returncode
    before = key(own, command)
    stamp = home() / "stamps" / own[0] / before
    if stamp.exists() and not os.environ.get("BAKEOFF_NO_STAMPS"):
        print(
            f"Not run: green with the same inputs {stamp.read_text(encoding='utf-8')}"
        )
        print(f"BAKEOFF_NO_STAMPS=1 runs it. The stamp: {stamp}")
        return 0
    begin = time.monotonic()
    status, green = run(command)
    if status != 0:
        stamp.unlink(missing_ok=True)
    elif green and key(own, command) == before:
        now = time.strftime("%Y-%m-%d %H:%M")
        write(
            stamp, f"on {now}, in {time.monotonic() - begin:.0f} s: {' '.join(command)}"
        )
        prune(stamp.parent)
    return status


if __name__ == "__main__":
    sys.exit(main())
