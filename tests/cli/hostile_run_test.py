"""A run directory of a stranger: `report` refuses what no run wrote, and reads no other file.

Needs no framework: python3 -m tests.cli.hostile_run_test build/dev/bakeoff
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import unittest
from collections.abc import Callable
from typing import Any

from tests.cli import support

SECRET = "the text of a file outside of the run directory"
MS = 1_000_000


def trial(contender: str, heat: int, ms: float) -> dict[str, Any]:
    burst = {"ns": int(ms * 10 * MS), "steps": 10, "losses": [[10, 2.0]]}
    return {
        "contender": contender,
        "heat": heat,
        "start_ns": 50 * MS,
        "import_ns": 900 * MS,
        "build_ns": 100 * MS,
        "first_step_ns": 300 * MS,
        "alone": True,
        "bursts": [burst, burst],
        "step_ns": [int(ms * MS)] * 4,
        "rounds": [{"wall_ns": burst["ns"], "seen": {"others": 0.0}}] * 2,
        "last_loss": 1.0,
        "effective": {"threads": "2"},
    }


def proof(contender: str) -> dict[str, Any]:
    check = {"what": "float64 loss", "tensor": "loss", "error": 0, "passed": True}
    return {"contender": contender, "checks": [{**check, "tolerance": 1e-10}]}


class HostileRun(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)
        self.place.write("secret.txt", SECRET)
        names = ['framework = "torch"', 'framework = "torch", compile = "default"']
        self.place.write("race.toml", support.recipe(names))
        made = self.place.run("run", "race.toml", "--out", "run")
        self.assertEqual(made.code, 1, "nothing to race with: " + made.err)
        self.run_folder = self.place.path / "run"
        self.manifest = json.loads((self.run_folder / "run.json").read_text())
        self.manifest["not_started"] = [{}, {}]
        self.ids = [c["id"] for c in self.manifest["contenders"]]
        self.proofs = [proof(name) for name in self.ids]
        self.trials = [
            trial(name, heat, 4 + i + 0.01 * heat)
            for heat in range(1, 7)
            for i, name in enumerate(self.ids)
        ]
        (self.run_folder / "report.html").unlink()

    def lay_out(
        self, manifest: Any, proofs: list[Any], trials: list[Any], **more: Any
    ) -> None:
        def lines(records: list[Any]) -> str:
            return "".join(json.dumps(r) + "\n" for r in records)

        (self.run_folder / "run.json").write_text(json.dumps(manifest))
        (self.run_folder / "parity.jsonl").write_text(lines(proofs))
        (self.run_folder / "trials.jsonl").write_text(lines(trials))
        for name, records in more.items():
            (self.run_folder / f"{name}.jsonl").write_text(lines(records))

    def lay_out_sound(self) -> None:
        self.lay_out(self.manifest, self.proofs, self.trials)

    def report(self) -> subprocess.CompletedProcess[str]:
        got = support.called(
            [str(support.BAKEOFF), "report", "run", "--format", "json"],
            cwd=self.place.path,
            timeout=support.HANGS,
        )
        page = self.run_folder / "report.html"
        shown = page.read_text() if page.is_file() else ""
        self.assertNotIn(SECRET, got.stdout + got.stderr + shown)
        return got

    def refuse(self, *says: str) -> None:
        got = self.report()
        self.assertEqual(got.returncode, 2, got.stdout[:500] + got.stderr)
        for pattern in says:
            self.assertRegex(got.stderr, pattern)
        self.assertRegex(got.stderr, r"^bakeoff: .*\n  \S", "a remedy")
        self.assertEqual(got.stdout, "")
        self.assertFalse((self.run_folder / "report.html").exists())

    def test_the_sound_one_is_reported(self) -> None:
        self.lay_out_sound()
        got = self.report()
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(len(json.loads(got.stdout)["ranked"]), 2)

    def test_names_that_lead_out_of_it(self) -> None:
        absolute = str(self.place.path / "secret.txt")
        for name in (
            "../../secret.txt",
            "..",
            ".",
            absolute,
            "a/b.py",
            "a\\b",
            "x\0.py",
            "x" * 300,
        ):
            with self.subTest(name=name):
                manifest = copy.deepcopy(self.manifest)
                manifest["contenders"][1]["script"] = name
                self.lay_out(manifest, self.proofs, self.trials)
                self.refuse(r"run\.json: contenders\[1\]\.script .*no plain file name")

    def test_links_and_pipes(self) -> None:
        script = self.manifest["contenders"][0]["script"]
        for name in (
            "run.json",
            "parity.jsonl",
            "trials.jsonl",
            "fit.jsonl",
            f"scripts/{script}",
        ):
            for make in ("link", "pipe", "folder"):
                with self.subTest(name=name, make=make):
                    self.lay_out_sound()
                    path = self.run_folder / name
                    path.unlink(missing_ok=True)
                    if make == "link":
                        path.symlink_to(self.place.path / "secret.txt")
                    elif make == "pipe":
                        os.mkfifo(path)
                    else:
                        path.mkdir()
                    self.refuse(name.replace(".", r"\."))
                    path.rmdir() if make == "folder" else path.unlink()
        (self.run_folder / "scripts").rename(self.place.path / "elsewhere")
        (self.run_folder / "scripts").symlink_to(self.place.path / "elsewhere")
        self.lay_out_sound()
        self.refuse("run/scripts: a link")

    def test_the_page_replaces_a_link_and_follows_none(self) -> None:
        self.lay_out_sound()
        (self.run_folder / "report.html").symlink_to(self.place.path / "secret.txt")
        self.assertEqual(self.report().returncode, 0)
        self.assertEqual((self.place.path / "secret.txt").read_text(), SECRET)

    def test_files_that_the_recorded_recipe_names_are_not_opened(self) -> None:
        os.mkfifo(self.place.path / "pipe")
        manifest = copy.deepcopy(self.manifest)
        text = manifest["recipe_text"].replace(
            "contenders = [",
            'contenders = [ { script = "pipe" }, { script = "/dev/zero" },',
        )
        manifest["recipe_text"] = text + '\n[published]\nfile = "pipe"\n'
        self.lay_out(manifest, self.proofs, self.trials)
        got = self.report()
        self.assertEqual(got.returncode, 0, got.stderr)

    def test_an_unknown_framework_is_not_resumed(self) -> None:
        manifest = copy.deepcopy(self.manifest)
        manifest["contenders"][0]["framework"] = "abacus"
        self.lay_out(manifest, self.proofs, self.trials)
        got = self.place.run("run", "--resume", "run")
        self.assertEqual(got.code, 2, got.err)
        self.assertRegex(got.err, r"run\.json: .*abacus.*\n  \S")

    def test_manifests_that_no_run_wrote(self) -> None:
        def edit(change: Callable[[Any], Any]) -> Any:
            manifest = copy.deepcopy(self.manifest)
            return change(manifest) or manifest

        def put(*path: Any, value: Any) -> Callable[[Any], Any]:
            def change(manifest: Any) -> None:
                at = manifest
                for key in path[:-1]:
                    at = at[key]
                at[path[-1]] = value

            return change

        first = ("contenders", 0)
        cases: dict[str, Callable[[Any], Any]] = {
            "a list": lambda m: [m],
            "no contenders": put("contenders", value=[]),
            "a word for contenders": put("contenders", value="torch"),
            "a word for a contender": put(*first, value="torch"),
            "one name twice": put(*first, "id", value=self.ids[1]),
            "a number for a name": put(*first, "id", value=7),
            "a list for a script": put(*first, "script", value=["a.py"]),
            "a huge number of rows": put("data_rows", value=10**30),
            "rows beyond any integer": put("data_rows", value=1e300),
            "half a row": put("data_rows", value=0.5),
            "CPUs beyond an int": put("host", "cpus", value=2**40),
            "a negative version": put("version", value=-1),
            "a huge version": put("version", value=2**70),
            "a version in words": put("version", value="1"),
            "no workload": put("workload_text", value=""),
            "another workload": put("workload_text", value="workload w() {"),
            "settings as a list": put(*first, "settings", value=[1]),
            "a published table of nothing": put("published_text", value="a,b\n1"),
            "losses in words": put("referee_losses", value=["nan"]),
            "a host in words": put("host", value="here"),
        }
        for what, change in cases.items():
            with self.subTest(what):
                self.lay_out(edit(change), self.proofs, self.trials)
                self.refuse(r"run\.json")
        for text in ("", "{", "[" * 100_000, '{"version": 1', "\xff\xfe"):
            with self.subTest(text[:20]):
                self.lay_out_sound()
                (self.run_folder / "run.json").write_text(text, encoding="latin-1")
                self.refuse(r"run\.json")

    def test_trials_that_no_run_wrote(self) -> None:
        cases: dict[str, dict[str, Any]] = {
            "a negative heat": {"heat": -1},
            "a heat beyond an int": {"heat": 2**31},
            "a huge heat": {"heat": 1e300},
            "bursts in words": {"bursts": "many"},
            "a burst of huge time": {"bursts": [{"ns": 10**30, "steps": 1}] * 2},
            "more warm-up than bursts": {"warmup_bursts": 2**62},
            "negative warm-up": {"warmup_bursts": -1},
            "steps beyond an integer": {"step_ns": [1e300]},
            "rounds in words": {"rounds": ["busy"]},
            "a loss in words": {"last_loss": "nan"},
            "a sensor in words": {"memory": {"pss_bytes": "x"}},
        }
        for what, change in cases.items():
            with self.subTest(what):
                self.lay_out(self.manifest, self.proofs, self.changed(change))
                self.refuse(r"trials\.jsonl:4")

    def changed(self, change: dict[str, Any]) -> list[dict[str, Any]]:
        """The second trial of the second contender says something else."""
        trials = copy.deepcopy(self.trials)
        trials[3].update(change)
        return trials

    def test_what_a_lying_worker_may_have_said(self) -> None:
        """Its trials are data: its row has the reason, and it is not ranked."""
        cases: dict[str, dict[str, Any]] = {
            "no step": {"bursts": [{"ns": 5, "steps": 0}] * 2},
            "negative time": {"bursts": [{"ns": -5, "steps": 1}] * 2},
            "no time": {"bursts": [{"ns": 0, "steps": 1}] * 2},
            "negative steps": {"bursts": [{"ns": 5, "steps": -1}] * 2},
        }
        for what, change in cases.items():
            with self.subTest(what):
                self.lay_out(self.manifest, self.proofs, self.changed(change))
                got = self.report()
                self.assertEqual(got.returncode, 0, got.stderr)
                ranked = [
                    row["contender"]["id"] for row in json.loads(got.stdout)["ranked"]
                ]
                self.assertEqual(ranked, [self.ids[0]])

    def test_what_is_odd_is_survived(self) -> None:
        cases: dict[str, list[Any]] = {
            "an unknown contender": self.changed({"contender": "nobody"}),
            "a trial twice": [*self.trials, self.trials[3]],
            "negative times": self.changed({"start_ns": -1, "import_ns": -1}),
            "a step of negative time": self.changed({"step_ns": [-1, 0, 2**62]}),
            "the last heat there is": self.changed({"heat": 2**31 - 1}),
            "huge numbers": self.changed({"last_loss": 1e308, "user_s": 1e308}),
            "huge usage": self.changed({"memory": {"pss_bytes": 1e308, "on_gpu": -1}}),
            "odd names": self.changed(
                {"effective": {"threads": "99999999999999999999"}}
            ),
            "no burst": self.changed({"bursts": []}),
            "one trial": self.trials[:1],
            "none": [],
        }
        for what, trials in cases.items():
            with self.subTest(what):
                self.lay_out(self.manifest, self.proofs, trials)
                got = self.report()
                self.assertEqual(got.returncode, 0, got.stderr)
                json.loads(got.stdout)

    def test_other_records_that_no_run_wrote(self) -> None:
        name = self.ids[0]
        cases: dict[str, list[Any]] = {
            "parity": [{**proof(name), "checks": [{"error": "x"}]}],
            "fit": [{"contender": name, "seed": 1e300}],
            "target": [{"contender": name, "looks": [{"steps": 2**64}]}],
            "latency": [{"contender": name, "arrival_ns": [1.5]}],
            "batches": [{"batch": 10**30}],
            "largest": [{"contender": name, "batch": "x"}],
        }
        for file, records in cases.items():
            with self.subTest(file):
                self.lay_out_sound()
                self.lay_out(self.manifest, self.proofs, self.trials, **{file: records})
                self.refuse(rf"{file}\.jsonl:1")
                (self.run_folder / f"{file}.jsonl").unlink()


if __name__ == "__main__":
    support.main()
