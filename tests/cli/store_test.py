"""`bakeoff store` and `bakeoff history` on SQLite and on PostgreSQL, and what goes wrong.

python3 -m tests.cli.store_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import made_runs, support
from tests.cli.made_runs import Run
from tests.cli.postgres import Server

# Runs of an import that is cut off.
MANY = 4000 if support.FULL else 300
# An import of MANY runs is amid its second transaction, however slow the machine: the first one has 200 at most.
WAITS_BEHIND_THE_FIRST_BATCH = """
CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF (SELECT COUNT(*) FROM runs) >= 200 THEN PERFORM pg_sleep(3600); END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER waits BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION waits();
"""
EXAMPLE = re.compile(r"```sql\n(.*?)```", re.DOTALL)


class Places:
    """The same tests on every database: what differs is here. This one: SQLite."""

    def open(self) -> None:
        self.place = support.Place()
        self.runs = self.place.path / "runs"

    def close(self) -> None:
        self.place.close()

    def index(self) -> Path:
        return self.place.path / "home" / "index.sqlite"

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        database = sqlite3.connect(f"file:{self.index()}?mode=ro", uri=True)
        try:
            with database:
                return database.execute(statement).fetchall()
        finally:
            database.close()

    def script(self, text: str) -> None:
        database = sqlite3.connect(self.index())
        database.executescript(text)
        database.close()


class PostgresPlaces(Places):
    server: Server
    count = 0

    def open(self) -> None:
        super().open()
        PostgresPlaces.count += 1
        self.name = f"index{PostgresPlaces.count}"
        self.place.variables["BAKEOFF_DB"] = self.server.new_database(self.name)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        rows = self.server.sql(f"SELECT row_to_json(q) FROM ({statement}) q", self.name)
        return [tuple(json.loads(row).values()) for row in rows.splitlines()]

    def script(self, text: str) -> None:
        self.server.sql(text, self.name)


class Tests:
    """Run on both databases."""

    class Both(unittest.TestCase):
        db: ClassVar[Places]

        def setUp(self) -> None:
            self.db.open()
            self.addCleanup(self.db.close)
            self.place = self.db.place
            self.runs = self.db.runs

        def ok(self, *words: str | Path) -> support.Outcome:
            done = self.place.ok(*words)
            return done

        def listed(self) -> dict[str, Any]:
            listed: dict[str, Any] = self.ok(
                "store", "list", "--format", "json", "--last", "100000"
            ).json()
            return listed

        def history(self, *words: str) -> list[dict[str, Any]]:
            shown: list[dict[str, Any]] = self.ok("history", *words, "--json").json()
            return shown

        def test_import_list_and_import_again(self) -> None:
            made_runs.series(self.runs / "deep" / "er", 5)
            first = self.ok("store", "import", "runs")
            self.assertIn("5 runs read, 0 unchanged, 0 skipped", first.out)
            again = self.ok("store", "import", "runs")
            self.assertIn("0 runs read, 5 unchanged, 0 skipped", again.out)
            listed = self.listed()
            self.assertEqual(listed["runs_in_all"], 5)
            self.assertEqual(listed["results"], 10)
            self.assertEqual(listed["series"], 2)
            started = [run["started"] for run in listed["runs"]]
            self.assertEqual(started, sorted(started, reverse=True))
            self.assertIn("5 runs", self.ok("store", "list").out)
            every = self.ok("store", "import", "runs", "--again")
            self.assertIn("5 runs read", every.out)
            self.assertEqual(self.listed(), listed)

        def test_the_history_is_what_the_reports_say(self) -> None:
            made_runs.series(self.runs, 3)
            self.ok("store", "import", "runs")
            (torch,) = self.history("tiny torch")
            self.assertEqual(len(torch["points"]), 3)
            for point in torch["points"]:
                report = self.ok(
                    "report", point["directory"], "--format", "json"
                ).json()
                rows = {r["contender"]["id"]: r for r in self.rows_of(report)}
                ms = rows["torch"]["ms_per_step"]
                self.assertAlmostEqual(
                    1e3 * point["seconds_per_step"], ms["value"], places=9
                )
                self.assertAlmostEqual(1e3 * point["low"], ms["low"], places=9)
                self.assertEqual(point["verdict"], rows["torch"]["verdict"])

        @staticmethod
        def rows_of(report: dict[str, Any]) -> list[dict[str, Any]]:
            found = []
            for row in report["ranked"]:
                contender = row["contender"]
                if isinstance(contender, str):
                    row = {**row, "contender": {"id": contender}}
                found.append(row)
            return found

        def test_a_shift_is_nominated_then_accepted_then_withdrawn(self) -> None:
            made_runs.series(self.runs, 40, step_at=25, step=1.08)
            self.ok("store", "import", "runs")
            shown = self.ok("history", "tiny torch").out
            self.assertIn("a history nominates, a pair decides: bakeoff gate", shown)
            self.assertIn("1 shift nominated", self.ok("history").out)
            (torch,) = self.history("tiny torch")
            (shift,) = torch["shifts"]
            self.assertEqual(shift["state"], "nominated")
            self.assertAlmostEqual(shift["index"], 25, delta=1)
            self.assertAlmostEqual(shift["ratio"], 1.08, delta=0.015)
            done = self.ok(
                "history", "accept", torch["line"][:8], "--note", "float64 is meant"
            )
            self.assertIn("accepted", done.out)
            (torch,) = self.history("tiny torch")
            (shift,) = torch["shifts"]
            self.assertEqual(
                (shift["state"], shift["note"]), ("accepted", "float64 is meant")
            )
            self.assertNotIn("nominated:", self.ok("history").out)
            self.ok("store", "rebuild")  # the mark lies in the run's directory
            self.assertEqual(
                self.history("tiny torch")[0]["shifts"][0]["state"], "accepted"
            )
            again = self.place.run("history", "accept", "tiny torch")
            self.assertEqual(again.code, 2)
            self.assertIn("no shift of tiny, PyTorch is open", again.err)
            self.ok("history", "accept", "tiny torch", "--withdraw", "--run", shift["run"])  # fmt: skip
            self.assertEqual(
                self.history("tiny torch")[0]["shifts"][0]["state"], "nominated"
            )

        def test_changed_packages_are_a_mark_and_a_changed_recipe_a_series(
            self,
        ) -> None:
            for number in range(6):
                version = "2.12.0" if number < 3 else "2.13.0"
                made_runs.write(
                    self.runs / f"a{number}",
                    Run(
                        {"torch": 10},
                        number=number,
                        versions={"torch": version},
                        commit=f"{number // 2:09x}" + "0" * 31,
                    ),
                )
                made_runs.write(
                    self.runs / f"b{number}",
                    Run({"torch": 20}, number=number, batch=100),
                )
            self.ok("store", "import", "runs")
            lines = self.history("tiny torch")
            self.assertEqual(len(lines), 2)  # of two batches
            two = [line for line in lines if line["series"] == 2]
            self.assertEqual(len(two), 1)
            marks = [mark["changes"] for mark in two[0]["marks"]]
            self.assertIn(["torch 2.12.0 -> 2.13.0"], marks)
            self.assertIn(["commit 000000001"], marks)
            text = self.ok("history", two[0]["line"]).out
            self.assertIn("torch 2.12.0 -> 2.13.0", text)

        def test_csv_has_a_line_for_each_point(self) -> None:
            made_runs.series(self.runs, 4)
            self.ok("store", "import", "runs")
            rows = list(csv.DictReader(io.StringIO(self.ok("history", "--csv").out)))
            self.assertEqual(len(rows), 8)
            self.assertEqual({row["name"] for row in rows}, {"tiny torch", "tiny jax"})
            for row in rows:
                self.assertGreater(float(row["seconds_per_step"]), 0.005)
                self.assertEqual(json.loads(row["packages"]), {"torch": "2.12.0"})

        def test_what_cannot_be_read_is_skipped_with_its_reason(self) -> None:
            good = made_runs.series(self.runs, 3)
            half = made_runs.write(self.runs / "half", Run({"torch": 10}, number=9))
            (half / "run.json").write_text((half / "run.json").read_text()[:200])
            torn = made_runs.write(self.runs / "torn", Run({"torch": 10}, number=10))
            text = (torn / "trials.jsonl").read_text()
            (torn / "trials.jsonl").write_text(text[: len(text) - 30])  # still a run
            edited = made_runs.write(
                self.runs / "edited", Run({"torch": 10}, number=11)
            )
            trials = (edited / "trials.jsonl").read_text()
            (edited / "trials.jsonl").write_text(
                trials.replace('"heat": 1', '"heat": -1', 1)
            )
            negative = made_runs.write(
                self.runs / "negative", Run({"torch": 10}, number=12)
            )
            trials = (negative / "trials.jsonl").read_text()
            (negative / "trials.jsonl").write_text(
                re.sub(r'"ns": \d+', '"ns": -5', trials, count=1)
            )
            undated = made_runs.write(
                self.runs / "undated", Run({"torch": 10}, started="yesterday")
            )
            (self.runs / "link").symlink_to(good[0])
            (self.runs / "circle").symlink_to(self.runs)
            pipe = self.runs / "pipe"
            pipe.mkdir()
            os.mkfifo(pipe / "run.json")
            done = self.ok("store", "import", "runs")
            listed = self.listed()
            reasons = {
                Path(s["directory"]).name: s["reason"] for s in listed["skipped"]
            }
            self.assertEqual(set(reasons), {"half", "edited", "undated"}, reasons)
            self.assertIn("run.json", reasons["half"])
            self.assertIn("trials.jsonl:1", reasons["edited"])
            self.assertIn("'yesterday' is no time", reasons["undated"])
            self.assertEqual(listed["runs_in_all"], 5, done.err)  # with torn, negative
            self.assertIn("3 skipped", done.out)
            self.assertIn("half", self.ok("store", "list", "--skipped").out)
            for name in ("half", "undated"):
                shutil.rmtree(self.runs / name)
            del undated
            made_runs.write(self.runs / "half", Run({"torch": 10}, number=9))
            self.ok("store", "import", "runs")
            self.assertEqual(self.listed()["runs_in_all"], 6)
            for line in self.history():  # what breaks a rule has no point
                for point in line["points"]:
                    self.assertGreater(point["seconds_per_step"], 0)

        def test_hostile_names(self) -> None:
            names = [b"\xff\xfe", b"a\nb", b"'; DROP TABLE runs; --", b"\x1b[31mred", "ünï".encode()]  # fmt: skip
            self.runs.mkdir()
            for number, name in enumerate(names):
                folder = Path(os.fsdecode(bytes(self.runs) + b"/" + name))
                made_runs.write(
                    folder,
                    Run({"torch": 10}, number=number, recipe="x\u0000<b>\x1b[31m"),
                )
            self.ok("store", "import", "runs")
            again = self.ok("store", "import", "runs")
            self.assertIn(f"0 runs read, {len(names)} unchanged", again.out)
            for words in (("store", "list"), ("history",)):
                out = self.ok(*words).out
                self.assertNotIn("\x1b", out)
                self.assertNotIn("\x00", out)
            self.assertEqual(self.listed()["runs_in_all"], len(names))

        def test_the_clock_jumps_back(self) -> None:
            early = made_runs.write(self.runs / "a", Run({"torch": 10}, number=100))
            trials = (early / "trials.jsonl").read_text()
            (early / "trials.jsonl").write_text(
                trials.replace("2026-01-05", "2025-01-05")
            )
            made_runs.write(
                self.runs / "b", Run({"torch": 10}, started="2199-01-01T00:00:00Z")
            )
            made_runs.write(self.runs / "c", Run({"torch": 10}, number=2))
            self.ok("store", "import", "runs")
            notes = {
                Path(r["directory"]).name: r["note"] for r in self.listed()["runs"]
            }
            self.assertIn("set back during the run", notes["a"])
            self.assertIn("in the future", notes["b"])
            self.assertEqual(notes["c"], "")
            self.assertIn("(!)", self.ok("store", "list").out)

        def test_two_importers_at_once(self) -> None:
            made_runs.series(self.runs, 100)
            started = [self.place.start("store", "import", "runs") for _ in range(3)]
            for process in started:
                _, err = process.communicate(timeout=support.HANGS)
                self.assertEqual(process.returncode, 0, err)
            self.check_whole(100)

        def check_whole(self, runs: int) -> None:
            """What is counted agrees with what is there."""
            listed = self.listed()
            self.assertEqual(listed["runs_in_all"], runs)
            self.assertEqual(listed["results"], 2 * runs)
            (row,) = self.db.sql(
                "SELECT (SELECT COUNT(*) FROM results) AS a, (SELECT COUNT(*) FROM results"
                " JOIN runs ON runs.id = results.run) AS b, (SELECT COUNT(*) FROM results"
                " JOIN series ON series.id = results.series) AS c"
            )
            self.assertEqual(row, (2 * runs,) * 3)

        def wait_for_runs(self, process: subprocess.Popen[str]) -> None:
            """Until a run is in the index, or the import has ended."""

            def some() -> bool:
                try:
                    if self.db.sql("SELECT COUNT(*) AS n FROM runs")[0][0] > 0:
                        return True
                except (AssertionError, sqlite3.OperationalError):
                    pass  # there is no table yet
                return process.poll() is not None

            support.wait_for(some)

        def test_killed_in_mid_import_the_index_is_whole_and_goes_on(self) -> None:
            made_runs.series(self.runs, MANY)
            for wait in (0, 0.1, 0.3):
                process = self.place.start("store", "import", "runs")
                self.wait_for_runs(process)
                time.sleep(wait)  # wherever that is: the index is whole at any time
                process.send_signal(signal.SIGKILL)
                process.communicate()
                listed = self.listed()
                self.assertEqual(listed["results"], 2 * listed["runs_in_all"])
            self.ok("store", "import", "runs")
            self.check_whole(MANY)

        def test_ctrl_c_keeps_what_was_read(self) -> None:
            made_runs.series(self.runs, MANY)
            process = self.place.start("store", "import", "runs")
            self.wait_for_runs(process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=support.HANGS)
            self.assertIn(process.returncode, (0, 130), err)
            kept = self.listed()["runs_in_all"]
            self.assertIn(f"{kept} runs read", out)
            self.assertEqual(sorted(p.name for p in (self.place.path / "home").iterdir()
                                    if p.name.endswith("-journal")), [])  # fmt: skip
            self.ok("store", "import", "runs")
            self.check_whole(MANY)

        def test_runs_that_are_gone_stay_until_they_are_forgotten(self) -> None:
            folders = made_runs.series(self.runs, 4)
            self.ok("store", "import", "runs")
            shutil.rmtree(folders[0])
            kept = self.ok("store", "rebuild")
            self.assertIn("the directories of 1 run are gone", kept.err)
            self.assertEqual(self.listed()["runs_in_all"], 4)
            self.ok("store", "rebuild", "--forget")
            self.check_whole(3)

        def test_a_newer_schema_is_refused_and_left_alone(self) -> None:
            made_runs.series(self.runs, 2)
            self.ok("store", "import", "runs")
            self.db.script("UPDATE schema_version SET version = 99")
            for words in (("store", "list"), ("history",), ("store", "import", "runs")):
                done = self.place.run(*words)
                self.assertEqual(done.code, 2)
                self.assertIn("schema 99, and this program knows", done.err)
                self.assertIn("rebuild", done.err)
            (row,) = self.db.sql("SELECT version FROM schema_version")
            self.assertEqual(row, (99,))

        def test_the_first_schema_is_migrated(self) -> None:
            first = (support.ROOT / "src/store/schema/1.sql").read_text()
            self.db.script(
                first
                + """
