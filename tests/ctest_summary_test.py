"""scripts/run_ctest.py: what is counted as what, on JUnit files as ctest 3.25 writes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import run_ctest  # noqa: E402


def suite(*cases: str) -> str:
    return f"<testsuite>{''.join(cases)}</testsuite>"


PASS = '<testcase name="a" status="run"><system-out/></testcase>'
FAIL = '<testcase name="b" status="fail"><failure message=""/></testcase>'
SKIP = (
    '<testcase name="c" status="notrun">'
    '<skipped message="SKIP_RETURN_CODE=77"/></testcase>'
)
ABSENT = (
    '<testcase name="d" status="notrun">'
    '<skipped message="Unable to find executable: x_test"/></testcase>'
)


class Counting(unittest.TestCase):
    def test_passes_failures_and_skips(self) -> None:
        counts = run_ctest.count(suite(PASS, PASS, FAIL, SKIP))
        self.assertEqual(counts, run_ctest.Counts(2, 1, 1))
        self.assertEqual(counts.text(), "2 passed, 1 failed, 1 skipped")
        self.assertFalse(counts.ok())
        self.assertTrue(run_ctest.count(suite(PASS, SKIP)).ok())
        self.assertEqual(run_ctest.count(suite(PASS)).text(), "1 passed, 0 failed")

    def test_a_test_that_was_not_built_is_a_failure(self) -> None:
        self.assertEqual(run_ctest.count(suite(PASS, ABSENT)).failed, 1)

    def test_an_unknown_status_is_a_failure(self) -> None:
        odd = '<testcase name="e" status="surprise"/>'
        self.assertEqual(run_ctest.count(suite(odd)).failed, 1)

    def test_no_test_at_all_is_no_success(self) -> None:
        self.assertFalse(run_ctest.count(suite()).ok())
        self.assertFalse(run_ctest.count(suite(SKIP)).ok())


class TheRealCtest(unittest.TestCase):
    """Through ctest itself, on a build folder of hand-written tests."""

    def run_on(self, tests: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
            return subprocess.run(
                [sys.executable, str(ROOT / "scripts" / "run_ctest.py"), folder],
                capture_output=True,
                text=True,
                env={**os.environ, "CTEST_OUTPUT_ON_FAILURE": "0"},
            )

    def last_line(self, done: subprocess.CompletedProcess[str]) -> str:
        return done.stdout.strip().splitlines()[-1]

    def test_all_pass(self) -> None:
        done = self.run_on('add_test(a "true")\nadd_test(b "true")\n')
        self.assertEqual(self.last_line(done), "2 passed, 0 failed")
        self.assertEqual(done.returncode, 0)

    def test_one_fails_one_is_skipped_one_is_absent(self) -> None:
        skipped = 'add_test(s "sh" "-c" "exit 77")\n'
        skipped += "set_tests_properties(s PROPERTIES SKIP_RETURN_CODE 77)\n"
        done = self.run_on(
            'add_test(a "true")\nadd_test(b "false")\nadd_test(n "/no/such")\n'
            + skipped
        )
        self.assertEqual(self.last_line(done), "1 passed, 2 failed, 1 skipped")
        self.assertNotEqual(done.returncode, 0)

    def test_nothing_to_run(self) -> None:
        done = self.run_on("")
        self.assertEqual(self.last_line(done), "0 passed, 0 failed")
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
