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
        self.assertEqual(counts, run_ctest.Counts(2, 1, 1, ("b",)))
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

    def test_a_second_run_takes_back_only_what_passed_in_it(self) -> None:
        first = run_ctest.Counts(5, 2, 0, ("a", "b"))
        second = run_ctest.Counts(1, 1, 0, ("b",))
        counts = first.tried_again(second)
        self.assertEqual(counts, run_ctest.Counts(6, 1, 0, ("b",), ("a",)))
        self.assertFalse(counts.ok())
        text = "6 passed, 1 failed; passed only when run alone: a"
        self.assertEqual(counts.text(), text)

    def test_who_needed_a_second_run_twice_is_a_failure(self) -> None:
        first = run_ctest.Counts(6, 0, 0, (), ("a", "b"))
        self.assertEqual(first.after({"c", ""}), first)
        counts = first.after({"b", "c"})
        self.assertEqual(counts, run_ctest.Counts(5, 1, 0, ("b",), ("a",), ("b",)))
        self.assertFalse(counts.ok())
        self.assertRegex(counts.text(), "run alone: a; not counted as passed, .*: b$")

    def test_a_second_run_of_other_tests_counts_for_nothing(self) -> None:
        first = run_ctest.Counts(5, 2, 0, ("a", "b"))
        self.assertEqual(first.tried_again(run_ctest.Counts(1, 0)), first)


class Slowest(unittest.TestCase):
    def test_are_named_with_their_seconds_longest_first(self) -> None:
        times = {f"t{i}": 0.25 * i for i in range(1, run_ctest.SLOWEST + 3)}
        cases = [f'<testcase name="{n}" time="{s}"/>' for n, s in times.items()]
        text = run_ctest.slowest(suite(*cases, '<testcase name="skipped"/>'))
        head, *lines = text.splitlines()
        self.assertIn("13 tests, which took 20 s", head)
        self.assertEqual(len(lines), run_ctest.SLOWEST)
        self.assertEqual(lines[0].split(), ["3.0", "s", "t12"])
        self.assertEqual(lines[-1].split()[-1], "t3")


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
        self.assertIn("The slowest of 2 tests", done.stdout)
        self.assertEqual(done.returncode, 0)

    def test_tests_share_a_folder_for_proofs_that_is_gone_afterwards(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            told = f"{folder}/told"
            keep = 'test -d \\"$BAKEOFF_TEST_PROOFS\\"'
            name = f'echo \\"$BAKEOFF_TEST_PROOFS\\" > {told}'
            done = self.run_on(f'add_test(a "sh" "-c" "{keep} && {name}")\n')
            self.assertEqual(self.last_line(done), "1 passed, 0 failed")
            self.assertFalse(Path(Path(told).read_text().strip()).exists())

    def test_one_fails_one_is_skipped_one_is_absent(self) -> None:
        skipped = 'add_test(s "sh" "-c" "exit 77")\n'
        skipped += "set_tests_properties(s PROPERTIES SKIP_RETURN_CODE 77)\n"
        done = self.run_on(
            'add_test(a "true")\nadd_test(b "false")\nadd_test(n "/no/such")\n'
            + skipped
        )
        self.assertEqual(self.last_line(done), "1 passed, 2 failed, 1 skipped")
        self.assertNotEqual(done.returncode, 0)

    def test_what_fails_beside_others_and_passes_alone_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as marks:
            once = f'"sh" "-c" "test -e {marks}/m || ! touch {marks}/m"'
            done = self.run_on(f'add_test(once.only {once})\nadd_test(b "true")\n')
        text = "2 passed, 0 failed; passed only when run alone: once.only"
        self.assertEqual(self.last_line(done), text)
        self.assertEqual(done.returncode, 0)

    def test_what_needs_it_in_two_calls_fails_the_second(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            flaky = (
                f'"sh" "-c" "test -e {folder}/m && rm {folder}/m || ! touch {folder}/m"'
            )
            tests = f'add_test(flaky {flaky})\nadd_test(b "true")\n'
            (Path(folder) / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
            command = [sys.executable, str(ROOT / "scripts" / "run_ctest.py"), folder]
            done = [
                subprocess.run(command, capture_output=True, text=True)
                for _ in range(3)
            ]
            text = "2 passed, 0 failed; passed only when run alone: flaky"
            self.assertEqual(self.last_line(done[0]), text)
            self.assertEqual(done[0].returncode, 0)
            for again in done[1:]:
                self.assertRegex(self.last_line(again), "^1 passed, 1 failed.*: flaky$")
                self.assertNotEqual(again.returncode, 0)
            (Path(folder) / "m").touch()
            sound = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(self.last_line(sound), "2 passed, 0 failed")
            (Path(folder) / "m").unlink(missing_ok=True)
            last = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(self.last_line(last), text)

    def test_many_failures_are_not_tried_again(self) -> None:
        done = self.run_on("".join(f'add_test(t{i} "false")\n' for i in range(4)))
        self.assertEqual(self.last_line(done), "0 passed, 4 failed")
        self.assertNotIn("once more", done.stdout)

    def test_nothing_to_run(self) -> None:
        done = self.run_on("")
        self.assertEqual(self.last_line(done), "0 passed, 0 failed")
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