INSERT INTO runs VALUES ('R1', '', '/gone/a', 's', '2026-01-02T00:00:00Z', 'h', 'm', '0', 'c', '', 0, 'tiny', 'h',
  'decided', '', '2026-01-03T00:00:00Z');
INSERT INTO series VALUES ('s1', 'line1', 'tiny torch', 'tiny', 'torch', 'torch', '{}', 'w', 't', 'm', '{}', 'x');
INSERT INTO results VALUES ('R1', 'torch', 's1', 0.01, 0.009, 0.011, 'leader', 3, '');
"""
            )
            (line,) = self.history("tiny torch")
            self.assertEqual(line["line"], "line1")
            self.assertEqual(line["runs"], 1)
            self.assertEqual(line["points"][0]["seconds_per_step"], 0.01)
            self.assertEqual(line["points"][0]["started"], "2026-01-02T00:00:00Z")

        def test_the_examples_of_the_manual_work(self) -> None:
            made_runs.series(self.runs, 12, commit="a" * 40)
            self.ok("store", "import", "runs")
            page = (support.ROOT / "docs/store.md").read_text()
            examples = EXAMPLE.findall(page)
            self.assertGreaterEqual(len(examples), 4)
            for example in examples:
                with self.subTest(example=example):
                    statement = example.strip().rstrip(";")
                    self.assertTrue(self.db.sql(statement))

        def test_unknown_series_and_wrong_options(self) -> None:
            self.assertIn("has no series yet", self.ok("history").out)
            made_runs.series(self.runs, 2)
            self.ok("store", "import", "runs")
            for words, said in (
                (("history", "tinny torch"), "did you mean 'tiny torch'"),
                (("history", "accept", "tiny"), "means 2 series"),
                (("history", "accept", "tiny jax", "--run", "X"), "has no run 'X'"),
                (("history", "accept", "tiny jax", "--withdraw"), "--withdraw needs"),
                (("store", "import", "absent"), "'absent' is no folder"),
                (("store", "import"), "folders is missing"),
            ):
                done = self.place.run(*words)
                self.assertEqual(done.code, 2, words)
                self.assertIn(said, done.err)
            (jax,) = self.history("tiny jax")
            first = self.place.run(
                "history", "accept", "tiny jax", "--run", jax["points"][0]["run"]
            )
            self.assertIn("is the first run", first.err)


class Sqlite(Tests.Both):
    db = Places()

    def test_path_is_the_file(self) -> None:
        self.ok("store", "list")
        self.assertEqual(self.ok("store", "path").out.strip(), str(self.db.index()))

    def test_a_damaged_file_is_moved_aside_and_made_again(self) -> None:
        folders = made_runs.series(self.runs, 3)
        self.ok("store", "import", *folders[:2])
        self.ok("store", "import", folders[2])
        whole = self.listed()
        for damage in (b"x" * 5000, b""):
            index = self.db.index()
            data = index.read_bytes()
            index.write_bytes(damage + data[len(damage) :] if damage else data[:3000])
            done = self.place.run("store", "import", "runs")
            self.assertEqual(done.code, 2)
            self.assertIn("`bakeoff store rebuild`", done.err)
            rebuilt = self.ok("store", "rebuild")
            self.assertIn("it is kept as", rebuilt.err)
            self.assertEqual(self.listed(), whole)
        kept = [p for p in index.parent.iterdir() if ".aside-" in p.name]
        self.assertGreaterEqual(len(kept), 1)

    def test_a_newer_index_can_be_made_again(self) -> None:
        made_runs.series(self.runs, 3)
        self.ok("store", "import", "runs")
        self.db.script("UPDATE schema_version SET version = 99")
        self.assertIn("schema 99", self.ok("store", "rebuild").err)
        self.check_whole(3)

    def test_a_copy_is_left_out(self) -> None:
        folders = made_runs.series(self.runs, 2)
        shutil.copytree(folders[0], self.place.path / "copy")
        self.ok("store", "import", "runs")
        self.assertIn("1 left out as copies", self.ok("store", "import", "copy").out)
        self.check_whole(2)
        shutil.rmtree(folders[0])
        self.ok("store", "import", "copy")
        self.check_whole(2)
        self.assertIn(
            str(self.place.path / "copy"),
            {run["directory"] for run in self.listed()["runs"]},
        )

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_disk_full(self) -> None:
        made_runs.series(self.runs, 400)
        home = self.place.path / "home"
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(home)],
            capture_output=True,
        )
        if mounted.returncode != 0:
            self.skipTest("no tmpfs can be mounted here")
        try:
            done = self.place.run("store", "import", "runs")
            self.assertEqual(done.code, 2, done.out)
            self.assertIn("no space is left", done.err.lower())
            self.assertIn("free some space", done.err)
            more = ["mount", "-o", "remount,size=20m", str(home)]
            subprocess.run(more, check=True)
            self.ok("store", "import", "runs")
            self.check_whole(400)
        finally:
            subprocess.run(["umount", str(home)], check=True)

    def test_an_address_that_is_none_and_a_library_that_is_missing(self) -> None:
        self.place.variables["BAKEOFF_DB"] = "mysql://user:secret@host/x"
        done = self.place.run("store", "list")
        self.assertEqual(done.code, 2)
        self.assertIn("postgresql://user:password@host/name", done.err)
        self.assertNotIn("secret", done.err)
        self.place.variables["BAKEOFF_DB"] = "postgresql://user:secret@localhost/x"
        self.place.variables["BAKEOFF_LIBPQ"] = "libabsent.so.5"
        done = self.place.run("store", "list")
        self.assertEqual(done.code, 2)
        self.assertIn("libpq5", done.err)
        self.assertNotIn("secret", done.err)


class Postgresql(Tests.Both):
    db: ClassVar[Places] = PostgresPlaces()

    @classmethod
    def setUpClass(cls) -> None:
        PostgresPlaces.server = Server()
        cls.addClassCleanup(PostgresPlaces.server.close)
        PostgresPlaces.server.start()

    # Every day with SQLite; what a server adds is that it goes away.
    test_two_importers_at_once = support.full_tier(
        Tests.Both.test_two_importers_at_once
    )
    test_killed_in_mid_import_the_index_is_whole_and_goes_on = support.full_tier(
        Tests.Both.test_killed_in_mid_import_the_index_is_whole_and_goes_on
    )
    test_ctrl_c_keeps_what_was_read = support.full_tier(
        Tests.Both.test_ctrl_c_keeps_what_was_read
    )

    def test_the_path_has_no_password(self) -> None:
        out = self.ok("store", "path").out
        self.assertIn("postgresql://bakeoff@", out)
        self.assertNotIn("secret", out)

    def test_the_server_goes_away_in_mid_import_and_comes_back(self) -> None:
        made_runs.series(self.runs, MANY)
        self.ok("store", "list")  # makes the tables
        self.db.script(WAITS_BEHIND_THE_FIRST_BATCH)
        process = self.place.start("store", "import", "runs")
        self.wait_for_runs(process)
        PostgresPlaces.server.stop()
        try:
            _, err = process.communicate(timeout=support.HANGS)
            self.assertEqual(process.returncode, 2, err)
            self.assertIn("PostgreSQL went away", err)
            self.assertIn("what was committed is kept", err)
            self.assertNotIn("secret", err)
            down = self.place.run("store", "list")
            self.assertEqual(down.code, 2)
            self.assertIn("PostgreSQL does not answer", down.err)
            self.assertNotIn("secret", down.err)
        finally:
            PostgresPlaces.server.start()
        self.db.script("DROP TRIGGER waits ON runs")
        listed = self.listed()
        self.assertEqual(listed["results"], 2 * listed["runs_in_all"])
        self.ok("store", "import", "runs")
        self.check_whole(MANY)


class OwnRuns(unittest.TestCase):
    """Every `bakeoff run` indexes itself; the commit is recorded with it."""

    def setUp(self) -> None:
        self.place = support.place_for(self, "onnxruntime", shared_proofs=True)
        text = support.recipe(
            ['framework = "onnxruntime"'],
            top=support.PREDICTIONS,
            optimizer="",
            budget="minutes = 4\nheats = 1\n",
        )
        self.place.write("small.toml", text)

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
            cwd=self.place.path,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def test_a_run_indexes_itself_and_a_broken_index_does_not_end_it(self) -> None:
        self.git("init", "-q", "-b", "trunk")
        self.git("add", "small.toml")
        self.git("commit", "-q", "-m", "first")
        head = self.git("rev-parse", "HEAD")
        # Whether a busy machine lets the contender be ranked is not what is tested.
        done = self.place.run("run", "small.toml", "--out", "a")
        self.assertIn(done.code, (0, 1), done.out + done.err)
        self.assertNotIn("index", done.err)
        listed = self.place.run("store", "list", "--format", "json").json()
        (run,) = listed["runs"]
        self.assertEqual(run["commit"], head)
        self.assertEqual(run["directory"], str((self.place.path / "a").resolve()))
        again = self.place.run("store", "import", ".")
        self.assertIn("0 runs read, 1 unchanged", again.out)
        points = self.place.run("history", "--json").json()
        self.assertEqual({p["points"][0]["branch"] for p in points}, {"trunk"})
        self.assertFalse(points[0]["points"][0]["dirty"])
        index = self.place.path / "home/index.sqlite"
        index.write_bytes(b"x" * 4096)
        broken = self.place.run("run", "small.toml", "--out", "b")
        self.assertIn(broken.code, (0, 1), broken.out + broken.err)
        self.assertIn("not in the index", broken.err)
        self.assertIn("bakeoff store rebuild", broken.err)
        self.assertTrue((self.place.path / "b/report.html").exists())
        self.assertEqual(self.place.run("store", "rebuild").code, 0)
        listed = self.place.run("store", "list", "--format", "json").json()
        self.assertEqual(listed["runs_in_all"], 2)


class OfAFile(unittest.TestCase):
    """Series that another program measured: `history --read`."""

    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)

    def times(self) -> Path:
        lines = ["time,commit,import_ms,train_ms"]
        chance = random.Random(1)
        for i in range(40):
            noise = chance.gauss(0, 0.005)
            lines.append(
                f"2026-01-01T00:{i:02}:00Z,{i:040x},{10 * (1 + noise)},"
                f"{100 * (1 + noise) * (1.1 if i >= 25 else 1)}"
            )
        return self.place.write("times.csv", "\n".join(lines) + "\n")

    def test_a_step_is_found_where_it_is(self) -> None:
        self.times()
        read = ("history", "--read", "times.csv", "--unit", "ms")
        done = self.place.ok(*read, "--json")
        still, steps = done.json()
        self.assertEqual((still["name"], still["shifts"]), ("import_ms", []))
        self.assertAlmostEqual(still["points"][0]["seconds_per_step"], 0.010, 3)
        (step,) = steps["shifts"]
        self.assertEqual(
            steps["points"][step["index"]]["started"], "2026-01-01T00:25:00Z"
        )
        self.assertAlmostEqual(step["ratio"], 1.1, 2)
        shown = self.place.run(*read, "train_ms")
        self.assertIn("'accepted' in the column 'shift' of line27", shown.out)
        self.assertNotIn("history accept", shown.out)
        self.assertEqual(self.place.run(*read, "--html", "page.html").code, 0)
        # What --csv prints is read, and says the same.
        (self.place.path / "again.csv").write_text(
            self.place.run(*read, "--csv").out, encoding="utf-8"
        )
        again = self.place.run("history", "--read", "again.csv", "--json").json()
        self.assertEqual(
            [[s["ratio"] for s in h["shifts"]] for h in again],
            [[], [step["ratio"]]],
        )
        # The index has none of it.
        self.assertIn("no series yet", self.place.run("history").out)

    def test_mistakes(self) -> None:
        self.times()
        for words, said in (
            (("--read", "none.csv"), "none.csv"),
            (("--read", "times.csv", "nothing"), "no series is called 'nothing'"),
            (("--read", "times.csv", "--unit", "h"), "--unit"),
        ):
            done = self.place.run("history", *words)
            self.assertEqual(done.code, 2, done.out)
            self.assertIn(said, done.err)
        self.place.write("bad.csv", "seconds\n1\nfast\n")
        done = self.place.run("history", "--read", "bad.csv")
        self.assertEqual(done.code, 2)
        self.assertIn("bad.csv:3: 'fast' is no time above 0", done.err)


class Comparing(unittest.TestCase):
    """`compare` of two runs."""

    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)

    def made(self, name: str, **what: Any) -> None:
        made_runs.write(self.place.path / name, Run(**what))

    def test_what_changed(self) -> None:
        self.made("old", ms={"torch": 5, "jax": 7}, versions={"torch": "2.12.0"})
        self.made("new", ms={"torch": 10}, number=1, versions={"torch": "2.13.0"})
        done = self.place.ok("compare", "old", "new")
        for words in ("2.12.0", "2.13.0", "torch", "jax"):
            self.assertIn(words, done.out)
        found = self.place.ok("compare", "old", "new", "--json")
        (row,) = found.json()["contenders"]
        self.assertAlmostEqual(row["ratio"]["value"], 2, 1)
        self.assertEqual(found.json()["first_alone"], ["jax"])
        for width in (80, 200):
            self.place.variables["COLUMNS"] = str(width)
            lines = self.place.run("compare", "old", "new").out.splitlines()
            self.assertLessEqual(max(map(len, lines)), width)

    def test_machines_side_by_side(self) -> None:
        for number in range(12):
            self.made(
                f"m{number}",
                ms={"torch": 5 + number, "jax": 7, "tensorflow": 3 + number},
                host={**made_runs.HOST, "cpu": f"\x1b[31mcpu {number}\u202e<script>"},
            )
        runs = [f"m{number}" for number in range(12)]
        done = self.place.ok("compare", *runs, "--html", "page.html")
        self.assertIn("never paired", done.out)
        page = (self.place.path / "page.html").read_text()
        for text in (done.out, page):
            self.assertNotRegex(text, "\x1b|\u202e")
            self.assertIn("cpu 11", text)
        self.assertNotIn("1<script>", page)
        lines = self.place.ok("compare", *runs, "--format", "csv").out.splitlines()
        self.assertEqual(len(lines), 1 + 3 * 12)
        found = self.place.ok("compare", *runs, "--format", "json").json()
        self.assertEqual(len(found["runs"]), 12)

    def test_mistakes(self) -> None:
        self.made("old", ms={"torch": 5})
        for words in (("old", "none"), ("none", "old"), ("old",), ("old", "./old")):
            done = self.place.run("compare", *words)
            self.assertEqual(done.code, 2, done.out)
        (self.place.path / "half").mkdir()
        done = self.place.run("compare", "old", "half")
        self.assertEqual(done.code, 2)
        self.assertIn("half", done.err)


if __name__ == "__main__":
    support.main()
