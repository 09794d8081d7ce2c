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

    def test_suites_of_googletest_count_by_their_cases(self) -> None:
        case = '<testcase name="x"/>'
        bad = '<testcase name="y"><failure/></testcase>'
        skipped = '<testcase name="z"><skipped/></testcase>'
        files = {
            "a.S.xml": case * 3 + skipped,
            "a.T.xml": case + bad * 2,
            "a.U.xml": "",
        }
        with tempfile.TemporaryDirectory() as folder:
            for name, cases in files.items():
                text = suite(cases) if cases else "<killed"
                (Path(folder) / name).write_text(text)
            # S passed, T and U failed, and so did a test without such a file.
            counts = run_ctest.Counts(1, 3, 0, ("a.T", "a.U", "b"))
            counts = counts.with_cases(Path(folder))
        self.assertEqual(counts, run_ctest.Counts(4, 4, 1, ("a.T", "a.U", "b")))


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

    def run_on(
        self, tests: str, *arguments: str, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as scratch:
            build = folder or Path(scratch)
            (build / "CTestTestfile.cmake").write_text(tests, encoding="utf-8")
            script = str(ROOT / "scripts" / "run_ctest.py")
            return subprocess.run(
                [sys.executable, script, str(build), *arguments],
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

    def test_what_fails_beside_others_and_passes_alone_is_named_and_fails(self) -> None:
        with tempfile.TemporaryDirectory() as marks:
            once = f'"sh" "-c" "test -e {marks}/m || ! touch {marks}/m"'
            done = self.run_on(f'add_test(once.only {once})\nadd_test(b "true")\n')
        self.assertEqual(self.last_line(done), "1 passed, 1 failed")
        self.assertIn("load, order or files matter: once.only", done.stdout)
        self.assertNotEqual(done.returncode, 0)

    def test_what_fails_alone_too_is_said(self) -> None:
        done = self.run_on('add_test(a "false")\nadd_test(b "true")\n')
        self.assertIn("all of them fail alone too", done.stdout)
        self.assertEqual(self.last_line(done), "1 passed, 1 failed")

    def test_many_failures_are_not_run_alone(self) -> None:
        many = run_ctest.MOST_TRIED_ALONE + 1
        done = self.run_on("".join(f'add_test(t{i} "false")\n' for i in range(many)))
        self.assertEqual(self.last_line(done), f"0 passed, {many} failed")
        self.assertNotIn("once more", done.stdout)

    def test_what_is_drawn_is_the_same_each_time_unless_shuffled(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            told = f"{folder}/told"
            text = "$RC_PARAMS $GTEST_RANDOM_SEED $GTEST_SHUFFLE $BAKEOFF_TEST_SHUFFLE"
            test = f'add_test(a "sh" "-c" "echo {text} >> {told}")\n'.replace(
                "$", "\\$"
            )
            self.run_on(test)
            self.run_on(test)
            self.run_on(test, "--shuffle", "41")
            lines = Path(told).read_text().splitlines()
        self.assertEqual(lines, ["seed=1 1"] * 2 + ["seed=42 42 42 42"])

    def test_a_random_order_leaves_what_is_known_of_seconds(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder)
            known = build / "Testing/Temporary/CTestCostData.txt"
            test = 'add_test(a "sleep" "0.2")\n'
            self.run_on(test, "--shuffle", "41", folder=build)
            self.assertFalse(known.exists())
            self.run_on(test, folder=build)
            before = known.read_text()
            self.assertLess(float(before.split()[2]), 100)
            self.run_on(test, "--shuffle", "41", folder=build)
            self.assertEqual(known.read_text(), before)

    def test_a_tree_on_which_all_passed_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            build = Path(folder) / "build"
            passed = Path(folder) / "passed"

            def git(*words: str) -> str:
                command = ["git", "-C", folder, *words]
                return subprocess.check_output(command, text=True).strip()

            build.mkdir()
            git("init", "-q")
            (Path(folder) / ".gitignore").write_text("build\npassed\n")
            (Path(folder) / "a").write_text("1")
            git("add", "--all")
            who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
            git(*who, "commit", "-q", "-m", "one")
            call = ("--passed", str(passed))
            done = self.run_on('add_test(a "true")\n', *call, folder=build)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(passed.read_text().strip(), git("rev-parse", "@^{tree}"))
            self.run_on('add_test(a "false")\n', *call, folder=build)
            self.assertFalse(passed.exists())
            edit = f'add_test(a "sh" "-c" "echo 2 > {folder}/a")\n'
            self.run_on(edit, *call, folder=build)  # not the tree that was tested
            self.assertFalse(passed.exists())

    def test_nothing_to_run(self) -> None:
        done = self.run_on("")
        self.assertEqual(self.last_line(done), "0 passed, 0 failed")
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
