"""`bakeoff report RUN --check`: every figure of every format of a run agrees, or is named.

python3 -m tests.cli.report_check_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest

from tests.cli import made_runs, support
from tests.cli.made_runs import Run

RUNS = {
    "decided": Run({"torch": 2.0, "jax": 3.0}, heats=4),
    "open": Run({"torch": 2.0, "jax": 2.01, "tensorflow": 9.0}, heats=8),
    "alone": Run({"torch": 2.0}),
    "noisy": Run({"torch": 200.0, "jax": 260.0, "keras": 5000.0}, heats=2, noise=0.1),
    "fast": Run({"torch": 0.02, "jax": 0.21, "keras": 0.5}, heats=12, noise=0.001),
}


class ReportCheck(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)

    def made(self, name: str) -> None:
        made_runs.write(self.place.path / name, RUNS[name], seed=name)

    def test_the_formats_of_made_runs_agree(self) -> None:
        for name in RUNS:
            with self.subTest(run=name):
                self.made(name)
                done = self.place.ok("report", name, "--check")
                self.assertRegex(done.out, r"^[\d,]+ figures of 5 formats agree\n$")
                self.assertFalse((self.place.path / name / "report.html").exists())

    def test_a_page_that_says_otherwise_is_named(self) -> None:
        self.made("decided")
        self.assertEqual(self.place.run("report", "decided").code, 0)
        self.assertEqual(self.place.run("report", "decided", "--check").code, 0)
        page = self.place.path / "decided" / "report.html"
        text = page.read_text()
        self.assertIn("4 heats", text)
        page.write_text(text.replace("4 heats", "5 heats", 1))
        done = self.place.run("report", "decided", "--check")
        self.assertEqual(done.code, 1)
        self.assertRegex(done.out, r'decided/report\.html: "[^"\n]*5 heats')
        elsewhere = self.place.run(
            "report", "decided", "--check", "--html", "none.html"
        )
        self.assertEqual(elsewhere.code, 0, elsewhere.out)

    def test_a_page_of_earlier_heats_is_found(self) -> None:
        self.made("open")
        self.assertEqual(self.place.run("report", "open").code, 0)
        trials = self.place.path / "open" / "trials.jsonl"
        trials.write_text("".join(trials.read_text().splitlines(True)[:-9]))
        self.assertEqual(self.place.run("report", "open", "--check").code, 1)

    def test_what_is_no_page_is_bad_input(self) -> None:
        self.made("alone")
        secret = self.place.path / "secret.txt"
        secret.write_text("9 heats")
        (self.place.path / "alone" / "report.html").symlink_to(secret)
        done = self.place.run("report", "alone", "--check")
        self.assertEqual(done.code, 2)
        self.assertNotIn("heats", done.out)
        both = self.place.run("report", "alone", "--check", "--format", "json")
        self.assertEqual(both.code, 2)


if __name__ == "__main__":
    support.main()
