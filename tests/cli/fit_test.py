"""Whole trainings and trainings to a target beside the race, from recipe to table.

Everyday both by JAX in one run; in the full tier PyTorch and JAX, whose ends are compared.

python3 -m tests.cli.fit_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import unittest
from pathlib import Path
from typing import Any

from tests.cli import support, target_test
from tests.cli.target_test import ROWS, write_data

EPOCHS, HELD = 12, 200
FIT = f"epochs = {EPOCHS}\nrows = {HELD}\n"
PUBLISHED = """# A study of two frameworks
framework,seconds,contender
torch,10,torch
jax,20,jax
"""


def counted_ns(stretch: dict[str, Any]) -> int:
    """As of bursts in races: our clock's time where it is noticeably longer."""
    ours: int = stretch["elapsed_ns"]
    own: int = stretch["ns"]
    return ours if ours - own > max(2_000_000, ours // 200) else own


class Fit(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        support.need("jax")
        names = ["jax", *(["torch"] if support.FULL else [])]
        self.place = support.Place(names, shared_proofs=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)
        self.place.write("study.csv", PUBLISHED)
        write_data(self.place.path / "rows.safetensors")

    def recipe(
        self,
        fit: str = FIT,
        contenders: tuple[str, ...] = ('framework = "torch"', 'framework = "jax"'),
        **sections: str,
    ) -> Path:
        sections.setdefault("data", 'kind = "file"\npath = "rows.safetensors"\n')
        sections.setdefault("budget", "minutes = 4\nheats = 3\n")
        sections.setdefault(
            "top", 'workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n'
        )
        sections.setdefault("optimizer", 'kind = "adam"\nlr = 1e-2\neps = 1e-4\n')
        text = support.recipe(contenders, fit=fit, **sections)
        return self.place.write("fit.toml", text)

    def records(self) -> list[dict[str, Any]]:
        path = self.place.path / "r" / "fit.jsonl"
        text = path.read_text() if path.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    # Every day by workers of the tests' own: Fit.TheBudgetOfTheCommandEndsItInMidTraining.
    @support.full_tier
    def test_a_budget_of_the_command_limits_the_trainings(self) -> None:
        recipe = self.recipe("epochs = 100000\nrows = 200\n")
        done = self.place.run("run", recipe, "--out", "r", "--budget", "30s")
        self.assertIn("is spent before the end of [fit]; `bakeoff run --res", done.err)
        self.assertIn("[fit] was not finished, nothing is measured", done.out)
        self.assertEqual(self.records(), [])

    def trained(self, names: set[str], recipe: Path) -> Any:
        """The report of a run with whole trainings, which is checked."""
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        report = done.json()
        fit = report["fit"]
        self.assertEqual(fit["held_out_rows"], HELD)
        self.assertEqual(fit["loss_tolerance"], 0.1)
        rows = {row["contender"]: row for row in fit["rows"]}
        self.assertEqual(set(rows), names)
        for row in rows.values():
            self.assertEqual(row["seeds"], 1, row["note"])
            # 96 steps of Adam from 2.3: well below, and right about what it never saw.
            self.assertLess(row["loss"]["value"], 1.0)
            self.assertGreater(row["accuracy"]["value"], 0.8)
            self.assertGreater(row["seconds"]["value"], 0)
            self.assertFalse(row["far_from_group"], row["note"])
        self.check_records(rows)
        self.check_other_formats()
        before = self.records()
        again = self.place.run("run", "--resume", "r", "--format", "json")
        self.assertIn(again.code, (0, 1), again.err)
        self.assertEqual(self.records(), before, "nothing was left to train")
        return report

    def test_a_whole_training_and_one_to_a_target(self) -> None:
        recipe = self.recipe(
            contenders=('framework = "jax"',),
            budget="minutes = 30\nheats = 1\n",
            target=target_test.TARGET.replace("seeds = 3", "seeds = 2"),
        )
        report = self.trained({"jax"}, recipe)
        target_test.check(self, self.place, report, seeds=2)

    @support.full_tier
    def test_both_end_where_the_same_mathematics_ends(self) -> None:
        support.need("torch")
        report = self.trained(
            {"torch", "jax"}, self.recipe(published='file = "study.csv"\n')
        )
        rows = {row["contender"]: row for row in report["fit"]["rows"]}
        # The same weights and batches: equal but for float32's rounding.
        self.assertAlmostEqual(
            rows["torch"]["loss"]["value"], rows["jax"]["loss"]["value"], delta=0.01
        )
        self.check_published(report["published"], rows)
        shown = self.place.run("report", "r")
        self.assertIn(f"{EPOCHS} epochs here", shown.out)

    def check_records(self, rows: dict[str, Any]) -> None:
        for record in self.records():
            steps = [stretch["steps"] for stretch in record["stretches"]]
            self.assertEqual(steps, [8] * EPOCHS, "an epoch of 400 rows, 50 a step")
            self.assertEqual(len(record["rounds"]), EPOCHS)
            first, *rest = record["stretches"]
            ns = first["ns"] + sum(map(counted_ns, rest))
            row = rows[record["contender"]]
            self.assertAlmostEqual(row["seconds"]["value"], ns / 1e9)
            self.assertEqual(record["on_held"]["steps"], 8 * EPOCHS)
            self.assertLess(
                abs(record["on_held"]["loss"] - record["on_trained"]["loss"]), 1.0
            )

    def check_published(self, table: dict[str, Any], rows: dict[str, Any]) -> None:
        self.assertEqual(table["measured"], "whole trainings")
        self.assertEqual((table["epochs"], table["compared"]), (EPOCHS, 2))
        for row in table["rows"]:
            self.assertEqual(
                row["measured_seconds"], rows[row["contender"]]["seconds"]["value"]
            )

    def check_other_formats(self) -> None:
        shown = self.place.run("report", "r")
        for part in (f"Whole training: {EPOCHS} epochs of 400 rows", "accuracy"):
            self.assertIn(part, shown.out)
        html = (self.place.path / "r" / "report.html").read_text()
        self.assertIn('<section id="fit">', html)
        markdown = self.place.run("report", "r", "--format", "markdown").out
        self.assertIn("**Whole training:", markdown)
        table = self.place.run("report", "r", "--format", "csv").out
        for row in csv.DictReader(io.StringIO(table)):
            self.assertEqual(row["fit_epochs"], str(EPOCHS))
            self.assertGreater(float(row["fit_accuracy"]), 0.8)

    @support.full_tier
    def test_a_training_ends_early_and_its_averages_are_judged(self) -> None:
        recipe = self.recipe(
            "epochs = 6\nrows = 100\npatience = 1\nmin_delta = 100\n",
            optimizer='kind = "adam"\nlr = 1e-2\neps = 1e-4\nema = 0.9\n',
            schedule='kind = "linear"\nwarmup_steps = 4\nsteps = 60\n',
        )
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        self.assertIn("fit: at most 6 epochs of 500 rows, until", done.err)
        rows = done.json()["fit"]["rows"]
        self.assertEqual(len(rows), 2, done.out)
        for row in rows:
            self.assertEqual(row["epochs"]["value"], 2, row)
            self.assertRegex(row["note"], "ended early: its held-out loss had not")
        losses = [row["loss"]["value"] for row in rows]
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-3)
        for record in self.records():
            self.assertEqual([look["steps"] for look in record["watched"]], [10, 20])
            self.assertEqual(record["stopped"], 2)

    @support.full_tier
    def test_pipelines_and_executions_of_many_steps(self) -> None:
        """Waits of a DataLoader; 5 steps an execution do not divide 12 an epoch."""
        support.need("tensorflow")
        self.place.write(
            "home/config.toml",
            "".join(
                f'[environment.{name}]\npython = "{support.interpreter(name)}"\n'
                for name in ("torch", "tensorflow")
            ),
        )
        recipe = self.recipe(
            "epochs = 2\n",
            (
                'framework = "torch", input = "tensor_dataset"',
                'framework = "keras", steps_per_execution = 5',
            ),
        )
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        rows = {row["contender"]: row for row in done.json()["fit"]["rows"]}
        torch = rows["torch[input=tensor_dataset]"]
        self.assertGreater(torch["wait_seconds"], 0)
        self.assertLess(torch["wait_seconds"], torch["seconds"]["value"])
        keras = next(row for name, row in rows.items() if name.startswith("keras"))
        self.assertEqual(keras["seeds"], 1, keras["note"])
        for row in rows.values():
            self.assertIsNone(row["held_out_loss"], "nothing is held out")
            self.assertGreater(row["accuracy"]["value"], 0)
        for record in self.records():
            steps = sum(stretch["steps"] for stretch in record["stretches"])
            # Keras ends an execution with its epoch.
            self.assertEqual(steps, 2 * ROWS // 50)
            self.assertEqual(record["on_trained"]["steps"], steps)

    def test_ctrl_c_ends_it_and_resuming_goes_on(self) -> None:
        recipe = self.recipe(
            "epochs = 100000\n",
            ('framework = "jax"',),
            budget="minutes = 4\nheats = 1\n",
        )
        log = self.place.path / "err"
        with open(log, "wb") as err:
            process = self.place.start("run", recipe, "--out", "r", stderr=err)
            with process:
                support.wait_for(
                    lambda: re.search(r"epoch \d+ of", log.read_text()), process
                )
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(self.records(), [], "cut short is no record")

    def test_bad_input(self) -> None:
        for fit, message in (
            ("seeds = 3\n", "'fit.epochs' is missing"),
            ("epochs = 0\n", "outside its range"),
            ("epochs = 1.5\n", "must be an integer"),
            ("epochs = 1\nrows = 580\n", "580 rows are to be held out"),
        ):
            done = self.place.run("run", self.recipe(fit), "--out", "bad")
            self.assertEqual(done.code, 2, done.out + done.err)
            self.assertIn(message, done.err)
            self.assertRegex(done.err, r"fit\.toml:\d+")


if __name__ == "__main__":
    support.main()
