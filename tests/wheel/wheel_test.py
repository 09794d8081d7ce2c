"""The wheel on a machine that has nothing but Python: built, read, installed, used.

Builds the release binary, creates an environment from PyPI: minutes (make full). Run alone:

    BAKEOFF_FULL_TESTS=1 python3 -m tests.wheel.wheel_test build/dev/bakeoff

BAKEOFF_TEST_WHEEL names a wheel that was built before, for one test at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from typing import ClassVar

from tests.cli import support

MOST_BYTES = 20e6
# Isolated installers, by what people type.
INSTALLERS = ["pipx==1.18.4", "uv==0.13.9"]


def built(root: Path, out: Path, **variables: str) -> Path:
    done = subprocess.run(
        [root / "scripts" / "wheel", out],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return Path(done.stdout.splitlines()[-1])


@support.full_tier
class Wheel(unittest.TestCase):
    folder: ClassVar[Path]
    wheel: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(tempfile.mkdtemp(prefix="bakeoff_wheel_"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        named = os.environ.get("BAKEOFF_TEST_WHEEL")
        cls.wheel = (
            Path(named).resolve() if named else built(support.ROOT, cls.folder / "made")
        )

    def setUp(self) -> None:
        # A home of its own, and a PATH without compiler, git or anything else.
        self.home = Path(tempfile.mkdtemp(prefix="home_", dir=self.folder))
        self.empty = self.home / "empty_bin"
        self.empty.mkdir()
        (self.empty / "python3").symlink_to(sys.executable)

    def run_in(
        self, *command: str | Path, path: str = "", code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        pip = {k: v for k, v in os.environ.items() if k.startswith(("PIP_", "UV_"))}
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.home,
            env={
                **pip,
                "HOME": str(self.home),
                "PATH": path + str(self.empty),
                "LC_ALL": "C.UTF-8",
            },
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
        self.assertEqual(
            done.returncode, code, f"{command}\n{done.stdout}{done.stderr}"
        )
        return done

    def environment(self, *extras: str) -> Path:
        """A virtual environment that holds the wheel alone."""
        folder = self.home / "venv"
        self.run_in(sys.executable, "-m", "venv", folder)
        name = f"bakeoff[{','.join(extras)}] @ {self.wheel.as_uri()}"
        self.run_in(folder / "bin" / "pip", "install", "-q", name)
        return folder / "bin"

    def test_size_tag_and_contents(self) -> None:
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)
        self.assertRegex(self.wheel.name, r"-py3-none-manylinux_2_3[0-4]_x86_64\.whl$")
        with zipfile.ZipFile(self.wheel) as archive:
            names = archive.namelist()
            (program,) = (n for n in names if n.endswith(".data/scripts/bakeoff"))
            data = archive.read(program)
        self.assertNotIn(str(support.ROOT).encode(), data)
        for part in (
            "bakeoff/__init__.py",
            "man/man1/bakeoff.1",
            "completions/bakeoff",
            "_bakeoff",
            "bakeoff.fish",
            "licenses/LICENSE",
        ):
            self.assertTrue(any(n.endswith(part) for n in names), part)

    def test_an_empty_environment(self) -> None:
        scripts = self.environment()
        listed = json.loads(
            self.run_in(scripts / "pip", "list", "--format", "json").stdout
        )
        self.assertLessEqual(
            {p["name"] for p in listed}, {"bakeoff", "pip", "setuptools"}
        )
        path = f"{scripts}:"
        # Unpacked from the program: C++ exceptions, embedded files.
        (self.home / "bad.toml").write_text("contenders = [\n")
        wrong = self.run_in(scripts / "bakeoff", "recipe", "bad.toml", code=2)
        self.assertIn("bad.toml:1", wrong.stderr)
        self.assertIn("mlp_small", self.run_in(scripts / "bakeoff", "recipes").stdout)
        # The Python package finds the program though the environment is not active.
        door = "from bakeoff._program import find_program; print(find_program())"
        found = self.run_in(scripts / "python", "-c", door).stdout.strip()
        self.assertEqual(found, str(scripts / "bakeoff"))
        # Without a framework: which command makes its environment.
        lacking = self.run_in(
            scripts / "bakeoff", "run", "mlp_small", "--frameworks", "jax", code=1
        )
        self.assertIn("bakeoff env create jax", lacking.stdout + lacking.stderr)
        self.run_in(scripts / "bakeoff", "env", "create", "jax", path=path)
        self.smallest_race(scripts)

    def smallest_race(self, scripts: Path) -> None:
        """Of the smallest recipe's model; other tests may keep the host busy."""
        (self.home / "race.toml").write_text(RACE)
        self.run_in(scripts / "bakeoff", "run", "race.toml", "--out", "run")
        done = self.run_in(scripts / "bakeoff", "report", "run", "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual(len(answer["ranked"]), 1, done.stdout[:3000])
        self.assertGreater(answer["ranked"][0]["ms_per_step"]["value"], 0)
        self.assertTrue((self.home / "run" / "report.html").is_file())
        # The interpreter beside the program is asked for the client.
        done = self.run_in(
            scripts / "bakeoff", "export", "run", "--to", "wandb", code=2
        )
        self.assertIn(f"{scripts / 'python3'} has no package wandb", done.stderr)
        self.run_in(scripts / "bakeoff", "export", "run", "--to", "tensorboard")

    def test_the_extra_of_pytest(self) -> None:
        """pip installs pytest, which finds the plug-in by itself."""
        scripts = self.environment("pytest")
        shown = self.run_in(scripts / "pytest", "--markers").stdout
        self.assertIn("@pytest.mark.bakeoff(base, margin=0.05", shown)
        (self.home / "test_it.py").write_text(
            "import pytest\n\ndef before(): pass\n\n"
            "@pytest.mark.bakeoff(base=before, margin=-1)\ndef test_it(): pass\n"
        )
        done = self.run_in(scripts / "pytest", "test_it.py", code=1)
        self.assertIn("margin is above 0", done.stdout)

    def test_pipx_and_uv(self) -> None:
        installers = self.home / "installers"
        self.run_in(sys.executable, "-m", "venv", installers)
        self.run_in(installers / "bin" / "pip", "install", "-q", *INSTALLERS)
        commands = (
            ["pipx", "install", str(self.wheel)],
            ["uv", "tool", "install", "--python", sys.executable, str(self.wheel)],
        )
        for command in commands:
            self.run_in(installers / "bin" / command[0], *command[1:])
            program = self.home / ".local" / "bin" / "bakeoff"
            self.assertRegex(self.run_in(program, "--version").stdout, r"bakeoff \d")
            self.assertIn("mnist_cnn", self.run_in(program, "recipes").stdout)
            remove = ["uninstall"] if command[0] == "pipx" else ["tool", "uninstall"]
            self.run_in(installers / "bin" / command[0], *remove, "bakeoff")
            self.assertFalse(program.exists())

    def test_the_same_bytes_elsewhere(self) -> None:
        """From a clone in another folder, by another umask, without the compiler's cache."""
        clone = self.folder / "a longer name of a clone"
        subprocess.run(
            ["git", "clone", "-q", support.ROOT, clone], check=True, capture_output=True
        )
        epoch = subprocess.run(
            ["git", "log", "-1", "--format=%ct"],
            cwd=support.ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        if subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"],
            cwd=support.ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout:
            self.skipTest("files of this repository differ from its last commit")
        other = built(
            clone,
            self.folder / "other",
            SOURCE_DATE_EPOCH=epoch,
            CCACHE_DISABLE="1",
            LC_ALL="C",
            TZ="Asia/Tokyo",
        )
        self.assertEqual(other.name, self.wheel.name)
        self.assertEqual(different(self.wheel, other), [])
        self.assertEqual(digest(other.read_bytes()), digest(self.wheel.read_bytes()))


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def different(one: Path, other: Path) -> list[str]:
    """Members that are not the same in both."""
    with zipfile.ZipFile(one) as a, zipfile.ZipFile(other) as b:
        names = {*a.namelist(), *b.namelist()}
        shared = {*a.namelist()} & {*b.namelist()}
        return sorted(
            [n for n in shared if a.read(n) != b.read(n)] + [*(names - shared)]
        )


RACE = """
workload = "mlp_small"
batch = 100
margin = 0.2
alpha = 0.05
contenders = [{ framework = "jax" }]
[data]
kind = "synthetic"
samples = 200
[optimizer]
kind = "adam"
lr = 1e-3
eps = 1e-7
[budget]
minutes = 3
heats = 2
[race]
burst_seconds = 0.05
max_busy = 1
confirm_heats = 0
"""

if __name__ == "__main__":
    support.main()
