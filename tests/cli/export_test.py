"""`bakeoff export`: a real run with contenders of every kind, read back by other programs.

python3 -m tests.cli.export_test build/dev/bakeoff

The readers of TensorBoard, W&B, MLflow, JUnit and Parquet themselves are packages of the
long tier (make full).
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import unittest
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import support

NAME = 'evil "/><script> & .. name'
SCRIPT = "a\"<b>&'.py"
READERS = "tests/wheel/exports.txt"


def recipe(*contenders: str) -> str:
    text = support.recipe(contenders, budget="minutes = 30\nheats = 3\n")
    return f"name = {json.dumps(NAME)}\n" + text


def records(data: bytes) -> Iterator[bytes]:
    """Of a TFRecord file; every byte belongs to one."""
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        yield data[12 : 12 + length]
        data = data[16 + length :]


class Export(unittest.TestCase):
    place: ClassVar[support.Place]
    shared: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = support.place_for(cls, "torch", shared_proofs=True)
        # No framework but torch is here, whatever the machine has.
        cls.place.write("plain.toml", recipe('framework = "torch"'))
        cls.place.ok("emit", "plain.toml", "--out", "scripts")
        text = (cls.place.path / "scripts" / "train_torch.py").read_text()
        cls.place.write(SCRIPT, text.replace("0.001", "0.002").replace("1e-3", "2e-3"))
        cls.place.write(
            "all.toml",
            recipe(
                'framework = "torch"',
                f'framework = "torch", script = {json.dumps(SCRIPT)}',
                'framework = "jax"',
            ),
        )
        cls.place.ok("run", "all.toml", "--out", "run")
        cls.shared = cls.place.path / "run"

    def export(self, tool: str, *more: str | Path, run: Path | None = None) -> str:
        done = self.place.ok("export", run or self.shared, "--to", tool, *more)
        return done.out

    def copy(self, name: str) -> Path:
        folder = self.place.path / name
        shutil.copytree(self.shared, folder)
        self.addCleanup(shutil.rmtree, folder)
        return folder


class Files(Export):
    def test_junit(self) -> None:
        suite = ET.fromstring(self.export("junit"))[0]
        self.assertEqual(suite.get("name"), NAME)
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        self.assertEqual(len(cases), 3)
        self.assertEqual([suite.get(k) for k in ("tests", "failures", "errors", "skipped")],
                         ["3", "1", "0", "1"])  # fmt: skip
        (wrong,) = (case for name, case in cases.items() if SCRIPT in str(name))
        failure = wrong.find("failure")
        assert failure is not None
        self.assertEqual(failure.get("type"), "parity")
        self.assertIn("allowed", failure.text or "")
        skipped = cases["jax"].find("skipped")
        assert skipped is not None
        self.assertIn("bakeoff env create", skipped.get("message", ""))
        self.assertGreater(float(cases["torch"].get("time", "0")), 0)
        self.assertEqual(len(cases["torch"].findall("failure")), 0)

    def test_csv_and_files_of_a_name(self) -> None:
        rows = list(csv.DictReader(io.StringIO(self.export("csv"))))
        self.assertEqual(
            [row["state"] for row in rows], ["ranked"] + 2 * ["not ranked"]
        )
        self.assertEqual({row["recipe"] for row in rows}, {NAME})
        out = self.place.path / "deep" / "er" / "table.csv"
        said = self.export("csv", "--out", out)
        self.assertEqual(said.strip(), str(out))
        again = list(csv.DictReader(io.StringIO(out.read_text())))
        self.assertEqual(
            [r["contender"] for r in again], [r["contender"] for r in rows]
        )

    def test_json_lines(self) -> None:
        lines = [json.loads(line) for line in self.export("jsonl").splitlines()]
        keys = list(lines[0])
        for line in lines:
            self.assertEqual(list(line), keys)
        page = (support.ROOT / "docs" / "export.md").read_text()
        for key in keys:
            self.assertIn(f"| `{key}` |", page)
        timed = [line for line in lines if line["contender"] == "torch"]
        trials = [
            json.loads(text)
            for text in (self.shared / "trials.jsonl").read_text().splitlines()
        ]
        self.assertEqual(
            len(timed), sum(len(t["bursts"]) + len(t["void_bursts"]) for t in trials)
        )
        self.assertEqual({line["heat"] for line in timed}, {1, 2, 3})
        self.assertEqual(timed[0]["steps"], trials[0]["bursts"][0]["steps"])
        self.assertEqual({line["ranked"] for line in lines[len(timed) :]}, {False})

    def test_tensorboard_files(self) -> None:
        self.export("tensorboard", "--out", "logs")
        folders = sorted((self.place.path / "logs").iterdir())
        self.assertEqual(len(folders), 3)
        for folder in folders:
            self.assertRegex(folder.name, r"^[\w.=,\[\]-]+$")
            (file,) = folder.iterdir()
            found = list(records(file.read_bytes()))
            self.assertIn(b"brain.Event:2", found[0])
        before = {f: next(f.iterdir()).read_bytes() for f in folders}
        self.export("tensorboard", "--out", "logs")  # replaces, and adds no second file
        self.assertEqual({f: next(f.iterdir()).read_bytes() for f in folders}, before)

    def test_a_run_that_was_killed(self) -> None:
        run = self.copy("killed")
        trials = (run / "trials.jsonl").read_bytes()
        (run / "trials.jsonl").write_bytes(trials[: trials.index(b"\n") + 40])
        (run / "parity.jsonl").write_bytes(
            (run / "parity.jsonl").read_bytes().splitlines(keepends=True)[0]
        )
        done = self.place.ok("export", run, "--to", "jsonl")
        self.assertIn("1 of 3 contenders have no proof yet", done.err)
        self.assertEqual(
            {json.loads(r)["heat"] for r in done.out.splitlines()}, {1, None}
        )
        for file in ("trials.jsonl", "parity.jsonl"):
            (run / file).unlink()
        for tool in ("csv", "junit", "tensorboard", "jsonl"):
            done = self.place.ok("export", run, "--to", tool)
            self.assertIn("no contender has been timed yet", done.err)
        self.assertEqual((run / "tensorboard").is_dir(), True)

    def test_what_cannot_be_exported(self) -> None:
        run = self.copy("damaged")
        lines = (run / "trials.jsonl").read_text().splitlines(keepends=True)
        (run / "trials.jsonl").write_text('{"contender": 7}\n' + "".join(lines))
        for arguments, says in (
            ((run, "--to", "csv"), "trials.jsonl:1"),
            (("nowhere", "--to", "csv"), "is no run directory"),
            ((self.shared, "--to", "tensorbord"), "did you mean 'tensorboard'"),
            ((self.shared,), "--to is missing"),
            ((self.shared, "--to", "csv", "--out", "/proc/x.csv"), "/proc/x.csv"),
            ((self.shared, "--to", "wandb", "--python", "/nowhere/python"), "/nowhere"),
        ):
            with self.subTest(says):
                done = self.place.run("export", *arguments)
                self.assertEqual(done.code, 2, done.out + done.err)
                self.assertIn(says, done.err)
                self.assertEqual(done.out, "")

    def test_a_client_that_is_not_installed(self) -> None:
        python = support.interpreter("torch")
        for tool in ("wandb", "mlflow"):
            out = self.place.path / "not_there" / tool
            done = self.place.run(
                "export", self.shared, "--to", tool, "--python", python, "--out", out
            )
            self.assertEqual(done.code, 2)
            self.assertIn(f"has no package {tool}", done.err)
            self.assertIn(f"{python} -m pip install {tool}", done.err)
            self.assertFalse(out.exists())
        self.assertEqual(list(self.shared.glob(".bakeoff_export_*")), [])

    def test_an_interpreter_that_misbehaves(self) -> None:
        """It hangs until Ctrl-C, or ends without an answer: nothing is left behind."""
        liar = self.place.write("liar", "#!/bin/sh\necho some reason; exit 0\n")
        slow = self.place.write("slow", "#!/bin/sh\nexec sleep 1000\n")
        for file in (liar, slow):
            file.chmod(0o755)
        done = self.place.run("export", self.shared, "--to", "wandb", "--python", liar)
        self.assertEqual(done.code, 2)
        self.assertIn("some reason", done.err)
        process = self.place.start(
            "export", self.shared, "--to", "wandb", "--python", slow, "--out", "w"
        )
        support.wait_for(
            lambda: any("sleep 1000" in c for c in self.place.processes().values()),
            process,
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130, out + err)
        self.assertEqual(self.place.none_left(), {})
        self.assertFalse((self.place.path / "w").exists())


@support.full_tier
class Readers(Export):
    """The tools' own readers."""

    python: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        made = support.called(
            [support.ROOT / "scripts/tool_environment", "exports", READERS],
            cwd=support.ROOT,
            check=True,
        )
        cls.python = Path(made.stdout.splitlines()[-1]) / "bin" / "python"

    def read(self, text: str, *arguments: str | Path) -> Any:
        """What a script of the reader's prints as its last line."""
        done = support.called(
            [self.python, "-c", text, *map(str, arguments)],
            cwd=self.place.path,
            env={**os.environ, "HOME": str(self.place.path), "WANDB_MODE": "offline"},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def step_seconds(self) -> list[float]:
        lines = [json.loads(line) for line in self.export("jsonl").splitlines()]
        means = []
        for heat in (1, 2, 3):
            rows = [r for r in lines if r["heat"] == heat and r["counts"]]
            means.append(sum(r["seconds_per_step"] for r in rows) / len(rows))
        return means

    def near(self, found: list[float]) -> None:
        self.assertEqual(len(found), 3)
        for value, mean in zip(found, self.step_seconds(), strict=True):
            self.assertLess(abs(value / mean - 1), 0.5)

    def test_tensorboard(self) -> None:
        self.export("tensorboard", "--out", "tb")
        found = self.read(
            "import json, sys\n"
            "from tensorboard.backend.event_processing.event_accumulator import "
            "EventAccumulator\n"
            "from tensorboard.plugins.hparams import metadata\n"
            "run = EventAccumulator(sys.argv[1] + '/torch'); run.Reload()\n"
            "data = run.SummaryMetadata('_hparams_/session_start_info')\n"
            "start = metadata.parse_session_start_info_plugin_data("
            "data.plugin_data.content)\n"
            "print(json.dumps({'scalars': {t: [(e.step, e.value) for e in "
            "run.Scalars(t)] for t in run.Tags()['scalars']},\n"
            "  'text': run.Tensors('about/verdict')[0].tensor_proto.string_val[0]"
            ".decode(),\n"
            "  'hparams': {k: v.string_value for k, v in start.hparams.items()}}))",
            self.place.path / "tb",
        )
        race = found["scalars"]["race/seconds_per_step"]
        self.assertEqual([step for step, _ in race], [1, 2, 3])
        self.near([value for _, value in race])
        self.assertEqual(len(found["scalars"]["parity/loss"]), 3)
        self.assertEqual(found["hparams"]["framework"], "torch")
        self.assertTrue(found["text"])

    def test_wandb(self) -> None:
        self.place.variables["WANDB_RUN_ID"] = "taken"
        self.place.variables["WANDB_MODE"] = "disabled"
        out = self.export("wandb", "--python", self.python, "--out", "w")
        folders = [Path(line) for line in out.splitlines()]
        self.assertEqual(len(folders), 3)
        kept = self.place.path / "w"
        self.assertEqual([p.name for p in kept.iterdir()], ["wandb"])
        names: dict[str, list[Any]] = {}
        for folder in folders:
            (file,) = folder.glob("run-*.wandb")
            shown = support.called(
                [self.python.parent / "wandb", "leet", "inspect", "--json", file],
                env={**os.environ, "HOME": str(self.place.path)},
                stdin=subprocess.DEVNULL,
                check=True,
            ).stdout
            kinds: dict[str, list[Any]] = {"run": [], "history": [], "exit": []}
            for line in shown.splitlines():
                record = json.loads(line)
                kinds.setdefault(record["type"], []).append(record.get(record["type"]))
            items = [entry["item"] for entry in kinds["history"]]
            key = "race/seconds_per_step"
            names[kinds["run"][0]["display_name"]] = [
                [item[key] for item in items if key in item],
                kinds["exit"][0].get("exit_code", 0),
            ]
        self.assertEqual(set(names) & {"torch", "jax"}, {"torch", "jax"})
        self.assertTrue(any(SCRIPT in name for name in names), names)
        self.near(names["torch"][0])
        self.assertEqual(names["torch"][1], 0)
        self.assertEqual(names["jax"], [[], 1])

    def test_mlflow(self) -> None:
        file = self.place.path / "runs.db"
        for count in (1, 2):  # a second export is added
            self.export("mlflow", "--python", self.python, "--out", file)
            found = self.read(
                "import json, sys\n"
                "from mlflow.tracking import MlflowClient\n"
                "client = MlflowClient('sqlite:///' + sys.argv[1])\n"
                "one = client.get_experiment_by_name(sys.argv[2])\n"
                "runs = client.search_runs([one.experiment_id])\n"
                "print(json.dumps([[r.info.run_name, r.info.status, r.data.params, "
                "[m.value for m in client.get_metric_history(r.info.run_id, "
                "'race/seconds_per_step')]] for r in runs]))",
                file,
                NAME,
            )
            self.assertEqual(len(found), 3 * count)
        best = next(run for run in found if run[0] == "torch")
        self.assertEqual(best[1], "FINISHED")
        self.assertEqual(best[2]["framework"], "torch")
        self.near(best[3])
        self.assertEqual(next(r[1] for r in found if r[0] == "jax"), "FAILED")
        self.assertEqual(list(self.place.path.glob("mlruns")), [])
        other = self.place.write("text.db", "something of mine\n")
        done = self.place.run(
            "export", self.shared, "--to", "mlflow", "--python", self.python,
            "--out", other,
        )  # fmt: skip
        self.assertEqual(done.code, 2)
        self.assertIn("is no SQLite file", done.err)
        self.assertEqual(other.read_text(), "something of mine\n")

    def test_junit_and_columns(self) -> None:
        self.export("junit", "--out", "junit.xml")
        self.export("jsonl", "--out", "lines.jsonl")
        found = self.read(
            "import json\n"
            "from junitparser import JUnitXml, Failure\n"
            "import pyarrow.json, pyarrow.parquet\n"
            "suite = next(iter(JUnitXml.fromfile('junit.xml')))\n"
            "table = pyarrow.json.read_json('lines.jsonl')\n"
            "pyarrow.parquet.write_table(table, 'lines.parquet')\n"
            "again = pyarrow.parquet.read_table('lines.parquet')\n"
            "print(json.dumps([suite.tests, suite.failures, suite.skipped, "
            "suite.name, again.num_rows, {f.name: str(f.type) for f in again.schema}]))"
        )
        self.assertEqual(found[:4], [3, 1, 1, NAME])
        self.assertEqual(found[4], len(self.export("jsonl").splitlines()))
        self.assertEqual(found[5]["seconds_per_step"], "double")
        self.assertEqual(found[5]["heat"], "int64")
        self.assertEqual(found[5]["counts"], "bool")


if __name__ == "__main__":
    support.main()
