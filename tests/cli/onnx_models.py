"""Writes the ONNX files of the import's tests into a folder. Runs in the environment onnxruntime."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

RNG = np.random.default_rng(3)
F, I = TensorProto.FLOAT, TensorProto.INT64  # noqa: E741


def weight(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(
        RNG.normal(size=shape).astype(np.float32) * 0.3, name
    )


def ints(name: str, *numbers: int) -> Any:
    return numpy_helper.from_array(np.array(numbers, dtype=np.int64), name)


def model(
    nodes: Sequence[Any],
    initialisers: Sequence[Any],
    x: Sequence[Any],
    opset: int = 17,
    kind: int = F,
    outputs: Sequence[str] = ("out",),
) -> Any:
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", kind, list(x))],
        [helper.make_tensor_value_info(name, F, None) for name in outputs],
        list(initialisers),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 8
    return made


def node(op: str, inputs: Sequence[str], output: str, **attributes: Any) -> Any:
    return helper.make_node(op, list(inputs), [output], name=output, **attributes)


def good() -> dict[str, Any]:
    return {
        "cnn": model(
            [
                node(
                    "Conv",
                    ["x", "c.weight", "c.bias"],
                    'a "quoted"\nname',
                    pads=[1] * 4,
                ),
                node(
                    "BatchNormalization",
                    ['a "quoted"\nname', "b.weight", "b.bias", "b.mean", "b.var"],
                    "h",
                ),
                node("LeakyRelu", ["h"], "r", alpha=0.2),
                node(
                    "MaxPool",
                    ["r"],
                    "p",
                    kernel_shape=[3, 3],
                    strides=[2, 2],
                    ceil_mode=1,
                ),
                node("Shape", ["p"], "s"),
                node("Gather", ["s", "zero"], "n", axis=0),
                node("Concat", ["n", "rest"], "shape", axis=0),
                node("Reshape", ["p", "shape"], "f"),
                node("Gemm", ["f", "fc.weight", "fc.bias"], "out", transB=1),
            ],
            [
                weight("c.weight", 4, 3, 3, 3),
                weight("c.bias", 4),
                weight("b.weight", 4),
                weight("b.bias", 4),
                weight("b.mean", 4),
                numpy_helper.from_array(np.full(4, 1.5, np.float32), "b.var"),
                ints("zero", 0),
                ints("rest", -1),
                weight("fc.weight", 5, 64),
                weight("fc.bias", 5),
            ],
            ["batch", 3, 8, 8],
        ),
        "row": model(  # one axis of pixels
            [
                node("Conv", ["x", "w"], "c", strides=[2], pads=[1, 0]),
                node("Tanh", ["c"], "t"),
                node("AveragePool", ["t"], "p", kernel_shape=[2], strides=[2]),
                node("Flatten", ["p"], "out"),
            ],
            [weight("w", 6, 2, 3)],
            ["batch", 2, 17],
        ),
        "old_softmax": model(  # the axes after 1 are one
            [node("Softmax", ["x"], "s", axis=1), node("Mul", ["s", "scale"], "out")],
            [weight("scale", 3, 4)],
            ["batch", 3, 4],
            opset=11,
        ),
        "new_softmax": model(
            [node("Softmax", ["x"], "s", axis=1), node("Mul", ["s", "scale"], "out")],
            [weight("scale", 3, 4)],
            ["batch", 3, 4],
            opset=13,
        ),
        "tied": model(
            [
                node("Gather", ["table", "x"], "e"),
                node("Transpose", ["table"], "t", perm=[1, 0]),
                node("MatMul", ["e", "t"], "out"),
            ],
            [weight("table", 9, 6)],
            ["batch", 5],
            kind=I,
        ),
        "heads": model(  # the batch written as a number, merged with heads
            [
                node("Transpose", ["x"], "first", perm=[1, 0, 2]),
                node("MatMul", ["first", "w"], "q"),
                node("Reshape", ["q", "cut"], "c"),
                node("Transpose", ["c"], "h", perm=[1, 0, 2]),
                node("Transpose", ["h"], "k", perm=[0, 2, 1]),
                node("MatMul", ["h", "k"], "s"),
                node("Softmax", ["s"], "p"),
                node("MatMul", ["p", "h"], "v"),
                node("Transpose", ["v"], "b", perm=[1, 0, 2]),
                node("Reshape", ["b", "back"], "last"),
                node("Transpose", ["last"], "out", perm=[1, 0, 2]),
            ],
            [weight("w", 8, 8), ints("cut", 3, 20, 2), ints("back", 3, 5, 8)],
            [5, 3, 8],
        ),
    }


def table(name: str, array: Any) -> Any:
    return numpy_helper.from_array(np.asarray(array), name)


def sequences() -> dict[str, Any]:
    """T,N,F with the batch on axis 1; variants that the IR spells step by step."""
    gru = [weight("gw", 1, 12, 3), weight("gr", 1, 12, 4), weight("gb", 1, 24)]
    rnn = [weight("rw", 2, 5, 4), weight("rr", 2, 5, 5)]
    gates = [weight("lw", 1, 16, 3), weight("lr", 1, 16, 4), weight("lb", 1, 32)]
    first = [weight(name, 1, 1, 4) for name in ("h0", "c0")]
    spread = [ints("one", 1), ints("four", 4)]

    return {
        "gru": model(
            [
                helper.make_node(
                    "GRU", ["x", "gw", "gr", "gb"], ["g"], hidden_size=4, name="g"
                ),
                node("Squeeze", ["g", "one"], "s"),
                helper.make_node(
                    "RNN",
                    ["s", "rw", "rr"],
                    ["r", "h"],
                    hidden_size=5,
                    direction="bidirectional",
                    name="r",
                ),
                node("Transpose", ["h"], "t", perm=[1, 0, 2]),
                node("Flatten", ["t"], "out"),
            ],
            [*gru, *rnn, ints("one", 1)],
            [4, "batch", 3],
        ),
        "peepholes": model(
            [
                node("Shape", ["x"], "s"),
                node("Gather", ["s", "one"], "n"),
                node("Concat", ["one", "n", "four"], "rows", axis=0),
                node("Expand", ["h0", "rows"], "h"),
                node("Expand", ["c0", "rows"], "c"),
                helper.make_node(
                    "LSTM",
                    ["x", "lw", "lr", "lb", "", "h", "c", "p"],
                    ["y", "last", "cell"],
                    hidden_size=4,
                    direction="reverse",
                    name="l",
                ),
                node("Add", ["last", "cell"], "both"),
                node("Squeeze", ["both", "zero"], "out"),
            ],
            [*gates, *first, *spread, weight("p", 1, 12), ints("zero", 0)],
            [4, "batch", 3],
        ),
    }


def windows() -> dict[str, Any]:
    columns = [ints("image", 5, 6), ints("block", 2, 3)]
    return {
        "holes": model(
            [
                node("Conv", ["x", "w"], "c", pads=[1] * 4),
                node("MaxPool", ["c"], "m", kernel_shape=[2, 3], dilations=[3, 2]),
                node(
                    "AveragePool",
                    ["m"],
                    "a",
                    kernel_shape=[3, 2],
                    dilations=[1, 2],
                    strides=[2, 1],
                    pads=[2, 0, 2, 1],
                    ceil_mode=1,
                ),
                node("Flatten", ["a"], "out"),
            ],
            [weight("w", 4, 3, 3, 3)],
            ["batch", 3, 11, 12],
            opset=19,
        ),
        "columns": model(
            [
                node("Conv", ["x", "w"], "c"),
                node(
                    "Col2Im",
                    ["c", "image", "block"],
                    "i",
                    strides=[2, 1],
                    pads=[0, 1, 1, 0],
                ),
                node("Flatten", ["i"], "out"),
            ],
            [weight("w", 12, 3, 1), *columns],
            ["batch", 3, 15],
            opset=18,
        ),
        "smaller": model(
            [
                node("Conv", ["x", "w"], "c"),
                node("Resize", ["c", "", "half"], "s", mode="linear", antialias=1),
                node(
                    "Resize",
                    ["s", "region", "", "sizes"],
                    "r",
                    mode="linear",
                    axes=[2, 3],
                    coordinate_transformation_mode="tf_crop_and_resize",
                    extrapolation_value=2.0,
                ),
                node("CenterCropPad", ["r", "around"], "o", axes=[2, 3]),
                node("Flatten", ["o"], "out"),
            ],
            [
                weight("w", 2, 3, 1, 1),
                table("half", np.array([1, 1, 0.5, 0.6], np.float32)),
                table("region", np.array([0.1, -0.3, 0.9, 0.8], np.float32)),
                ints("sizes", 4, 5),
                ints("around", 3, 8),
            ],
            ["batch", 3, 10, 10],
            opset=18,
        ),
    }


def choices() -> dict[str, Any]:
    """Places of largest elements, products, angles."""
    return {
        "places": model(
            [
                node("MatMul", ["x", "w"], "h"),
                node("ArgMax", ["h"], "a", axis=2, keepdims=0),
                node("Gather", ["rows", "a"], "g"),
                node("ArgMin", ["h"], "i", axis=1, keepdims=1, select_last_index=1),
                node("Cast", ["i"], "n", to=F),
                node("Hardmax", ["h"], "m", axis=1),
                node("ReduceProd", ["h", "axes"], "p"),
                node("CumProd", ["h", "axis"], "c", exclusive=1, reverse=1),
                node("Sum", ["g", "n", "m", "p", "c"], "out"),
            ],
            [
                weight("w", 6, 6),
                weight("rows", 6, 6),
                ints("axes", 1, 2),
                table("axis", np.array(2, np.int64)),
            ],
            ["batch", 4, 6],
            opset=26,
        ),
        "angles": model(
            [
                node("Tanh", ["x"], "t"),
                node("Mul", ["t", "w"], "s"),
                node("Asin", ["s"], "a"),
                node("Acos", ["s"], "c"),
                node("Atan", ["x"], "u"),
                node("Sum", ["a", "c", "u"], "out"),
            ],
            [table("w", np.linspace(0.2, 0.9, 5).astype(np.float32))],
            ["batch", 5],
        ),
        "einsum": model(
            [
                node("Einsum", ["x", "a"], "one", equation="bij,kj->bki"),
                node("Einsum", ["one", "x"], "two", equation="bki,bil->bkl"),
                node("Einsum", ["two"], "out", equation="bkk->bk"),
            ],
            [weight("a", 4, 4)],
            ["batch", 3, 4],
        ),
        "rotary": model(
            [
                node("MatMul", ["x", "wq"], "q"),
                node("MatMul", ["x", "wk"], "k"),
                node("Shape", ["x"], "n", end=1),
                node("Concat", ["n", "place"], "shape", axis=0),
                node("Expand", ["cos_", "shape"], "cos"),
                node("Expand", ["sin_", "shape"], "sin"),
                node("RotaryEmbedding", ["q", "cos", "sin"], "rq", num_heads=4),
                node(
                    "RotaryEmbedding",
                    ["k", "cos", "sin"],
                    "rk",
                    num_heads=2,
                    interleaved=1,
                ),
                node(
                    "Attention",
                    ["rq", "rk", "k", "mask"],
                    "out",
                    q_num_heads=4,
                    kv_num_heads=2,
                    softcap=2.0,
                ),
            ],
            [
                weight("wq", 8, 16),
                weight("wk", 8, 8),
                table("cos_", np.cos(RNG.normal(size=(1, 5, 2))).astype(np.float32)),
                table("sin_", np.sin(RNG.normal(size=(1, 5, 2))).astype(np.float32)),
                table("mask", np.tri(5, dtype=bool)),
                ints("place", 5, 2),
            ],
            ["batch", 5, 8],
            opset=23,
        ),
    }


def bad() -> dict[str, Any]:
    identity = node("Identity", ["x"], "out")
    loop = helper.make_graph([], "body", [], [])
    huge = TensorProto(name="w", data_type=F, dims=[1 << 40, 1 << 40], raw_data=b"1234")
    short = TensorProto(name="w", data_type=F, dims=[1000000], raw_data=b"1234")
    return {
        "circle": model(
            [
                node("Add", ["x", "b"], "a"),
                node("Relu", ["a"], "b"),
                node("Relu", ["b"], "out"),
            ],
            [],
            ["n", 3],
        ),
        "twice": model(
            [
                node("Relu", ["x"], "a"),
                node("Tanh", ["x"], "a"),
                node("Relu", ["a"], "out"),
            ],
            [],
            ["n", 3],
        ),
        "huge": model([node("Add", ["x", "w"], "out")], [huge], ["n", 3]),
        "short": model([node("Add", ["x", "w"], "out")], [short], ["n", 3]),
        "loop": model(
            [helper.make_node("Loop", ["", "", "x"], ["out"], body=loop)], [], ["n", 3]
        ),
        "quantised": model(
            [
                helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
                node("DequantizeLinear", ["q", "s", "z"], "out"),
            ],
            [],
            ["n", 3],
        ),
        "foreign": model(
            [helper.make_node("Magic", ["x"], ["out"], domain="com.example")],
            [],
            ["n", 3],
        ),
        "two_outputs": model(
            [identity, node("Relu", ["x"], "other")],
            [],
            ["n", 3],
            outputs=["out", "other"],
        ),
        "over_the_batch": model([node("Softmax", ["x"], "out", axis=0)], [], ["n", 3]),
        "old": model([node("Cast", ["x"], "out", to=1)], [], ["n", 3], opset=5),
        "open": model([identity], [], ["n", "length"]),
        "unsupported": model(
            [
                node("Det", ["x"], "a"),
                node("TopK", ["x", "k"], "b"),
                node("Add", ["a", "b"], "out"),
            ],
            [ints("k", 1)],
            ["n", 3, 3],
        ),
    }


def external(folder: Path, name: str, location: str) -> None:
    tensor = TensorProto(name="w", data_type=F, dims=[3, 3], data_location=1)
    for key, value in {"location": location, "offset": "0", "length": "36"}.items():
        tensor.external_data.add(key=key, value=value)
    made = model([node("MatMul", ["x", "w"], "out")], [tensor], ["n", 3])
    (folder / f"{name}.onnx").write_bytes(made.SerializeToString())


def chain(count: int) -> Any:
    nodes = [node("Relu", ["x"], "v0")]
    nodes += [node("Neg", [f"v{i}"], f"v{i + 1}") for i in range(count)]
    nodes += [node("MatMul", [f"v{count}", "w"], "out")]
    return model(nodes, [weight("w", 3, 3)], ["n", 3])


def write(folder: Path) -> None:
    proven = good() | sequences() | windows() | choices()
    for name, made in [*proven.items(), *bad().items(), ("chain", chain(10000))]:
        save(made, str(folder / f"{name}.onnx"))
    numbers = RNG.normal(size=(3, 3)).astype(np.float32).tobytes()
    (folder / "inside.bin").write_bytes(numbers)
    (folder.parent / "outside.bin").write_bytes(numbers)
    os.symlink(folder.parent / "outside.bin", folder / "link.bin")
    external(folder, "external", "inside.bin")
    external(folder, "above", "../outside.bin")
    external(folder, "absolute", str(folder / "inside.bin"))
    external(folder, "linked", "link.bin")
    external(folder, "gone", "gone.bin")
    whole = (folder / "cnn.onnx").read_bytes()
    (folder / "truncated.onnx").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "noise.onnx").write_bytes(
        RNG.integers(0, 256, 5000).astype(np.uint8).tobytes()
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
