"""`bakeoff gate`: two versions as contenders of one race, from real git repositories, with outputs for CI.

python3 -m tests.cli.gate_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import yaml

from tests.cli import support

# Its time is what it sleeps, ten times as long or not, and the margin is a factor of 2: no
# neighbour changes that. No framework, so whole runs are compared.
SCRIPT = """
import time
for _ in range(5):
    time.sleep(STEP)
print("took", 5 * STEP)
"""
FAST = SCRIPT.replace("STEP", "0.006")
SLOW = SCRIPT.replace("STEP", "0.06")
MARGIN = ("--margin", "100%")
HOSTILE = "x\"<b>&'%0A::error::pwned]]>"


class Gate(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)
        self.temporary = self.place.path / "temporary"
        self.temporary.mkdir()
        self.repo = self.place.path / "repo"
        self.repo.mkdir()
        self.place.variables.update(
            TMPDIR=str(self.temporary),
            COLUMNS="80",
            GIT_CONFIG_GLOBAL="/dev/null",
            GIT_AUTHOR_NAME="a",
            GIT_AUTHOR_EMAIL="a@b",
            GIT_COMMITTER_NAME="a",
            GIT_COMMITTER_EMAIL="a@b",
        )
        for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
            self.place.variables.pop(name, None)

    def git(self, *words: str) -> str:
        return support.called(
            ["git", "-C", str(self.repo), *words], env=self.place.variables, check=True
        ).stdout

    def commit(self, text: str, message: str) -> None:
        (self.repo / "train.py").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def history(self) -> None:
        self.git("init", "-q", "-b", "main", ".")
        self.commit(FAST, "fast")
        self.git("tag", "fast")
        self.commit(FAST + "# a comment\n", "still fast")
        self.commit(SLOW, HOSTILE)
        self.git("tag", "slow")

    def gate(self, *words: str | Path) -> support.Outcome:
        got = self.place.run("gate", *MARGIN, *words)
        self.nothing_left()
        return got

    def in_repo(self, *words: str | Path) -> support.Outcome:
        return self.gate("--repo", self.repo, *words)

    def nothing_left(self) -> None:
        self.assertEqual(self.place.none_left(), {})
        # PyTorch keeps its own compiled kernels there.
        kept = ("torchinductor_", "bakeoff_inductor_")
        left = [p.name for p in self.temporary.iterdir()]
        self.assertEqual([n for n in left if not n.startswith(kept)], [])
        if (self.repo / ".git").exists():
            self.assertEqual(self.git("worktree", "list").count("\n"), 1)


class Scripts(Gate):
    def test_a_slower_script_is_red_in_every_output(self) -> None:
        self.place.write("old.py", FAST)
        self.place.write("new.py", SLOW)
        summary = self.place.write("summary.md", "before\n")
        self.place.variables.update(
            GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary)
        )
        got = self.gate(
            *("--base", "old.py", "--head", "new.py", "--json", "out.json"),
            *("--junit", "out.xml", "--gitlab", "out.gitlab"),
        )
        self.assertEqual(got.code, 1, got.out + got.err)
        self.assertIn("REGRESSION: new.py takes", got.out)
        found = json.loads((self.place.path / "out.json").read_text())
        self.assertEqual(found["verdict"], "regression")
        self.assertGreater(found["contenders"][0]["ratio"]["low"], 2)
        self.assertEqual(found["time_of"], "run")
        suite = ElementTree.parse(self.place.path / "out.xml").getroot()
        self.assertEqual(suite.get("failures"), "1")
        issues = json.loads((self.place.path / "out.gitlab").read_text())
        self.assertEqual(issues[0]["location"]["path"], "new.py")
        self.assertIn("::error file=new.py,line=1,title=", got.out)
        self.assertTrue(summary.read_text().startswith("before\n## bakeoff gate: REG"))
        for line in got.out.splitlines():
            if not line.startswith("::"):
                self.assertLessEqual(len(line), 80)

    def test_equal_scripts_are_green(self) -> None:
        self.place.write("old.py", FAST)
        self.place.write("new.py", FAST)
        got = self.gate("--base", "old.py", "--head", "new.py", "--gitlab", "q.json")
        self.assertEqual(got.code, 0, got.out + got.err)
        self.assertIn("NO REGRESSION", got.out)
        self.assertEqual((self.place.path / "q.json").read_text(), "[]\n")

    def test_a_margin_out_of_reach_is_undecided_and_says_what_decides(self) -> None:
        jitter = "import random\n" + FAST.replace(
            "0.006", "random.choice([0.006, 0.06])"
        )
        self.place.write("old.py", jitter)
        self.place.write("new.py", jitter)
        got = self.place.run(
            *("gate", "--base", "old.py", "--head", "new.py", "--margin", "0.1%"),
            *("--alpha", "0.0001%", "--budget", "5s"),
            *("--junit", "out.xml", "--json", "out.json"),
        )
        self.assertEqual(got.code, 3, got.out + got.err)
        self.assertIn("UNDECIDED", got.out)
        (row,) = json.loads((self.place.path / "out.json").read_text())["contenders"]
        self.assertIn(row["what_decides"], " ".join(got.out.split()))
        suite = ElementTree.parse(self.place.path / "out.xml").getroot()
        self.assertEqual(suite.get("skipped"), "1")

    def test_a_script_that_fails_names_its_side(self) -> None:
        self.place.write("old.py", FAST)
        self.place.write("new.py", "raise ValueError('no such layer')\n")
        self.place.variables["GITHUB_ACTIONS"] = "true"
        got = self.gate("--base", "old.py", "--head", "new.py", "--junit", "out.xml")
        self.assertEqual(got.code, 2, got.out + got.err)
        self.assertIn("head: ", got.err)
        self.assertIn("no such layer", got.err)
        self.assertIn("::error title=bakeoff gate::", got.out)
        suite = ElementTree.parse(self.place.path / "out.xml").getroot()
        self.assertEqual(suite.get("errors"), "1")

    def test_a_printed_figure_is_compared_where_no_step_is_seen(self) -> None:
        rate = "import sys, time\nprint('warm-up', 3)\nprint(f'rate: {RATE * (1 + time.time() % 1 / 100)} per s')\n"
        for name, value in (("old.py", "80"), ("new.py", "20"), ("none.py", "0")):
            (self.place.path / name).write_text(rate.replace("RATE", value))
        asked = ("--metric", "rate: ([0-9.]+)", "--base", "old.py", "--json", "g.json")
        got = self.gate(*asked, "--head", "new.py", "--better", "higher")
        self.assertEqual(got.code, 1, got.err)
        self.assertIn("'rate: ([0-9.]+)' is 0.2", got.out)
        data = json.loads((self.place.path / "g.json").read_text())
        self.assertLess(data["contenders"][0]["ratio"]["high"], 0.5)
        self.assertEqual(data["metric"]["better"], "higher")
        self.assertEqual(
            self.gate(*asked, "--head", "new.py", "--better", "lower").code, 0
        )
        for words, said in (
            (("--head", "new.py"), "--better higher"),
            (("--head", "none.py", "--better", "lower"), "above 0"),
            (("--head", "new.py", "--better", "lower", "--metric", "speed"), "speed"),
            (
                ("--head", "new.py", "--better", "lower", "--metric", "("),
                "no regular expression",
            ),
        ):
            got = self.gate(*(asked if "--metric" not in words else asked[2:]), *words)
            self.assertEqual(got.code, 2, got.out)
            self.assertIn(said, got.err)

    def test_a_script_that_leaves_with_a_code_failed(self) -> None:
        """It ran into no exception, but what it took is no time of a run."""
        self.place.write("old.py", FAST)
        for end in ("raise SystemExit('broken')", "import sys; sys.exit(3)"):
            self.place.write("new.py", end + "\n")
            got = self.gate("--base", "old.py", "--head", "new.py")
            self.assertEqual(got.code, 2, got.out + got.err)
            self.assertRegex(got.err, "head: .*exit code [13]")
        self.place.write("new.py", FAST + "import sys; sys.exit(0)\n")
        got = self.gate("--base", "old.py", "--head", "new.py")
        self.assertIn(got.code, (0, 3), got.out + got.err)


class Interpreters(Gate):
    def test_two_interpreters(self) -> None:
        self.place.write("train.py", FAST)
        slow = self.place.write(
            "slow_python", f'#!/bin/sh\nsleep 0.3\nexec {sys.executable} "$@"\n'
        )
        slow.chmod(0o755)
        # What an interpreter does before Python starts is not of the run.
        got = self.gate("--base", sys.executable, "--head", "./slow_python", "train.py")
        self.assertEqual(got.code, 0, got.out + got.err)


class Refs(Gate):
    def test_refs_are_raced_and_hostile_messages_stay_text(self) -> None:
        self.history()
        (self.repo / "train.py").write_text("broken(")  # a dirty work tree
        (self.repo / "untracked").write_text("x")
        before = self.git("status", "--porcelain", "--branch")
        self.place.variables["GITHUB_ACTIONS"] = "true"
        got = self.in_repo(
            *("--base", "fast", "--head", "slow", "--junit", "out.xml", "train.py")
        )
        self.assertEqual(got.code, 1, got.out + got.err)
        self.assertEqual(self.git("status", "--porcelain", "--branch"), before)
        self.assertEqual((self.repo / "train.py").read_text(), "broken(")
        ElementTree.parse(self.place.path / "out.xml")
        commands = [x for x in got.out.splitlines() if x.startswith("::")]
        self.assertEqual(len(commands), 1, got.out)
        self.assertIn("file=train.py", commands[0])
        self.assertNotIn("<b>", (self.place.path / "out.xml").read_text())

    def test_a_build_makes_a_checkout_ready(self) -> None:
        self.git("init", "-q", "-b", "main", ".")
        self.commit("import made\n" + FAST, "one")
        (self.repo / "note").write_text("x")
        self.commit("import made\n" + FAST, "two")
        words = ("--base", "main~1", "--head", "main", "train.py")
        got = self.in_repo(*words, "--build", "touch made.py")
        self.assertEqual(got.code, 0, got.out + got.err)
        got = self.in_repo(
            *words, "--build", "test -e note || { echo no note here >&2; exit 7; }"
        )
        self.assertEqual(got.code, 2)
        self.assertIn("base (main~1", got.err)
        self.assertIn("does not build", got.err)
        self.assertIn("no note here", got.err)

    def test_what_cannot_be_gated(self) -> None:
        self.history()
        for expected, words in (
            ("did you mean 'main'", ("--base", "mian", "--head", "main", "train.py")),
            ("has no file", ("--base", "fast", "--head", "slow", "other.py")),
            ("--head", ("--base", "fast", "train.py")),
            ("must be above 0", ("--margin", "-1%", "--base", "a", "--head", "b", "x")),
            ("there is no file", ("--base", "fast", "--head", "slow")),
            ("names no commit", ("--base", "--help", "--head", "main", "train.py")),
        ):
            with self.subTest(expected):
                got = self.in_repo(*words)
                self.assertEqual(got.code, 2, got.out + got.err)
                self.assertIn(expected, got.err)
        (self.repo / "train.py").write_text(FAST + "# changed\n")
        got = self.in_repo("--base", "fast", "--head", "HEAD", "train.py")
        self.assertEqual(got.code, 2)
        self.assertIn("in no commit: train.py", got.err)
        self.assertIn("commit or stash", got.err)
        (self.place.path / "plain").mkdir()
        (self.place.path / "plain" / "train.py").write_text(FAST)
        got = self.gate(
            *("--repo", "plain", "--base", "a", "--head", "b", "train.py"),
        )
        self.assertEqual(got.code, 2)
        self.assertIn("is no git repository", got.err)

    def test_the_files_as_they_are(self) -> None:
        self.history()
        (self.repo / "train.py").write_text(FAST + "# changed\n")
        got = self.in_repo("--base", "fast", "--head", self.repo, "train.py")
        self.assertEqual(got.code, 0, got.out + got.err)

    def stopped_by(self, number: int, *words: str) -> None:
        self.history()
        process = self.place.start(
            *("gate", "--repo", self.repo, "--base", "fast", "--head", "slow"),
            *("--margin", "290%", "--alpha", "0.0001%", "train.py", *words),
        )
        assert process.stderr is not None
        while "heat 1" not in (line := process.stderr.readline()):
            self.assertTrue(line, "ended before its first heat")
        support.wait_for(lambda: "train.py" in str(self.place.processes()), process)
        self.assertEqual(self.git("worktree", "list").count("\n"), 3)
        process.send_signal(number)
        process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 128 + number)
        self.nothing_left()

    def test_ctrl_c_leaves_nothing(self) -> None:
        self.stopped_by(signal.SIGINT)

    def test_ctrl_c_while_figures_are_compared(self) -> None:
        self.stopped_by(signal.SIGINT, "--metric", "took", "--better", "lower")

    @support.full_tier
    def test_sigterm_leaves_nothing(self) -> None:
        self.stopped_by(signal.SIGTERM)

    def test_what_a_kill_left_is_removed_by_the_next(self) -> None:
        self.history()
        process = self.place.start(
            *("gate", "--repo", self.repo, "--base", "fast", "--head", "slow"),
            "train.py",
        )
        assert process.stderr is not None
        while "heat 1" not in (line := process.stderr.readline()):
            self.assertTrue(line, "ended before its first heat")
        process.kill()
        process.communicate()
        self.assertEqual(self.place.none_left(), {})
        self.assertGreater(len(list(self.temporary.iterdir())), 0)
        self.place.ok(
            *("gate", "--repo", self.repo, "--base", "fast", "--head", "fast~0"),
            *(*MARGIN, "train.py"),
        )
        self.assertEqual(self.git("worktree", "list").count("\n"), 1)
        left = [x.name for x in self.temporary.iterdir()]
        self.assertEqual([x for x in left if "version" in x or "run" in x], [])


@support.full_tier
class Recipes(Gate):
    """Contenders are proven in both versions and race against their other version."""

    def test_a_larger_layer_is_red_and_a_wrong_script_an_error(self) -> None:
        support.need("torch")
        self.place.set_interpreters({"torch": support.interpreter("torch")})
        self.git("init", "-q", "-b", "main", ".")
        text = support.recipe(['framework = "torch"'])
        large = re.sub(r"\b32\b", "4096", support.MLP)
        for name, workload in (("small", support.MLP), ("large", large)):
            (self.repo / "mlp.ir").write_text(workload)
            self.commit(FAST, name)
            (self.repo / "race.toml").write_text(text)
            self.git("add", "-A")
            self.git("commit", "-q", "--amend", "--no-edit")
            self.git("tag", name)
        words = ("race.toml", "--json", "out.json")
        got = self.in_repo("--base", "small", "--head", "large", *words)
        self.assertEqual(got.code, 1, got.out + got.err)
        found = json.loads((self.place.path / "out.json").read_text())
        self.assertEqual(found["contenders"][0]["contender"], "torch")
        self.assertEqual(found["time_of"], "step")
        self.assertIn("REGRESSION: PyTorch takes", got.out)
        # Two interpreters, and a recipe with nothing in common.
        other = text.replace(
            'framework = "torch"', 'framework = "torch", compile = "default"'
        )
        self.place.write("mlp.ir", support.MLP)
        self.place.write("a.toml", text)
        self.place.write("b.toml", other)
        got = self.gate("--base", "a.toml", "--head", "b.toml")
        self.assertEqual(got.code, 2, got.out + got.err)
        self.assertIn("no contender in common", got.err)
        one, two = 'framework = "torch"', 'framework = "torch", compile = "default"'
        self.place.write("both.toml", support.recipe([one, two]))
        got = self.gate("--base", "both.toml", "--head", "a.toml", "--junit", "o.xml")
        self.assertIn(got.code, (0, 3), got.out + got.err)
        alone = "PyTorch (compile = default) is in base alone: not compared"
        self.assertIn(alone, " ".join(got.out.split()))
        self.place.write("jax.toml", support.recipe(['framework = "jax"']))
        got = self.gate("--base", "jax.toml", "--head", "jax.toml")
        self.assertEqual(got.code, 2, got.out + got.err)
        self.assertIn("base: JAX cannot race: ", got.err)
        got = self.gate("--base", "numpy==1.26.4", "--head", "numpy==2.0.0", "a.toml")
        self.assertEqual(got.code, 2, got.out + got.err)


class Workflows(Gate):
    """The written workflows, run as their service runs them, but for what installs."""

    def service(self, **variables: str) -> None:
        self.history()
        origin = self.place.path / "origin"
        self.git("clone", "-q", "--bare", str(self.repo), str(origin))
        self.git("remote", "add", "origin", str(origin))
        self.git("fetch", "-q", "origin")
        self.git("checkout", "-q", "-b", "change", "slow")
        self.git("branch", "-q", "-D", "main")
        self.git("push", "-q", "-f", "origin", "fast:refs/heads/main")
        self.git("fetch", "-q", "origin")
        tools = self.place.path / "tools"
        tools.mkdir()
        (tools / "bakeoff").symlink_to(support.BAKEOFF)
        (tools / "python").symlink_to(sys.executable)
        path = f"{tools}:{os.environ['PATH']}"
        self.place.variables.update(PATH=path, **variables)

    def write_workflow(self, service: str) -> object:
        def call(*words: str) -> int:
            return subprocess.run(
                [support.BAKEOFF, "gate", "--init", service, *words],
                cwd=self.repo,
                env=self.place.variables,
                capture_output=True,
                check=False,
            ).returncode

        self.assertEqual(call(), 0)
        self.assertEqual(call(), 2, "it would have been replaced")
        self.assertEqual(call("--force"), 0)
        files = list(self.repo.glob(f".{service}/**/bakeoff.yml"))
        self.assertEqual(len(files), 1)
        text = files[0].read_text()
        said = self.place.run("--version").out.split()[-1]
        self.assertIn(f"pip install bakeoff=={said}\n", text)
        for action in re.findall(r"uses: (\S+)", text):
            self.assertRegex(action, "@[0-9a-f]{40}$")  # a tag can be moved
        return yaml.safe_load(text)

    def play(self, lines: str, **variables: object) -> tuple[int, str]:
        done = support.called(
            ["bash", "-e", "-c", lines],
            cwd=self.repo,
            env={**self.place.variables, **{k: str(v) for k, v in variables.items()}},
        )
        return done.returncode, done.stdout + done.stderr

    def test_github(self) -> None:
        summary = self.place.write("summary.md", "")
        self.service(
            GITHUB_ACTIONS="true",
            GITHUB_BASE_REF="main",
            GITHUB_STEP_SUMMARY=str(summary),
        )
        workflow: Any = self.write_workflow("github")
        self.assertIn("pull_request", workflow[True])  # YAML reads "on" as true
        job = workflow["jobs"]["gate"]
        self.assertEqual(workflow["permissions"], {"contents": "read"})
        checkout = job["steps"][0]
        self.assertEqual(checkout["with"]["fetch-depth"], 0)
        run = [s["run"] for s in job["steps"] if s.get("name") == "Gate"][0]
        code, out = self.play(run, **job["env"])
        self.assertEqual(code, 1, out)
        self.assertIn("::error file=train.py,line=1", out)
        self.assertIn("REGRESSION", summary.read_text())
        self.assertTrue((self.repo / "bakeoff-gate.xml").exists())
        # What is undecided passes, as the workflow says.
        self.git("push", "-q", "origin", "change:same")
        self.git("fetch", "-q", "origin")
        options = "--margin 0.01% --budget 1s"
        undecided = {**job["env"], "GATE_OPTIONS": options, "GITHUB_BASE_REF": "same"}
        code, out = self.play(run, **undecided)
        self.assertEqual(code, 0, out)
        self.assertIn("UNDECIDED", out)

    @support.full_tier  # as the one before
    def test_gitlab(self) -> None:
        self.service()
        workflow: Any = self.write_workflow("gitlab")
        job = workflow["bakeoff gate"]
        self.assertEqual(job["allow_failure"], {"exit_codes": 3})
        code, out = self.play(
            "\n".join(job["script"]),
            **job["variables"],
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
            CI_COMMIT_SHA=self.git("rev-parse", "change").strip(),
        )
        self.assertEqual(code, 1, out)
        reports = job["artifacts"]["reports"]
        ElementTree.parse(self.repo / reports["junit"])
        issues = json.loads((self.repo / reports["codequality"]).read_text())
        self.assertEqual(issues[0]["location"]["path"], "train.py")
        self.assertEqual({"major"}, {issue["severity"] for issue in issues})


@support.full_tier
class Steps(Gate):
    def test_steps_of_torch(self) -> None:
        support.need("torch")
        self.place.set_interpreters({"torch": support.interpreter("torch")})
        text = """
