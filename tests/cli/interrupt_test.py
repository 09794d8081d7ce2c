"""Ctrl-C, kill -9, resume, two runs in one folder, and reports made offline afterwards.

Real workers, one run directory: python3 -m tests.cli.interrupt_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any

from tests.cli import support

LONG = 60  # seconds: nothing that ends waits for so long, not even beside many others


class Run:
    """A `bakeoff run` under way, its messages read from a file as they come."""

    def __init__(self, place: support.Place, *arguments: str) -> None:
        self.place = place
        self.errors = place.path / f"stderr{len(list(place.path.iterdir()))}.txt"
        with self.errors.open("wb") as file:
            self.process = place.start("run", *arguments, stderr=file)

    def wait_for(self, pattern: str) -> None:
        support.wait_for(
            lambda: re.search(pattern, self.errors.read_text()), self.process
        )

    def wait_for_worker(self) -> None:
        def one() -> bool:
            running = self.place.processes().values()
            return any("bakeoff_runner" in command for command in running)

        support.wait_for(one, self.process)

    def end_by(self, number: int) -> tuple[str, float]:
        """Sends a signal to bakeoff alone; what it printed, and the seconds it took."""
        begin = time.monotonic()
        self.process.send_signal(number)
        try:
            out, _ = self.process.communicate(timeout=support.HANGS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, _ = self.process.communicate()
        return out, time.monotonic() - begin


def records(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class Interrupted(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "jax", "onnxruntime")
        self.temporary = self.place.path / "tmp"
        self.temporary.mkdir()
        self.place.variables["TMPDIR"] = str(self.temporary)
        self.place.write("mlp.ir", support.MLP)
        text = support.recipe(
            ['framework = "jax"', 'framework = "jax", donate = false'],
            top='workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n',
            budget="minutes = 30\nheats = 3\n",
        )
        self.recipe = self.place.write("race.toml", text)
        self.folder = self.place.path / "run"

    def interrupt(self, run: Run) -> str:
        out, seconds = run.end_by(signal.SIGINT)
        said = out + run.errors.read_text()
        self.assertEqual(run.process.returncode, 130, said)
        self.assertLess(seconds, LONG)
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(list(self.temporary.iterdir()), [])
        return out

    def test_a_life(self) -> None:
        self.ctrl_c_in_the_gate()
        self.ctrl_c_in_the_race()
        self.second_run_and_kill()
        printed = self.resumed()
        self.offline(printed)

    def ctrl_c_in_the_gate(self) -> None:
        run = Run(self.place, str(self.recipe), "--out", "run")
        run.wait_for("proofs")
        run.wait_for_worker()
        out = self.interrupt(run)
        self.assertIn("JAX", out)
        self.assertIn("race", out)
        self.assertIn("Interrupted before anything was timed: 0 of 2 contenders", out)
        self.assertIn("`bakeoff run --resume ", out)
        self.assertTrue((self.folder / "report.html").exists())
        manifest = json.loads((self.folder / "run.json").read_text())
        self.assertEqual(len(manifest["contenders"]), 2)

    def ctrl_c_in_the_race(self) -> None:
        run = Run(self.place, "--resume", "run")
        run.wait_for(r"(?m)^race\b")
        run.wait_for_worker()
        out = self.interrupt(run)
        self.assertIn("JAX", out)
        self.assertIn("Interrupted before anything was timed: 2 of 2 contenders", out)
        self.assertIn("A heat that was running is not counted", out)
        self.assertEqual(
            [p["diverges_at"] for p in records(self.folder / "parity.jsonl")], ["", ""]
        )

    def test_what_is_known_so_far(self) -> None:
        """Nothing decides this race: ended in its third heat, then by a budget."""
        text = support.recipe(
            [
                'framework = "onnxruntime"',
                'framework = "onnxruntime", optimization = "basic"',
            ],
            top=support.replaced(
                support.PREDICTIONS, ("alpha = 0.5", "alpha = 0.01"), ("1.0", "1e-5")
            ),
            optimizer="",
        )
        self.place.write("open.toml", text)
        run = Run(self.place, "open.toml", "--out", "open", "--until", "decided")
        run.wait_for(r"(?m)^heat 1 · .*how sure: not known yet")
        run.wait_for(r"(?m)^heat 2 · ")
        run.wait_for_worker()
        out = self.interrupt(run)
        for part in (
            r"Not decided yet: ONNX Runtime[^,]* is the fastest so far, [\d.]+ ms a step, ahead of",
            r"\([<>]?[\d.]+% sure\)",
            "The run was interrupted: .* A heat that was running is not counted",
            r"(?m)^Fastest so far: ONNX Runtime",
            r"(decide it|would decide it)",
            r"(?m)^  bakeoff run --resume \S*open --until decided$",
        ):
            said = out if part.startswith("(?m)") else " ".join(out.split())
            self.assertRegex(said, part)
        page = (self.place.path / "open" / "report.html").read_text()
        self.assertIn('<section id="outlook">', page)
        heats = {t["heat"] for t in records(self.place.path / "open" / "trials.jsonl")}
        self.assertEqual(heats, {1, 2})

        for budget in ("8s", "1m", "10m"):  # a slow machine needs more for a heat
            words = ("--budget", budget, "--format", "json")
            more = self.place.ok("run", "--resume", "open", *words)
            self.assertIn("of the budget left", more.err)
            summary = more.json()
            if summary["heats"] > 2:
                break
        self.assertGreater(summary["heats"], 2)
        if not summary["decided"]:
            self.assertEqual(len(summary["outlook"]), 1)
            rival = summary["outlook"][0]["rivals"][0]
            self.assertGreater(rival["slower_than_leader"], 0)

    def second_run_and_kill(self) -> None:
        run = Run(self.place, "--resume", "run")
        run.wait_for(r"(?m)^race\b")
        self.assertNotIn(
            "proofs ·", run.errors.read_text(), "the gate is not run again"
        )
        second = self.place.run("run", "--resume", "run")
        self.assertEqual(second.code, 2)
        self.assertRegex(second.err, r"another run is writing into '.*run'\n  \S")
        again = self.place.run("run", self.recipe, "--out", "run")
        self.assertEqual(again.code, 2)
        self.assertIn("bakeoff run --resume run", again.err)
        run.wait_for_worker()
        run.end_by(signal.SIGKILL)
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(list(self.temporary.iterdir()), [])

    def resumed(self) -> Any:
        done = self.place.ok("run", "--resume", "run", "--format", "json")
        self.assertEqual(self.place.none_left(), {})
        summary = done.json()
        self.assertEqual(len(summary["ranked"]), 2, done.out)
        self.assertFalse(summary["interrupted"])
        heats = {trial["heat"] for trial in records(self.folder / "trials.jsonl")}
        self.assertEqual(heats, set(range(1, len(heats) + 1)))
        return summary

    def offline(self, printed: Any) -> None:
        moved = self.place.path / "elsewhere" / "kept"
        moved.parent.mkdir()
        self.folder.rename(moved)
        self.recipe.unlink()
        (self.place.path / "mlp.ir").unlink()
        (self.place.path / "home" / "config.toml").unlink()
        again = self.place.ok("report", moved, "--format", "json")
        self.assertEqual(again.json(), printed)
        markdown = self.place.ok("report", moved, "--format", "markdown")
        self.assertRegex(markdown.out, r"(?m)^\|.*JAX.*\|")
        table = self.place.run("report", moved, "--format", "csv", "--html", "r.html")
        rows = list(csv.DictReader(io.StringIO(table.out)))
        self.assertEqual(len(rows), 2)
        page = (self.place.path / "r.html").read_text()
        self.assertIn("donate", page)
        self.assertNotRegex(page, r'(src|href)="(https?:)?//')
        shown = self.place.run("report", moved)
        self.assertEqual(shown.out.splitlines()[-1], str(moved / "report.html"))
        self.assertTrue((moved / "report.html").exists())

        with self.subTest("a torn last line is ignored, other damage is not"):
            trials = moved / "trials.jsonl"
            whole = trials.read_text()
            trials.write_text(whole + '{"contender": "ja')
            torn = self.place.run("report", moved, "--format", "json")
            self.assertEqual(torn.json(), printed)
            trials.write_text("nonsense\n" + whole)
            broken = self.place.run("report", moved)
            self.assertEqual(broken.code, 2)
            self.assertRegex(broken.err, r"trials\.jsonl:1: .*\n  \S")


@support.full_tier
class AtAnyMoment(unittest.TestCase):
    def test_nothing_that_was_cut_short_counts(self) -> None:
        """One run, interrupted again and again, ends as one that never was."""
        support.need("onnxruntime")
        seed = int(os.environ.get("BAKEOFF_TEST_SEED", "1"))
        draw = random.Random(seed)
        place = support.Place(["onnxruntime"])
        self.addCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        place.write(
            "race.toml",
            support.recipe(
                [
                    'framework = "onnxruntime"',
                    'framework = "onnxruntime", optimization = "disabled"',
                ],
                top=support.PREDICTIONS,
                optimizer="",
            ),
        )
        begin = time.monotonic()
        self.assertEqual(place.run("run", "race.toml", "--out", "whole").code, 0)
        usual = time.monotonic() - begin
        arguments: tuple[str, ...] = ("race.toml", "--out", "run")
        for _ in range(20):
            run = Run(place, *arguments)
            time.sleep(draw.uniform(0.1, 0.7) * usual)
            run.end_by(signal.SIGINT)
            self.assertIn(run.process.returncode, (0, 130), run.errors.read_text())
            self.assertEqual(place.none_left(), {})
            if (place.path / "run" / "run.json").exists():
                arguments = ("--resume", "run")
        done = place.ok("run", "--resume", "run", "--format", "json")
        self.assertEqual(done.json()["unranked"], [], f"seed {seed}")
        self.assertEqual(len(done.json()["ranked"]), 2)


if __name__ == "__main__":
    support.main()
