"""A model of the user's own in other frameworks: proven, and each folder runs alone.

python3 -m tests.cli.translate_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import support

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(4 * 4 * 4, 5)

    def forward(self, picture):
        x = torch.relu(self.norm(self.conv(picture)))
        return self.fc(self.drop(nn.functional.max_pool2d(x, 2).flatten(1)))


def make():
    torch.manual_seed(7)
    net = Net()
    with torch.no_grad():
        net.norm.running_mean.uniform_(-0.5, 0.5)
        net.norm.running_var.uniform_(0.5, 2)
    return net
"""
# Run in the environment of torch, with the folder of a translation: what the user's
# module itself predicts from the example's first batch.
ORIGINAL = """
import sys
import torch
from safetensors.torch import load_file
sys.path.insert(0, sys.argv[1])
from net import make
data = load_file(sys.argv[2] + "/data.safetensors")["picture"][:8].double()
wanted = make().eval().double()(data)
given = load_file(sys.argv[2] + "/expected.safetensors")["output"]
assert given.shape == wanted.shape, (given.shape, wanted.shape)
print(float((given - wanted).norm() / wanted.norm()))
"""
INPUT = ("--input", "f32[8,2,8,8]", "--loss", "softmax_cross_entropy")
SAID = re.compile(r"outputs of (\d+) rows differ from the original's by (\S+)")


# A relu that is wrong by a thousandth, in processes whose command holds the word.
CHEAT = """
import sys
if any("{word}" in text for text in sys.orig_argv):
    import torch.nn.functional as F
    relu = F.relu
    F.relu = lambda x, inplace=False: relu(x) * 1.001
"""


def as_a_stranger(folder: Path, python: Path, *arguments: str) -> Any:
    """Runs a script of a folder with nothing of ours but the interpreter."""
    home = folder.parent / "home of a stranger"
    trap = home / "modules"
    trap.mkdir(parents=True, exist_ok=True)
    (trap / "numbers_of_mine.py").write_text("")
    return subprocess.run(
        [str(python), "-B", *arguments],
        cwd=folder,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "PYTHONPATH": str(trap),
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "OMP_NUM_THREADS": "1",  # beside other tests threads that wait would spin
        },
        capture_output=True,
        text=True,
        check=False,
    )


class Translating(unittest.TestCase):
    place: support.Place

    def left_over(self) -> list[str]:
        return sorted(p.name for p in self.place.path.iterdir() if "translat" in p.name)

    def translate(self, *arguments: str | Path) -> support.Outcome:
        return self.place.run("translate", *arguments)