import time
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(10, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(100000):
    loss = model(torch.ones(4, 10)).sum()
    loss.backward()
    optimizer.step()
    time.sleep(0.01)
"""
        self.place.write("old.py", text)
        self.place.write("new.py", text.replace("sleep(0.01)", "sleep(0.04)"))
        got = self.gate("--base", "old.py", "--head", "new.py", "--json", "o.json")
        self.assertEqual(got.code, 1, got.out + got.err)
        self.assertEqual(
            json.loads((self.place.path / "o.json").read_text())["time_of"], "sample"
        )

    def test_calls_that_are_soon_over(self) -> None:
        """Too few for bursts of one process, too many for whole runs."""
        support.need("torch")
        self.place.set_interpreters({"torch": support.interpreter("torch")})
        text = """
import time
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(10, 10)
with torch.no_grad():
    for _ in range(400):
        model(torch.ones(4, 10))
        time.sleep(0.0005)
"""
        self.place.write("old.py", text)
        self.place.write("new.py", text.replace("0.0005", "0.003"))
        got = self.gate("--base", "old.py", "--head", "new.py", "--json", "o.json")
        self.assertEqual(got.code, 1, got.out + got.err)
        found = json.loads((self.place.path / "o.json").read_text())
        self.assertEqual(found["time_of"], "sample")
        self.assertTrue(any("fresh processes" in one for one in found["notes"]), found)


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    support.main()
