"""ONNX files, imported: proven, or refused with a message.

python3 -m tests.cli.onnx_import_test build/dev/bakeoff
"""

from __future__ import annotations

import re
import subprocess
import unittest
from pathlib import Path
from typing import ClassVar

from tests.cli import support

MODELS = Path(__file__).with_name("onnx_models.py")

REFUSED = {
    "circle": "'b' is read before anything gives it",
    "twice": "the name 'a' is given twice",
    "huge": "has more than",
    "endless": "it has 1.84e+19 numbers",
    "stands": "Range ('a'): its step is 0",
    "mixed": "its inputs are of different types",
    "wide": "has more than",
    "hollow": "has more than",
    "tiled": "has more than",
    "halves": "its sizes do not fit",
    "split_up": "its outputs are not num_outputs",
    "product": "has more than",
    "picked": "has more than",
    "ranks": "a shape has 100 axes",
    "unsqueezed": "it has too many axes",
    "short": "needs 4000000 bytes and has 4",
    "loop": "Loop",
    "quantised": "DynamicQuantizeLinear",
    "foreign": "com.example.Magic",
    "optimised": "import the file from before ONNX Runtime's optimiser",
    "lengths": "(sequence_lens); leave them out if all are full",
    "two_outputs": "the model has 2 outputs: out, other",
    "over_the_batch": "goes over the batch",
    "old": "opset 5",
    "narrow": "its indices name a part of an axis",
    "across": "it takes or puts rows of the batch",
    "open": "the open size 'length' at axis 1",
    "above": "a path with '..'",
    "absolute": "an absolute path",
    "linked": "a link that leaves the folder",
    "gone": "which does not exist",
    "truncated": "truncated",
    "empty": "no",
    "noise": "no ONNX file",
}


# Of the file's numbers: trained, frozen, left out.
NUMBERS = {
    "parts": (64 + 40 + 48 + 24, 0, 24 + 16),
    "whole": (128, 0, 0),
    "computed": (128 + 16 + 32 + 8 + 12 + 8 + 1 + 16, 0, 0),
    "stated": (112 + 8 + 128 + 32 + 25, 8 + 5, 0),
    "kept": (128, 64 + 8 + 1, 1),
    "padded": (54, 0, 0),
    "named": (64, 144, 0),
    "put": (64 + 16 + 2 + 16, 0, 8),
    "rows_lead": (288 + 96 + 48 + 24, 0, 0),
    "masks": (64, 0, 0),
    "rows": (16 + 24, 16, 0),
    "still": (3 + 3, 3 + 3, 0),
    "fresh": (4 + 4, 4 + 4, 0),
}
SAYS = {
    "kept": (
        "not trained: l.w (64 numbers), because Gather ('e')",
        "constants that are not trained: alpha (1 number), l.mask (8 numbers)",
        "'onnx::copy' holds the numbers of 'l.v', transposed",
    ),
    "stated": ("constants that are not trained: shift (5 numbers)",),
    "whole": ("an exporter merges weights that are equal: l.v\n",),
    "masks": ("are taken for 0 and 1",),
}


