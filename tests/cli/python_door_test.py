"""`import bakeoff`: a live module of a script or a notebook, raced and translated.

Real PyTorch and JAX: python3 -m tests.cli.python_door_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import support, warm

DOOR = support.ROOT / "python"
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 16)
        self.norm = nn.BatchNorm1d(16)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        return self.last(self.drop(torch.relu(self.norm(self.first(x)))))

torch.manual_seed(3)
net = Net()
example = torch.randn(8, 6)
"""
# Prints a table and what belongs to it as JSON.
SHOW = """
import json
def show(table):
    print(json.dumps({"rows": list(table), "attrs": table.attrs, "text": repr(table),
                      "html": table._repr_html_()}))
"""
# The cells of a notebook, run as its kernel runs them: their sources are no files.
CELLS = """
import sys
names = {"__name__": "__main__"}
sys.modules["__main__"].__dict__.update(names)
for number, cell in enumerate(CELLS, 1):
    exec(compile(cell, f"<ipython-input-{number}-c0ffee>", "exec"), sys.modules["__main__"].__dict__)
"""


FRESH = "\nimport copy\nfresh = copy.deepcopy(net)\n"
RENEW = "net = copy.deepcopy(fresh)\n"


class Door(unittest.TestCase):
    WARM: ClassVar[bool] = True
    place: ClassVar[support.Place]
    user: ClassVar[Path]  # PyTorch's Python, in which the user's script runs

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch", "jax")
        names = ["torch", "jax"]
        cls.place = support.Place(names, warm=cls.WARM, shared_proofs=True)
        python = support.interpreter("torch")
        cls.user = warm.interpreter("torch", python) if cls.WARM else python
        cls.addClassCleanup(cls.place.close)
        scratch = cls.place.path / "tmp"
        scratch.mkdir()
        cls.place.variables.update(
            BAKEOFF=str(support.BAKEOFF), PYTHONPATH=str(DOOR), TMPDIR=str(scratch)
        )

    def start(self, text: str, **more: Any) -> subprocess.Popen[str]:
        file = self.place.write("mine.py", text)
        return subprocess.Popen(
            [str(self.user), "-B", str(file)],
            cwd=self.place.path,
            env=self.place.variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=more.pop("stderr", subprocess.PIPE),
            text=True,
            **more,
        )

    def python(self, text: str, code: int = 0) -> tuple[str, str]:
        """Runs a script in the environment of torch."""
        process = self.start(text)
        out, err = process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, code, err)
        return out, err

    def shown(self, text: str) -> Any:
        return json.loads(self.python(text)[0].splitlines()[-1])

    def refused(
        self, *lines: str, given: str = f"{NET}{FRESH}", each: str = RENEW
    ) -> list[str]:
        """The messages of BakeoffErrors, of one line each, all in one process.

        given: what comes first; each: what comes after every line.
        """
        caught = "".join(
            f"try:\n    {line}\n"
            "except bakeoff.BakeoffError as error:\n    said.append(str(error))\n"
            f"{each}"
            for line in lines
        )
        said: list[str] = self.shown(
            f"{given}\nimport json\nimport bakeoff\nsaid = []\n"
            f"{caught}print(json.dumps(said))\n"
        )
        self.assertEqual(len(said), len(lines), said)
        return said

    def temporary(self) -> list[str]:
        return [
            p.name
            for p in (self.place.path / "tmp").iterdir()
            if p.name.startswith("bakeoff")
        ]


