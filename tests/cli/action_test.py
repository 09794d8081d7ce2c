"""action.yml: its steps run as GitHub's runner runs them.

The wheel that it installs is a small one, whose program is either the one that is tested
or one that notes how it was called.

python3 -m tests.cli.action_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unittest
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tests.cli import support

ACTION = support.ROOT / "action.yml"
EXPRESSION = re.compile(r"\$\{\{ *([\w.-]+) *\}\}")
# Notes its arguments, and answers as FAKE_GATE says.
NOTES = """#!/bin/sh
if [ "$1" = --version ]; then echo "bakeoff 0.0.0"; exit 0; fi
for word in "$@"; do printf '%s\\n' "$word"; done > "$FAKE_CALL"
while [ $# -gt 0 ]; do
  case $1 in
    --json) echo '{"contenders": [{"ratio": {"value": 1.02}},
      {"ratio": {"value": 1.25}}, {"ratio": {"value": null}}]}' > "$2" ;;
    --junit) echo '<testsuites/>' > "$2" ;;
  esac
  shift
done
exit "${FAKE_GATE:-0}"
"""


def wheel(folder: Path, program: str) -> Path:
    name = "bakeoff-0.0.0"
    files = {
        f"{name}.data/scripts/bakeoff": program,
        f"{name}.dist-info/METADATA": "Metadata-Version: 2.1\nName: bakeoff\n"
        "Version: 0.0.0\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{name}.dist-info/RECORD"
    files[record] = "".join(f"{file},,\n" for file in [*files, record])
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            about = zipfile.ZipInfo(file)
            about.external_attr = 0o100755 << 16
            archive.writestr(about, text)
    return path


class Action(unittest.TestCase):
    place: ClassVar[support.Place]
    program: ClassVar[Path]
    installed: ClassVar[dict[str, str]]  # output of the first step, by wheel

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = support.Place()
        cls.addClassCleanup(cls.place.close)
        cls.program = wheel(cls.place.path, NOTES)
        cls.installed = {}

    def setUp(self) -> None:
        self.action: Any = yaml.safe_load(ACTION.read_text())
        self.repo = self.place.path / "repo with a space"
        self.repo.mkdir()
        self.addCleanup(shutil.rmtree, self.repo)
        self.call = self.place.path / "call"
        temporary = self.place.path / "runner temp"
        temporary.mkdir(exist_ok=True)
        self.place.variables.pop("FAKE_GATE", None)
        self.place.variables.update(
            GITHUB_ACTIONS="true",
            GITHUB_WORKSPACE=str(self.repo),
            GITHUB_STEP_SUMMARY=str(self.place.write("summary.md", "")),
            RUNNER_TEMP=str(temporary),
            FAKE_CALL=str(self.call),
            GIT_CONFIG_GLOBAL=str(
                self.place.write("gitconfig", "[user]\nname = a\nemail = a@b.c\n")
            ),
        )
        self.place.variables.pop("GITHUB_BASE_REF", None)
        self.git("init", "-q", "-b", "main")
        self.commit("train.py", "print(1)\n")
        self.commit("train.py", "print(2)\n")

    def git(self, *words: str) -> str:
        done = support.called(
            ["git", *words], cwd=self.repo, env=self.place.variables, check=True
        )
        return done.stdout

    def commit(self, name: str, text: str) -> None:
        (self.repo / name).write_text(text)
        self.git("add", name)
        self.git("commit", "-qm", "a change")

    def play(self, **given: str) -> tuple[int, dict[str, str], str]:
        """Exit code of the job, outputs of the action, what its steps printed."""
        unknown = {k.replace("_", "-") for k in given} - set(self.action["inputs"])
        self.assertEqual(unknown, set())
        values = {
            f"inputs.{name}": given.get(
                name.replace("-", "_"), about.get("default", "")
            )
            for name, about in self.action["inputs"].items()
        }

        def filled(text: str) -> str:
            return EXPRESSION.sub(lambda match: values.get(match[1], ""), text)

        code, printed = 0, ""
        for stale in self.place.path.glob("runner temp/*/gate.*"):
            stale.unlink()
        for number, step in enumerate(self.action["runs"]["steps"]):
            self.assertNotIn("${{", step["run"], "inputs would be code of the shell")
            self.assertEqual(step["shell"], "bash")
            file = self.place.write(f"step{number}.sh", step["run"])
            outputs = self.place.write(f"outputs{number}", "")
            done_before = self.installed.get(given.get("wheel", ""))
            if number == 0 and done_before and "version" not in given:
                values["steps.install.outputs.folder"] = done_before
                continue
            done = support.called(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", file],
                cwd=self.repo / filled(step.get("working-directory", ".")),
                env={
                    **self.place.variables,
                    **{k: filled(v) for k, v in step["env"].items()},
                    "GITHUB_OUTPUT": str(outputs),
                },
            )
            code, printed = done.returncode, printed + done.stdout + done.stderr
            for line in outputs.read_text().splitlines():
                name, _, value = line.partition("=")
                values[f"steps.{step['id']}.outputs.{name}"] = value
            if code != 0:
                break
            if number == 0:
                folder = values["steps.install.outputs.folder"]
                self.installed[given["wheel"]] = folder
        found = {
            name: filled(about["value"])
            for name, about in self.action["outputs"].items()
        }
        return code, found, printed

    def words(self) -> list[str]:
        return self.call.read_text().splitlines()


class Steps(Action):
    def test_what_the_gate_is_asked(self) -> None:
        code, outputs, printed = self.play(
            script="train.py",
            wheel=str(self.program),
            margin="3%",
            options="--alpha 0.1% --build *",
            arguments="--epochs 2",
        )
        self.assertEqual(code, 0, printed)
        words = self.words()
        self.assertEqual(words[:5], ["gate", "--base", "HEAD~1", "--head", "HEAD"])
        self.assertEqual(words[5:9], ["--margin", "3%", "--budget", "15m"])
        self.assertEqual(words[9], "--python")
        self.assertTrue(os.access(words[10], os.X_OK))
        self.assertEqual(words[-8:], ["--alpha", "0.1%", "--build", "*", "train.py",
                                      "--", "--epochs", "2"])  # fmt: skip
        self.assertEqual(outputs["verdict"], "no regression")
        self.assertEqual(outputs["exit-code"], "0")
        self.assertEqual(outputs["ratio"], "1.2500")
        json.loads(Path(outputs["json"]).read_text())
        self.assertTrue(Path(outputs["junit"]).is_file())

    def test_verdicts(self) -> None:
        for gate, undecided, job, verdict in (
            (1, "pass", 1, "regression"),
            (2, "pass", 2, "error"),
            (3, "pass", 0, "undecided"),
            (3, "fail", 3, "undecided"),
            (139, "pass", 139, "error"),
        ):
            with self.subTest(gate=gate, undecided=undecided):
                self.place.variables["FAKE_GATE"] = str(gate)
                code, outputs, printed = self.play(
                    script="train.py", wheel=str(self.program), undecided=undecided
                )
                self.assertEqual(code, job, printed)
                self.assertEqual(outputs["verdict"], verdict)
                self.assertEqual(outputs["exit-code"], str(gate))

    def test_the_base_of_a_pull_request(self) -> None:
        self.place.variables["GITHUB_BASE_REF"] = "main"
        code, _, printed = self.play(script="train.py", wheel=str(self.program))
        self.assertEqual(code, 2, "checked out without its history")
        self.assertIn("::error::", printed)
        self.assertIn("fetch-depth: 0", printed)
        self.git("update-ref", "refs/remotes/origin/main", "HEAD~1")
        code, _, printed = self.play(script="train.py", wheel=str(self.program))
        self.assertEqual(code, 0, printed)
        self.assertEqual(self.words()[2], "origin/main")

    def test_hostile_inputs_are_words(self) -> None:
        evil = 'a.py"; touch "$GITHUB_WORKSPACE/owned"; $(touch owned) `touch owned`'
        code, _, printed = self.play(
            script=evil, head=evil, options="$(touch owned)", wheel=str(self.program)
        )
        self.assertEqual(code, 0, printed)
        self.assertEqual(self.words()[4], evil)
        self.assertEqual(self.words()[-1], evil)
        self.assertEqual(list(self.repo.glob("owned")), [])

    def test_bad_inputs(self) -> None:
        for given, says in (
            (
                {"undecided": "maybe", "wheel": str(self.program)},
                "neither pass nor fail",
            ),
            ({"version": "1.0", "wheel": str(self.program)}, "exclude each other"),
            ({}, "set one of the inputs"),
            ({"wheel": "nowhere.whl"}, "nowhere.whl"),
            ({"wheel": str(self.program), "base": ""}, ""),
        ):
            with self.subTest(says):
                self.call.unlink(missing_ok=True)
                code, _, printed = self.play(script="train.py", **given)
                self.assertEqual(code == 0, says == "", printed)
                self.assertIn(says, printed)
                self.assertEqual(self.call.exists(), says == "")


class RealGate(Action):
    def test_a_regression_fails_the_job(self) -> None:
        if self.place.run("gate", "--help").code != 0:
            raise unittest.SkipTest("this program has no command 'gate'")
        text = "import time\ntime.sleep({})\n"
        # Far apart, and with a budget that ends nothing, beside whatever else runs here.
        self.commit("train.py", text.format(0.1))
        self.commit("train.py", text.format(0.6))
        program = wheel(self.place.path, f'#!/bin/sh\nexec "{support.BAKEOFF}" "$@"\n')
        code, outputs, printed = self.play(
            script="train.py",
            wheel=str(program),
            margin="20%",
            budget="20m",
            python=sys.executable,
        )
        self.assertEqual(code, 1, printed)
        self.assertEqual(outputs["verdict"], "regression")
        self.assertGreater(float(outputs["ratio"]), 1.2)
        self.assertIn("::error", printed)
        self.assertTrue((self.place.path / "summary.md").read_text())
        self.assertEqual(self.git("worktree", "list").count("\n"), 1)


if __name__ == "__main__":
    support.main()