class Importing(unittest.TestCase):
    """Each test has a place of its own; the files are the class's."""

    models: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        support.need("onnxruntime")
        made = support.Place()
        cls.addClassCleanup(made.close)
        cls.models = made.path
        python = support.interpreter("onnxruntime")
        subprocess.run([python, "-B", MODELS, cls.models], check=True)

    def setUp(self) -> None:
        self.place = support.Place(["onnxruntime"])
        self.addCleanup(self.place.close)

    def imported(self, name: str, *more: str) -> support.Outcome:
        out = self.place.path / f"{name}.ir"
        return self.place.run(
            "import", self.models / f"{name}.onnx", "--loss", "mse", "--out", out, *more
        )

    def test_files_are_proven_and_written(self) -> None:
        for name in (
            "cnn",
            "row",
            "old_softmax",
            "new_softmax",
            "tied",
            "heads",
            "external",
            *("gru", "peepholes", "holes", "columns", "groups", "smaller"),
            *("places", "counts", "ordered", "angles", "einsum", "rotary"),
        ):
            with self.subTest(name):
                outcome = self.imported(name)
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn("proven against the file", outcome.out)
                for suffix in ("ir", "safetensors", "toml"):
                    self.assertTrue((self.place.path / f"{name}.{suffix}").is_file())
                self.place.ok("show", self.place.path / f"{name}.ir")

    def test_every_number_is_trained_or_named(self) -> None:
        for name, (trained, frozen, left_out) in NUMBERS.items():
            with self.subTest(name):
                outcome = self.imported(name)
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn(
                    f"of the model's numbers {trained} are trained, {frozen} frozen, "
                    f"{left_out} left out",
                    outcome.out,
                )
                for line in SAYS.get(name, ()):
                    self.assertIn(line, outcome.out)

    def test_labels_that_begin_at_one(self) -> None:
        out = self.place.path / "labels.ir"
        file = self.models / "rows.onnx"
        self.place.ok("import", file, "--loss", "ctc", "--out", out)

    def test_parts_of_a_weight_keep_their_slots(self) -> None:
        self.assertEqual(self.imported("parts").code, 0)
        text = (self.place.path / "parts.ir").read_text(encoding="utf-8")
        self.assertEqual(text.count("= linear("), 4)
        self.assertIn("weight=l.w[3,8])", text)
        self.assertIn("weight=l.w_2[5,8])", text)
        self.assertEqual(self.imported("whole").code, 0)
        text = (self.place.path / "whole.ir").read_text(encoding="utf-8")
        self.assertIn("linear(x; weight=l.v[8,8])", text)
        self.assertIn("parameter(; weight=l.v[8,8])", text)
        self.assertIn("parameter(; weight=l.w[8,8])", text)

    def test_layers_have_their_own_of_what_an_exporter_has_merged(self) -> None:
        outcome = self.imported("merged")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("that the file shares between layers are apart", outcome.out)
        text = (self.place.path / "merged.ir").read_text(encoding="utf-8")
        named = set(re.findall(r"(?:weight|bias)=(\S+)\[(?:1,)*8\]", text))
        # A bias of the cell that is called twice, one of the last layer, two scales.
        self.assertEqual(len(named), 4, text)

    def test_what_a_file_says_is_kept(self) -> None:
        self.assertEqual(self.imported("cnn").code, 0)
        text = (self.place.path / "cnn.ir").read_text(encoding="utf-8")
        self.assertIn("weight=c.weight[4,3,3,3], bias=c.bias[4]", text)
        self.assertIn("weight=fc.weight[5,64], bias=fc.bias[5]", text)
        self.assertIn("slope=0.2\n", text)
        self.assertEqual(self.imported("tied").code, 0)
        text = (self.place.path / "tied.ir").read_text(encoding="utf-8")
        self.assertEqual(text.count("weight=table[9,6]"), 2)
        self.assertIn("embedding(x;", text)

    def test_softmax_means_what_its_opset_says(self) -> None:
        for name, wanted in (("old_softmax", "reshape"), ("new_softmax", "softmax")):
            self.assertEqual(self.imported(name).code, 0)
            text = (self.place.path / f"{name}.ir").read_text(encoding="utf-8")
            self.assertIn(wanted, text)
            self.assertEqual(
                "reshape" in text or "flatten" in text, name == "old_softmax"
            )

    def test_what_cannot_be_imported_is_refused(self) -> None:
        for name, why in REFUSED.items():
            with self.subTest(name):
                outcome = self.imported(name)
                self.assertEqual(outcome.code, 2, outcome.out + outcome.err)
                self.assertIn(why, outcome.err)
                self.assertEqual(list(self.place.path.glob(f"{name}.*")), [])

    def test_all_unsupported_ops_are_in_one_list(self) -> None:
        outcome = self.imported("unsupported")
        self.assertEqual(outcome.code, 2)
        self.assertIn("2 ops cannot be imported", outcome.err)
        for op in ("Det", "Compress"):
            self.assertIn(op, outcome.err)

    def test_heads_are_merged_with_the_batch(self) -> None:
        self.assertEqual(self.imported("heads").code, 0)
        text = (self.place.path / "heads.ir").read_text(encoding="utf-8")
        self.assertIn("x: f32[N,3,8]", text)
        self.assertEqual(text.count("= matmul("), 2)

    def test_the_batch_may_be_the_open_axis_that_is_called_so(self) -> None:
        self.assertEqual(self.imported("gru").code, 0)
        text = (self.place.path / "gru.ir").read_text(encoding="utf-8")
        self.assertIn("x: f32[N,4,3]", text)

    def test_open_sizes_are_given(self) -> None:
        outcome = self.imported("open", "--input", "x=f32[8,7]")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn(
            "x: f32[N,7]", (self.place.path / "open.ir").read_text(encoding="utf-8")
        )
        self.assertIn(
            "batch = 8\n", (self.place.path / "open.toml").read_text(encoding="utf-8")
        )

    def test_one_of_several_outputs(self) -> None:
        outcome = self.imported("two_outputs", "--output", "other")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn(
            "relu(x)", (self.place.path / "two_outputs.ir").read_text(encoding="utf-8")
        )

    def test_several_outputs_side_by_side(self) -> None:
        outcome = self.imported("several", "--output", "masks,scores,best:1")
        self.assertEqual(outcome.code, 0, outcome.err)
        text = (self.place.path / "several.ir").read_text(encoding="utf-8")
        self.assertIn("outputs = join(masks, scores, best_1)", text)
        self.assertIn("y: f32[N,18]", text)
        self.assertIn("scores = add(", text)
        for names, why in (
            ("scores,scores", "the output 'scores' is named twice"),
            ("scores,same", "the output 'same' holds the same values as another"),
            ("scores,kept", "the output 'kept' does not depend on the inputs"),
            ("scores,none", "no output 'none'; it has masks, scores"),
        ):
            outcome = self.imported("several", "--output", names, "--force")
            self.assertEqual(outcome.code, 2, outcome.out)
            self.assertIn(why, outcome.err)

    @support.full_tier
    def test_ten_thousand_nodes(self) -> None:
        outcome = self.imported("chain")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertIn("chain: 10003 inputs, constants and ops", outcome.out)


if __name__ == "__main__":
    support.main()
