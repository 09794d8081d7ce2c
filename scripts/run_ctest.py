"""Runs ctest; ends with the slowest tests and one plain line, "N passed, N failed".

Usage: run_ctest.py BUILD_FOLDER [ctest arguments]
The exit status is 0 when at least one test ran and none failed.

Tests race real processes against the clock, several tests at a time. Up to
MOST_TRIED_AGAIN failures are therefore run once more, alone; what passes then counts
as passed, and the last lines name it. BUILD_FOLDER/needed_again.txt keeps the names: a
test that failed first in the call before too needed it twice, and is a failure.

Tests that are not about the gate share proofs: BAKEOFF_TEST_PROOFS names a folder that
lives as long as this call (tests/cli/support.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

MOST_TRIED_AGAIN = 3
SLOWEST = 10


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()
    passed_alone: tuple[str, ...] = ()
    needed_twice: tuple[str, ...] = ()

    def text(self) -> str:
        line = f"{self.passed} passed, {self.failed} failed"
        if self.skipped:
            line += f", {self.skipped} skipped"
        if self.passed_alone:
            line += f"; passed only when run alone: {', '.join(self.passed_alone)}"
        if self.needed_twice:
            line += (
                "; not counted as passed, as they needed it in the call before too: "
            )
            line += ", ".join(self.needed_twice)
        return line

    def tried_again(self, second: Counts) -> Counts:
        """These counts when their failures were run again, alone, as `second`."""
        alone = tuple(n for n in self.failures if n not in second.failures)
        if second.passed + second.failed != len(self.failures):
            return self
        return Counts(
            self.passed + len(alone),
            self.failed - len(alone),
            self.skipped,
            second.failures,
            alone,
        )

    def after(self, before: set[str]) -> Counts:
        """These counts where `before` needed a second run in the call before."""
        twice = tuple(n for n in self.passed_alone if n in before)
        return Counts(
            self.passed - len(twice),
            self.failed + len(twice),
            self.skipped,
            self.failures + twice,
            tuple(n for n in self.passed_alone if n not in before),
            twice,
        )

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


def run(build: Path, jobs: int, arguments: list[str]) -> tuple[int, Counts]:
    """ctest's exit status and what it counted."""
    junit = (build / "tests.xml").resolve()
    junit.unlink(missing_ok=True)
    command = ["ctest", "--test-dir", str(build), "--output-on-failure"]
    command += [f"-j{jobs}", "--output-junit", str(junit), *arguments]
    with tempfile.TemporaryDirectory(prefix="bakeoff_proofs_") as proofs:
        variables = {**os.environ, "BAKEOFF_TEST_PROOFS": proofs}
        if not os.environ.get("BAKEOFF_FULL_TESTS"):
            variables.setdefault(
                "RC_PARAMS", "seed=1"
            )  # RapidCheck's; it prints its seed
        status = subprocess.run(command, env=variables).returncode
    return status, count(junit.read_text()) if junit.exists() else Counts()


def main() -> int:
    build = Path(sys.argv[1])
    needed = build / "needed_again.txt"
    table = ""
    try:
        status, counts = run(build, len(os.sched_getaffinity(0)), sys.argv[2:])
        if counts.passed + counts.failed > 0:
            table = slowest((build / "tests.xml").read_text())
        if 0 < counts.failed <= MOST_TRIED_AGAIN:
            names = "|".join(re.escape(name) for name in counts.failures)
            print(f"once more, alone: {', '.join(counts.failures)}", flush=True)
            _, second = run(build, 1, ["-R", f"^({names})$"])
            counts = counts.tried_again(second)
            known = needed.read_text().split("\n") if needed.exists() else []
            counts = counts.after(set(known))
            status = 0 if counts.ok() else status or 1
        if not sys.argv[2:]:  # a call for some tests says nothing about the others
            again = (*counts.passed_alone, *counts.needed_twice)
            needed.write_text("".join(f"{name}\n" for name in again))
    except KeyboardInterrupt:
        return 130
    if counts.passed + counts.failed == 0:
        print(f"ctest ran no test (exit status {status})", file=sys.stderr)
    if table:
        print(table)
    print(counts.text(), flush=True)
    return 0 if counts.ok() and status == 0 else status or 1


if __name__ == "__main__":
    sys.exit(main())
