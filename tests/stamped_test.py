"""tests/stamped.py: what is run again, and what is not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

STAMPED = Path(__file__).resolve().parent / "stamped.py"
# Counts its runs in a file that is no input; says and ends as it was told.
TEST = """
import sys
with open({runs!r}, "a") as file:
    file.write("x")
print({says!r})
sys.exit({code})
"""


class Stamped(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        self.inputs = self.path / "inputs"
        self.inputs.mkdir()
        (self.inputs / "a.py").write_text("a = 1\n")
        python = self.path / "home" / "envs" / "torch" / "module.py"
        python.parent.mkdir(parents=True)
        python.write_text("version = 1\n")
        self.write()
        self.runs = 0

    def write(self, says: str = "ok", code: int = 0) -> None:
        text = TEST.format(runs=str(self.path / "runs"), says=says, code=code)
        (self.path / "test.py").write_text(text)

    def check(self, runs: bool = True, code: int = 0, **variables: str) -> None:
        """`runs`: whether the test is run this time; without a stamp it is."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("BAKEOFF_")}
        home = {"BAKEOFF_HOME": str(self.path / "home")}
        done = subprocess.run(
            [
                sys.executable,
                str(STAMPED),
                "name",
                "--environments",
                str(self.inputs),
                "--",
            ]
            + [sys.executable, str(self.path / "test.py")],
            env={**kept, **home, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.runs += runs
        ran = (self.path / "runs").read_text() if self.runs else ""
        self.assertEqual(len(ran), self.runs, done.stdout)
        self.assertEqual("Not run: green" in done.stdout, not runs)

    def test_with_the_same_inputs_it_is_not_run(self) -> None:
        self.check()
        self.check(False)
        (self.inputs / "__pycache__").mkdir()
        (self.inputs / "__pycache__" / "a.pyc").write_text("compiled")
        self.check(False)
        # A folder that each call of the tests makes.
        self.check(False, JAX_COMPILATION_CACHE_DIR=str(self.path / "xla"))

    def test_each_input_counts(self) -> None:
        self.check()
        (self.inputs / "a.py").write_text("a = 2\n")
        self.check()
        (self.inputs / "below").mkdir()
        (self.inputs / "below" / "b.py").write_text("b = 1\n")
        self.check()
        (self.inputs / "a.py").rename(self.inputs / "c.py")
        self.check()
        (self.path / "home" / "envs" / "torch" / "module.py").write_text(
            "version = 10\n"
        )
        self.check()
        self.write(says="other")
        self.check()
        self.check(OMP_NUM_THREADS="1")
        self.check(False)

    def test_in_any_case(self) -> None:
        self.check()
        self.check(BAKEOFF_NO_STAMPS="1")
        self.check(BAKEOFF_FULL_TESTS="1")
        self.check(False)

    def test_a_failure_has_no_stamp(self) -> None:
        self.write(code=3)
        self.check(code=3)
        self.check(code=3)

    def test_what_skipped_something_has_no_stamp(self) -> None:
        for says in ("[  SKIPPED ] A.B", "OK (skipped=2)", "Ran 0 tests in 0.1s"):
            self.write(says)
            self.check()
            self.check()


if __name__ == "__main__":
    unittest.main()
