"""Keras models of the user's own: proven, or refused by name.

python3 -m tests.cli.import_keras_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import re
import shutil
import unittest
from pathlib import Path
from typing import Any

from tests import import_conformance
from tests.cli import support

MODELS = Path(__file__).with_name("import_keras_models.py")
BACKENDS = ("torch", "jax", "tensorflow")
# Exports many models in one process: what is refused needs no proof. argv: file, JSON of
# names and inputs.
EXPORTS = """
import json, sys
from bakeoff_import.keras_service import KerasService
service, answers = KerasService(), {}
for name, (inputs, loss) in json.loads(sys.argv[2]).items():
    answers[name] = service.answer("export", {
        "file": sys.argv[1], "function": name, "inputs": inputs, "loss": loss,
        "name": "my", "weights": "weights.safetensors", "ops": json.loads(sys.argv[3]),
    })
open("answers.json", "w").write(json.dumps(answers))
"""
# Before a change of the importer's table: a wrong mapping.
PLANT = """
from bakeoff_import import keras_layers, keras_recurrent
from bakeoff_import.keras_walk import LAYERS
"""


def line_of(mark: str) -> str:
    """'import_keras_models.py:12': the line of a comment in the models."""
    lines = MODELS.read_text(encoding="utf-8").splitlines()
    found = [i for i, text in enumerate(lines, 1) if text.endswith(f"  # {mark}")]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} lines have the comment {mark}")
    return f"{MODELS.name}:{found[0]}"


class Importing(unittest.TestCase):
    """Each test has a place of its own."""

    place: support.Place

    def setUp(self) -> None:
        support.need("torch")
        self.place = support.Place(BACKENDS, warm=True)
        self.addCleanup(self.place.close)
        shutil.copy(MODELS, self.place.path)

    def imported(
        self, name: str, *inputs: str, loss: str = "", file: str = MODELS.name
    ) -> support.Outcome:
        typed = [word for one in inputs for word in ("--input", one)]
        wanted = ["--loss", loss] if loss else []
        return self.place.run(
            "import", f"{file}:{name}", "--framework", "keras", *typed, *wanted,
            "--out", "my.ir", "--force",
        )  # fmt: skip

    def files(self) -> list[str]:
        return sorted(p.name for p in self.place.path.glob("my.*"))

    def proves(self, name: str, *inputs: str, loss: str = "mse", **more: str) -> str:
        """The IR; it was proven, and a recipe lies beside it that can be read."""
        done = self.imported(name, *inputs, loss=loss, **more)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("proven against the model in float64", done.out)
        self.assertEqual(self.files(), ["my.ir", "my.safetensors", "my.toml"])
        self.place.ok("recipe", "my.toml")
        self.said = done.out
        return (self.place.path / "my.ir").read_text(encoding="utf-8")


class Proven(Importing):
    def test_a_cnn_and_its_own_loss(self) -> None:
        text = self.proves("compiled", loss="")
        self.assertIn("x: f32[N,3,12,10], y: i32[N]", text)
        self.assertIn("weight=conv2.weight[12,8,3,3]", text)
        self.assertIn("stride=2,2 pad=0,1,1,1", text)
        self.assertIn("eps=0.0001 momentum=0.1", text)
        self.assertIn("loss = softmax_cross_entropy(fc, y) reduction=mean", text)
        self.assertNotIn("transpose", text)
        self.assertIn("the softmax of 'fc' is part of the loss", self.said)
        self.place.ok("emit", "my.toml", "--out", "scripts")
        script = (self.place.path / "scripts/train_keras_tensorflow.py").read_text(
            "utf-8"
        )
        model = script[script.index("keras.Input") : script.index("return keras.Model")]
        self.assertNotIn("transpose", model)

    def test_a_layer_called_three_times(self) -> None:
        text = self.proves("shared")
        self.assertEqual(text.count("weight=twice.weight[6,6]"), 3)
        self.assertIn("left: f32[N,6], right: f32[N,6]", text)

    def test_a_custom_layer(self) -> None:
        text = self.proves("custom_layer")
        self.assertIn("mine.step[] frozen", text)
        self.assertIn("mine.kernel[5,7]", text)

    def test_pictures(self) -> None:
        self.proves("pictures")

    def test_several_outputs_side_by_side(self) -> None:
        def imported(names: str) -> support.Outcome:
            return self.place.run(
                "import", f"{MODELS.name}:several", "--loss", "mse", "--output", names,
                "--out", "my.ir", "--force",
            )  # fmt: skip

        done = imported("masks,best,scores,rows,signal")
        self.assertEqual(done.code, 0, done.err)
        text = (self.place.path / "my.ir").read_text(encoding="utf-8")
        self.assertIn("outputs = join(masks, best, scores, rows, signal)", text)
        self.assertIn("y: f32[N,39]", text)
        self.assertRegex(text, r"signal = transpose\(\w+\) perm=0,2,1\n")
        self.assertIn("best = reshape(max) shape=N,1", text)
        for names, why in (
            ("best,best", "the output 'best' is named twice"),
            ("rows,again", "the output 'rows' holds the same values as another"),
            ("best,none", "the model has no output 'none'"),
        ):
            self.assertIn(why, imported(names).err)

    def test_steps_and_states(self) -> None:
        text = self.proves("steps")
        self.assertEqual(text.count("= batch_norm("), 3)
        self.assertEqual(text.count("= gru("), 2)
        self.assertEqual(text.count("= dropout("), 1)
        self.assertRegex(text, r"rms_norm\(\w+; weight=.*\[3,8\]\) dims=2")

    def test_axes_of_one_size(self) -> None:
        self.assertNotIn("transpose", self.proves("cube"))

    def test_both_directions(self) -> None:
        text = self.proves("both_directions")
        self.assertEqual(text.count("= gru("), 3)
        self.assertEqual(text.count("reverse=true"), 3)
        self.assertIn("rms_norm(", text)
        self.assertEqual(text.count("flip("), 1)  # of go_backwards alone
        self.assertIn("bias_hh=", text)
        self.assertNotIn("frozen", text)

    def test_sequences_of_channels(self) -> None:
        text = self.proves("text_cnn")
        self.assertIn("conv1d(x; weight=conv1d.weight[6,9,3]", text)

    def test_attention(self) -> None:
        text = self.proves("attention")
        self.assertRegex(text, r"= attention\(.*rate=0.2")

    def test_a_subclassed_model(self) -> None:
        text = self.proves("Subclassed", "f32[4,8,8,3]")
        self.assertIn("dropout(", text)
        self.assertIn("mean=batch_normalization.running_mean[4]", text)

    @support.full_tier
    def test_several_inputs_of_a_subclassed_model(self) -> None:
        text = self.proves("Scaled", "f32[4,3]", "kinds=i32[4,2]")
        self.assertIn("kinds: i32[N,2]", text)
        text = self.proves("Conditioned", "picture=f32[4,6,6,2]", "kind=i32[4]")
        self.assertIn("picture: f32[N,2,6,6]", text)

    def test_frozen_layers(self) -> None:
        text = self.proves("frozen")
        self.assertIn("conv2d.weight[4,3,3,3] frozen", text)
        self.assertNotIn("batch_norm(", text)
        self.assertIn("head.weight[2,4],", text)

    def test_places_of_each_row(self) -> None:
        text = self.proves("placed", loss="mse")
        self.assertEqual(text.count(" axis=1"), 1)
        self.assertEqual(text.count("= gather("), 2)

    def test_rows_masks_and_what_is_trained(self) -> None:
        text = self.proves("rows_and_masks")
        self.assertIn("ids: i32[N,4], pairs: i32[N,5,5]", text)
        self.assertIn("shape=N,1,6", text)
        self.assertEqual(text.count("= dropout("), 2)  # of weights, and of attention
        self.assertEqual(text.count("weight=encoder.weight[3,6]"), 2)
        self.assertIn("still.weight[6,6] frozen", text)
        self.assertIn("no gradient reaches these, they are frozen: still.", self.said)
        self.assertIn("306 are trained, 54 frozen, 0 left out", self.said)
        text = self.proves("shaped_attention")
        self.assertIn("shape=N,5,2,4", text)
        self.proves("nothing_trains")

    def test_a_model_that_was_never_compiled_is_translated(self) -> None:
        done = self.place.run(
            "translate", f"{MODELS.name}:one_model", "--framework", "keras", "--to",
            "torch",
        )  # fmt: skip
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("was never compiled, and no --loss is named", done.out)
        self.assertIn("train with mse", done.out)

    def test_names_of_any_characters(self) -> None:
        text = self.proves("odd_names")
        self.assertEqual(text.count("= linear("), 4)

    @support.full_tier
    def test_the_others(self) -> None:
        for name in (
            "tied", "nested", "sequences", "states", "channels_first", "lambda_layer",
            "squeeze_excite", "flatten_order", "fixed_batch", "picture_output", "MODEL",
            "mixed",
        ):  # fmt: skip
            with self.subTest(name):
                self.proves(name)

    @support.full_tier
    def test_every_backend(self) -> None:
        for backend in ("jax", "tensorflow"):
            text = f"import {backend}\n" + MODELS.read_text(encoding="utf-8")
            self.place.write("own.py", text)
            for name in (
                "small_cnn",
                "shared",
                "custom_layer",
                "sequences",
                "attention",
            ):
                with self.subTest(f"{name} on {backend}"):
                    made = self.proves(name, file="own.py")
                    self.assertIn(f"on {backend}.", made)
            self.proves("OfLayers", "f32[4,7]", file="own.py")


class Newcomer(Importing):
    def test_a_file_and_nothing_else(self) -> None:
        self.place.write(
            "model.py",
            "from tensorflow import keras\n"
            "model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])\n"
            "model.compile(loss='mse')\n",
        )
        done = self.place.ok("import", "model.py:model", "--out", "my.ir")
        self.assertIn("proven against the model in float64", done.out)

    def test_what_is_missing(self) -> None:
        for given, said in (
            (["none.py:make"], "there is no file 'none.py'"),
            ([MODELS.name], "does not name what makes the model"),
            ([f"{MODELS.name}:nothing"], "has no 'nothing'"),
            ([f"{MODELS.name}:shared", "--loss", "huber"], "--loss 'huber' is no loss"),
            (
                [f"{MODELS.name}:shared", "--input", "f32[4,6]"],
                "the model has 2 inputs",
            ),
            ([f"{MODELS.name}:one_model", "--input", "f32[4,5]"], "does not fit"),
        ):
            with self.subTest(said):
                loss = [] if "--loss" in given else ["--loss", "mse"]
                done = self.place.run(
                    "import", *given, *loss, "--framework", "keras", "--out", "my.ir",
                )  # fmt: skip
                self.assertEqual(done.code, 2, done.out + done.err)
                self.assertIn(said, done.err)
                self.assertEqual(self.files(), [])


class Exports(unittest.TestCase):
    """What is refused, and other answers of the child, all from one process."""

    answers: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch")
        place = support.Place(["torch"])
        cls.addClassCleanup(place.close)
        file = shutil.copy(MODELS, place.path)
        names = re.findall(r"^(?:def|class) (\w+)", MODELS.read_text("utf-8"), re.M)
        asked: dict[str, Any] = {name: ([], "mse") for name in [*names, "MODEL"]}
        asked |= dict.fromkeys(
            ("compiled", "compiled_logits", "compiled_without_counterpart",
             "compiled_with_settings", "compiled_smooth", "compiled_sum_of_means",
             "compiled_ctc", "softmax_twice", "loss_of_my_own", "loss_with_a_weight",
             "loss_of_another_axis", "step_of_my_own", "one_model",
             "probabilities_without_softmax"), ([], ""),
        )  # fmt: skip
        one = {"name": "", "dtype": "f32"}
        asked["Subclassed"] = ([{**one, "shape": [4, 8, 8, 3]}], "mse")
        asked["sequences"] = asked["MODEL"] = ([], "softmax_cross_entropy")
        listed = place.run("ops").out
        ops = [line.split()[0] for line in listed.splitlines() if line.strip()]
        done = support.called(
            [
                str(support.interpreter("torch")),
                "-c",
                EXPORTS,
                str(file),
                json.dumps(asked),
                json.dumps(ops),
            ],
            cwd=place.path,
            env={"PYTHONPATH": str(support.ROOT / "runners")},
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.answers = json.loads((place.path / "answers.json").read_text("utf-8"))

    def refused(self, name: str, mark: str, *parts: str) -> None:
        found = self.answers[name].get("refused", [])
        at = [one for one in found if one["where"] == line_of(mark)]
        self.assertTrue(at, f"{name}: {self.answers[name]}")
        for part in parts:
            said = f"{at[0]['op']}: {at[0]['why']} ({at[0]['remedy']})"
            self.assertIn(part, said)

    def problem(self, name: str, *parts: str) -> None:
        answer = self.answers[name]
        said = " ".join(answer.get(k, "") for k in ("problem", "remedy", "where"))
        for part in parts:
            self.assertIn(part, said, answer)

    def test_masks(self) -> None:
        self.refused("masked", "mask", "layer 'embedding", "mask_zero")
        self.refused("masking", "masking", "(Masking)", "masks steps")

        self.refused("marked", "marked", "the mask that its input carries")
        self.refused("mask_given", "given", "takes a mask")
        self.problem("marked_output", "the output carries a mask")

    def test_steps(self) -> None:
        self.refused("too_many_steps", "steps", "calls 'conv1d", "at most 64 steps")

    def test_state(self) -> None:
        self.refused("stateful", "stateful", "(LSTM)", "from batch to batch")
        self.refused("counts", "assign", "assigns to 'counts")

    def test_randomness(self) -> None:
        self.refused("augmented", "flip", "(RandomFlip)", "belongs to the data")
        self.refused("augmented", "noise", "(GaussianNoise)", "Dropout")
        self.refused("always_drops", "always", "drops out in inference too")
        self.refused("drops_paths", "path", "draws random numbers", "noise_shape")

    def test_all_in_one_list(self) -> None:
        self.refused("several_refused", "sort", "keras.ops Sort")
        self.refused("several_refused", "fft", "keras.ops FFT")

    def test_what_is_no_keras(self) -> None:
        self.refused("runs_functions", "cond", "by the values of tensors (Cond)")
        self.refused("bytes_of_pictures", "bytes", "integers as numbers", "float32")
        self.refused("foreign", "foreign", "Foreign.call cannot be traced", "keras.ops")

    def test_gradients_and_rows(self) -> None:
        self.refused("batch_mixing", "batch", "over the batch axis")
        self.refused("rows_built_in", "rows", "a number of rows built in")
        self.assertEqual(
            self.answers["detached"]["numbers"],
            {"trained": 30, "frozen": 0, "left_out": 0},
        )
        self.assertEqual(
            self.answers["small_cnn"]["numbers"],
            {"trained": 2206, "frozen": 16, "left_out": 0},
        )

    def test_a_branch_on_training(self) -> None:
        self.problem(
            "training_branch", "in training than in inference", line_of("branch")
        )

    def test_what_makes_no_model(self) -> None:
        self.problem("no_model", "no_model() gives Dense, not a keras.Model")
        self.problem("raises", "raises() failed: ValueError", line_of("raises"))
        self.problem("slash_in_name", "cannot contain character `/`", line_of("slash"))
        self.problem("needs_arguments", "needs arguments: width")
        self.problem("unbuilt", "does not say what its inputs are", "--input")
        self.problem("open_sizes", "sizes of the input 'x' are open")
        self.problem("two_outputs", "gives 2 outputs: a, b", "--output a")

    def test_losses(self) -> None:
        self.assertEqual(self.answers["compiled"]["loss"], "softmax_cross_entropy")
        self.assertEqual(
            self.answers["compiled_logits"]["loss"], "softmax_cross_entropy"
        )
        self.assertEqual(
            self.answers["compiled_with_settings"]["loss"],
            "softmax_cross_entropy,ignore_index=-1,reduction=sum",
        )
        self.assertEqual(
            self.answers["compiled_smooth"]["loss"],
            "softmax_cross_entropy,label_smoothing=0.1",
        )
        self.assertIn(
            "reduction=mean label_smoothing=0.1",
            self.answers["compiled_smooth"]["text"],
        )
        ctc = self.answers["compiled_ctc"]
        self.assertEqual(ctc["loss"], "ctc,reduction=sum")
        self.assertIn("y: i32[N,5]) {", ctc["text"])
        self.assertIn("padded with -1", ctc["notes"][0])
        self.problem("compiled_sum_of_means", "reduced by 'sum'", "--loss")
        self.problem("compiled_without_counterpart", "loss 'huber'", "--loss")
        self.problem("probabilities_without_softmax", "does not end in softmax")
        self.problem("softmax_twice", "does not end in softmax")
        self.problem("loss_of_my_own", "loss 'mse, which is not Keras's'")
        self.problem("loss_with_a_weight", "has a weight (loss_weights)")
        self.problem("loss_of_another_axis", "has another axis")
        self.problem("step_of_my_own", "trains by a train_step of its own", "--loss")
        self.problem("one_model", "was never compiled: an import needs a loss")
        self.problem("constrained", "back within NonNeg after every step")
        notes = self.answers["penalised"]["notes"]
        self.assertIn("regularizers are no part of the loss", notes[0])

    def test_precision(self) -> None:
        self.assertIn("float64 takes the place", self.answers["mixed"]["notes"][0])

    def test_the_others_are_exported(self) -> None:
        for name in (
            "tied", "nested", "sequences", "states", "channels_first", "lambda_layer",
            "squeeze_excite", "flatten_order", "fixed_batch", "picture_output", "MODEL",
        ):  # fmt: skip
            self.assertIn("text", self.answers[name], f"{name}: {self.answers[name]}")
        tied = self.answers["tied"]["text"]
        self.assertEqual(tied.count("weight=table.weight[20,6]"), 2)
        self.assertIn("linear(", tied)


class WrongMappings(Importing):
    """A row of the table is wrong on purpose: the proof sees it."""

    def caught(self, change: str, name: str, *parts: str) -> None:
        self.place.variables["BAKEOFF_PLANTED"] = PLANT + change
        done = self.imported(name, loss="mse")
        self.assertEqual(done.code, 2, done.out + done.err)
        for part in parts:
            self.assertIn(part, done.err)
        self.assertEqual(self.files(), [])

    def test_an_activation_that_is_forgotten(self) -> None:
        self.caught(
            "keras_layers.activated = lambda m, x, function: x", "shared",
            "first value that differs is 'twice = linear'", MODELS.name,
        )  # fmt: skip

    def test_padding_on_the_other_side(self) -> None:
        self.caught(
            "old = keras_layers.same_pads\n"
            "def same_pads(*a):\n"
            "    p = old(*a)\n"
            "    return [p[i ^ 1] for i in range(len(p))]\n"
            "keras_layers.same_pads = same_pads", "small_cnn",
            "'conv2 = conv2d'",
        )  # fmt: skip

    def test_torchs_momentum(self) -> None:
        self.caught(
            "old = keras_layers.batch_norm\n"
            "def batch_norm(m, op, a):\n"
            "    out = old(m, op, a)\n"
            "    m.graph.nodes[-1].attrs['momentum'] = 0.9\n"
            "    return out\n"
            "LAYERS['BatchNormalization'] = batch_norm", "small_cnn",
            "running statistics",
        )  # fmt: skip

    def test_dropout_that_is_forgotten(self) -> None:
        self.caught(
            "LAYERS['Dropout'] = LAYERS['Identity']", "small_cnn", "dropout draws {0.3:"
        )

    def test_gates_in_another_order(self) -> None:
        self.caught(
            "old = keras_recurrent.split_evenly\n"
            "keras_recurrent.split_evenly = lambda *a: old(*a)[::-1]", "states",
            "differ",
        )  # fmt: skip


class Applications(Importing):
    """keras.applications, drawn weights: every one is proven."""

    def proven(self, names: list[str]) -> int:
        import_conformance.write_models(self.place.path, Path())
        count = 0
        for name in names:
            outcome = import_conformance.imported(
                support.BAKEOFF, self.place.path, name, self.place.variables
            )
            print(outcome.line(), flush=True)
            self.assertNotEqual(outcome.kind, "WRONG", outcome.line())
            count += outcome.kind == "proven"
        return count

    def test_a_small_one(self) -> None:
        self.assertEqual(self.proven(["keras.MobileNetV3Small@32"]), 1)

    @support.full_tier
    def test_all(self) -> None:
        names = [f"keras.{name}" for name in import_conformance.KERAS.split()]
        self.assertGreaterEqual(self.proven(names), 12)


class Documentation(unittest.TestCase):
    def test_its_tables_are_made_by_the_command(self) -> None:
        support.need("torch")
        made = support.called(
            [
                str(support.interpreter("torch")),
                "-m",
                "bakeoff_import",
                "--table",
                "keras",
            ],
            cwd=support.ROOT / "runners",
            check=True,
        ).stdout
        self.assertIn("| `Dense` | `linear` |", made)
        document = (support.ROOT / "docs" / "import.md").read_text(encoding="utf-8")
        self.assertIn(made, document, "make the tables of docs/import.md again")


if __name__ == "__main__":
    support.main()