class Translating(Door):
    def test_a_module_of_main(self) -> None:
        text = (
            f"{NET}{SHOW}\nimport bakeoff, warnings\n"
            "before = {k: v.clone() for k, v in net.state_dict().items()}\n"
            "state, threads = torch.get_rng_state(), torch.get_num_threads()\n"
            "with warnings.catch_warnings(record=True) as seen:\n"
            "    warnings.simplefilter('always')\n"
            "    table = bakeoff.translate(net, {'x': example}, to='jax,tensorflow')\n"
            "assert 'tensorflow is not written' in str(seen[-1].message), seen\n"
            "assert net.training and torch.equal(state, torch.get_rng_state())\n"
            "assert threads == torch.get_num_threads()\n"
            "assert torch.get_default_dtype() == torch.float32\n"
            "assert torch.backends.mha.get_fastpath_enabled()\n"
            "for k, v in net.state_dict().items():\n"
            "    assert v.dtype == before[k].dtype and torch.equal(v, before[k]), k\n"
            "net(example).sum().backward()\n"
            "net.load_state_dict(before)\n"
            "wanted = net.double().eval()(torch.ones(1, 6).double())[0]\n"
            "open('wanted.json', 'w').write(json.dumps(wanted.tolist()))\n"
            "show(table)\n"
        )
        answer = self.shown(text)
        row, missing = answer["rows"]
        self.assertTrue(row["written"])
        self.assertLess(row["gradients"], 1e-8)
        self.assertFalse(missing["written"])
        self.assertIn("environment", missing["reason"])
        folder = Path(row["folder"])
        self.assertEqual(folder, (self.place.path / "Net_translated/jax").resolve())
        self.assertIn("written", answer["text"].splitlines()[0])
        self.assertIn("<td>jax</td>", answer["html"])
        done = support.called(
            [support.interpreter("jax"), "-B", "example.py"],
            cwd=folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.predicts_the_same(folder)
        self.assertEqual(self.temporary(), [])

    def predicts_the_same(self, folder: Path) -> None:
        """On a row that is not among the example's."""
        given = support.called(
            [
                support.interpreter("jax"),
                "-B",
                "-c",
                "import predict_jax as p, numpy as np\n"
                "w = p.init_params(p.load_weights('weights.safetensors'))\n"
                "print(*np.asarray(p.predict_step(w, np.ones((1, 6), 'f4')))[0])",
            ],
            cwd=folder,
            check=True,
        )
        wanted = json.loads((self.place.path / "wanted.json").read_text())
        pairs = list(zip(given.stdout.split(), wanted, strict=True))
        self.assertEqual(len(pairs), 3)
        for a, b in pairs:
            self.assertAlmostEqual(float(a), b, places=5)

    @support.full_tier
    def test_a_module_of_a_notebook(self) -> None:
        cells = [
            NET,
            "import bakeoff",
            "t = bakeoff.translate(net, example, to=['torch'], out='from_cells', "
            "loss='softmax_cross_entropy', progress=False)",
            SHOW + "show(t)",
        ]
        out, err = self.python(f"CELLS = {cells!r}\n{CELLS}")
        self.assertTrue(json.loads(out)["rows"][0]["written"])
        self.assertEqual(err, "")
        self.assertTrue((self.place.path / "from_cells/torch/train_torch.py").exists())

    @support.full_tier
    def test_a_file_by_its_name(self) -> None:
        self.place.write("net.py", NET)
        text = (
            f"{SHOW}\nimport bakeoff\nshow(bakeoff.translate('net.py:Net', "
            "'f32[8,6]', to='torch', out='by_name'))\n"
        )
        self.assertTrue(self.shown(text)["rows"][0]["written"])


class Racing(Door):
    WARM = False

    def test_two_contenders(self) -> None:
        # Every day JAX alone, which starts in a third of PyTorch's time.
        first = "torch" if support.FULL else "jax"
        # The shortest that the proofs leave time for: beside other tests a budget ends the race.
        for budget in ("12s", "40s", "5m"):
            text = (
                f"{NET}{SHOW}\nimport bakeoff\n"
                "data = torch.randn(40, 6), torch.arange(40) % 3\n"
                "show(bakeoff.race(net, example, loss='softmax_cross_entropy', data=data, "
                f"frameworks=[{first!r}, {{'framework': 'jax', 'steps_per_call': 10}}], "
                f"budget={budget!r}, out='raced'))\n"
            )
            answer = self.shown(text)
            if all(row["proven"] and row["ms_per_step"] for row in answer["rows"]):
                break
            shutil.rmtree(self.place.path / "raced")
        names = {row["contender"]: row for row in answer["rows"]}
        self.assertEqual(set(names), {first, "jax[steps_per_call=10]"})
        for row in names.values():
            self.assertTrue(row["proven"], row)
            self.assertGreater(row["ms_per_step"], 0)
        self.assertTrue(answer["attrs"]["verdict"])
        report = Path(answer["attrs"]["report"])
        self.assertEqual(report, (self.place.path / "raced/report.html").resolve())
        self.assertIn("<html", report.read_text(encoding="utf-8"))
        self.place.ok("report", "raced", "--format", "json")
        view = "import bakeoff, pathlib\n"
        view += f"print(bakeoff.Report(pathlib.Path({str(report)!r}))._repr_html_())"
        self.assertIn("<iframe srcdoc=", self.python(view)[0])
        self.assertEqual(self.temporary(), [])


LOSSES = """
import numpy as np, torch
from torch import nn
from bakeoff import BakeoffError
from bakeoff._losses import loss_text

def refused(loss):
    try:
        loss_text(loss)
    except BakeoffError as error:
        return str(error)
    raise AssertionError(loss)

C = nn.CrossEntropyLoss
"""


class Losses(Door):
    def test_objects_of_torch_and_what_has_no_counterpart(self) -> None:
        self.python(
            f"{LOSSES}"
            "assert loss_text(None) is None and loss_text('mse') == 'mse'\n"
            "assert loss_text(C()) == 'softmax_cross_entropy'\n"
            "assert loss_text(C(label_smoothing=0.1, ignore_index=0, reduction='sum'))"
            " == 'softmax_cross_entropy,reduction=sum,label_smoothing=0.1,"
            "ignore_index=0'\n"
            "padded = np.array([1, -100, 2])\n"
            "for data in ((np.ones(3), padded), {'y': torch.tensor(padded)}):\n"
            "    assert loss_text(C(), data) == "
            "'softmax_cross_entropy,ignore_index=-100'\n"
            "assert loss_text(C(), (np.full(3, -100.0), padded[:1])) == "
            "'softmax_cross_entropy'\n"
            "assert loss_text(nn.MSELoss(reduction='sum')) == 'mse,reduction=sum'\n"
            "assert loss_text(nn.L1Loss()) == 'l1'\n"
            "assert loss_text(nn.BCEWithLogitsLoss()) == 'bce_with_logits'\n"
            "assert loss_text(nn.CTCLoss(reduction='sum')) == 'ctc,reduction=sum'\n"
            "assert 'has a weight' in refused(C(weight=torch.ones(3)))\n"
            "assert 'pos_weight' in refused(nn.BCEWithLogitsLoss(pos_weight="
            "torch.ones(3)))\n"
            "assert 'NLLLoss has no counterpart' in refused(nn.NLLLoss())\n"
            "assert 'each row by its number of labels' in refused(nn.CTCLoss())\n"
            "assert 'blank=2' in refused(nn.CTCLoss(2, reduction='sum'))\n"
            "assert 'zero_infinity' in refused(nn.CTCLoss(0, 'sum', True))\n"
            "assert \"reduction='none'\" in refused(nn.MSELoss(reduction='none'))\n"
            "assert 'the loss is a function' in refused(lambda a, b: 0)\n"
        )


KERAS = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, numpy as np
from keras import layers

class Squeeze(keras.Model):  # its arguments have no get_config
    def __init__(self, function):
        super().__init__()
        self.function, self.conv = function, layers.Conv2D(4, 3, padding="same")
        self.norm, self.drop = layers.BatchNormalization(), layers.Dropout(0.1)
        self.pool, self.last = layers.GlobalAveragePooling2D(), layers.Dense(3)

    def call(self, x, training=None):
        x = self.function(self.norm(self.conv(x), training=training))
        return self.last(self.drop(self.pool(x), training=training))

model = Squeeze(lambda x: keras.ops.leaky_relu(x, 0.3))
example = np.random.default_rng(1).random((8, 5, 6, 2), "f4")
before = keras.ops.convert_to_numpy(model(example))
values = [np.array(keras.ops.convert_to_numpy(v)) for v in model.variables]
"""


class Keras(Door):
    def test_a_live_model_and_what_cannot_be_imported(self) -> None:
        live = (
            f"{KERAS}\nimport bakeoff\n"
            "table = bakeoff.translate(model, example, to='jax')\n"
            "assert 'never compiled' in str(table.attrs['notes']), table.attrs\n"
            "for v, old in zip(model.variables, values):\n"
            "    now = keras.ops.convert_to_numpy(v)\n"
            "    assert now.dtype == old.dtype and (now == old).all(), v.path\n"
            "assert keras.config.floatx() == model.dtype == 'float32'\n"
            "assert model.conv.dtype_policy.name == 'float32'\n"
            "assert (keras.ops.convert_to_numpy(model(example)) == before).all()\n"
            "model.compile('sgd', 'mse')\n"
            "model.fit(example, np.zeros((8, 3)), verbose=0)\n"
            "(row,) = table\n"
            "assert row['written'] and row['gradients'] < 1e-8, row\n"
        )
        meant = {
            "layers.Dense(3)": "a Dense is no keras.Model",
            "Squeeze(abs)": "the model has no weights yet",
            "Squeeze": "a model of type type",
        }
        given = self.refused(
            *(
                f"bakeoff.translate({model}, example, to='jax', loss='mse', "
                "out='refused')"
                for model in meant
            ),
            given=live,
            each="assert keras.config.floatx() == 'float32'\n",
        )
        for words, said in zip(meant.values(), given, strict=True):
            self.assertIn(words, said)


# Writes arrays beside the recipe of an import, which is written here.
WRITE = """
import pathlib, tempfile, numpy as np
from bakeoff._data import write_data
from bakeoff._models import Named
from bakeoff import BakeoffError

RECIPE = 'batch = 8\\n\\n[data]\\n%s\\n\\n[budget]\\nheats = 2\\n'

def written(*data, last=False):
    folder = pathlib.Path(tempfile.mkdtemp())
    header = "workload net(x: f32[N,3,4,5], kinds: i32[N,2], y: i32[N]) {"
    (folder / "my.ir").write_text("# one\\n" + header + "\\n}\\n")
    recipe = folder / "my.toml"
    recipe.write_text(RECIPE % 'kind = "synthetic"')
    given = data[0] if len(data) == 1 else data
    write_data(Named([], "net", channels_last=last), recipe, given)
    assert recipe.read_text() == RECIPE % 'kind = "npz"\\npath = "data.npz"'
    return dict(np.load(folder / "data.npz"))

x, kinds, y = np.ones((9, 3, 4, 5)), np.zeros((9, 2), int), np.zeros(9)
"""


class Fork(Door):
    def test_it_shows_whose_it_is(self) -> None:
        """Where other tests look for processes that are left (support.Place.processes)."""
        said, _ = self.python("print(open('/proc/self/environ').read())")
        self.assertIn(f"\0{support.MARK}={self.place.mark}\0", said)


class Data(Door):
    def test_what_is_written_and_what_does_not_fit(self) -> None:
        fits = (
            f"{WRITE}\n"
            "for data in ((x, kinds, y), ((x, kinds), y)):\n"
            "    held = written(*data)\n"
            "    assert held['x'].shape == x.shape and held['kinds'].dtype.kind == 'i'\n"
            "assert written({'y': y, 'x': x, 'kinds': kinds})['x'].shape == x.shape\n"
            "assert written(x, kinds, y[:, None])['y'].shape == (9,)\n"
            "last = np.random.default_rng(1).random((9, 4, 5, 3))\n"
            "held = written(last, kinds, y, last=True)\n"
            "assert held['x'][2, 1, 3, 4] == last[2, 3, 4, 1]\n"
        )
        meant = {
            "(x, y)": "data has 2 arrays",
            "{'x': x}": "data has x",
            "(x[:, :2], kinds, y)": "'x' of data has the shape [9, 2, 4, 5]",
            "(x, kinds, np.array(['a'] * 9))": "'y' of data holds <U1",
        }
        given = self.refused(
            *(f"written({data})" for data in meant), given=fits, each=""
        )
        for words, said in zip(meant.values(), given, strict=True):
            self.assertIn(words, said)


class Refused(Door):
    def test_what_the_program_and_the_door_say(self) -> None:
        meant = {
            "bakeoff.translate(net, example, to='jaxx')": (
                "--to 'jaxx' is no framework\n  did you mean 'jax'?"
            ),
            "bakeoff.race(net, example, loss='mes', budget='9s')": (
                "--loss 'mes' is no loss"
            ),
            "bakeoff.translate(net, example[:, :5], to='jax')": (
                "the model cannot compute with these inputs"
            ),
            "bakeoff.translate('gone.py:x', 'f32[8,6]', to='jax')": (
                "there is no file 'gone.py'"
            ),
            "bakeoff.translate(net, example, to='tensorflow')": (
                "tensorflow is not written: environment"
            ),
            "net.last.bias.data[1] = float('nan'); "
            "bakeoff.translate(net, example, to='jax')": (
                "weight 'last.bias' holds numbers that are not finite"
            ),
            "import threading; net.lock = threading.Lock(); "
            "bakeoff.translate(net, example, to='jax')": "the module cannot be copied",
            "bakeoff.translate(torch.jit.script(net), example, to='jax')": (
                "a ScriptModule has no Python code"
            ),
            "bakeoff.race('my.toml', frameworks=['jax'])": (
                "a recipe names its loss and contenders itself"
            ),
            "bakeoff.translate(net, to='jax')": "the example is missing",
            "bakeoff.translate(net, 3.0, to='jax')": "no tensor with a batch first",
            "bakeoff.translate(len, example, to='jax')": "a model of type builtin",
            "bakeoff.race(net, example)": "the loss is missing",
            "import os; os.environ['BAKEOFF'] = '/nowhere/bakeoff'; "
            "bakeoff.translate(net, example, to='jax')": (
                "'/nowhere/bakeoff', which is no program"
            ),
        }
        before = set(self.place.path.glob("*_translated"))
        for words, said in zip(meant.values(), self.refused(*meant), strict=True):
            self.assertIn(words, said)
        self.assertEqual(set(self.place.path.glob("*_translated")), before)

    def test_the_line_of_an_op_that_cannot_be_imported(self) -> None:
        model = (
            "import torch, bakeoff\n\nclass Inverse(torch.nn.Module):\n"
            "    def forward(self, x):\n        return torch.linalg.inv(x)\n"
        )
        call = (
            "try:\n    bakeoff.translate(Inverse(), torch.ones(8, 3, 3), to='jax', "
            "progress=False)\nexcept bakeoff.BakeoffError as error:\n    print(error)\n"
        )
        cells = f"CELLS = {[model, call]!r}\n{CELLS}"
        out, _ = self.python(f"{model}{call}{cells}")
        self.assertIn("mine.py:5: aten.linalg_inv", out)
        self.assertIn("<ipython-input-1-c0ffee>:5: aten.linalg_inv", out)


class Interrupted(Door):
    WARM = False

    def test_nothing_is_left(self) -> None:
        calls = [
            ("run directory", "race(net, example, loss='mse', budget='60s')"),
            ("loading ", "translate(net, example, to='jax,torch')"),
            ("proofs", "translate(net, example, to='jax,torch')"),
        ]
        for moment, call in calls if support.FULL else calls[:1]:
            with self.subTest(moment):
                self.interrupts(moment, call)

    def interrupts(self, moment: str, call: str) -> None:
        before = {p.name for p in self.place.path.iterdir()}
        errors = self.place.path / "home" / "stderr.txt"
        with errors.open("wb") as stream:
            process = self.start(
                f"{NET}\nimport bakeoff\nbakeoff.{call}\n", stderr=stream
            )
        support.wait_for(lambda: moment in errors.read_text(), process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=support.HANGS)
        self.assertIn("KeyboardInterrupt", errors.read_text())
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(self.temporary(), [])
        left = {p.name for p in self.place.path.iterdir()} - {*before, "mine.py"}
        # The folder of all runs may stay; this run's own is gone.
        self.assertLessEqual(left, {"runs"})
        self.assertEqual(list(self.place.path.glob("runs/*")), [])


if __name__ == "__main__":
    support.main()
