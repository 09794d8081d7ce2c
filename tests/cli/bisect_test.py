"""`bakeoff bisect`: the commit, or the package version, that made a script slower.

python3 -m tests.cli.bisect_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from typing import Any

from tests.cli import support
from tests.cli.gate_test import FAST, MARGIN, SLOW, Gate


class Bisect(Gate):
    def commits(self, count: int, culprit: int, broken: tuple[int, ...] = ()) -> None:
        """Commit 0 is the good end; from `culprit` on the script is slow."""
        self.git("init", "-q", "-b", "main", ".")
        for i in range(count + 1):
            text = SLOW if i >= culprit else FAST
            if i in broken:
                text = "raise SystemExit('broken commit')\n"
            self.commit(f"# {i}\n{text}", f"commit {i} <b>%0A")
            self.git("tag", f"c{i}")

    def bisect(self, *words: str, code: int = 0) -> support.Outcome:
        got = self.place.run("bisect", "--repo", self.repo, *words)
        self.nothing_left()
        self.assertEqual(got.code, code, got.out + got.err)
        return got

    def found(self, *words: str) -> Any:
        got = self.bisect("--json", "out.json", *words)
        self.assertIn("FOUND: ", got.out)
        for line in got.out.splitlines():
            self.assertLessEqual(len(line), 80)
        return json.loads((self.place.path / "out.json").read_text())


ENDS = ("--good", "c0", "--bad", "main", *MARGIN, "train.py")


class Commits(Bisect):
    def test_the_culprit_among_broken_commits(self) -> None:
        self.commits(5, culprit=4, broken=(2,))
        (self.repo / "train.py").write_text("dirty")
        before = self.git("status", "--porcelain", "--branch")
        found = self.found("--out", "search", *ENDS)
        self.assertEqual((found["found"]["first"], found["found"]["last"]), (4, 4))
        self.assertEqual(found["versions"][4]["detail"], "commit 4 <b>%0A")
        self.assertGreater(found["confirmed"]["ratio"]["low"], 2)
        skipped = {p["position"] for p in found["probes"] if "skipped" in p}
        self.assertLessEqual(skipped, {2})
        self.assertEqual(self.git("status", "--porcelain", "--branch"), before)
        self.assertEqual((self.repo / "train.py").read_text(), "dirty")

    @support.full_tier
    def test_a_build_that_fails_is_skipped(self) -> None:
        self.commits(4, culprit=3)
        build = f"! grep -q '^# 2$' train.py && {sys.executable} -m py_compile train.py"
        found = self.found("--build", build, *ENDS)
        self.assertEqual((found["found"]["first"], found["found"]["last"]), (2, 3))
        reasons = [p["skipped"] for p in found["probes"] if "skipped" in p]
        self.assertEqual(len(reasons), 1)
        self.assertIn("does not build", reasons[0])

    @support.full_tier
    def test_equal_ends_have_nothing_to_find(self) -> None:
        self.commits(3, culprit=99)
        got = self.bisect(*ENDS, code=1)
        self.assertIn("NOTHING TO FIND", got.out)

    def test_a_search_is_interrupted_and_continued(self) -> None:
        self.commits(5, culprit=2)
        process = self.place.start("bisect", "--repo", self.repo, "--out", "s", *ENDS)
        assert process.stderr is not None
        while "probe 2" not in (line := process.stderr.readline()):
            self.assertTrue(line, "ended before its second probe")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130, out)
        self.assertIn("INTERRUPTED", out)
        self.nothing_left()
        kept = (self.place.path / "s" / "bisect.jsonl").read_text().splitlines()
        self.assertEqual(len(kept), 3)  # its header, the ends, one probe
        got = self.place.run(
            "bisect", "--repo", self.repo, "--out", "s", *ENDS
        )  # would replace it
        self.assertEqual(got.code, 2)
        self.assertIn("--resume", got.err)
        got = self.place.ok("bisect", "--resume", "s", "--json", "out.json")
        self.assertNotIn("good against bad", got.err)
        found = json.loads((self.place.path / "out.json").read_text())
        self.assertEqual(found["found"]["first"], 2)
        self.nothing_left()

    @support.full_tier
    def test_a_search_is_killed_and_continued(self) -> None:
        self.commits(5, culprit=2)
        self.git("checkout", "-q", "c1")
        before = self.git("status", "--porcelain", "--branch")
        for probe in ("good against bad", "probe 1", "probe 2"):
            words: tuple[str, ...] = ("--repo", str(self.repo), "--out", "s", *ENDS)
            if (self.place.path / "s" / "bisect.jsonl").exists():
                words = ("--resume", "s")
            process = self.place.start("bisect", *words)
            assert process.stderr is not None
            while probe not in (line := process.stderr.readline()):
                self.assertTrue(line, f"ended before {probe}")
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=support.HANGS)
            self.assertEqual(self.place.none_left(), {}, probe)
            self.assertEqual(self.git("status", "--porcelain", "--branch"), before)
        self.place.ok("bisect", "--resume", "s", "--json", "out.json")
        found = json.loads((self.place.path / "out.json").read_text())
        self.assertEqual(found["found"]["first"], 2)
        self.assertEqual(len(self.git("worktree", "list").splitlines()), 1)
        self.nothing_left()

    def test_what_cannot_be_searched(self) -> None:
        self.commits(2, culprit=1)
        for expected, words in (
            ("is no ancestor", ("--good", "main", "--bad", "c0", "train.py")),
            ("names no commit", ("--good", "nowhere", "--bad", "c0", "train.py")),
            ("the same commit", ("--good", "main", "--bad", "c2", "train.py")),
            ("name both ends", ("train.py",)),
            ("name a script", ("--good", "c0", "--bad", "c1")),
            ("has no file", ("--good", "c0", "--bad", "c1", "other.py")),
            ("names no versions", ("--package", "torch", "train.py")),
            ("cannot open", ("--resume", "nowhere")),
        ):
            with self.subTest(expected):
                got = self.bisect(*words, code=2)
                self.assertIn(expected, got.err)


@support.full_tier
class Packages(Bisect):
    """Versions of a package from an index of our own: files, no network."""

    def test_the_version_that_is_slow(self) -> None:
        environment = self.place.path / "env"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        wheels = self.place.path / "wheels"
        for minor in range(5):
            self.wheel(f"1.{minor}", 0.06 if minor >= 3 else 0.006, wheels)
        self.place.variables.update(
            PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheels), PIP_CONFIG_FILE="/dev/null"
        )
        self.place.write(
            "train.py", "import slowpack\nfor _ in range(5):\n    slowpack.step()\n"
        )
        words = ("--python", str(python), *MARGIN, "train.py")
        got = self.place.ok(
            *("bisect", "--package", "slowpack==1.0,1.1,1.2,1.3,1.4"),
            *("--json", "out.json", *words),
        )
        found = json.loads((self.place.path / "out.json").read_text())
        self.assertEqual(found["found"]["first"], 3)
        self.assertEqual(found["versions"][3]["name"], "slowpack==1.3")
        # The gate takes package versions too, from the same cache.
        self.place.variables["PIP_FIND_LINKS"] = "/nowhere"
        got = self.place.run(
            "gate", "--base", "slowpack==1.2", "--head", "slowpack==1.3", *words
        )
        self.assertEqual(got.code, 1, got.out + got.err)
        got = self.place.run(
            "gate", "--base", "slowpack==1.2", "--head", "slowpack==9.9", *words
        )
        self.assertEqual(got.code, 2, got.out + got.err)
        self.assertIn("pip cannot install slowpack==9.9", got.err)
        half = list((self.place.path / "home" / "packages").glob(".*"))
        self.assertEqual(half, [])

    def wheel(self, version: str, seconds: float, folder: Any) -> None:
        source = self.place.path / f"source{version}"
        self.place.write(
            f"source{version}/slowpack/__init__.py",
            f"import time\ndef step():\n    time.sleep({seconds})\n",
        )
        info = f"slowpack-{version}.dist-info"
        self.place.write(
            f"source{version}/{info}/METADATA",
            f"Metadata-Version: 2.1\nName: slowpack\nVersion: {version}\n",
        )
        self.place.write(
            f"source{version}/{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        self.place.write(f"source{version}/{info}/RECORD", "")
        folder.mkdir(exist_ok=True)
        subprocess.run(
            [
                *(sys.executable, "-m", "zipfile", "-c"),
                str(folder / f"slowpack-{version}-py3-none-any.whl"),
                *(str(source / "slowpack") + "/", str(source / info) + "/"),
            ],
            check=True,
        )


del Gate, Bisect  # their tests are those of the classes above

if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    support.main()
