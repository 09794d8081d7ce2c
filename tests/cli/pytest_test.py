"""The pytest plug-in: what it asks the gate, and what becomes of a test.

python3 -m tests.cli.pytest_test build/dev/bakeoff

A program that notes its call answers in place of the gate; one test asks the gate itself.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

from tests.cli import support

TOOLS = Path(os.environ.get("BAKEOFF_TOOLS", support.ROOT / ".cache" / "tools"))
# Runs both scripts, notes what they print and how it was called, answers as told.
GATE = """#!{python}
import json, os, subprocess, sys
words = sys.argv[1:]
given = dict(zip(words[1::2], words[2::2]))
ran = [subprocess.run([given["--python"], given[side]], capture_output=True, text=True)
       for side in ("--base", "--head")]
with open(os.environ["FAKE_CALL"], "w") as file:
    json.dump([words, [r.stdout for r in ran], [r.stderr for r in ran]], file)
with open(given["--json"], "w") as file:
    file.write(os.environ.get("FAKE_JSON", ""))
if os.environ.get("FAKE_HANG"):
    import time
    print("hangs", flush=True)
    time.sleep(1000)
code = int(os.environ.get("FAKE_GATE", "0"))
if code == 2:
    sys.stderr.write("bakeoff: the base does not run\\n  look at it\\n")
sys.exit(code)
"""
ROW = {
    "sentence": "head takes 1.20 times as long.",
    "what_decides": "A longer budget decides it.",
    "ratio": {"value": 1.2, "low": 1.1, "high": 1.3},
}
MARKED = """
import pytest
import work

def before():
    print("before", end=";")

@pytest.mark.bakeoff(base={base}, seconds=0.02{more})
def test_speed():
    work.work()