class FromTorch(Translating):
    """One translation, looked at by all tests: every day to three frameworks."""

    done: ClassVar[support.Outcome]
    names: ClassVar[list[str]]
    PYTHONS: ClassVar[dict[str, str]] = {
        "jax": "jax",
        "keras": "tensorflow",
        "onnxruntime": "onnxruntime",
        "tensorflow": "tensorflow",
        "torch": "torch",
    }

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch")
        everyday = ("jax", "onnxruntime", "torch")
        names = [n for n in cls.PYTHONS if support.FULL or n in everyday]
        cls.names = [n for n in names if support.present(cls.PYTHONS[n])]
        environments = sorted({cls.PYTHONS[n] for n in cls.names})
        cls.place = support.Place(environments, warm=True, shared_proofs=True)
        cls.addClassCleanup(cls.place.close)
        cls.place.write("net.py", MODEL)
        cls.done = cls.place.run(
            "translate", "net.py:make", *INPUT, "--to", ",".join([*cls.names, "keras2"]),
            "--out", "deep/out", "--format", "json",
        )  # fmt: skip

    @property
    def out(self) -> Path:
        return self.place.path / "deep" / "out"

    def test_what_is_missing_is_a_row_and_the_others_are_written(self) -> None:
        self.assertEqual(self.done.code, 1, self.done.err)
        rows = {row["name"]: row for row in self.done.json()["rows"]}
        self.assertIn("environment", rows["keras2"]["reason"])
        self.assertFalse(rows["keras2"]["written"])
        for name in self.names:
            self.assertTrue(rows[name]["written"], rows[name])
            self.assertEqual(rows[name]["folder"], f"deep/out/{name}")
            self.assertTrue(all(check["passed"] for check in rows[name]["checks"]))
            self.assertTrue(rows[name]["checks"])
        written = sorted(p.name for p in self.out.iterdir())
        wanted = sorted([*self.names, "README.md", "translation.json"])
        self.assertEqual(written, wanted)
        record = json.loads((self.out / "translation.json").read_text())
        self.assertEqual(record["rows"], self.done.json()["rows"])
        self.assertEqual(list(self.out.parent.iterdir()), [self.out])

    def test_gradients_and_steps_were_proven(self) -> None:
        for row in self.done.json()["rows"]:
            found = {check["what"] for check in row["checks"]}
            if row["name"] == "onnxruntime":
                self.assertIn("float64 prediction", found)
            elif row["written"]:
                self.assertGreaterEqual(
                    found, {"float64 gradients", "optimizer update", "float32 losses"}
                )

    def test_each_folder_runs_alone(self) -> None:
        for name in self.names if support.FULL else ("torch",):
            with self.subTest(name):
                alone = self.place.path / "elsewhere" / name
                shutil.copytree(self.out / name, alone)
                python = support.interpreter(self.PYTHONS[name])
                for script in alone.iterdir():
                    if script.suffix in (".py", ".json"):
                        self.assertNotIn("bakeoff", script.read_text().lower())
                done = as_a_stranger(alone, python, "example.py")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                rows, distance = SAID.findall(done.stdout)[0]
                self.assertEqual(rows, "8")
                self.assertLess(float(distance), 1e-5)
                self.trains_or_predicts(alone, python)

    def trains_or_predicts(self, alone: Path, python: Path) -> None:
        for script in alone.glob("*_*.py"):
            done = as_a_stranger(alone, python, script.name, "--steps", "2")
            self.assertEqual(done.returncode, 0, done.stderr)
            word = "loss" if script.name.startswith("train") else "mean output"
            self.assertIn(word, done.stdout)

    def test_the_example_notices_other_weights(self) -> None:
        alone = self.place.path / "changed"
        shutil.copytree(self.out / "onnxruntime", alone)
        change = (
            "from safetensors.numpy import load_file, save_file\n"
            "w = load_file('weights.safetensors')\n"
            "w['norm.running_var'] *= 1.01\n"
            "save_file(w, 'weights.safetensors')\n"
        )
        python = support.interpreter("onnxruntime")
        done = as_a_stranger(alone, python, "-c", change)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = as_a_stranger(alone, python, "example.py")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_expected_is_what_the_module_itself_predicts(self) -> None:
        done = support.called(
            [
                support.interpreter("torch"),
                "-B",
                "-c",
                ORIGINAL,
                self.place.path,
                self.out / self.names[0],
            ]
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        # The weights are float32 in the file, and in the module.
        self.assertLess(float(done.stdout), 1e-12)

    def test_files_of_a_folder_are_its_own(self) -> None:
        for file in self.out.rglob("*"):
            if file.is_file():
                self.assertEqual(file.stat().st_nlink, 1, file)


class Places(Translating):
    """Where a translation is written, and what it starts from: to what starts soonest."""

    def setUp(self) -> None:
        self.place = support.place_for(
            self, "onnxruntime", "torch", warm=True, shared_proofs=True
        )
        self.place.write("recipe.toml", support.recipe(['framework = "jax"']))

    def test_a_recipe_then_again(self) -> None:
        done = self.translate("recipe.toml", "--to", "onnxruntime")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.left_over(), ["recipe_translated"])
        marked = self.place.write("recipe_translated/onnxruntime/mine.txt", "mine")
        again = self.translate("recipe.toml", "--to", "onnxruntime")
        self.assertEqual(again.code, 2)
        self.assertIn("'recipe_translated' exists\n  --force replaces it", again.err)
        self.assertTrue(marked.exists())
        forced = self.translate("recipe.toml", "--to", "onnxruntime", "--force")
        self.assertEqual(forced.code, 0, forced.err)
        self.assertFalse(marked.exists())
        self.assertEqual(self.left_over(), ["recipe_translated"])

    def translate_from(self, name: str, out: str, *arguments: str | Path) -> Path:
        """Translates for torch from a folder of that name; the folder of `out`."""
        folder = self.place.path / name
        folder.mkdir()
        done = support.called(
            [
                support.BAKEOFF,
                "translate",
                *arguments,
                "--to",
                "onnxruntime",
                "--out",
                out,
            ],
            cwd=folder,
            env=self.place.variables,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((folder / out / "onnxruntime" / "README.md").exists(), name)
        self.assertEqual(list(self.place.path.rglob(".translation*")), [])
        return folder / out

    @support.full_tier
    def test_other_folders(self) -> None:
        for name, out in (("there", "../there/"), ("new", "../new/a/")):
            self.translate_from(name, out, "../recipe.toml")

    def test_a_workload_with_weights_in_the_folder_where_the_user_is(self) -> None:
        lone = self.translate("mlp.ir", "--to", "onnxruntime")
        self.assertEqual(lone.code, 2)
        self.assertIn("there are no weights 'mlp.safetensors'", lone.err)
        self.place.ok("emit", "recipe.toml", "--out", "s")
        weights = self.place.path / "s" / "weights.safetensors"
        out = self.translate_from("here", ".", "../mlp.ir", "--weights", weights)
        kept = out / "onnxruntime" / "weights.safetensors"
        self.assertEqual(kept.read_bytes(), weights.read_bytes())

    def test_other_folders_are_left_alone(self) -> None:
        thesis = self.place.write("home/thesis.tex", "years of work")
        for out in ("home", "home/thesis.tex", "home/thesis.tex/below"):
            done = self.translate(
                "recipe.toml", "--to", "onnxruntime", "--out", out, "--force"
            )
            self.assertEqual(done.code, 2, out)
            self.assertEqual(thesis.read_text(), "years of work")

    def test_mistakes(self) -> None:
        for words, said in (
            (("mlp.ir", "--to", "torhc"), "did you mean 'torch'"),
            (("mlp.ir", "--to", ""), "no framework"),
            (("mlp.ir", "--to", "torch,torch"), "twice"),
            (("gone.ir", "--to", "torch"), "cannot open 'gone.ir'"),
            (("gone.toml", "--to", "torch"), "cannot open 'gone.toml'"),
            (("gone.py:make", *INPUT, "--to", "torch"), "there is no file 'gone.py'"),
            (("net.py:make", "--to", "torch"), "--input is missing"),
            (("net.py", *INPUT, "--to", "torch"), "does not name what makes the model"),
        ):
            done = self.translate(*words)
            self.assertEqual(done.code, 2, words)
            self.assertIn(said, done.err)
            self.assertEqual(self.left_over(), [])

    def test_nothing_is_written_where_no_framework_is_left(self) -> None:
        done = self.translate("recipe.toml", "--to", "jax")
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("jax  not written: environment", done.out)
        self.assertEqual(self.left_over(), [])

    def cheats(self, word: str) -> support.Outcome:
        """Translates where the interpreter computes something else."""
        self.place.write("cheat/sitecustomize.py", CHEAT.replace("{word}", word))
        cheat = self.place.path / "cheat"
        python = self.place.write(
            "cheat/python",
            f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{cheat}"\n'
            f'exec {support.interpreter("torch")} "$@"\n',
        )
        python.chmod(0o755)
        self.place.set_interpreters({"torch": python})
        # Its proofs are none of an honest interpreter's.
        (self.place.path / "home" / "proofs").unlink(missing_ok=True)
        return self.translate("recipe.toml", "--to", "torch")

    def test_what_differs_is_not_written(self) -> None:
        done = self.cheats("bakeoff_runner")
        self.assertEqual(done.code, 1, done.err)
        self.assertRegex(
            done.out, "^torch  not written: differs, first at output of fc2 by 1.0e-03"
        )
        self.assertEqual(self.left_over(), [])

    def test_what_fails_alone_is_not_written(self) -> None:
        done = self.cheats("example.py")
        self.assertEqual(done.code, 1, done.err)
        self.assertIn("its example.py fails alone: exit code 1", done.out)
        self.assertEqual(self.left_over(), [])

    @support.full_tier  # every day of models in Python: cli.python_door
    def test_interrupted(self) -> None:
        self.place.write("net.py", MODEL)
        # A proof of another test's would be taken over, and nothing be said of it.
        (self.place.path / "home" / "proofs").unlink(missing_ok=True)
        for moment in ("runs alone", "loading net.py", "proofs"):
            with self.subTest(moment):
                self.interrupts(moment)

    def interrupts(self, moment: str) -> None:
        errors = self.place.path / "stderr.txt"
        with errors.open("wb") as stream:
            process = self.place.start(
                "translate", "net.py:make", *INPUT, "--to", "torch", stderr=stream
            )
        support.wait_for(lambda: moment in errors.read_text(), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130, errors.read_text())
        hidden = [p.name for p in self.place.path.glob(".*")]
        self.assertEqual((self.left_over(), hidden), ([], []))
        self.assertEqual(self.place.none_left(), {})


@support.full_tier  # every day files are read by cli.onnx_import
class FromOnnx(Translating):
    def test_a_file(self) -> None:
        support.need("onnxruntime", "jax")
        self.place = support.Place(["onnxruntime", "jax"], shared_proofs=True)
        self.addCleanup(self.place.close)
        models = Path(__file__).with_name("onnx_models.py")
        python = support.interpreter("onnxruntime")
        subprocess.run([python, "-B", models, self.place.path], check=True)
        done = self.translate("cnn.onnx", "--to", "jax")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("no --loss is named: the scripts train with mse", done.out)
        self.assertEqual(self.left_over(), ["cnn_translated"])


@support.full_tier
class ToCpp(Translating):
    def test_compiles_and_agrees(self) -> None:
        support.need("torch")
        self.place = support.Place(["torch"], shared_programs=True)
        self.addCleanup(self.place.close)
        self.place.write("net.py", MODEL)
        done = self.translate("net.py:make", *INPUT, "--to", "libtorch")
        self.assertEqual(done.code, 0, done.err)
        self.assertLess(float(SAID.findall(done.out)[0][1]), 1e-5)


if __name__ == "__main__":
    support.main()
