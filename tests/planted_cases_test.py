"""The planted cases of bench/explain: well formed, enough, and judged as they should be.

Run alone: python3 tests/planted_cases_test.py
"""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/explain"))

import cases  # noqa: E402
import planted  # noqa: E402
from scripts.edits import edits, sections  # noqa: E402


def rule_keys() -> set[str]:
    sources = [path.read_text() for path in (ROOT / "src/explain/rules").glob("*.cc")]
    return set(re.findall(r'\.key = "(\w+)"', "".join(sources)))


def confirmed(key: str, gain: float, first: float) -> dict[str, Any]:
    return {
        "key": key,
        "confirmed": True,
        "gain": {"value": gain},
        "first_heat": {"value": first},
    }


def answer(*causes: dict[str, Any]) -> dict[str, Any]:
    return {"causes": list(causes), "seconds": 100, "gap": {"value": 2.0}}


class PlantedCases(unittest.TestCase):
    def test_all_are_python_and_differ(self) -> None:
        every = cases.PLANTED + cases.EQUAL + cases.IDENTICAL
        for case in every:
            with self.subTest(case.name):
                slow, fast = case.sources()
                compile(slow, "slow.py", "exec")
                compile(fast, "fast.py", "exec")
                self.assertEqual(slow == fast, case in cases.IDENTICAL)
                environment = case.environment()
                self.assertIn(environment, ("torch", "tensorflow", "keras2", "jax"))
        self.assertEqual(len({case.name for case in every}), len(every))

    def test_each_script_says_its_epochs(self) -> None:
        """By which --verify times them."""
        for case in cases.PLANTED + cases.EQUAL:
            for source in case.sources():
                self.assertRegex(source, r'print\(\s*f?"epoch|verbose=[12]|"epoch"')

    def test_an_edit_whose_place_is_gone_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "c: 'old' stands 0 times"):
            cases.edited("new", (("old", "new"),), "c")
        with self.assertRaisesRegex(ValueError, "stands 2 times"):
            cases.edited("old old", (("old", "new"),), "c")

    def test_causes_have_rules(self) -> None:
        known = rule_keys()
        self.assertGreater(len(known), 20)
        for case in cases.PLANTED:
            self.assertTrue(case.causes, case.name)
            for keys in case.causes:
                self.assertLessEqual(set(keys), known, case.name)
        for case in cases.EQUAL + cases.IDENTICAL:
            self.assertEqual(case.causes, (), case.name)

    def test_there_are_enough_in_every_framework(self) -> None:
        self.assertGreaterEqual(len(cases.PLANTED), 40)
        twice = [case for case in cases.PLANTED if len(case.causes) == 2]
        self.assertGreaterEqual(len(twice), 10)
        self.assertGreaterEqual(len(cases.EQUAL), 20)
        self.assertGreaterEqual(len(cases.IDENTICAL), 20)
        for prefix in ("torch", "keras", "keras2", "tensorflow", "jax"):
            of = [c for c in cases.PLANTED if c.script.split("_")[0] == prefix]
            self.assertGreaterEqual(len(of), 6, prefix)

    def test_seeds_change_the_text_of_both(self) -> None:
        for case in cases.IDENTICAL:
            first, again = planted.Run("a", "identical", case, 5).sources()
            self.assertEqual(first, again)
            plain = planted.Run("a", "identical", case).sources()[0]
            self.assertNotEqual(first, plain, case.name)
            compile(first, "first.py", "exec")


class Edits(unittest.TestCase):
    """How the tables of edits are read (scripts/edits.py)."""

    def test_parts_of_lines_and_whole_lines(self) -> None:
        lines = [
            "~ a => b",
            "# c",
            "~ long",
            "=> longer",
            "~ , gone =>",
            " stays",
            "+new",
        ]
        self.assertEqual(
            edits([*lines, "", "-old", "+new", "-next"]),
            (
                ("a", "b"),
                ("long", "longer"),
                (", gone", ""),
                ("stays\n", "stays\nnew\n"),
                ("old\n", "new\n"),
                ("next\n", ""),
            ),
        )

    def test_sections_name_others(self) -> None:
        text = "head\n\n== def twice\n+$\n+$\n\n== one ? two\n@@twice x y\n\n+z\n\n"
        self.assertEqual(sections(text), {"one ? two": ["+x y", "+x y", "", "+z"]})

    def test_what_is_no_edit_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "no '~ old => new': ~ a b"):
            edits(["~ a", "b"])
        with self.assertRaisesRegex(ValueError, "a line begins with .*: words"):
            edits(["words"])
        with self.assertRaisesRegex(ValueError, "two sections are called a"):
            sections("== a\n== a\n")


class Bars(unittest.TestCase):
    case = cases.Case("c", "torch_mlp", (("gc", "collections"), ("sleep",)), ())
    pair = cases.Case("p", "torch_mlp", (), ())

    def lines(self, planted_answer: Any, pair_answer: Any) -> list[str]:
        runs = [
            planted.Run("c", "planted", self.case),
            planted.Run("p", "equal", self.pair),
        ]
        found = {"c": planted_answer, "p": pair_answer}
        return [bar.line() for bar in planted.bars(runs, found)]

    def test_all_met(self) -> None:
        causes = confirmed("collections", 2, 2.2), confirmed("sleep", 1.5, 1.4)
        lines = self.lines(answer(*causes), answer())
        self.assertEqual(len(lines), 4)
        self.assertTrue(all(line.endswith("ok") for line in lines), lines)

    def test_all_missed(self) -> None:
        causes = confirmed("layout", 2, 2), confirmed("sleep", 1.5, 3)
        lines = self.lines(answer(*causes), answer(confirmed("layout", 1.2, 1.2)))
        self.assertEqual(len(lines), 4)
        self.assertTrue(all(line.endswith("MISSED") for line in lines), lines)

    def test_what_is_not_confirmed_counts_for_nothing(self) -> None:
        tried = {**confirmed("layout", 2, 2), "confirmed": False}
        first, pairs = self.lines(answer(tried), answer(tried))
        self.assertIn("named first: 0 of 1 (0%)", first)
        self.assertTrue(pairs.endswith("ok"))

    def test_a_run_that_failed_is_a_miss(self) -> None:
        lines = self.lines({"error": "it crashed"}, answer())
        self.assertIn("named first: 0 of 1 (0%)", lines[0])


if __name__ == "__main__":
    unittest.main()
