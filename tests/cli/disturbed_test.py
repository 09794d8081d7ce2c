"""Races that the outside disturbs: stopped processes, a lost environment, another run, a full disk.

Each ends with a row or a message, and can be resumed or reported:
python3 -m tests.cli.disturbed_test build/dev/bakeoff
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

from tests.cli import support
from tests.cli.faults_test import in_step
from tests.cli.latency_test import ONE, OTHER

WORKER = "bakeoff_runner"


@support.full_tier
class Disturbed(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "onnxruntime", shared_proofs=True)
        race = (
            "burst_seconds = 0.1\nbursts = 4\nthreads = 1\nmax_busy = 1\n"
            "confirm_heats = 0\nnoise_ceiling = 0\nstage_seconds = 10\n"
        )
        text = support.recipe(
            [ONE, OTHER],
            top=support.PREDICTIONS,
            optimizer="",
            race=race,
            budget="minutes = 5\nheats = 4\n",
        )
        self.place.write("race.toml", text)

    def race(self, out: str = "r") -> subprocess.Popen[str]:
        """A run whose first heat has been recorded."""
        process = self.place.start("run", "race.toml", "--out", out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        trials = self.place.path / out / "trials.jsonl"
        support.wait_for(lambda: trials.exists() and trials.stat().st_size > 0, process)
        return process

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        out, err = process.communicate(timeout=3 * support.HANGS)
        self.assertNotIn("internal error", out + err)
        self.assertEqual(self.place.none_left(), {})
        return process.returncode, out + err

    def workers(self) -> list[int]:
        return [pid for pid, words in self.place.processes().items() if WORKER in words]

    def reported(self, out: str = "r") -> dict[str, object]:
        got = self.place.run("report", out, "--format", "json")
        report: dict[str, object] = got.json()
        return report

    def test_a_stopped_worker(self) -> None:
        """One that somebody keeps stopped ends by its own limit; the race goes on."""
        process = self.race()
        support.wait_for(lambda: len(self.workers()) >= 1, process)
        worker = self.workers()[0]
        # The program thaws its workers before each burst, so once is not enough.
        while process.poll() is None and worker in self.place.processes():
            self.signal(worker, signal.SIGSTOP)
        code, text = self.end(process)
        self.assertIn(code, (0, 1, 3), text)
        records = (self.place.path / "r/trials.jsonl").read_text()
        self.assertIn("timed out after 10 s", records)
        self.reported()

    def signal(self, pid: int, what: signal.Signals) -> None:
        try:
            os.kill(pid, what)
        except ProcessLookupError:
            pass

    def test_a_stopped_supervisor(self) -> None:
        """For longer than any stage may last; then the race goes on to its end."""
        process = self.race()
        process.send_signal(signal.SIGSTOP)
        time.sleep(12)
        process.send_signal(signal.SIGCONT)
        code, text = self.end(process)
        self.assertIn(code, (0, 1), text)
        report = self.reported()
        ranked = report["ranked"]
        assert isinstance(ranked, list)
        self.assertEqual(len(ranked), 2)

    def test_a_lost_environment(self) -> None:
        """Its Python goes away after the first heat: rows with a reason, and an end."""
        home = self.place.path / "own"
        link = home / "python"
        home.mkdir()
        python = support.interpreter("onnxruntime")
        link.write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
        link.chmod(0o755)
        self.place.set_interpreters({"onnxruntime": link})
        process = self.race()
        shutil.rmtree(home)
        code, text = self.end(process)
        self.assertIn(code, (0, 1, 3), text)
        self.assertIn(str(link), text + str(self.reported()))

    def test_two_runs_in_one_folder(self) -> None:
        process = self.race()
        for words, command in {
            "'r' already holds something": ("run", "race.toml", "--out", "r"),
            f"process {process.pid}": ("run", "--resume", "r"),
        }.items():
            second = self.place.run(*command)
            self.assertEqual(second.code, 2, second.out + second.err)
            self.assertIn(words, second.err)
        code, text = self.end(process)
        self.assertIn(code, (0, 1), text)

    def small_disk(self, kibibytes: int) -> Path:
        """A file system of this size in the place, for this test."""
        mount = self.place.path / "disk"
        mount.mkdir()
        size = f"size={kibibytes}k"
        words = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(mount)]
        if subprocess.run(words, capture_output=True, check=False).returncode != 0:
            self.skipTest("may not mount a file system")
        self.addCleanup(subprocess.run, ["umount", "-l", str(mount)], check=False)
        return mount

    def test_a_run_that_cannot_be_written_on(self) -> None:
        """The disk fills up in the middle: a message with the file's name; what is there is reported."""
        mount = self.small_disk(3 << 10)
        process = self.race("disk/r")
        self.fill(mount)
        code, text = self.end(process)
        self.assertEqual(code, 2, text)
        self.assertIn("No space left on device", text)
        (mount / "filler").unlink()
        self.assertIn("ranked", self.reported("disk/r"))
        again = self.place.run("run", "--resume", "disk/r")
        self.assertIn(again.code, (0, 1), again.out + again.err)

    def test_disks_that_are_full_at_each_write(self) -> None:
        """Of the run's folder and temporary files, then of the home; with more space the same command works."""
        mount = self.small_disk(4)
        for kibibytes in (16, 128, 168, 208, 248, 288, 320, 352, 384):
            self.resize(mount, kibibytes)
            self.place.variables["TMPDIR"] = str(mount)
            self.full("run", "race.toml", "--out", "disk/r")
            self.resize(mount, 1 << 20)
            words: tuple[str, ...] = ("race.toml", "--out", "disk/r")
            if (mount / "r" / "run.json").exists():
                words = ("--resume", "disk/r")
            self.enough("run", *words)
            shutil.rmtree(mount / "r")
        del self.place.variables["TMPDIR"]
        home = Path(self.place.variables["BAKEOFF_HOME"])
        self.place.variables["BAKEOFF_HOME"] = str(mount / "home")
        for number, kibibytes in enumerate((8, 60, 120, 200, 280, 340)):
            self.resize(mount, kibibytes)
            (mount / "home").mkdir()
            shutil.copy(home / "config.toml", mount / "home")
            out = f"home{number}"
            self.full("run", "race.toml", "--out", out)
            self.resize(mount, 1 << 20)
            self.enough("run", "race.toml", "--out", f"{out}again")
            shutil.rmtree(mount / "home")

    def resize(self, mount: Path, kibibytes: int) -> None:
        words = ["mount", "-o", f"remount,size={kibibytes}k", str(mount)]
        subprocess.run(words, check=True)

    def full(self, *arguments: str) -> None:
        got = self.place.run(*arguments)
        self.assertNotIn("internal error", got.out + got.err)
        self.assertEqual(self.place.none_left(), {})
        if got.code != 0:
            self.assertEqual(got.code, 2, got.err)
            self.assertRegex(
                got.err, "No space left on device|free\\n  free some space"
            )

    def enough(self, *arguments: str) -> None:
        got = self.place.ok(*arguments, "--format", "json")
        self.assertEqual(got.json()["unranked"], [], got.err)

    def group_of_memory(self, limit: int) -> Path:
        """A control group of version 1, else of version 2."""
        mounts = Path("/sys/fs/cgroup")
        name, file = f"bakeoff_test_{os.getpid()}", "memory.limit_in_bytes"
        group = mounts / "memory" / name
        if not group.parent.exists():
            group, file = mounts / name, "memory.max"
        try:
            if file == "memory.max":
                (mounts / "cgroup.subtree_control").write_text("+memory")
            group.mkdir()
            self.addCleanup(group.rmdir)
            (group / file).write_text(str(limit))
        except OSError as error:
            self.skipTest(f"may not make a control group: {error}")
        return group

    def test_the_memory_of_a_control_group(self) -> None:
        """The kernel ends who takes too much of it; that is a row, and the others are ranked."""
        group = self.group_of_memory(700 << 20)
        text = support.recipe([ONE], top=support.PREDICTIONS, optimizer="")
        self.place.write("one.toml", text)
        self.place.ok("emit", "one.toml", "--out", "emitted")
        (source,) = (self.place.path / "emitted").glob("*.py")
        hoard = "hoard = [b'x' * (1 << 26) for _ in range(1 << 5)]"
        self.place.write("hog.py", in_step(9, hoard)(source.read_text()))
        text = (self.place.path / "race.toml").read_text()
        text = support.replaced(text, ("\n]", '\n  { script = "hog.py" },\n]'))
        self.place.write("race.toml", text)
        outcome = support.called(
            [str(support.BAKEOFF), "run", "race.toml", "--out", "r"],
            cwd=self.place.path,
            env=self.place.variables,
            preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())),
        )
        self.assertIn(outcome.returncode, (0, 1), outcome.stderr)
        self.assertEqual(self.place.none_left(), {})
        report = self.reported()
        assert isinstance(report["ranked"], list)
        self.assertEqual(len(report["ranked"]), 2)
        (row,) = report["unranked"] if isinstance(report["unranked"], list) else []
        self.assertIn("likely out of memory", row["failure"]["reason"])

    def fill(self, mount: Path) -> None:
        with (mount / "filler").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def test_a_run_of_another_user(self) -> None:
        """Read only, by an ordinary user: reported, not resumed, nothing changed."""
        if os.geteuid() != 0:
            self.skipTest("must become another user")
        code, text = self.end(self.race())
        self.assertIn(code, (0, 1), text)
        self.place.path.chmod(0o755)
        before = {
            p: p.read_bytes() for p in (self.place.path / "r").rglob("*") if p.is_file()
        }
        other = self.as_nobody("report", "r", "--format", "json")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertIn("--html names another file", other.stderr)
        other = self.as_nobody("run", "--resume", "r")
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("cannot write into", other.stderr)
        after = {
            p: p.read_bytes() for p in (self.place.path / "r").rglob("*") if p.is_file()
        }
        self.assertEqual(before, after)

    def as_nobody(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        own = self.place.path / "nobody"
        own.mkdir(exist_ok=True)
        os.chown(own, 65534, 65534)
        return support.called(
            [str(support.BAKEOFF), *arguments],
            cwd=self.place.path,
            env={**self.place.variables, "BAKEOFF_HOME": str(own / "home")},
            user=65534,
            group=65534,
            extra_groups=[],
        )


if __name__ == "__main__":
    support.main()
