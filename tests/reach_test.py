"""scripts/reach.py: which tests a change can reach.

Run alone: python3 tests/reach_test.py [BUILD_FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import reach  # noqa: E402

BUILD = ROOT / "build" / "dev"


def a_test(name: str, command: str = "") -> reach.Test:
    return reach.Test(name, command or f"x --gtest_filter={name}", 1)


class Patterns(unittest.TestCase):
    def test_a_star_stays_in_its_folder_and_two_do_not(self) -> None:
        for pattern, path, fits in (
            ("src/emit/*", "src/emit/emit.cc", True),
            ("src/emit/*", "src/emit/torch/torch.cc", False),
            ("src/emit/**", "src/emit/torch/torch.cc", True),
            ("**/*.py", "a.py", True),
            ("**/*.py", "a/b/c.py", True),
            ("*.md", "notes/a.md", False),
            ("a+b", "aab", False),
        ):
            self.assertEqual(reach.matches(pattern, path), fits, (pattern, path))

    def test_names_of_tests(self) -> None:
        test = a_test("op_parity.Frameworks/OpParity.Ops/torch_cpu")
        self.assertTrue(test.fits("op_parity.*/torch*"))
        self.assertFalse(test.fits("op_parity.*/jax*"))


class Includes(unittest.TestCase):
    def tree(self, files: dict[str, str]) -> Path:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, text in files.items():
            path = Path(folder.name) / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Path(folder.name)

    def test_a_source_reaches_the_tests_above_and_no_other(self) -> None:
        root = self.tree(
            {
                "low/a.h": "",
                "low/a.cc": '#include "low/a.h"\n',
                "low/b.h": "",
                "low/b_test.cc": '#include "low/b.h"\nTEST(B, X) {}\n',
                "high/c.h": "",
                "high/c.cc": '#include "low/a.h"\n',
                "high/c_test.cc": '#include "high/c.h"\nTEST_F(C, X) {}\n',
            }
        )
        reached = reach.reached_sources(["src/low/a.cc", "notes/a.md"], root)
        self.assertEqual(reached, {"low/a", "high/c", "high/c_test"})
        self.assertEqual(reach.suites_in(reached, root), {"C": "high/c_test"})

    def test_a_changed_source_runs_its_suites(self) -> None:
        change = reach.Change(["src/base/sha256.cc"])
        suites = reach.suites_in(["base/sha256_test"])
        self.assertTrue(suites)
        names = (f"base.{next(iter(suites))}", f"ir.{next(iter(suites))}")
        choice = reach.Choice()
        reach.by_includes(change, [a_test(name) for name in names], choice)
        self.assertEqual(set(choice.reasons), {names[0]})


class Words(unittest.TestCase):
    def looked_for(self, test: str, gone: str, come: str = "") -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x_test.py"
            path.write_text(test)
            change = reach.Change([], reach.joined([gone]), reach.joined([come]))
            found: str = reach.looks_for(path, change)
            return found

    def test_a_text_that_goes_reaches_the_test_that_looks_for_it(self) -> None:
        test = 'self.assertIn("could not be ranked", done.err)\n'
        gone = '  say("{} could not "\n      "be ranked", name);'
        self.assertEqual(self.looked_for(test, gone), "could not be ranked")
        self.assertEqual(self.looked_for(test, gone, gone), "")
        self.assertEqual(self.looked_for(test, "something else"), "")

    def test_numbers_of_a_text_are_placeholders_of_the_message(self) -> None:
        test = 'self.assertIn("10003 values", out)'
        gone = 'fmt::format("{}: {} values", name, count)'
        self.assertEqual(self.looked_for(test, gone), "10003 values")
        self.assertEqual(self.looked_for(test, "{} other values"), "")

    def test_the_plain_parts_of_a_regular_expression_count(self) -> None:
        test = r'self.assertRegex(x, r"^\d+ contenders were refused: .*")'
        found = self.looked_for(test, 'say("{} contenders were refused: {}");')
        self.assertEqual(found, "contenders were refused:")


class TheRepository(unittest.TestCase):
    tests: ClassVar[list[reach.Test]]
    rules: ClassVar[list[dict[str, list[str]]]]

    @classmethod
    def setUpClass(cls) -> None:
        if not (BUILD / "CTestTestfile.cmake").exists():
            raise unittest.SkipTest(f"{BUILD} is not configured")
        cls.tests = reach.tests_of(BUILD)
        text = (ROOT / "scripts" / "reach.toml").read_text(encoding="utf-8")
        cls.rules = tomllib.loads(text)["rule"]

    def test_every_rule_names_files_and_tests_that_exist(self) -> None:
        paths = reach.git("ls-files", "--cached", "--others").splitlines()
        for rule in self.rules:
            for pattern in rule["when"]:
                fits = any(reach.matches(pattern, path) for path in paths)
                self.assertTrue(fits, f"no file is like '{pattern}'")
            for pattern in rule["run"]:
                program = f"{pattern.partition('.')[0]}.not_built"
                fits = any(t.fits(pattern) or t.name == program for t in self.tests)
                self.assertTrue(fits, f"no test is like '{pattern}'")

    def test_every_test_of_whole_programs_is_reached(self) -> None:
        patterns = [pattern for rule in self.rules for pattern in rule["run"]]
        for test in self.tests:
            if not reach.is_unit_test(test):
                fits = any(test.fits(pattern) for pattern in patterns)
                self.assertTrue(fits, f"no rule runs {test.name}")

    def test_every_room_has_a_rule(self) -> None:
        rules = [p for rule in self.rules[1:] for p in rule["when"]]
        for room in {p.parent for p in (ROOT / "src").rglob("*.cc")}:
            path = f"{room.relative_to(ROOT)}/x.cc"
            rooms = [p for p in rules if p.startswith("src/")]
            if "testing" not in path and not any(reach.matches(p, path) for p in rooms):
                self.fail(f"no rule has {path}")

    def test_a_change_of_a_runner_reaches_its_tests(self) -> None:
        path = "runners/bakeoff_runner/adapters/jax_adapter.py"
        choice = reach.chosen(reach.Change([path]), self.tests)
        self.assertIn("runner.jax", choice.reasons)
        self.assertIn("lint.ruff", choice.reasons)
        self.assertNotIn("runner.keras2", choice.reasons)

    def test_a_changed_test_runs(self) -> None:
        choice = reach.chosen(reach.Change(["tests/cli/fit_test.py"]), self.tests)
        self.assertIn("cli.fit", choice.reasons)
        self.assertNotIn("cli.target", choice.reasons)
        for path, name in (
            ("prove/prove_test.py", "prove.Claims"),
            ("runners/tests/test_jax_adapter.py", "runner.jax"),
        ):
            own = reach.chosen(reach.Change([path]), self.tests).reasons
            self.assertIn("its own file changed", own[name])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        BUILD = Path(sys.argv.pop(1))
    unittest.main()