"""


class PyTest(unittest.TestCase):
    def setUp(self) -> None:
        if not (TOOLS / "bin" / "pytest").exists():
            raise unittest.SkipTest(f"there is no {TOOLS}/bin/pytest (scripts/tools)")
        self.place = support.Place()
        self.addCleanup(self.place.close)
        self.python = TOOLS / "bin" / "python"
        gate = self.place.write("gate", GATE.replace("{python}", str(self.python)))
        gate.chmod(0o755)
        self.temporary = self.place.path / "tmp"
        self.temporary.mkdir()
        self.repo = self.place.path / "repo"
        self.place.variables.update(
            BAKEOFF=str(gate),
            FAKE_CALL=str(self.place.path / "call"),
            PYTHONPATH=str(support.ROOT / "python"),
            PYTHONDONTWRITEBYTECODE="1",
            TMPDIR=str(self.temporary),
            GIT_CONFIG_GLOBAL=str(
                self.place.write("gitconfig", "[user]\nname = a\nemail = a@b.c\n")
            ),
        )
        self.place.variables.pop("BAKEOFF_FULL_TESTS", None)
        self.write("work.py", 'def work():\n    print("old", end=";")\n')
        self.marked("'main'")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-qm", "first")
        self.write("work.py", 'def work():\n    print("new", end=";")\n')

    def write(self, name: str, text: str) -> None:
        self.place.write(f"repo/{name}", text)

    def marked(self, base: str, more: str = "") -> None:
        self.write("test_it.py", MARKED.format(base=base, more=more))

    def git(self, *words: str) -> str:
        done = support.called(
            ["git", *words], cwd=self.repo, env=self.place.variables, check=True
        )
        return done.stdout

    def command(self, *words: str) -> list[str]:
        options = ["-p", "bakeoff.pytest_plugin", "-p", "no:cacheprovider", "-rA"]
        return [str(self.python), "-m", "pytest", *options, *words]

    def pytest(self, *words: str, code: int = 0, **variables: str) -> str:
        done = support.called(
            self.command(*words),
            cwd=self.repo,
            env={**self.place.variables, **variables},
        )
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        # Neither scripts nor worktrees are left.
        left = [p.name for p in self.temporary.iterdir() if "bakeoff" in p.name]
        self.assertEqual(left, [])
        self.assertEqual(self.git("worktree", "list").count("\n"), 1)
        return done.stdout

    def call(self) -> tuple[list[str], list[str], list[str]]:
        words, printed, errors = json.loads((self.place.path / "call").read_text())
        return words, printed, errors


class Outcomes(PyTest):
    def test_a_git_ref(self) -> None:
        out = self.pytest(FAKE_JSON=json.dumps({"contenders": [ROW]}))
        self.assertIn("1 passed", out)
        words, printed, errors = self.call()
        self.assertEqual(words[0], "gate")
        for option, value in (
            ("--margin", "0.05"),
            ("--alpha", "0.01"),
            ("--budget", "5m"),
        ):
            self.assertEqual(words[words.index(option) + 1], value)
        self.assertEqual(errors, ["", ""])
        # Each side called its own version, equally often.
        self.assertEqual(
            [set(p.split(";")) for p in printed], [{"old", ""}, {"new", ""}]
        )
        self.assertEqual(printed[0].count(";"), printed[1].count(";"))
        self.assertGreater(printed[0].count(";"), 1)

    def test_functions_and_scripts(self) -> None:
        self.marked("before", ', margin=0.2, budget="90s"')
        self.pytest()
        words, printed, _ = self.call()
        self.assertEqual(set(printed[0].split(";")), {"before", ""})
        self.assertEqual(words[words.index("--margin") + 1], "0.2")
        self.write("other.py", 'print("script", end=";")\n')
        self.marked("'other.py'")
        self.pytest()
        printed = self.call()[1]
        self.assertEqual(set(printed[0].split(";")), {"script", ""})
        self.assertEqual(printed[0].count(";"), printed[1].count(";"))

    def test_verdicts(self) -> None:
        rows = json.dumps({"contenders": [ROW]})
        flat = json.dumps({"verdict": "undecided", "ratio": 1.2, "reason": "too noisy"})
        for gate, answer, code, says in (
            ("1", rows, 1, r"FAILED.*head takes 1\.20 times as long"),
            ("3", rows, 0, r"SKIPPED.*head takes 1\.20.*A longer budget decides it"),
            ("3", flat, 0, "SKIPPED.*too noisy"),
            ("3", "no json", 0, "SKIPPED.*gave no reason"),
            ("2", "", 1, "FAILED.*the base does not run"),
        ):
            with self.subTest(gate=gate, answer=answer):
                out = self.pytest(code=code, FAKE_GATE=gate, FAKE_JSON=answer)
                self.assertRegex(out, says)
        self.pytest("--junit-xml", "j.xml", FAKE_JSON=rows)
        found = ET.parse(self.repo / "j.xml").getroot().iter("property")
        self.assertEqual([p.get("value") for p in found], ["1.2"])

    def test_a_base_without_the_test_is_skipped(self) -> None:
        text = (self.repo / "test_it.py").read_text()
        self.write("test_new.py", text)
        self.assertRegex(self.pytest("test_new.py"), "SKIPPED.*main has no test_new.py")
        self.write("test_it.py", text.replace("test_speed", "test_other"))
        self.assertRegex(
            self.pytest("test_it.py"), "SKIPPED.*main has no such function"
        )

    def test_the_function_is_a_test_first(self) -> None:
        self.write("work.py", "def work():\n    assert 1 == 2\n")
        out = self.pytest(code=1)
        self.assertIn("assert 1 == 2", out)
        self.assertFalse((self.place.path / "call").exists())

    def test_what_cannot_be_raced(self) -> None:
        head = "import pytest\n@pytest.mark.bakeoff"
        for text, says in (
            (f"{head}\ndef test_a(): pass\n", "missing 1 required"),
            (f"{head}('main')\ndef test_a(): pass\n", "takes named arguments"),
            (f"{head}(base='main', marginn=1)\ndef test_a(): pass\n", "marginn"),
            (
                f"{head}(base='main', margin=0)\ndef test_a(): pass\n",
                "margin is above 0",
            ),
            (f"{head}(base='nowhere')\ndef test_a(): pass\n", "fetch-depth: 0"),
            (
                f"{head}(base='--help')\ndef test_a(): pass\n",
                "no commit, branch or tag",
            ),
            (f"{head}(base=lambda: 0)\ndef test_a(): pass\n", "from another process"),
            (f"{head}(base='main')\ndef test_a(tmp_path): pass\n", "takes arguments"),
        ):
            with self.subTest(says):
                self.write("test_b.py", text)
                self.assertIn(says, self.pytest("test_b.py", code=1))
        self.assertFalse((self.place.path / "call").exists())

    def test_a_base_that_imports_the_head(self) -> None:
        """As with an editable install: the worktree's test, the working tree's code."""
        self.write("test_it.py", "import sys\nsys.path.insert(0, '/nowhere')\n"
                   f"sys.path.insert(0, {str(self.repo)!r})\nimport work\n"
                   "def test_speed():\n    work.work()\n")  # fmt: skip
        self.git("add", ".")
        self.git("commit", "-qm", "second")
        self.marked("'main'")
        out = self.pytest(code=1)
        self.assertIn("not the base's", out)
        self.assertFalse((self.place.path / "call").exists())

    def test_beside_other_tests_it_is_refused(self) -> None:
        self.write(
            "conftest.py",
            "def pytest_configure(config):\n    config.workerinput = {}\n",
        )
        self.assertIn(
            "without pytest-xdist", self.pytest("-x", code=1).replace("\n", " ")
        )

    def test_a_dirty_working_tree_stays(self) -> None:
        before = self.git("status", "--porcelain", "--untracked-files=no")
        self.assertIn("work.py", before)
        self.pytest()
        self.assertEqual(
            self.git("status", "--porcelain", "--untracked-files=no"), before
        )
        self.assertIn("new", (self.repo / "work.py").read_text())

    def test_ctrl_c(self) -> None:
        process = subprocess.Popen(
            self.command("-s"), cwd=self.repo,
            env={**self.place.variables, "FAKE_HANG": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        support.wait_for((self.place.path / "call").exists, process)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 2, out)  # pytest's own: interrupted
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(
            [p for p in self.temporary.iterdir() if "bakeoff" in p.name], []
        )
        self.assertEqual(self.git("worktree", "list").count("\n"), 1)


# Every day cli.action plays a real gate, and the outcomes above one that answers at once.
@support.full_tier
class RealGate(PyTest):
    def test_ten_times_as_slow(self) -> None:
        if self.place.run("gate", "--help").code != 0:
            raise unittest.SkipTest("this program has no command 'gate'")
        # Sleeps keep their ratio beside whatever else runs here, sums do not; three seconds of
        # them outweigh the imports. The budget ends nothing: the race ends when it is decided.
        slept = "import time\n\ndef work():\n    time.sleep({})\n"
        self.write("work.py", slept.format(0.01))
        self.git("commit", "-qam", "fast")
        self.marked("'main'", ", margin=0.3, budget='20m'")
        self.write("work.py", slept.format(0.1))
        text = (self.repo / "test_it.py").read_text()
        self.write("test_it.py", text.replace("seconds=0.02", "seconds=3"))
        out = self.pytest(code=1, BAKEOFF=str(support.BAKEOFF))
        self.assertRegex(out, r"FAILED.*REGRESSION: test_speed takes")
        ratio = re.search(r"takes ([\d.]+) times", out)
        assert ratio is not None
        self.assertGreater(float(ratio[1]), 1.3)


if __name__ == "__main__":
    support.main()
