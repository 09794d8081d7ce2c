"""Runs ctest; ends with the slowest tests and one plain line, "N passed, N failed".

Usage: run_ctest.py BUILD_FOLDER [--shuffle SEED] [--passed FILE] [ctest arguments]
The exit status is 0 when at least one test ran and none failed.

A test that fails beside others is run once more, alone, to tell whether load, order or
another test's files matter. It stays a failure: a test that fails by chance is one.

--shuffle: tests start in a random order, and the cases of each in the order that SEED
gives. Without it everything that is drawn comes from seed 1, each time the same.
--passed: FILE is removed first, and where all passed it says the hash of the tree that
was tested (`git write-tree` of what is not ignored).

All tests of a call have a TMPDIR of their own, and share three folders: for proofs, named by
BAKEOFF_TEST_PROOFS (tests/cli/support.py), for the doors of processes that have imported a
framework (tests/cli/warm.py), and for what XLA has compiled (COMPILED_ONCE).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MOST_TRIED_ALONE = 5
SLOWEST = 10
# A net against tests that hang, in the everyday tier and in the full one: many times
# what the longest takes, as no test is judged by its time.
LONGEST_S = {False: 1800, True: 7200}
# GoogleTest shuffles where the first is not 0, ours by the seed that the second holds.
SHUFFLING = ("GTEST_SHUFFLE", "BAKEOFF_TEST_SHUFFLE")
# Of the everyday tier: what one worker has compiled by XLA, the workers of other tests read.
# A worker of JAX takes 1.1 s of a processor instead of 2.6, and its proof 1.5 instead of 4.4.
COMPILED_ONCE = {
    "JAX_COMPILATION_CACHE_DIR": "{}/xla",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()

    def text(self) -> str:
        line = f"{self.passed} passed, {self.failed} failed"
        if self.skipped:
            line += f", {self.skipped} skipped"
        return line

    def with_cases(self, results: Path) -> Counts:
        """These counts with every suite of GoogleTest counted by its cases."""
        passed, failed, skipped = self.passed, self.failed, self.skipped
        for file in results.glob("*.xml"):
            try:
                cases = list(ET.parse(file).iter("testcase"))
            except ET.ParseError:  # its program was killed: one failure, as counted
                continue
            bad = sum(case.find("failure") is not None for case in cases)
            left_out = sum(case.find("skipped") is not None for case in cases)
            passed += len(cases) - bad - left_out - (not bad)
            failed += bad - (bad > 0)
            skipped += left_out
        return Counts(passed, failed, skipped, self.failures)

    def ok(self) -> bool:
        return self.passed > 0 and self.failed == 0


def count(junit: str) -> Counts:
    """Counts the cases of ctest's JUnit file.

    ctest gives every case a status: "run", "fail", "notrun" (skipped), "disabled".
    Whatever is neither a pass nor a skip counts as a failure.
    """
    passed = skipped = 0
    failures: list[str] = []
    for case in ET.fromstring(junit).iter("testcase"):
        status = case.get("status")
        name = case.get("name", "")
        if case.find("failure") is not None or status == "fail":
            failures.append(name)
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            # A missing program is "notrun" too, but nothing was asked to be skipped.
            message = case.find("skipped")
            text = "" if message is None else message.get("message", "")
            if "Unable to find executable" in text or "Could not find" in text:
                failures.append(name)
            else:
                skipped += 1
        elif status == "run":
            passed += 1
        else:
            failures.append(name)
    return Counts(passed, len(failures), skipped, tuple(failures))


def slowest(junit: str) -> str:
    """The tests that took longest, a line each, and what all of them took."""
    cases = ET.fromstring(junit).iter("testcase")
    took = [(float(case.get("time") or 0), case.get("name", "")) for case in cases]
    took.sort(reverse=True)
    lines = [f"{seconds:8.1f} s  {name}" for seconds, name in took[:SLOWEST]]
    whole = sum(seconds for seconds, _ in took)
    head = f"The slowest of {len(took)} tests, which took {whole:.0f} s of processes:"
    return "\n".join([head, *lines])


def tree(folder: Path) -> str:
    """The hash of the working tree as a commit of all of it would have; "" outside."""
    with tempfile.TemporaryDirectory() as scratch:
        variables = {**os.environ, "GIT_INDEX_FILE": f"{scratch}/index"}

        def git(*words: str) -> str:
            command = ["git", "-C", str(folder), *words]
            done = subprocess.run(
                command, env=variables, capture_output=True, text=True
            )
            return done.stdout.strip() if done.returncode == 0 else ""

        top = git("rev-parse", "--show-toplevel")
        if not top:
            return ""
        folder = Path(top)
        git("read-tree", "HEAD")
        git("add", "--all")
        return git("write-tree")


@contextlib.contextmanager
def seconds_kept(build: Path) -> Iterator[None]:
    """What ctest knows of the tests' seconds: a random order writes random numbers in their place."""
    file = build / "Testing" / "Temporary" / "CTestCostData.txt"
    kept = file.read_bytes() if file.exists() else None
    try:
        yield
    finally:
        if kept is not None:
            file.write_bytes(kept)
        else:
            file.unlink(missing_ok=True)


