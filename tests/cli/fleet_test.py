"""Races on many machines: blocks by a real Slurm, over a real ssh, and in the background of this machine.

python3 -m tests.cli.fleet_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import unittest
from collections import Counter
from pathlib import Path
from typing import Any

from tests.cli import support
from tests.cli.slurm import Slurm, SshServer

CONTENDERS = [
    'framework = "onnxruntime", io_binding = ["false", "true"]',
]
HEATS = 4 if support.FULL else 3
BLOCKS = list(range(1, HEATS + 1))


class FleetTest(unittest.TestCase):
    """A run of two contenders that predict; each test gets a copy of it that no block has seen."""

    place: support.Place
    recipe: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = support.place_for(cls, "onnxruntime", shared_proofs=True)
        cls.place.variables["BAKEOFF_BRIEF"] = "1"  # looks more often
        text = support.recipe(
            CONTENDERS,
            top=support.PREDICTIONS,
            optimizer="",
            budget=f"minutes = 4\nheats = {HEATS}\n",
        )
        cls.recipe = cls.place.write("race.toml", text)

    def fleet(self, verb: str, *arguments: str | Path, code: int = 0) -> str:
        done = self.place.run("fleet", verb, *arguments)
        self.assertEqual(done.code, code, done.err + done.out)
        return done.out + done.err

    def plan(self, *arguments: str | Path, name: str = "r") -> Path:
        run = self.place.path / name
        shutil.rmtree(run, ignore_errors=True)
        # Other tests run beside these: no node is quiet.
        self.fleet("plan", self.recipe, "--out", run, "--out-of-line", "9", *arguments)
        return run

    def trials(self, run: Path) -> list[dict[str, Any]]:
        lines = (run / "trials.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def settled(self, run: Path) -> list[int]:
        found = run.glob("fleet/blocks/*/result.json")
        return sorted(int(path.parent.name) for path in found)

    def result(self, run: Path, block: int) -> Path:
        return run / "fleet" / "blocks" / f"{block:05}" / "result.json"

    def suite(self, *arguments: str | Path, code: int = 0) -> str:
        """The race twice, as a suite in the folder s."""
        shutil.rmtree(self.place.path / "s", ignore_errors=True)
        races = (self.recipe, self.recipe, "--out", "s", "--out-of-line", "9")
        done = self.place.run("suite", *races, *arguments)
        self.assertEqual(done.code, code, done.err + done.out)
        return done.err + done.out

    def at_once(self, run: Path, count: int, *options: str) -> None:
        """Several collectors at the same time."""
        commands = [
            self.place.start("fleet", "collect", run, *options) for _ in range(count)
        ]
        for command in commands:
            out, err = command.communicate(timeout=support.HANGS)
            self.assertEqual(command.returncode, 0, out + err)


class BySlurm(FleetTest):
    def setUp(self) -> None:
        self.slurm = Slurm()
        self.addCleanup(self.slurm.close)
        self.place.variables.update(self.slurm.environment)

    def plan(self, *arguments: str | Path, name: str = "r") -> Path:
        return super().plan("--engine", "slurm", "--shared", "/", *arguments, name=name)

    def test_a_race_of_two_nodes(self) -> None:
        run = self.plan("--partition", "short")
        self.assertIn(f"submitted: {HEATS} new blocks", self.fleet("submit", run))
        self.fleet("collect", run, "--wait")
        trials = self.trials(run)
        heats = Counter(trial["heat"] for trial in trials)
        self.assertEqual(heats, {number: 2 for number in BLOCKS})
        self.assertEqual({trial["node"] for trial in trials}, {"n1", "n2"})
        self.assertEqual(self.slurm.queue(), "")
        self.assertIn("nothing is left to submit", self.fleet("submit", run))
        # Every collector writes the same bytes, at every call.
        files = [run / name for name in ("trials.jsonl", "run.json", "peak.json")]
        before = [file.read_bytes() for file in files]
        self.at_once(run, 2)
        self.assertEqual([file.read_bytes() for file in files], before)
        (run / "trials.jsonl").unlink()
        self.fleet("collect", run)
        self.assertEqual([file.read_bytes() for file in files], before)
        # And the same verdict as of a race whose heats were never a fleet's.
        alone = json.loads(self.fleet("collect", run, "--format", "json"))
        shutil.rmtree(run / "fleet")
        merged = self.place.run("report", run, "--format", "json").json()
        self.assertEqual(alone["ranked"], merged["ranked"])

    def test_what_slurm_does_not_have_is_refused(self) -> None:
        run = self.place.path / "none"
        plan = ("plan", self.recipe, "--engine", "slurm", "--out", run)
        said = self.fleet(*plan, "--shared", "/", "--partition", "fast", code=2)
        self.assertIn("--partition: Slurm has no partition 'fast'", said)
        self.assertIn("there are: short", said)
        self.assertFalse(run.exists())
        self.assertIn("--shared: it is not known", self.fleet(*plan, code=2))
        said = self.fleet(*plan, "--shared", self.place.path, code=2)
        self.assertIn("--shared: the program", said)
        run = self.plan("--sbatch", "--qos=none --constraint=no-such-node")
        said = self.fleet("submit", run, code=2)
        self.assertIn("sbatch", said)
        self.assertEqual(self.slurm.queue(), "")

    def test_a_node_that_computes_something_else(self) -> None:
        """Its contender is sound where it is proven, and on the other node."""
        self.place.ok("emit", self.recipe, "--out", "emitted")
        source = (self.place.path / "emitted/predict_onnxruntime.py").read_text()
        answer = '    return session.run(["logits"], {"x": x})[0]\n'
        broken = '    scale = 1 + (os.environ.get("SLURMD_NODENAME") == "n2") / 50\n'
        edits = (
            ("import argparse\n", "import argparse\nimport os\n"),
            (
                answer,
                broken + answer.replace("return ", "return scale * "),
            ),
        )
        self.place.write("own.py", support.replaced(source, *edits))
        both = ['script = "own.py", framework = "onnxruntime"', CONTENDERS[0]]
        text = self.recipe.read_text().replace(CONTENDERS[0], " }, { ".join(both))
        recipe = self.place.write("own.toml", text)
        run = self.place.path / "own"
        where = ("--engine", "slurm", "--shared", "/", "--out-of-line", "9")
        self.fleet("plan", recipe, "--out", run, *where)
        said = self.fleet("collect", run, "--wait")
        self.assertRegex(said, r"node n2 is kept apart.*own\S* computes something else")
        said = self.fleet("status", run)
        self.assertIn("n2: 0 blocks, processor and clock unknown; KEPT APART: ", said)
        self.assertEqual(self.settled(run), BLOCKS)
        self.assertEqual({trial["node"] for trial in self.trials(run)}, {"n1"})
        table = self.place.run("report", run, "--format", "json").json()
        self.assertEqual(len(table["ranked"]), 3, "the contender itself is sound")

    def test_an_interrupt_within_sbatch(self) -> None:
        """The job is in the queue, and sbatch has not told its number yet."""
        folder = self.place.path / "slow"
        folder.mkdir(exist_ok=True)
        told = folder / "told"
        sbatch = folder / "sbatch"
        sbatch.write_text(
            f'#!/bin/sh\n{self.slurm.programs["sbatch"]} "$@"\necho > {told}\nsleep 600\n'
        )
        sbatch.chmod(0o755)
        searched = self.place.variables["PATH"]
        self.place.variables["PATH"] = f"{folder}:{searched}"
        try:
            where = ("--engine", "slurm", "--shared", "/", "--out-of-line", "9")
            suite = self.place.start("suite", self.recipe, "--out", "slow/s", *where)
            support.wait_for(told.exists, suite)
            self.assertIn("bakeoff-", self.slurm.queue())
            suite.send_signal(signal.SIGINT)
            _, err = suite.communicate(timeout=support.HANGS)
        finally:
            self.place.variables["PATH"] = searched
        self.assertEqual(suite.returncode, 130, err)
        self.assertEqual(self.slurm.queue(), "")
        self.assertEqual(self.place.none_left(), {})

    @support.full_tier  # every day a race by Slurm, and a suite in the background
    def test_a_suite_of_two_races(self) -> None:
        self.suite("--engine", "slurm", "--shared", "/")
        for race in ("01-race", "02-race"):
            run = self.place.path / "s" / race
            self.assertEqual({t["node"] for t in self.trials(run)}, {"n1", "n2"})
        self.assertEqual(self.slurm.queue(), "")

    @support.full_tier
    def test_a_node_lost_and_a_controller_restarted(self) -> None:
        run = self.plan()
        self.fleet("submit", run)
        self.slurm.wait(lambda: "n2" in self.fleet("status", run), "slurmctld")
        self.slurm.stop("slurmctld")
        said = self.fleet("status", run, code=2)
        self.assertIn("the controller does not answer; nothing is lost", said)
        self.slurm.start("slurmctld", "-D")
        self.slurm.lose("n2")
        self.fleet("collect", run, "--wait")
        self.assertEqual(self.settled(run), BLOCKS)
        self.assertEqual(len(self.trials(run)), 2 * HEATS)

    @support.full_tier
    def test_a_cancelled_run_goes_on(self) -> None:
        run = self.plan()
        self.fleet("submit", run)
        self.slurm.wait(lambda: " runs on n" in self.fleet("status", run), "slurmctld")
        self.fleet("cancel", run)
        self.assertEqual(self.slurm.queue(), "")
        self.fleet("collect", run, "--wait")
        self.assertEqual(self.settled(run), BLOCKS)


class InTheBackground(FleetTest):
    def plan(self, *arguments: str | Path, name: str = "r") -> Path:
        return super().plan("--engine", "local", *arguments, name=name)

    def test_damaged_missing_and_duplicate_results(self) -> None:
        run = self.plan()
        self.at_once(run, 2, "--wait")
        jobs = [json.loads(f.read_text()) for f in run.glob("fleet/jobs/*.json")]
        blocks = [block for job in jobs for block in job["blocks"]]
        self.assertEqual(sorted(blocks), BLOCKS)
        before = (run / "trials.jsonl").read_bytes()
        first = self.result(run, 1).read_bytes()
        # A second attempt at a settled block changes nothing.
        self.fleet("block", run, "--job", "1", "--block", "1")
        self.assertEqual(self.result(run, 1).read_bytes(), first)
        self.result(run, 2).write_bytes(self.result(run, 2).read_bytes()[:-9])
        self.result(run, 3).unlink()
        said = self.fleet("collect", run)
        self.assertIn("damaged, to run again: block 2: not all of it was written", said)
        self.assertEqual({t["heat"] for t in self.trials(run)}, {*BLOCKS} - {2, 3})
        self.assertIn("submitted again: 2 blocks", self.fleet("submit", run))
        self.fleet("collect", run, "--wait")
        self.assertEqual({t["heat"] for t in self.trials(run)}, {*BLOCKS})
        after = (run / "trials.jsonl").read_bytes()
        self.assertEqual(before.splitlines()[0], after.splitlines()[0])

    def test_a_block_beyond_its_time(self) -> None:
        run = self.plan("--block-minutes", "0.002", "--tries", "2")
        self.fleet("submit", run)
        support.wait_for(lambda: "0 running, 0 waiting" in self.fleet("status", run))
        said = self.fleet("status", run)
        self.assertIn("block 1 failed on", said)
        self.assertIn("its time limit of 0.002 minutes ended", said)
        self.fleet("submit", run)
        support.wait_for(lambda: "0 running, 0 waiting" in self.fleet("status", run))
        said = self.fleet("submit", run, code=2)
        given_up = f"{HEATS} of {HEATS} blocks are given up; block {HEATS}: 2 attempts"
        self.assertIn(given_up + " failed", said)
        self.assertIn("its time limit of 0.008 minutes ended", said)
        self.assertEqual(self.settled(run), BLOCKS)

    def test_the_front_end_and_the_worker_vanish(self) -> None:
        run = self.plan()
        waits = self.place.start("fleet", "collect", run, "--wait")
        support.wait_for(lambda: "runs on" in self.fleet("status", run), waits)
        waits.kill()
        waits.communicate()
        job = json.loads((run / "fleet/jobs/1.json").read_text())
        os.kill(int(job["ids"][0].split()[1]), signal.SIGKILL)
        support.wait_for(lambda: " 0 running" in self.fleet("status", run))
        self.assertEqual(self.place.none_left(), {})
        self.fleet("collect", run, "--wait")
        self.assertEqual(self.settled(run), BLOCKS)
        self.assertEqual(
            len(json.loads((run / "fleet/jobs/2.json").read_text())["ids"]), 1
        )

    def test_cancel_ends_the_worker(self) -> None:
        run = self.plan()
        self.fleet("submit", run)
        support.wait_for(lambda: "runs on" in self.fleet("status", run))
        self.fleet("cancel", run)
        self.assertEqual(self.place.none_left(), {})
        self.assertIn("0 running, 0 waiting", self.fleet("status", run))

    def test_a_disk_without_space(self) -> None:
        run = self.plan()
        self.fleet("submit", run)
        self.fleet("cancel", run)
        block = run / "fleet/blocks/00003"
        attempt = [str(support.BAKEOFF), "fleet", "block", str(run)]
        attempt += ["--job", "1", "--block", "3"]
        order = (block / "order.json").read_bytes()
        # A page for the order and one for the result, which is longer.
        mount = ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(block)]
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
        try:
            (block / "order.json").write_bytes(order)
            limited = 'ulimit -f 1; trap "" XFSZ; exec "$@"'
            done = support.called(
                attempt if mounted else ["bash", "-c", limited, "sh", *attempt],
                env=self.place.variables,
            )
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("No space left" if mounted else "File too large", done.stderr)
            self.assertNotIn(3, self.settled(run))
            self.assertIn("free some space", done.stderr)
        finally:
            if mounted:
                subprocess.run(["umount", str(block)], check=True)
        self.fleet("block", run, "--job", "1", "--block", "3")
        self.assertIn(3, self.settled(run))

    def test_a_suite_that_is_interrupted_goes_on(self) -> None:
        both = (self.recipe, self.recipe, "--out", "s", "--out-of-line", "9")
        suite = self.place.start("suite", *both, "--engine", "local", "--wave", "4")
        run = self.place.path / "s" / "01-race"
        support.wait_for(lambda: [*run.glob("fleet/blocks/*/taken-1")], suite)
        suite.send_signal(signal.SIGINT)
        out, err = suite.communicate(timeout=support.HANGS)
        self.assertEqual(suite.returncode, 130, err)
        self.assertEqual(self.place.none_left(), {})
        again = "bakeoff suite --resume s --engine local --wave 4 --out-of-line 9"
        self.assertIn(again, " ".join(out.split()))
        job = json.loads((run / "fleet/jobs/1.json").read_text())
        self.assertTrue(job["cancelled"])
        here = self.place.run("suite", "--resume", "s")
        self.assertIn("its heats are run by a fleet", here.err)
        done = self.place.ok("suite", "--resume", "s", "--engine", "local")
        self.assertIn("goes on with the settings that it was begun with", done.err)
        self.assertEqual(self.settled(run), BLOCKS)
        table = self.place.run("suite", "--report", "s", "--format", "json").json()
        one = next(row for row in table["rows"] if row["run"] == "01-race")
        alone = json.loads(self.fleet("collect", run, "--format", "json"))
        self.assertIn(alone["ranked"][0]["contender"]["id"], one["best"])
        # The second one was raced here, in between.
        record = self.place.path / "s" / "suite.json"
        record.write_text(record.read_text().replace('"ended"', '"running"'))
        mixed = self.place.run("suite", "--resume", "s", "--engine", "local")
        self.assertIn("its heats were run on one machine", mixed.err)

    def test_a_search(self) -> None:
        text = self.recipe.read_text().replace(', io_binding = ["false", "true"]', "")
        recipe = self.place.write("alone.toml", text)
        engine = ("--engine", "local", "--wave", "1", "--out-of-line", "9")
        self.place.ok("tune", recipe, "--minutes", "0.1", "--out", "t", *engine)
        [alone] = (self.place.path / "t").glob("*_alone")
        for run in (alone, self.place.path / "t/best"):
            # As many as the minutes have time for, at least one.
            blocks = self.settled(run)
            self.assertEqual(blocks, [*range(1, max(2, len(blocks) + 1))])
            self.assertTrue(all(trial["node"] for trial in self.trials(run)))
        self.assertTrue((self.place.path / "t" / "best.toml").exists())

    def test_suites_and_searches_of_engines_that_refuse(self) -> None:
        ssh = ("--engine", "ssh", "--ssh", "ssh -F /dev/null -p 1", "--shared", "/")
        unshared = ("--engine", "slurm", "--shared", self.place.path)
        for command in ("suite", "tune"):
            for arguments, message in (
                ((*ssh, "--hosts", "127.0.0.1"), "--hosts: host '127.0.0.1' cannot be"),
                (ssh, "--hosts: engine ssh needs hosts"),
                (unshared, "--shared: the program"),
                (("--engine", "slurm"), "--shared: it is not known which folder"),
                (("--engine", "local", "--profile", "p"), "--profile: a profile is of"),
                (("--hosts", "a"), "--engine"),
            ):
                with self.subTest(command=command, arguments=arguments):
                    got = self.place.run(
                        command, self.recipe, "--out", "none", *arguments
                    )
                    self.assertEqual(got.code, 2, got.err)
                    self.assertIn(message, got.err)
                    self.assertFalse((self.place.path / "none").exists())

    def test_a_run_of_a_fleet_is_a_fleets(self) -> None:
        run = self.plan()
        done = self.place.run("run", "--resume", run)
        self.assertEqual(done.code, 2)
        self.assertIn("its heats are run by a fleet", done.err)
        said = self.fleet("submit", self.place.path / "nowhere", code=2)
        self.assertIn("this is no run of a fleet", said)
        said = self.fleet(
            "plan", self.recipe, "--engine", "local", "--hosts", "a", code=2
        )
        self.assertIn("--hosts: engine local takes no hosts", said)
        # A folder that somebody sent runs none of the commands that it names.
        settings = run / "fleet" / "fleet.json"
        ours = json.loads(settings.read_text())
        hostile = {"engine": "ssh", "hosts": ["a"], "ssh": ["touch", str(run / "x")]}
        settings.write_text(json.dumps({**ours, **hostile}))
        for verb in ("submit", "status", "cancel"):
            said = self.fleet(verb, run, code=2)
            self.assertIn("the commands that it names are not run", said)
        self.assertFalse((run / "x").exists())


class OverSsh(FleetTest):
    def setUp(self) -> None:
        self.server = SshServer()
        self.addCleanup(self.server.close)

    def plan(self, *arguments: str | Path, name: str = "r") -> Path:
        ssh = ("--engine", "ssh", "--ssh", self.server.command, "--shared", "/")
        return super().plan(*ssh, "--hosts", "a,b", *arguments, name=name)

    def test_two_hosts_share_the_blocks(self) -> None:
        run = self.plan()
        said = self.fleet("submit", run)
        self.assertRegex(said, r"jobs: a \d+, b \d+;")
        self.fleet("collect", run, "--wait")
        self.assertEqual(self.settled(run), BLOCKS)
        self.assertEqual(len(self.trials(run)), 2 * HEATS)
        self.assertEqual(self.place.none_left(), {})

    def test_hosts_that_do_not_answer(self) -> None:
        run = self.place.path / "none"
        plan = ("plan", self.recipe, "--engine", "ssh", "--out", run, "--shared", "/")
        self.assertIn("--hosts: engine ssh needs hosts", self.fleet(*plan, code=2))
        hosts = ("--ssh", self.server.command, "--hosts", "a,nowhere")
        said = self.fleet(*plan, *hosts, code=2)
        self.assertIn("host 'nowhere' cannot be reached", said)
        self.assertFalse(run.exists())
        run = self.plan()
        self.fleet("submit", run)
        self.fleet("cancel", run)
        self.server.close()
        self.assertIn("cannot be reached", self.fleet("submit", run, code=2))


if __name__ == "__main__":
    support.main()
