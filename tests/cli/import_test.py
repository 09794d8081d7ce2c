"""Models of the user's own, imported from torch: proven, or refused by name.

python3 -m tests.cli.import_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import struct
import unittest
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import support
from tests.import_conformance import FRAMEWORKS, gate

MODELS = Path(__file__).with_name("import_models.py")
PICTURE = "f32[8,3,16,16]"
ROW = "f32[8,4]"
# Before a change of the importer's table: a wrong mapping.
PLANT = """
from bakeoff_import import layers
from bakeoff_import.rows import ROWS
"""


def line_of(mark: str) -> str:
    """'import_models.py:12': the line of a comment in the models."""
    lines = MODELS.read_text(encoding="utf-8").splitlines()
    found = [i for i, text in enumerate(lines, 1) if f"# {mark}" in text]
    if len(found) != 1:
        raise AssertionError(f"{len(found)} lines have the comment {mark}")
    return f"{MODELS.name}:{found[0]}"


def header(file: Path) -> dict[str, Any]:
    """Names, types and shapes of a safetensors file."""
    with open(file, "rb") as stream:
        (size,) = struct.unpack("<Q", stream.read(8))
        return dict(json.loads(stream.read(size)))


class Importing(unittest.TestCase):
    """Each test has a place of its own."""

    WARM: ClassVar[bool] = True
    place: support.Place

    def setUp(self) -> None:
        support.need("torch")
        self.place = support.Place(["torch"], warm=self.WARM)
        self.addCleanup(self.place.close)
        shutil.copy(MODELS, self.place.path)

    def imported(
        self, name: str, *inputs: str, loss: str = "mse", more: tuple[str, ...] = ()
    ) -> support.Outcome:
        typed = [word for one in inputs for word in ("--input", one)]
        return self.place.run(
            "import", f"{MODELS.name}:{name}", *typed, "--loss", loss,
            "--out", "my.ir", *more,
        )  # fmt: skip

    def files(self) -> list[str]:
        return sorted(p.name for p in self.place.path.glob("my.*"))


class Proving(Importing):
    def proves(self, name: str, *inputs: str, loss: str = "mse") -> str:
        """The IR; it was proven, and a recipe lies beside it that can be read."""
        done = self.imported(name, *inputs, loss=loss)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("proven against the model in float64", done.out)
        self.assertEqual(self.files(), ["my.ir", "my.safetensors", "my.toml"])
        self.place.ok("recipe", "my.toml")
        return (self.place.path / "my.ir").read_text(encoding="utf-8")

    def emitted(self, name: str) -> str:
        self.place.ok("emit", "my.toml", "--out", "s")
        return (self.place.path / "s" / name).read_text(encoding="utf-8")


class Proven(Proving):
    """Each way through the importer, once."""

    def test_residual_network(self) -> None:
        text = self.proves("ResNet", PICTURE, loss="softmax_cross_entropy")
        self.assertIn("weight=blocks.1.down.0.weight[16,8,1,1]", text)
        self.assertIn("eps=0.001 momentum=0.3", text)
        self.assertIn("dropout(", text)
        self.assertIn("loss = softmax_cross_entropy(fc, y) reduction=mean", text)
        kept = header(self.place.path / "my.safetensors")
        self.assertEqual(kept["fc.weight"]["dtype"], "F32")
        self.assertIn("blocks.0.bn1.running_var", kept)
        names = json.loads(kept["__metadata__"]["names"])
        self.assertEqual(names["fc.weight"], ["fc.weight"])

    @support.full_tier
    def test_a_loss_with_attributes(self) -> None:
        loss = "softmax_cross_entropy,label_smoothing=0.1,ignore_index=-100"
        text = self.proves("words", "i32[8,7]", loss=loss)
        self.assertIn("reduction=mean label_smoothing=0.1 ignore_index=-100", text)
        for wrong, said in (
            ("mse,ignore_index=1", "mse has no attribute 'ignore_index'"),
            ("softmax_cross_entropy,ignore_idex=1", "did you mean 'ignore_index'?"),
        ):
            done = self.imported("words", "i32[8,7]", loss=wrong)
            self.assertEqual(done.code, 2)
            self.assertIn(said, done.err)

    @support.full_tier
    def test_a_count_takes_no_memory_and_writes_nothing(self) -> None:
        words = ("import", f"{MODELS.name}:Huge", "--input", "i32[8,5]")
        done = self.place.ok(*words, "--loss", "mse", "--count")
        # A tied table, and four LSTMs with two matrices and two biases.
        count = 2**30 + 4 * (2 * 2**30 + 2 * 2**16)
        self.assertIn(f"{count} are trained, 0 frozen, 0 left out", done.out)
        self.assertIn("not proven; nothing was written", done.out)
        self.assertEqual(list(self.place.path.glob("*.ir")), [])
        refused = self.place.run(*words, "--loss", "mse")
        self.assertEqual(refused.code, 2)
        self.assertIn("--out is missing", refused.err)
        of_onnx = ("import", "x.onnx", "--python", "python3")
        onnx = self.place.run(*of_onnx, "--loss", "mse", "--count")
        self.assertEqual(onnx.code, 2)
        self.assertIn("--count makes a torch module", onnx.err)

    def test_tied_weights_and_a_module_used_twice(self) -> None:
        text = self.proves("Tied", "f32[8,6]")
        self.assertEqual(text.count("weight=first.weight[6,6]"), 2)
        self.assertEqual(text.count("weight=shared.weight[6,6]"), 2)
        self.assertNotIn("second.weight", text)

    @support.full_tier
    def test_constant_masks_are_those_of_the_op(self) -> None:
        text = self.proves("ConstantMasks", "f32[4,5,6]")
        self.assertEqual(text.count("attention("), 5)
        self.assertEqual(text.count("causal=true"), 4)
        self.assertEqual(text.count("causal=true window=2"), 2)
        self.assertIn("causal=true window=2 rate=0.1", text)
        self.assertEqual(text.count("where("), 2)
        self.assertEqual(text.count("dropout("), 0)

    def test_views_after_transposition(self) -> None:
        text = self.proves("ViewAfterTranspose", "f32[8,4,5]")
        self.assertIn("transpose(", text)

    def test_padding(self) -> None:
        text = self.proves("Padded", "f32[8,2,13,15]")
        self.assertIn("pad=1,2,1,2 dilation=1,3", text)

    def test_odd_names(self) -> None:
        text = self.proves("OddNames", ROW)
        names = json.loads(
            header(self.place.path / "my.safetensors")["__metadata__"]["names"]
        )
        self.assertEqual(len(names), 14)
        found = {origin for (origin,) in names.values()}
        self.assertIn('layers.say "hi"\n.weight', found)
        self.assertIn("layers.λ.bias", found)
        for name in names:
            self.assertIn(f"={name}[", text)
        self.place.ok("emit", "my.toml", "--out", "s")
        for script in (self.place.path / "s").glob("*.py"):
            compile(script.read_text(encoding="utf-8"), str(script), "exec")

    def test_blocks_that_read_tables_of_the_model(self) -> None:
        text = self.proves("RotaryBlocks", "i32[4,7]", loss="softmax_cross_entropy")
        # Two layers are one block in the text.
        self.assertEqual(len(re.findall(r"  blocks\.\d = blocks\(", text)), 2, text)
        self.assertEqual(text.count("rms_norm("), 1)
        self.assertIn("weight=.scale[16]) dims=1 eps=1e-06", text)
        self.assertEqual(text.count("frozen"), 2)  # cos and sin, once
        script = self.emitted("train_torch.py")
        self.assertIn("for block in self.blocks:", script)
        self.assertRegex(script, r"= block\(.*, self\.cos, self\.sin\)")

    def test_norms_by_hand(self) -> None:
        text = self.proves("NormsByHand", "f32[8,4,6]")
        self.assertEqual(text.count("rms_norm("), 2)
        self.assertIn("weight=scale[6]) dims=1 eps=1e-05", text)
        self.assertIn("rsqrt(", text)

    def test_arithmetic_that_nobody_would_write(self) -> None:
        text = self.proves("Offset", "f32[8,5,6]")
        self.assertIn("scale = parameter(; weight=scale[1,1,6])", text)
        self.assertRegex(text, r"add\(scale, c_2\)\n  \w+ = rms_norm\(x\) dims=1")
        self.assertNotRegex(text, r"reshape|div|c_3")

    @support.full_tier
    def test_masks_of_several_numbers(self) -> None:
        text = self.proves("Masked", "f32[4,5,3]")
        self.assertNotIn("less", text)

    def test_a_row_that_pads_is_emitted(self) -> None:
        text = self.proves("PaddedBag", "i32[4,6]")
        self.assertIn("weight=words.trains[9,1] frozen", text)
        self.assertIn('self.register_buffer("trains"', self.emitted("train_torch.py"))

    @support.full_tier
    def test_two_biases_become_one(self) -> None:
        done = self.imported(
            "words_with_biases", "i32[8,7]", loss="softmax_cross_entropy"
        )
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("the two biases of each LSTM become one", done.out)
        kept = header(self.place.path / "my.safetensors")
        names = json.loads(kept["__metadata__"]["names"])
        self.assertEqual(names["rnn.bias_ih_l0"], ["rnn.bias_ih_l0", "rnn.bias_hh_l0"])

    def test_a_small_gpt(self) -> None:
        text = self.proves("GPT", "i32[4,10]", loss="softmax_cross_entropy")
        self.assertEqual(text.count("=table.weight[30,16]"), 2)
        self.assertIn("frozen", text)

    def test_computed_weights(self) -> None:
        self.proves("weight_norm", "f32[8,6]")

    def test_batch_norm_that_stays_in_inference_mode(self) -> None:
        text = self.proves("frozen_norm", "f32[8,1,6,6]")
        self.assertNotIn("batch_norm(", text)
        self.assertIn("frozen", text)

    @support.full_tier
    def test_instance_norms_that_stay_in_evaluation_mode(self) -> None:
        done = self.imported("still_norms", "f32[8,2,6,5]")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("running statistics in training too: d2, d3, d1\n", done.out)
        text = (self.place.path / "my.ir").read_text(encoding="utf-8")
        self.assertNotIn("group_norm(", text)
        self.assertIn("dropout(", text)

    @support.full_tier
    def test_places_constant_and_computed(self) -> None:
        text = self.proves("Chosen", "f32[4,6,8]", "i32[4]<6")
        self.assertEqual(text.count("argmax("), 2)
        self.assertGreater(text.count("take("), 4)

    @support.full_tier
    def test_places_of_each_row(self) -> None:
        text = self.proves("Placed", "f32[4,6,8]", "i32[4,5]")
        self.assertEqual(text.count("= gather("), 7)
        self.assertEqual(text.count("= scatter_add("), 3)
        self.assertEqual(text.count("embedding("), 5)  # of topk, and of ids + 0

    @support.full_tier
    def test_batches_one_behind_the_other(self) -> None:
        text = self.proves("Batches", "f32[4,1,5,6]", "f32[4,1,5,6]")
        self.assertEqual(text.count("batch_norm("), 2)

    def test_complex_numbers(self) -> None:
        text = self.proves("Pairs", "f32[4,6,8]")
        self.assertIn("weight=filter[1,4,8,2]", text)

    def test_ops_that_others_spell(self) -> None:
        self.proves("Odds", "f32[4,6,8]")

    @support.full_tier
    def test_paths_that_are_dropped_by_a_floor(self) -> None:
        text = self.proves("DropsPaths", "i32[4,5]", "f32[4,5]")
        self.assertEqual(text.count("dropout("), 2)
        self.assertEqual(text.count("rate=0.25"), 2)

    def test_masks_by_hand(self) -> None:
        text = self.proves("MasksByHand", "i32[4,5]<9")
        rates = re.findall(r"= dropout\(.*rate=(0\.\d\d?)", text)
        self.assertEqual(len(rates), 7, text)
        self.assertRegex(text, r"constant\[1,1,1,6\] frozen")  # one for the whole batch

    @support.full_tier
    def test_what_people_spell(self) -> None:
        done = self.imported("Spelled", "f32[4,6]", "i32[4,6]<6")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("no gradient reaches these, they are frozen: gain", done.out)

    def test_the_least_numbers_are_those_of_float32(self) -> None:
        text = self.proves("LeastNumbers", "f32[4,6]")
        self.assertEqual(text.count("=1.1920928955078125e-07"), 3)

    def test_masks_of_an_attention_that_sees_a_window(self) -> None:
        self.proves("Windowed", "i32[4,9]", "i32[4,9]")

    @support.full_tier
    def test_values_that_are_written_into_constants(self) -> None:
        text = self.proves("WritesInto", "f32[4,6,8]")
        self.assertEqual(text.count("tanh("), 6)

    def test_a_backward_that_is_the_gradient(self) -> None:
        done = self.imported("SameBackward", ROW)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("have a backward of their own", done.out)
        self.assertIn("Bounded", done.out)

    @support.full_tier
    def test_ids_that_are_computed_with(self) -> None:
        text = self.proves("Tokens", "i32[8,6]")
        self.assertIn("linear(", text)  # of the table, without a transposition
        self.assertIn("weight=table.weight[11,6])", text)

    def test_columns_of_categories(self) -> None:
        text = self.proves("Columns", "f32[8,2]", "i32[8,3]")
        self.assertIn("slice(kinds) axis=1 begin=2 end=3", text)
        kinds = "\n".join(
            ["a,b,k0,k1,k2,y", *(f"1,{i},{i % 5},1,{i % 7},2" for i in range(16))]
        )
        self.place.write("rows.csv", kinds)
        recipe = (self.place.path / "my.toml").read_text(encoding="utf-8")
        head, _, rest = recipe.partition("\n[data]\n")
        tail = rest[rest.index("[optimizer]") :]
        for bad, said in ((6, ""), (7, "k2")):
            self.place.write(
                "rows.csv", kinds.replace("1,6,1,1,6,2", f"1,6,1,1,{bad},2")
            )
            self.place.write(
                "my.toml",
                f'{head}\n[data]\nkind = "csv"\npath = "rows.csv"\ninputs = {{ x = ["a", "b"], '
                f'kinds = ["k0", "k1", "k2"], y = "y" }}\n\n{tail}',
            )
            done = self.place.run("emit", "my.toml", "--out", f"scripts{bad}")
            self.assertEqual(done.code, 2 if said else 0, done.err)
            self.assertIn(said, done.err)

    def test_an_input_by_its_name(self) -> None:
        text = self.proves("Tied", "x=f32[8,6]")
        self.assertIn("x: f32[N,6]", text)

    def test_weights_arrive_in_training(self) -> None:
        self.proves("Tied", "f32[8,6]")
        kept = (self.place.path / "my.safetensors").read_bytes()
        self.place.ok("emit", "my.toml", "--out", "s")
        given = header(self.place.path / "my.safetensors")
        written = header(self.place.path / "s" / "weights.safetensors")
        base = 8 + struct.unpack("<Q", kept[:8])[0]
        other = (self.place.path / "s" / "weights.safetensors").read_bytes()
        second = 8 + struct.unpack("<Q", other[:8])[0]
        for name in set(written) - {"__metadata__"}:
            a, b = given[name]["data_offsets"]
            c, d = written[name]["data_offsets"]
            self.assertEqual(kept[base + a : base + b], other[second + c : second + d])


@support.full_tier
class ProvenToo(Proving):
    """What other rows of its table map."""

    def test_ctc(self) -> None:
        text = self.proves("words", "i32[8,7]", loss="ctc")
        self.assertIn("ids: i32[N,7], y: i32[N,4]", text)
        done = self.imported("Tied", "f32[8,6]", loss="ctc", more=("--force",))
        self.assertEqual(done.code, 2)
        self.assertIn("logits must be N,T,C with at least 2 classes", done.err)

    def test_functional_batch_norm(self) -> None:
        text = self.proves("FunctionalNorm", "f32[8,1,7,7]")
        self.assertIn("mean=mean[3], var=var[3]) eps=0.0001 momentum=0.25", text)

    def test_weight_norm_of_signals(self) -> None:
        self.proves("NormedSignals", "f32[4,3,9]")

    def test_sizes_taken_out_of_the_trace(self) -> None:
        text = self.proves("CountsRows", "f32[4,5,4]")
        self.assertIn("N,24", text)

    def test_columns_that_begin_within_a_table(self) -> None:
        text = self.proves("Factors", "i32[8,3]")
        for rows in (23, 16, 5):
            self.assertIn(f"[{rows},1] frozen", text)

    def test_distances(self) -> None:
        self.proves("Distances", "f32[4,5]", "f32[4,5]")

    def test_a_language_model_of_time_first(self) -> None:
        text = self.proves("words", "i32[8,7]", loss="softmax_cross_entropy")
        self.assertEqual(text.count("lstm("), 2)
        self.assertNotIn("transpose(", text)
        self.assertIn("ids: i32[N,7], y: i32[N,7]", text)

    def test_attention(self) -> None:
        text = self.proves("Attention", "f32[4,5,12]")
        self.assertIn("causal=true", text)
        self.assertIn("form=tanh", text)

    def test_functions_of_one_element(self) -> None:
        self.proves("Functions", "f32[8,6]")

    def test_reductions(self) -> None:
        self.proves("Reductions", "f32[8,2,9,8]")

    def test_shapes(self) -> None:
        self.proves("Shapes", "f32[8,4,6]")

    def test_inputs_without_names(self) -> None:
        self.proves("AnyInputs", ROW, ROW, ROW)

    def test_parameters_that_are_complex(self) -> None:
        text = self.proves("Complex", "f32[5,2,4]")
        self.assertIn("parameter(; weight=mixed[1,2,3,2,2])", text)

    def test_layers_that_are_computed_again(self) -> None:
        self.proves("RevNet", ROW)

    def test_windows_in_place(self) -> None:
        self.proves("Strided", "f32[4,6,4]")

    def test_keywords_that_are_handed_on(self) -> None:
        self.proves("Wrapped", "input1=f32[8,4]", "input2=f32[8,4]")

    def test_code_that_asks_whether_it_is_compiled(self) -> None:
        self.proves("MakesItsMask", ROW)

    def test_rows_that_masks_select(self) -> None:
        self.proves("Experts", "f32[4,3,4]")

    def test_rows_that_places_select(self) -> None:
        self.proves("experts_by_rows", "f32[4,3,4]")

    def test_a_batch_that_is_merged(self) -> None:
        self.proves("Merged", "f32[8,8,6,6]")

    def test_recurrences(self) -> None:
        text = self.proves("Recurrences", "f32[8,6,5]")
        self.assertEqual(text.count("= gru("), 4)
        self.assertEqual(len(re.findall(r"= gru\(.*reverse=true", text)), 2)
        self.assertNotIn("flip(", text)
        self.assertIn("weight=cell.weight_hh[16,4]", text)
        self.assertEqual(text.count("expand(c, x) shape=N,4"), 1)
        self.assertNotIn("frozen", text)  # first states are no tables of zeros

    def test_norms_and_positions_by_hand(self) -> None:
        self.proves("Rotary", "f32[4,6,8]")

    def test_convolutions_with_computed_weights(self) -> None:
        self.proves("Standardised", "f32[8,4,6,6]")

    def test_signals(self) -> None:
        self.proves("Signals", "f32[8,4,9]")

    def test_pictures(self) -> None:
        self.proves("Pictures", "f32[4,3,6,6]")

    def test_norms_without_weights(self) -> None:
        text = self.proves("Norms", "f32[4,6,5]")
        self.assertIn("layer_norm(x; weight=thin.weight[5]) dims=1", text)
        self.assertRegex(text, r"layer_norm\(\w+\) dims=2")
        self.assertRegex(text, r"rms_norm\(\w+; weight=rms.weight\[5\]\)")
        self.assertRegex(text, r"group_norm\(\w+\) groups=6")
        self.assertNotIn("frozen", text)

    def test_one_hot(self) -> None:
        text = self.proves("OneHot", "i32[8,5]")
        self.assertRegex(text, r"embedding\(ids; weight=\w+\[7,7\] frozen")

    def test_resizes(self) -> None:
        text = self.proves("Resizes", "f32[4,2,5,6]")
        found = re.findall(r"resize\(.*", text)
        self.assertEqual(len(found), 7, text)
        self.assertNotIn("matmul", text)

    def test_transposed_convolutions(self) -> None:
        self.proves("Decoder", "f32[4,3,3,4]")

    def test_words_that_pad(self) -> None:
        text = self.proves("PaddedWords", "i32[8,5]")
        self.assertIn("table.trains[9,1] frozen", text)

    def test_a_network_for_two_inputs(self) -> None:
        text = self.proves("Twins", "f32[8,6]", "f32[8,6]")
        self.assertEqual(text.count("mean=net.1.running_mean[5]"), 2)

    def test_ops_that_formulas_stand_for(self) -> None:
        self.proves("Formulas", "f32[8,4,4]")

    def test_masks_that_are_added(self) -> None:
        self.proves("AddedMask", "f32[4,5,8]")

    def test_packed_rows(self) -> None:
        text = self.proves("PackedRows", "i32[4,5]<9", "i32[4]<5")
        self.assertEqual((text.count("= gru("), text.count("= lstm(")), (4, 2))

    def test_recurrences_along_axes_that_join_the_batch(self) -> None:
        self.proves("RowsAndColumns", "f32[4,3,5,3]")

    def test_places_of_pools_and_of_neighbours(self) -> None:
        text = self.proves("Unpools", "f32[4,3,9,11]")
        self.assertEqual(text.count("= scatter_add("), 2)
        done = self.imported("Neighbours", "f32[4,7,3]", more=("--force",))
        self.assertEqual(done.code, 0, done.err)
        text = (self.place.path / "my.ir").read_text(encoding="utf-8")
        self.assertEqual(text.count("= gather("), 1)

    def test_hooks_that_read_the_model(self) -> None:
        done = self.imported("ForwardHooks", ROW)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("36 are trained, 0 frozen, 0 left out", done.out)


class Refused(Importing):
    def refuses(
        self, name: str, *parts: str, given: str = ROW, loss: str = "mse"
    ) -> str:
        """The message: it has these parts, and nothing was written."""
        done = self.imported(name, given, loss=loss)
        self.assertEqual(done.code, 2, done.out + done.err)
        for part in parts:
            self.assertIn(part, done.err)
        self.assertNotIn("Traceback", done.err)
        self.assertEqual(self.files(), [])
        return done.err

    def test_training_that_differs_from_inference(self) -> None:
        self.refuses("Branches", line_of("TRAINING BRANCH"), "in training")

    def test_dropout_in_inference(self) -> None:
        self.refuses("AlwaysDrops", line_of("ALWAYS DROPS"), "in inference mode too")

    @support.full_tier
    def test_instance_norms_with_running_statistics(self) -> None:
        said = ("by running ones in inference", "leave the layer in eval()")
        self.refuses("moving_norms", *said, given="f32[8,2,6,5]")

    def test_branches_on_data(self) -> None:
        self.refuses("Looks", line_of("DATA BRANCH"), "depends on the data", "where")

    def test_a_fixed_batch_size(self) -> None:
        self.refuses("FixedBatch", line_of("FIXED BATCH"), "batch size is fixed at 8")

    @support.full_tier
    def test_sparse_tensors(self) -> None:
        self.refuses("sparse", "'edges' is a sparse tensor", "edges.to_dense()")

    def test_a_backward_of_its_own(self) -> None:
        self.refuses("OwnBackward", line_of("OWN BACKWARD"), "'Twice'")

    def test_a_branch_on_the_batch_size(self) -> None:
        self.refuses("GrowsBeyond20", line_of("BATCH BRANCH"), "with 21 rows")
        self.refuses("GrowsBeyond128", "with 129 rows")

    def test_rows_of_an_attention_without_a_key(self) -> None:
        text = self.refuses("Blind", "leaves an attention no key", given="i32[8,3]")
        self.assertNotIn("defect", text)

    def test_all_unsupported_ops_in_one_list(self) -> None:
        text = self.refuses("Unsupported", line_of("LGAMMA"), "aten.lgamma")
        self.assertIn("instead:", text)
        self.assertIn(line_of("MODE") + ": aten.mode", text)
        text = self.refuses("BesideAFormula", line_of("NOISY SLOPE") + ": aten.rrelu")
        self.assertNotIn("hardshrink", text)

    def test_an_output_that_no_loss_compares(self) -> None:
        self.refuses("OwnLoss", "the output cannot be compared by a loss")

    def test_rows_of_a_batch_that_meet(self) -> None:
        self.refuses("MixesRows", line_of("OVER THE BATCH"), "batch")

    @support.full_tier
    def test_a_buffer_that_changes(self) -> None:
        self.refuses("ChangesBuffer", line_of("BUFFER"), "'calls'")
        self.refuses("CountsBehindAView", "the buffer 'seen'")

    def test_several_outputs(self) -> None:
        self.refuses("TwoOutputs", "logits", "other", "--output")
        done = self.imported("TwoOutputs", ROW, more=("--output", "b"))
        self.assertIn("has no output 'b'", done.err)
        self.assertIn("it has logits, other", done.err)
        done = self.imported("TwoOutputs", ROW, more=("--output", "logits"))
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("15 are trained, 0 frozen, 10 left out", done.out)
        self.assertNotIn("b.weight", (self.place.path / "my.ir").read_text())

    @support.full_tier
    def test_several_outputs_side_by_side(self) -> None:
        names = ("--output", "scores,masks,best,pairs")
        done = self.imported("Heads", "f32[4,3,6,5]", more=names)
        self.assertEqual(done.code, 0, done.err)
        text = (self.place.path / "my.ir").read_text()
        self.assertIn(" = join(scores, masks, best, pairs)", text)
        self.assertIn("y: f32[N,84]", text)
        self.assertRegex(text, r"masks = reshape\(.*shape=N,3,2,4,3\n")
        self.assertRegex(text, r"pairs = reshape\(.*shape=N,2,3\n")
        twice = self.imported(
            "Heads", "f32[4,3,6,5]", more=("--output", "best,best", "--force")
        )
        self.assertIn("the output 'best' is named twice", twice.err)
        same = self.imported(
            "Heads", "f32[4,3,6,5]", more=("--output", "scores,again", "--force")
        )
        self.assertIn("the output 'scores' holds the same values as another", same.err)
        done = self.imported(
            "Heads", "f32[4,3,6,5]", more=("--output", "z,masks", "--force")
        )
        self.assertIn("has no output 'z'", done.err)

    def test_what_no_export_keeps(self) -> None:
        self.refuses("Hooked", "'fc.weight' has a hook that changes its gradient")
        self.refuses("SeesAPart", "'part' shares a part of its memory with 'fc.weight'")
        self.refuses("TrainsAPart", "'part' shares a part of its memory with 'whole'")
        self.refuses("Averaged", "'norm' averages its statistics over all steps")
        self.refuses("Scripted", "'part' is a ScriptModule")
        self.refuses("spectral", "'fc' has spectral_norm")
        self.refuses("spectral_by_hook", "'fc' has spectral_norm")

    def test_forwards_that_change_what_they_compute_with(self) -> None:
        said = "changes the parameter '{}' in the forward pass"
        self.refuses("SetsWeights", said.format("scale"), "in make, by a batch")
        place = line_of("BOUNDS")
        self.refuses("BoundsWeights", place, said.format("fc.weight"))
        self.refuses("Remembers", "called again with the same inputs")

    def test_what_forward_does_to_gradients(self) -> None:
        said = "a hook changes the gradient of a tensor"
        self.refuses("scales_gradients", line_of("LOOKS"), said)
        said = "forward changes requires_grad"
        self.refuses("toggles_training", line_of("TOGGLES"), said, "in make")

    def test_noise_that_inference_takes_the_mean_of(self) -> None:
        self.refuses("Zoneout", line_of("ZONEOUT"), "zoneout is old + (1 - p)")

    def test_rows_that_read_other_rows(self) -> None:
        place = line_of("THE LONGEST")
        self.refuses("PadsToTheLongest", place, "total_length", given="i32[4,5]<9")
        place = line_of("NEIGHBOURS")
        self.refuses("NeighboursOfOthers", place, "of other rows", given="f32[4,7,3]")

    def test_weights_that_an_optimizer_does_not_see(self) -> None:
        self.refuses("HidesWeights", "'layers' is a plain list", "nn.ModuleList")
        self.refuses("SharesMemory", "'two.weight' shares its memory with 'one.weight'")

    @support.full_tier
    def test_selected_rows_that_meet(self) -> None:
        self.refuses("LooksForNegatives", line_of("MASK BRANCH"), "depends on the data")
        self.refuses("SelectsToMix", line_of("OF SELECTED ROWS"), "batch")
        self.refuses("GivesSelected", "rows that a mask selects", "y[mask] = ...")

    def test_ids_beyond_a_table(self) -> None:
        self.refuses("ReadsBeyond", "cannot compute", "index out of range")

    def test_random_numbers_of_python(self) -> None:
        self.refuses("TossesCoins", "random numbers of Python or NumPy", "nn.Dropout")

    def test_a_model_that_torch_cannot_train(self) -> None:
        self.refuses("CannotTrain", "torch cannot compute the model's gradients")

    def test_outputs_that_are_no_numbers(self) -> None:
        self.refuses("Roots", "numbers that are not finite")

    def test_what_the_file_has(self) -> None:
        self.refuses("Nothing", "has no 'Nothing'", "ResNet")
        self.refuses("needs", "needs arguments: size")
        self.refuses("gives_nothing", "NoneType")
        self.refuses("fails", line_of("FAILS"), "no weights here")
        self.refuses("Tied", "cannot compute with these inputs", given="f32[8,5]")

    def test_files_that_cannot_be_read(self) -> None:
        for name, text, part in (
            ("syntax.py", "import torch\ndef make(:\n", "syntax.py:2"),
            ("exits.py", "raise SystemExit(3)\n", "SystemExit"),
            ("missing.py", "import no_such_package\n", "no_such_package"),
        ):
            self.place.write(name, text)
            done = self.place.run(
                "import", f"{name}:make", "--input", ROW, "--loss", "mse",
                "--out", "my.ir",
            )  # fmt: skip
            self.assertEqual(done.code, 2, done.err)
            self.assertIn(part, done.err)
            self.assertEqual(self.files(), [])

    def test_options(self) -> None:
        for more, part in (
            (("--input", "f32[8"), "--input 'f32[8'"),
            (("--input", ROW, "--loss", "softmax"), "--loss 'softmax' is no loss"),
            (("--input", ROW, "--out", "my.txt"), "does not end in .ir"),
            (("--input", "z=" + ROW), "forward has no parameter 'z'"),
        ):
            words = {"--loss": "mse", "--out": "my.ir"}
            listed = list(more)
            for option, value in words.items():
                if option not in listed:
                    listed += [option, value]
            done = self.place.run("import", f"{MODELS.name}:Tied", *listed)
            self.assertEqual(done.code, 2, done.out)
            self.assertIn(part, done.err)
        done = self.place.run(
            "import", "model.py", "--input", ROW, "--loss", "mse", "--out", "my.ir"
        )
        self.assertEqual(done.code, 2)
        self.assertIn("FILE.py:NAME", done.err)

    def test_files_are_not_replaced_unasked(self) -> None:
        self.place.write("my.toml", "mine")
        done = self.imported("Tied", "f32[8,6]")
        self.assertEqual(done.code, 2)
        self.assertIn("my.toml' exists", done.err)
        self.assertEqual((self.place.path / "my.toml").read_text(), "mine")
        done = self.imported("Tied", "f32[8,6]", more=("--force",))
        self.assertEqual(done.code, 0, done.err)


@support.full_tier
class Trains(unittest.TestCase):
    """The gate of four frameworks: the same losses, gradients and training steps."""

    def trains(self, names: dict[str, tuple[str, ...]]) -> None:
        support.need("torch", "jax", "tensorflow")
        place = support.Place(["torch", "jax", "tensorflow"], warm=True)
        self.addCleanup(place.close)
        shutil.copy(MODELS, place.path)
        for name, inputs in names.items():
            with self.subTest(name):
                typed = [word for one in inputs for word in ("--input", one)]
                done = place.run(
                    "import", f"{MODELS.name}:{name}", *typed, "--loss", "mse",
                    "--out", "my.ir", "--force",
                )  # fmt: skip
                self.assertEqual(done.code, 0, done.err)
                verdicts = gate(
                    support.BAKEOFF, place.path / "my.toml", place.variables
                )
                self.assertEqual(verdicts, dict.fromkeys(FRAMEWORKS, "same"))

    def test_all(self) -> None:
        self.trains(
            {
                "Columns": ("f32[8,2]", "i32[8,3]"),
                "Tokens": ("i32[8,6]",),
                "RotaryBlocks": ("i32[4,7]",),
                "Masked": ("f32[4,5,3]",),
                "NormedSignals": ("f32[4,3,9]",),
                "CountsRows": ("f32[4,5,4]",),
                "PaddedBag": ("i32[4,6]",),
                "Factors": ("i32[8,3]",),
                "Twins": ("f32[8,6]", "f32[8,6]"),
                "Formulas": ("f32[8,4,4]",),
                "AddedMask": ("f32[4,5,8]",),
                "ResNet": (PICTURE,),
                "Recurrences": ("f32[8,6,5]",),
                "Rotary": ("f32[4,6,8]",),
                "Signals": ("f32[8,4,9]",),
                "Decoder": ("f32[4,3,3,4]",),
                "Attention": ("f32[4,5,12]",),
            }
        )


class Whole(Proving):
    """What networks of libraries are made of: several ways in one import."""

    def test_every_row_has_masks_of_its_own(self) -> None:
        text = self.proves("Queries", "f32[8,5,8]")
        self.assertIn("rate=0.25", text)
        self.assertRegex(text, r"expand\(queries\w*, x\) shape=N,5,8")
        self.assertRegex(text, r"dropout\(table\w*\) rate=0.3")
        self.assertRegex(text, r"attention\(.*\) .*rate=0.2")

    def test_masks_caches_and_tied_padding(self) -> None:
        inputs = ("i32[8,6]", "i32[8,6]", "bool[8,6]", "i32[8]<1000")
        text = self.proves("WordsOfMasks", *inputs, loss="softmax_cross_entropy")
        self.assertIn("gone: i32[N,6], t: i32[N], y: i32[N,6]", text)
        self.assertIn("numbers_2[1000,1] frozen", text)
        self.assertIn("weight=table.weight[30,8]) padding_idx=", text)
        self.assertIn("weight=table.weight[30,8], bias=head.bias[30]", text)
        done = self.imported("WordsOfMasks", *inputs, more=("--force",))
        self.assertIn("270 are trained, 0 frozen, 72 left out", done.out)
        self.assertIn("training gives besides: auxiliary", done.out)
        self.assertIn("the integers of 'mask' are 0 and 1", done.out)

    def test_pools_sizes_and_a_branch_that_changes_nothing(self) -> None:
        text = self.proves("Places", "f32[4,3,9,12]")
        self.assertEqual(text.count("= concat(") - text.count("max_pool2d("), 3)
        done = self.imported("GrowsBeyond1000", ROW, more=("--force",))
        self.assertIn("was compared for up to 512 rows", done.out)

    def test_stopped_gradients(self) -> None:
        self.assertIn("stop_gradient(fc)", self.proves("StopsGradients", ROW))
        done = self.imported("Teacher", ROW, more=("--force",))
        self.assertIn("20 are trained, 20 frozen, 0 left out", done.out)
        self.assertIn("no gradient reaches these", done.out)
        text = (self.place.path / "my.ir").read_text(encoding="utf-8")
        self.assertIn("old.weight[4,4] frozen", text)


class WrongMappings(Importing):
    """A row of the table is wrong on purpose: the proof sees it."""

    def plant(self, change: str) -> None:
        self.place.variables["BAKEOFF_PLANTED"] = PLANT + change

    def caught(self, name: str, given: str, *parts: str) -> None:
        done = self.imported(name, given)
        self.assertEqual(done.code, 2, done.out + done.err)
        for part in parts:
            self.assertIn(part, done.err)
        self.assertEqual(self.files(), [])

    def test_nothing_changed(self) -> None:
        self.plant("pass")
        self.assertEqual(self.imported("HiddenScale", ROW).code, 0)

    def test_another_function(self) -> None:
        self.plant("ROWS['sigmoid'] = ROWS['tanh']")
        self.caught(
            "HiddenScale", ROW, line_of("WRONG ON PURPOSE"),
            "first value that differs", "aten.sigmoid",
        )  # fmt: skip

    def test_another_gradient(self) -> None:
        self.plant("ROWS['detach'] = ROWS['alias']")
        self.caught(
            "StopsGradients", ROW, "outputs agree, but gradients", "'fc = linear'"
        )

    def test_a_bias_that_is_left_out(self) -> None:
        self.plant(
            "old = ROWS['linear']\n"
            "def linear(m, a):\n"
            "    a['bias'] = None\n"
            "    return old(m, a)\n"
            "ROWS['linear'] = linear"
        )
        self.caught("HiddenScale", ROW, "first value that differs is 'first = linear'")

    def test_weights_that_are_exchanged(self) -> None:
        self.plant(
            "from bakeoff_import import mapping\n"
            "old = mapping.Mapper.slot\n"
            "def slot(self, arg, shape=None):\n"
            "    if getattr(arg, 'key', '') == 'first.weight':\n"
            "        arg = mapping.Param(arg.key, arg.tensor.T.clone())\n"
            "    return old(self, arg, shape)\n"
            "mapping.Mapper.slot = slot"
        )
        self.caught("HiddenScale", ROW, "at the model's own weights")

    def test_another_momentum(self) -> None:
        self.plant(
            "old = ROWS['batch_norm']\n"
            "def batch_norm(m, a):\n"
            "    a['momentum'] = 0.2\n"
            "    return old(m, a)\n"
            "ROWS['batch_norm'] = batch_norm"
        )
        self.caught("FunctionalNorm", "f32[8,1,7,7]", "running statistics 'mean'")

    def test_a_mask_that_rows_share(self) -> None:
        self.plant(
            "from bakeoff_import.builder import Builder\n"
            "Builder.spread_out = lambda self, v: v"
        )
        self.caught("Queries", "f32[8,5,8]", "draws no such mask")

    def test_a_rate_that_is_turned(self) -> None:
        self.plant(
            "old = ROWS['dropout']\n"
            "def dropout(m, a):\n"
            "    a['p'] = 1 - a['p']\n"
            "    return old(m, a)\n"
            "ROWS['dropout'] = dropout"
        )
        self.caught("Queries", "f32[8,5,8]", "rate 0.7", "draws no such mask")

    @support.full_tier
    def test_a_dropout_that_is_lost(self) -> None:
        self.plant("ROWS['dropout'] = ROWS['alias']")
        self.caught("ResNet", PICTURE, "that the import lacks")

    def test_a_weight_that_is_frozen(self) -> None:
        self.plant(
            "from bakeoff_import import mapping\n"
            "old = mapping.Mapper._placeholder\n"
            "def placeholder(self, node):\n"
            "    made = old(self, node)\n"
            "    held = getattr(made, 'key', '') == 'first.weight'\n"
            "    return mapping.Const(made.tensor.detach()) if held else made\n"
            "mapping.Mapper._placeholder = placeholder"
        )
        self.caught("HiddenScale", ROW, "the model trains 'first.weight'")


class Documentation(unittest.TestCase):
    def test_its_table_is_made_by_the_command(self) -> None:
        support.need("torch")
        made = support.called(
            [str(support.interpreter("torch")), "-m", "bakeoff_import", "--table"],
            cwd=support.ROOT / "runners",
            check=True,
        ).stdout
        self.assertIn("| `conv1d`, `conv2d`, `conv3d` |", made)
        document = (support.ROOT / "docs" / "import.md").read_text(encoding="utf-8")
        self.assertTrue(
            document.endswith(made), "make the table of docs/import.md again"
        )


class Endings(Importing):
    WARM = False  # what is killed is a child of the program

    def test_ctrl_c_leaves_nothing(self) -> None:
        now = self.place.path / "now"
        self.place.write(
            "slow.py",
            f"import time\ndef make():\n    open({str(now)!r}, 'w')\n    time.sleep(1e6)\n",
        )
        with self.place.start(
            "import", "slow.py:make", "--input", ROW, "--loss", "mse", "--out", "my.ir"
        ) as process:
            support.wait_for(now.exists, process)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(self.files(), [])

    def test_a_time_limit(self) -> None:
        self.place.write("slow.py", "import time\ndef make():\n    time.sleep(1e6)\n")
        done = self.place.run(
            "import", "slow.py:make", "--input", ROW, "--loss", "mse",
            "--out", "my.ir", "--seconds", "5",
        )  # fmt: skip
        self.assertEqual(done.code, 2)
        self.assertIn("timed out after 5 s", done.err)
        self.assertIn("--seconds", done.err)
        self.assertEqual(self.place.none_left(), {})

    def test_a_child_that_dies(self) -> None:
        self.place.write(
            "dies.py", "import os\nprint('last words', flush=True)\nos._exit(7)\n"
        )
        done = self.place.run(
            "import", "dies.py:make", "--input", ROW, "--loss", "mse", "--out", "my.ir"
        )
        self.assertEqual(done.code, 2)
        self.assertIn("last words", done.err)
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    support.main()