def run(build: Path, slots: int, seed: int, arguments: list[str]) -> tuple[int, Counts]:
    """ctest's exit status and what it counted."""
    junit = (build / "tests.xml").resolve()
    junit.unlink(missing_ok=True)
    results = build / "gtests"
    shutil.rmtree(results, ignore_errors=True)
    full = bool(os.environ.get("BAKEOFF_FULL_TESTS"))
    command = ["ctest", "--test-dir", str(build), "--output-on-failure"]
    command += [f"-j{slots}", f"--timeout={LONGEST_S[full]}"]
    command += ["--output-junit", str(junit), *arguments]
    with tempfile.TemporaryDirectory(prefix="bakeoff_tests_") as scratch:
        proofs = Path(scratch) / "proofs"
        warm = Path(scratch) / "warm"
        for folder in (proofs, warm):
            folder.mkdir()
        variables = {
            **os.environ,
            "RC_PARAMS": f"seed={seed}",
            "TMPDIR": scratch,
            "BAKEOFF_TEST_PROOFS": str(proofs),
            "BAKEOFF_TEST_WARM": str(warm),
            "GTEST_RANDOM_SEED": str(seed),
        }
        if not full:
            shared = {name: one.format(scratch) for name, one in COMPILED_ONCE.items()}
            variables.update(shared)
        status = subprocess.run(command, env=variables).returncode
    counts = count(junit.read_text()) if junit.exists() else Counts()
    return status, counts.with_cases(results)


def alone(build: Path, seed: int, failures: tuple[str, ...]) -> str:
    """What failures do without other tests beside them, as a line."""
    names = "|".join(re.escape(name) for name in failures)
    _, second = run(build, 1, seed, ["-R", f"^({names})$"])
    chance = [name for name in failures if name not in second.failures]
    if not chance:
        return "all of them fail alone too"
    return f"pass alone, so load, order or files matter: {', '.join(chance)}"


def parse() -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("build", type=Path)
    parser.add_argument("--shuffle", type=int)
    parser.add_argument("--passed", type=Path)
    return parser.parse_known_args()


def main() -> int:
    options, arguments = parse()
    build: Path = options.build
    tested = ""
    if options.passed:
        options.passed.unlink(missing_ok=True)
        tested = tree(build)
    seed = 1
    for name in SHUFFLING:  # of a shuffled call around this one
        os.environ.pop(name, None)
    if options.shuffle is not None:
        seed = options.shuffle % 99999 + 1  # what GoogleTest takes
        print(f"shuffled: --shuffle {options.shuffle} gives this order again")
        arguments.append("--schedule-random")
        os.environ |= dict.fromkeys(SHUFFLING, str(seed))
    # Two tests that compute for each two processors, and one that waits.
    slots = 2 * len(os.sched_getaffinity(0)) + 1
    shuffled = options.shuffle is not None
    try:
        with seconds_kept(build) if shuffled else contextlib.nullcontext():
            status, counts = run(build, slots, seed, arguments)
        if counts.passed + counts.failed == 0:
            print(f"ctest ran no test (exit status {status})", file=sys.stderr)
        else:
            print(slowest((build / "tests.xml").read_text()))
        if 0 < len(counts.failures) <= MOST_TRIED_ALONE:
            print(f"once more, alone: {', '.join(counts.failures)}", flush=True)
            print(alone(build, seed, counts.failures))
    except KeyboardInterrupt:
        return 130
    print(counts.text(), flush=True)
    if not counts.ok() or status != 0:
        return status or 1
    if tested and tested == tree(build):
        options.passed.write_text(f"{tested}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
