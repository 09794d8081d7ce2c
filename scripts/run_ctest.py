"""Runs ctest and ends with one plain line, "N passed, N failed".

Usage: run_ctest.py BUILD_FOLDER [ctest arguments]
The exit status is 0 when at least one test ran and none failed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def text(self) -> str:
        line = f"{self.passed} passed, {self.failed} failed"
        return f"{line}, {self.skipped} skipped" if self.skipped else line

    def ok(self) -> bool:
        return self.passed > 0 and self.failed == 0


def count(junit: str) -> Counts:
    """Counts the cases of ctest's JUnit file.

    ctest gives every case a status: "run", "fail", "notrun" (skipped), "disabled".
    Whatever is neither a pass nor a skip counts as a failure.
    """
    passed = failed = skipped = 0
    for case in ET.fromstring(junit).iter("testcase"):
        status = case.get("status")
        if case.find("failure") is not None or status == "fail":
            failed += 1
        elif case.find("skipped") is not None or status in ("notrun", "disabled"):
            # A missing program is "notrun" too, but nothing was asked to be skipped.
            message = case.find("skipped")
            text = "" if message is None else message.get("message", "")
            if "Unable to find executable" in text or "Could not find" in text:
                failed += 1
            else:
                skipped += 1
        elif status == "run":
            passed += 1
        else:
            failed += 1
    return Counts(passed, failed, skipped)


def main() -> int:
    build = Path(sys.argv[1])
    junit = (build / "tests.xml").resolve()
    junit.unlink(missing_ok=True)
    jobs = len(os.sched_getaffinity(0))
    command = ["ctest", "--test-dir", str(build), "--output-on-failure"]
    command += [f"-j{jobs}", "--output-junit", str(junit), *sys.argv[2:]]
    try:
        status = subprocess.run(command).returncode
    except KeyboardInterrupt:
        return 130
    counts = count(junit.read_text()) if junit.exists() else Counts()
    if counts.passed + counts.failed == 0:
        print(f"ctest ran no test (exit status {status})", file=sys.stderr)
    print(counts.text(), flush=True)
    return 0 if counts.ok() and status == 0 else status or 1


if __name__ == "__main__":
    sys.exit(main())
